/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These tests check positions and names of sources: what is parsed and what is
 * refused, that positions are written as they are parsed, and their order.
 */

#include <inttypes.h>

#include "unit.h"

#include "bloom_source.h"

#define MAX  UINT64_MAX


static const struct {
    const char        *text;
    bloom_position_t   position;
    const char        *written;          /* NULL: as `text` */
} positions[] = {
    { "0", { 0, 0 }, NULL },
    { "0-1", { 0, 1 }, NULL },
    { "0-18446744073709551615", { 0, MAX }, NULL },
    { "1", { 1, 0 }, NULL },
    { "1-1", { 1, 1 }, NULL },
    { "9", { 9, 0 }, NULL },
    { "10", { 10, 0 }, NULL },
    { "1700000000000-3", { 1700000000000, 3 }, NULL },
    { "18446744073709551609", { MAX - 6, 0 }, NULL },
    { "18446744073709551615", { MAX, 0 }, NULL },
    { "18446744073709551615-18446744073709551615", { MAX, MAX }, NULL },

    { "0-0", { 0, 0 }, "0" },
    { "7-0", { 7, 0 }, "7" },
    { "007-09", { 7, 9 }, "7-9" },
    { "00000000000000000001", { 1, 0 }, "1" },
    { "1-00000000000000000002", { 1, 2 }, "1-2" }
};


/* The text lies in memory of exactly its length: no byte after it is read. */
static int
parse(bloom_position_t *position, const char *text, size_t len)
{
    int    rc;
    char  *exact;

    exact = unit_copy(text, len);

    rc = bloom_position_parse(position, exact, len);
    free(exact);

    return rc;
}


TEST(positions_are_parsed_and_written)
{
    size_t            i, len;
    char              text[BLOOM_POSITION_TEXT_MAX];
    const char       *written;
    bloom_position_t  got;

    for (i = 0; i < array_len(positions); i++) {
        got.high = got.low = 77;

        if (parse(&got, positions[i].text, strlen(positions[i].text)) != 0) {
            fail_msg("\"%s\" is refused", positions[i].text);
        }

        assert_true(got.high == positions[i].position.high);
        assert_true(got.low == positions[i].position.low);

        written = positions[i].written ? positions[i].written
                                       : positions[i].text;

        memset(text, 'x', sizeof(text));
        len = bloom_position_write(got, text);
        assert_string_equal(text, written);
        assert_int_equal(len, strlen(written));
    }

    /* the longest one fills its room with the null byte */

    got.high = got.low = MAX;
    assert_int_equal(bloom_position_write(got, text),
                     BLOOM_POSITION_TEXT_MAX - 1);
}


TEST(what_is_no_position_is_refused)
{
    size_t            i;
    bloom_position_t  got;

    static const char  *const texts[] = {
        "", "-", "--", "1-", "-1", "-1-1", "1--1", "1-2-3", "1-2-", "1 ",
        " 1", "1 -2", "1- 2", "1-2 ", "+1", "1-+2", "1.0", "1e3", "0x10", "1a",
        "a1", "1-a", "1-2a", "$", "*", "1:2", "1\n", "1-2\n", "1,2",
        "\xd9\xa1",                              /* a digit of another script */
        "18446744073709551616",                          /* 2^64 */
        "18446744073709551619",
        "18446744073709551620",
        "20000000000000000000",
        "99999999999999999999",
        "184467440737095516150",                         /* 21 digits */
        "000000000000000000001",
        "1-18446744073709551616",
        "1-99999999999999999999",
        "1-000000000000000000002",
        "18446744073709551616-1"
    };

    for (i = 0; i < array_len(texts); i++) {
        if (parse(&got, texts[i], strlen(texts[i])) != -1) {
            fail_msg("\"%s\" is taken for %" PRIu64 "-%" PRIu64, texts[i],
                     got.high, got.low);
        }
    }

    /* null bytes do not end a position */

    assert_int_equal(parse(&got, "1\0", 2), -1);
    assert_int_equal(parse(&got, "1-2\0", 4), -1);
    assert_int_equal(parse(&got, "1\0-2", 4), -1);
    assert_int_equal(parse(&got, "\0", 1), -1);

    /* only the given bytes count */

    assert_int_equal(parse(&got, "1-2", 1), 0);
    assert_true(got.high == 1 && got.low == 0);
    assert_int_equal(parse(&got, "1-2", 2), -1);
}


/* The positions are in ascending order. */
TEST(positions_are_compared_as_pairs)
{
    int     expected;
    size_t  i, j;

    static const bloom_position_t  sorted[] = {
        { 0, 0 }, { 0, 1 }, { 0, MAX }, { 1, 0 }, { 1, 1 }, { 2, 0 },
        { 10, 0 }, { 10, 9 }, { 10, 10 }, { (uint64_t) 1 << 32, 0 },
        { (uint64_t) 1 << 63, 0 }, { MAX, 0 }, { MAX, (uint64_t) 1 << 63 },
        { MAX, MAX }
    };

    for (i = 0; i < array_len(sorted); i++) {
        for (j = 0; j < array_len(sorted); j++) {
            expected = (i > j) - (i < j);
            assert_int_equal(bloom_position_cmp(sorted[i], sorted[j]),
                             expected);
        }
    }
}


TEST(names_have_certain_characters)
{
    int      c, good;
    size_t   at;
    uint8_t  name[BLOOM_SOURCE_NAME_MAX + 1];

    for (c = 0; c < 256; c++) {
        good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
               || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == ':'
               || c == '/' || c == '-';

        /* alone, and in each place of three */

        name[0] = (uint8_t) c;
        assert_int_equal(bloom_source_name_valid(name, 1), good);

        for (at = 0; at < 3; at++) {
            memcpy(name, "abc", 3);
            name[at] = (uint8_t) c;
            assert_int_equal(bloom_source_name_valid(name, 3), good);
        }
    }

    memset(name, 'n', sizeof(name));

    assert_int_equal(bloom_source_name_valid(name, 0), 0);
    assert_int_equal(bloom_source_name_valid(name, 1), 1);
    assert_int_equal(bloom_source_name_valid(name, BLOOM_SOURCE_NAME_MAX), 1);
    assert_int_equal(bloom_source_name_valid(name, BLOOM_SOURCE_NAME_MAX + 1),
                     0);
}


TEST(the_next_position_is_the_least_one_after)
{
    bloom_position_t  position, next;

    position.high = 7;
    position.low = 3;
    next = bloom_position_next(position);
    assert_int_equal(next.high, 7);
    assert_int_equal(next.low, 4);

    position.low = UINT64_MAX;
    next = bloom_position_next(position);
    assert_int_equal(next.high, 8);
    assert_int_equal(next.low, 0);

    /* nothing is after the last one */

    position.high = UINT64_MAX;
    next = bloom_position_next(position);
    assert_int_equal(bloom_position_cmp(next, position), 0);
}


TEST(names_are_compared_whole)
{
    bloom_source_t  source;

    memset(&source, 0, sizeof(source));
    memcpy(source.name, "redis/ids", 9);
    source.len = 9;

    assert_int_equal(bloom_source_is(&source, "redis/ids", 9), 1);
    assert_int_equal(bloom_source_is(&source, "redis/idS", 9), 0);
    assert_int_equal(bloom_source_is(&source, "Redis/ids", 9), 0);
    assert_int_equal(bloom_source_is(&source, "redis/ids", 8), 0);
    assert_int_equal(bloom_source_is(&source, "redis/ids\0", 10), 0);
    assert_int_equal(bloom_source_is(&source, "", 0), 0);

    /* no source */

    memset(&source, 0, sizeof(source));
    assert_int_equal(bloom_source_is(&source, "", 0), 1);
    assert_int_equal(bloom_source_is(&source, "\0", 1), 0);
}
