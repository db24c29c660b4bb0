/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These tests compare CRC-32C with its check value, with the examples of RFC
 * 3720 (B.4), and, for both implementations, with a bit-by-bit computation at
 * every length and alignment.
 */

#include "unit.h"

#include "bloom_bytes.h"
#include "bloom_crc.h"

#define LEN_MAX  600
#define LONG     20000                   /* long enough for parallel chains */
#define OFFSETS  16


/* Computes the CRC by polynomial division, bit by bit, bits reversed. */
static uint32_t
slow_crc32c(uint32_t crc, const uint8_t *p, size_t len)
{
    int  bit;

    for (crc = ~crc; len > 0; len--, p++) {
        crc ^= *p;

        for (bit = 0; bit < 8; bit++) {
            crc = crc & 1 ? (crc >> 1) ^ 0x82f63b78 : crc >> 1;
        }
    }

    return ~crc;
}


TEST(the_check_value_is_as_published)
{
    assert_int_equal(bloom_crc32c(0, "123456789", 9), 0xe3069283);
    assert_int_equal(bloom_crc32c_portable(0, "123456789", 9), 0xe3069283);

    assert_int_equal(bloom_crc32c(0, NULL, 0), 0);
    assert_int_equal(bloom_crc32c_portable(0, NULL, 0), 0);
}


TEST(the_examples_of_rfc_3720_hold)
{
    int      i;
    uint8_t  zeros[32], ones[32], up[32], down[32];

    static const uint8_t  scsi_read[48] = {
        0x01, 0xc0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x14, 0x00, 0x00, 0x00, 0x00, 0x00, 0x04, 0x00,
        0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x18,
        0x28, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00
    };

    for (i = 0; i < 32; i++) {
        zeros[i] = 0;
        ones[i] = 0xff;
        up[i] = (uint8_t) i;
        down[i] = (uint8_t) (31 - i);
    }

    assert_int_equal(bloom_crc32c(0, zeros, 32), 0x8a9136aa);
    assert_int_equal(bloom_crc32c(0, ones, 32), 0x62a8ab43);
    assert_int_equal(bloom_crc32c(0, up, 32), 0x46dd794e);
    assert_int_equal(bloom_crc32c(0, down, 32), 0x113fdb5c);
    assert_int_equal(bloom_crc32c(0, scsi_read, 48), 0xd9963a56);

    assert_int_equal(bloom_crc32c_portable(0, zeros, 32), 0x8a9136aa);
    assert_int_equal(bloom_crc32c_portable(0, ones, 32), 0x62a8ab43);
    assert_int_equal(bloom_crc32c_portable(0, up, 32), 0x46dd794e);
    assert_int_equal(bloom_crc32c_portable(0, down, 32), 0x113fdb5c);
    assert_int_equal(bloom_crc32c_portable(0, scsi_read, 48), 0xd9963a56);
}


static void
fill(uint8_t *p, size_t len)
{
    uint64_t  seed;

    for (seed = 3; len > 0; len--) {
        *p++ = (uint8_t) unit_random(&seed);
    }
}


TEST(short_messages_match_slow_division)
{
    size_t    len, offset;
    uint8_t   noise[LEN_MAX + OFFSETS];
    uint32_t  expected;

    fill(noise, sizeof(noise));

    for (len = 0; len <= LEN_MAX; len++) {
        for (offset = 0; offset < OFFSETS; offset++) {
            expected = slow_crc32c(0, noise + offset, len);

            assert_int_equal(bloom_crc32c(0, noise + offset, len), expected);
            assert_int_equal(bloom_crc32c_portable(0, noise + offset, len),
                             expected);
        }
    }
}


/* A message in two pieces gives the same sum, also by different
 * implementations. */
TEST(a_message_in_two_pieces_has_the_same_sum)
{
    size_t    cut;
    uint8_t   noise[LEN_MAX];
    uint32_t  whole, first;

    fill(noise, sizeof(noise));

    whole = slow_crc32c(0, noise, LEN_MAX);

    for (cut = 0; cut <= LEN_MAX; cut++) {
        first = bloom_crc32c(0, noise, cut);
        assert_int_equal(bloom_crc32c_portable(first, noise + cut,
                                               LEN_MAX - cut), whole);

        first = bloom_crc32c_portable(0, noise, cut);
        assert_int_equal(bloom_crc32c(first, noise + cut, LEN_MAX - cut),
                         whole);
    }
}


/* Tests lengths close to each multiple of a kilobyte, at several offsets. */
TEST(long_messages_match_slow_division)
{
    size_t          len;
    uint32_t        before, expected;
    static uint8_t  noise[LONG + OFFSETS];

    fill(noise, sizeof(noise));

    for (len = LEN_MAX; len <= LONG; len += len % 1024 == 9 ? 998 : 1) {
        before = bloom_get32(noise + len / 2);
        expected = slow_crc32c(before, noise + len % OFFSETS, len);

        assert_int_equal(bloom_crc32c(before, noise + len % OFFSETS, len),
                         expected);
        assert_int_equal(bloom_crc32c_portable(before, noise + len % OFFSETS,
                                               len), expected);
    }
}
