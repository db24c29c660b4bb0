/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These tests compare the hash functions of imported filters with SMHasher's
 * verification values, with the values of Redisson's and Spark's own classes
 * and with the FNV authors' table, and MurmurHash3 in pieces with that of the
 * whole message.
 */

#include "unit.h"

#include "bloom_bytes.h"
#include "bloom_hash.h"
#include "bloom_hash_foreign.h"
#include "bloom_murmur3.h"


static const uint64_t  redisson_key[4] = {
    0x9e3779b97f4a7c15, 0xf39cc0605cedc834,
    0x1082276bf3a27251, 0xf86c6a11d0c18e95
};


/* Computes SMHasher's VerificationTest of a hash of `width` bytes. */
static uint32_t
verification_value(uint64_t (*hash)(const void *, size_t, uint32_t),
    size_t width)
{
    size_t    i;
    uint8_t   key[256], value[8], hashes[256 * 8];

    for (i = 0; i < 256; i++) {
        key[i] = (uint8_t) i;
        bloom_put64(value, hash(key, i, 256 - (uint32_t) i));
        memcpy(hashes + width * i, value, width);
    }

    return (uint32_t) hash(hashes, 256 * width, 0);
}


static uint64_t
murmur64a(const void *data, size_t len, uint32_t seed)
{
    return bloom_murmur64a(data, len, seed);
}


static uint64_t
murmur2(const void *data, size_t len, uint32_t seed)
{
    return bloom_murmur2(data, len, seed);
}


TEST(murmur64a_and_murmur2_have_smhashers_values)
{
    assert_int_equal(verification_value(murmur64a, 8), 0x1f0d3804);
    assert_int_equal(verification_value(murmur2, 4), 0x27864c1e);
}


TEST(highwayhash_equals_redissons)
{
    size_t        i;
    bloom_hash_t  hash;

    /* values of Redisson's class */

    static const struct {
        const char  *key;
        uint64_t     h1, h2;
    } known[] = {
        { "", 0xb7aad9c226c6a36b, 0xb2d4e4a63557bca6 },
        { "foo", 0x16e1cc3ffa4e326e, 0x61ce1bbd35811d13 },
        { "item1", 0x150b5d48d141869f, 0x76b931b20949d417 },
        { "/products/42", 0xbefdd366cd399969, 0xffa458a0cc135dd1 },
        { "0123456789abcdef0123456789abcdef",
          0xd3c86bd01f2269fd, 0xcfa12b16012f2c58 },

        /* a rest of 16 bytes or more, by t/lib/BloomTest/Schemes.pm */

        { "The quick brown fox ", 0xb04f63311e46d361, 0xbc4a197cfc33f4f5 },
        { "The quick brown fox jumps over ",
          0x6898fcc5ef3f5152, 0xf76809e96ea375f1 },
        { "The quick brown fox jumps over the lazy dog, tw",
          0x71f281016de51d37, 0xc0012727f22aa2a4 },
    };

    for (i = 0; i < array_len(known); i++) {
        hash = bloom_highway_128(known[i].key, strlen(known[i].key),
                                 redisson_key);
        assert_int_equal(hash.h1, known[i].h1);
        assert_int_equal(hash.h2, known[i].h2);
    }
}


/* Values of FNV's authors, of Spark, and of MurmurHash3, which Spark's hash
 * equals without a tail. */
TEST(fnv_and_spark_hashes_have_published_values)
{
    assert_int_equal(bloom_fnv1("", 0), 0xcbf29ce484222325);
    assert_int_equal(bloom_fnv1("a", 1), 0xaf63bd4c8601b7be);
    assert_int_equal(bloom_fnv1("foobar", 6), 0x340d8765a4dda9c2);

    /* SQL: hash('Spark'), which has seed 42 and a tail of one byte */

    assert_int_equal((int32_t) bloom_murmur3_32_spark("Spark", 5, 42),
                     228093765);

    /* without a tail it is MurmurHash3 x86 32 */

    assert_int_equal(bloom_murmur3_32_spark("aaaa", 4, 0x9747b28c),
                     0x5a97808a);

    /* bytes of the tail are signed numbers, which matters from 0x80 on */

    assert_int_not_equal(bloom_murmur3_32_spark("\xff", 1, 0),
                         bloom_murmur3_32_spark("\xff\x00", 2, 0));
}


TEST(murmur3_in_pieces_equals_murmur3_of_the_whole)
{
    size_t           i, j, len;
    uint8_t          data[80];
    bloom_hash_t     whole, pieces;
    bloom_murmur3_t  m;

    for (i = 0; i < sizeof(data); i++) {
        data[i] = (uint8_t) (i * 37 + 11);
    }

    for (len = 0; len <= sizeof(data); len++) {
        whole = bloom_murmur3_x64_128(data, len, 0);

        for (i = 0; i <= len; i++) {
            for (j = i; j <= len; j += 7) {
                bloom_murmur3_begin(&m);
                bloom_murmur3_update(&m, data, i);
                bloom_murmur3_update(&m, data + i, j - i);
                bloom_murmur3_update(&m, data + j, len - j);
                pieces = bloom_murmur3_end(&m);

                assert_int_equal(pieces.h1, whole.h1);
                assert_int_equal(pieces.h2, whole.h2);
            }
        }
    }
}


static void
assert_funnel(uint32_t funnel, const char *key, const void *bytes, size_t len)
{
    bloom_hash_t    a, b;
    bloom_hasher_t  hasher;

    bloom_hasher_foreign(&hasher, BLOOM_HASH_FUNNEL, funnel, 0);
    assert_true(bloom_hasher_valid(&hasher));

    a = bloom_hash(&hasher, key, strlen(key));
    b = bloom_murmur3_x64_128(bytes, len, 0);

    if (a.h1 != b.h1 || a.h2 != b.h2) {
        print_error("the funnel %s of \"%s\" differs\n",
                    bloom_hasher_funnel_name(funnel), key);
        fail();
    }
}


TEST(funnels_encode_keys_as_guava_does)
{
    size_t  i;
    char    text[600], units[1200];

    assert_funnel(BLOOM_FUNNEL_LONG, "42", "*\0\0\0\0\0\0\0", 8);
    assert_funnel(BLOOM_FUNNEL_LONG, "+007", "\7\0\0\0\0\0\0\0", 8);
    assert_funnel(BLOOM_FUNNEL_LONG, "-7",
                  "\xf9\xff\xff\xff\xff\xff\xff\xff", 8);
    assert_funnel(BLOOM_FUNNEL_LONG, "9223372036854775807",
                  "\xff\xff\xff\xff\xff\xff\xff\x7f", 8);
    assert_funnel(BLOOM_FUNNEL_LONG, "-9223372036854775808",
                  "\0\0\0\0\0\0\0\x80", 8);
    assert_funnel(BLOOM_FUNNEL_INT, "2147483647", "\xff\xff\xff\x7f", 4);
    assert_funnel(BLOOM_FUNNEL_INT, "-2147483648", "\0\0\0\x80", 4);

    /* a key that is not such a number is hashed as bytes */

    assert_funnel(BLOOM_FUNNEL_LONG, "9223372036854775808",
                  "9223372036854775808", 19);
    assert_funnel(BLOOM_FUNNEL_LONG, "-9223372036854775809",
                  "-9223372036854775809", 20);
    assert_funnel(BLOOM_FUNNEL_INT, "2147483648", "2147483648", 10);
    assert_funnel(BLOOM_FUNNEL_INT, "-2147483649", "-2147483649", 11);
    assert_funnel(BLOOM_FUNNEL_INT, "-", "-", 1);
    assert_funnel(BLOOM_FUNNEL_INT, "", "", 0);
    assert_funnel(BLOOM_FUNNEL_INT, "1 ", "1 ", 2);

    assert_funnel(BLOOM_FUNNEL_UTF16, "", "", 0);
    assert_funnel(BLOOM_FUNNEL_UTF16, "a\xc3\xa9", "a\0\xe9\0", 4);
    assert_funnel(BLOOM_FUNNEL_UTF16, "\xe2\x82\xac", "\xac\x20", 2);
    assert_funnel(BLOOM_FUNNEL_UTF16, "\xf0\x9f\x98\x80",
                  "\x3d\xd8\x00\xde", 4);
    assert_funnel(BLOOM_FUNNEL_UTF16, "\xf4\x8f\xbf\xbf",
                  "\xff\xdb\xff\xdf", 4);

    /* invalid UTF-8 becomes U+FFFD for each piece (Unicode, 3.9, table 3-8) */

    assert_funnel(BLOOM_FUNNEL_UTF16, "\xc0\x80" "a",
                  "\xfd\xff\xfd\xff" "a\0", 6);
    assert_funnel(BLOOM_FUNNEL_UTF16, "\xed\xa0\x80",
                  "\xfd\xff\xfd\xff\xfd\xff", 6);
    assert_funnel(BLOOM_FUNNEL_UTF16, "\xe1\x80" "a", "\xfd\xff" "a\0", 4);
    assert_funnel(BLOOM_FUNNEL_UTF16, "\xf0\x9f\x98", "\xfd\xff", 2);
    assert_funnel(BLOOM_FUNNEL_UTF16, "\xf5", "\xfd\xff", 2);

    for (i = 0; i < sizeof(text) - 1; i++) {
        text[i] = (char) ('a' + i % 26);
        units[2 * i] = text[i];
        units[2 * i + 1] = 0;
        text[i + 1] = '\0';
        assert_funnel(BLOOM_FUNNEL_UTF16, text, units, 2 * i + 2);
    }
}


TEST(hashers_out_of_range_are_invalid)
{
    uint32_t        kind, funnel;
    const char     *name;
    bloom_hasher_t  hasher;

    for (kind = BLOOM_HASH_FUNNEL; kind <= BLOOM_HASH_MURMUR3_EACH; kind++) {

        assert_non_null(bloom_hasher_name(kind));

        for (funnel = 0; funnel < 256; funnel++) {
            bloom_hasher_foreign(&hasher, kind, funnel, 0);

            assert_int_equal(bloom_hasher_valid(&hasher),
                             kind == BLOOM_HASH_FUNNEL
                             ? funnel >= 1 && funnel <= 3
                             : funnel == 0
                               || (kind == BLOOM_HASH_MURMUR3_32
                                   && funnel == 2));
        }

        bloom_hasher_foreign(&hasher, kind, 0, 1);
        assert_int_equal(bloom_hasher_valid(&hasher),
                         kind == BLOOM_HASH_MURMUR3_32);

        bloom_hasher_foreign(&hasher, kind, 0, 0);
        hasher.key[15] = 1;
        assert_false(bloom_hasher_valid(&hasher));
    }

    for (funnel = 0; funnel <= BLOOM_FUNNEL_INT; funnel++) {
        name = bloom_hasher_funnel_name(funnel);
        assert_int_equal(bloom_hasher_funnel_parse(name, strlen(name)),
                         funnel);
    }

    assert_null(bloom_hasher_funnel_name(4));
    assert_int_equal(bloom_hasher_funnel_parse("lon", 3), -1);
}
