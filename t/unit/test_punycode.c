/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These tests convert the samples of RFC 3492, section 7.1, and make round
 * trips of random texts.
 */

#include "unit.h"

#include "bloom_punycode.h"


TEST(samples_of_rfc_3492_are_converted)
{
    int         n;
    size_t      i, j, len;
    uint8_t     out[80];
    uint32_t    c[80];

    static const struct {
        const char  *text;
        uint32_t     c[40];
    } samples[] = {
        { "egbpdaj6bu4bxfgehfvwxn",          /* Egyptian Arabic */
          { 0x0644, 0x064a, 0x0647, 0x0645, 0x0627, 0x0628, 0x062a, 0x0643,
            0x0644, 0x0645, 0x0648, 0x0634, 0x0639, 0x0631, 0x0628, 0x064a,
            0x061f } },
        { "ihqwcrb4cv8a8dqg056pqjye",        /* Chinese */
          { 0x4ed6, 0x4eec, 0x4e3a, 0x4ec0, 0x4e48, 0x4e0d, 0x8bf4, 0x4e2d,
            0x6587 } },
        { "Proprostnemluvesky-uyb24dma41a",  /* Czech */
          { 'P', 'r', 'o', 0x010d, 'p', 'r', 'o', 's', 't', 0x011b, 'n', 'e',
            'm', 'l', 'u', 'v', 0x00ed, 0x010d, 'e', 's', 'k', 'y' } },
        { "4dbcagdahymbxekheh6e0a7fei0b",    /* Hebrew */
          { 0x05dc, 0x05de, 0x05d4, 0x05d4, 0x05dd, 0x05e4, 0x05e9, 0x05d5,
            0x05d8, 0x05dc, 0x05d0, 0x05de, 0x05d3, 0x05d1, 0x05e8, 0x05d9,
            0x05dd, 0x05e2, 0x05d1, 0x05e8, 0x05d9, 0x05ea } },
        { "n8jok5ay5dzabd5bym9f0cm5685rrjetr6pdxa", /* Japanese */
          { 0x306a, 0x305c, 0x307f, 0x3093, 0x306a, 0x65e5, 0x672c, 0x8a9e,
            0x3092, 0x8a71, 0x3057, 0x3066, 0x304f, 0x308c, 0x306a, 0x3044,
            0x306e, 0x304b } },
        { "-with-SUPER-MONKEYS-pc58ag80a8qai00g7n9n",
          { 0x5b89, 0x5ba4, 0x5948, 0x7f8e, 0x6075, '-', 'w', 'i', 't', 'h',
            '-', 'S', 'U', 'P', 'E', 'R', '-', 'M', 'O', 'N', 'K', 'E', 'Y',
            'S' } },
        { "d9juau41awczczp",
          { 0x305d, 0x306e, 0x30b9, 0x30d4, 0x30fc, 0x30c9, 0x3067 } },
    };

    for (i = 0; i < array_len(samples); i++) {

        for (len = 0; samples[i].c[len] != 0; len++) {
            /* void */
        }

        n = bloom_punycode_encode(out, sizeof(out), samples[i].c, len);
        assert_int_equal(n, strlen(samples[i].text));
        assert_memory_equal(out, samples[i].text, (size_t) n);

        n = bloom_punycode_decode(c, array_len(c),
                                  (const uint8_t *) samples[i].text,
                                  strlen(samples[i].text));
        assert_int_equal(n, len);
        assert_memory_equal(c, samples[i].c, len * sizeof(*c));

        /* neither function writes beyond its room */

        for (j = 0; j < strlen(samples[i].text); j++) {
            assert_int_equal(bloom_punycode_encode(out, j, samples[i].c, len),
                             -1);
        }

        for (j = 0; j < len; j++) {
            assert_int_equal(bloom_punycode_decode(c, j,
                                        (const uint8_t *) samples[i].text,
                                        strlen(samples[i].text)), -1);
        }
    }
}


TEST(invalid_punycode_is_refused)
{
    size_t    i;
    uint32_t  c[80];

    static const char *const  texts[] = {
        "!", "a-!", "a-\x80", "\x80-a", "z", "a-9", "99999999", "a-999999999",
        "999999b", "zzzzzzzzzzzzzzzzzz",
    };

    for (i = 0; i < array_len(texts); i++) {
        assert_int_equal(bloom_punycode_decode(c, array_len(c),
                                               (const uint8_t *) texts[i],
                                               strlen(texts[i])), -1);
    }
}


TEST(random_texts_survive_a_round_trip)
{
    int       n, round;
    size_t    i, len;
    uint8_t   out[2000];
    uint32_t  c[253], again[253];
    uint64_t  seed;

    static const uint32_t  most[] = { 0x80, 0x100, 0x3000, 0x110000 };

    seed = 34;

    for (round = 0; round < 20000; round++) {
        len = 1 + (size_t) (unit_random(&seed) % array_len(c));

        for (i = 0; i < len; i++) {
            c[i] = (uint32_t) (1 + unit_random(&seed)
                               % (most[unit_random(&seed) % 4] - 1));
        }

        c[unit_random(&seed) % len] = 0x10ffff;

        n = bloom_punycode_encode(out, sizeof(out), c, len);
        assert_in_range(n, 1, sizeof(out));

        assert_int_equal(bloom_punycode_decode(again, array_len(again), out,
                                               (size_t) n), len);
        assert_memory_equal(again, c, len * sizeof(*c));
    }
}
