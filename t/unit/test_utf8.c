/* SPDX-License-Identifier: BSD-2-Clause */

/* These tests check which bytes are a UTF-8 character and which are not. */

#include "unit.h"

#include "bloom_utf8.h"


/* Every valid character is accepted, and no other sequence of two bytes. */
TEST(characters)
{
    uint32_t  c;
    uint8_t   p[4];

    for (c = 0; c < 0x10000; c++) {
        p[0] = (uint8_t) (c >> 8);
        p[1] = (uint8_t) c;

        if (p[0] < 0x80) {
            assert_int_equal(bloom_utf8_len(p, 2), 1);

        } else if (p[0] >= 0xc2 && p[0] <= 0xdf && (p[1] & 0xc0) == 0x80) {
            assert_int_equal(bloom_utf8_len(p, 2), 2);
            assert_int_equal(bloom_utf8_len(p, 1), 0);

        } else {
            assert_int_equal(bloom_utf8_len(p, 2), 0);
        }
    }

    assert_int_equal(bloom_utf8_len((const uint8_t *) "\xe2\x82\xac", 3), 3);
    assert_int_equal(bloom_utf8_len((const uint8_t *) "\xe2\x82\xac", 2), 0);
    assert_int_equal(bloom_utf8_len((const uint8_t *) "\xf0\x9f\x98\x80", 4),
                     4);
}


TEST(texts)
{
    size_t  i;

    static const struct {
        const char  *text;
        int          valid;
    } known[] = {
        { "", 1 },
        { "a\x7f", 1 },
        { "\xc2\x80\xdf\xbf", 1 },
        { "\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf", 1 },
        { "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", 1 },
        { "a\x80", 0 },
        { "\xc1\xbf", 0 },                     /* overlong */
        { "\xe0\x9f\xbf", 0 },
        { "\xf0\x8f\xbf\xbf", 0 },
        { "\xed\xa0\x80", 0 },                /* a surrogate */
        { "\xf4\x90\x80\x80", 0 },            /* past U+10FFFF */
        { "\xf5\x80\x80\x80", 0 },
        { "\xe2\x82", 0 },                     /* truncated */
        { "\xe2\x82" "a", 0 },
    };

    for (i = 0; i < array_len(known); i++) {
        assert_int_equal(bloom_utf8_valid((const uint8_t *) known[i].text,
                                          strlen(known[i].text)),
                         known[i].valid);
    }

    assert_true(bloom_utf8_valid(NULL, 0));
    assert_true(bloom_utf8_valid((const uint8_t *) "a\0b", 3));
}
