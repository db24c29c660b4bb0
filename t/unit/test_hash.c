/* SPDX-License-Identifier: BSD-2-Clause */

/* LDLIBS: -lmurmurhash -lcrypto */

/*
 * These tests compare MurmurHash3 with SMHasher's verification value and
 * Debian's libmurmurhash, and SipHash with the authors' vectors, rustc's
 * vectors and OpenSSL.
 */

#include "unit.h"

#include <murmurhash.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include "bloom_bytes.h"
#include "bloom_hash.h"
#include "bloom_murmur3.h"
#include "bloom_siphash.h"

#define LEN_MAX  300
#define OFFSETS  16


/* 00 01 02 ... 3f, the message of the published SipHash vectors.  Its first 16
 * bytes are their hash key. */
static uint8_t  counting[64];

/* Random bytes, from which messages begin at any offset. */
static uint8_t  noise[LEN_MAX + OFFSETS];


static void __attribute__((constructor))
make_messages(void)
{
    size_t    i;
    uint64_t  seed;

    for (i = 0; i < sizeof(counting); i++) {
        counting[i] = (uint8_t) i;
    }

    for (seed = 1, i = 0; i < sizeof(noise); i++) {
        noise[i] = (uint8_t) unit_random(&seed);
    }
}


static void
hash_bytes(uint8_t out[16], bloom_hash_t hash)
{
    bloom_put64(out, hash.h1);
    bloom_put64(out + 8, hash.h2);
}


static void
hash_hex(char out[33], bloom_hash_t hash)
{
    size_t   i;
    uint8_t  bytes[16];

    hash_bytes(bytes, hash);

    for (i = 0; i < sizeof(bytes); i++) {
        sprintf(out + 2 * i, "%02x", bytes[i]);
    }
}


/*
 * SMHasher's VerificationTest: the keys 00 .. fe, each with seed 256 minus its
 * length, then the hash of all the hashes with seed 0, its first four bytes.
 */
TEST(murmur3_has_smhashers_verification_value)
{
    int           i;
    uint8_t       key[256], hashes[256 * 16];
    bloom_hash_t  final;

    for (i = 0; i < 256; i++) {
        key[i] = (uint8_t) i;
        hash_bytes(hashes + 16 * i,
                   bloom_murmur3_x64_128(key, (size_t) i, 256 - (uint32_t) i));
    }

    final = bloom_murmur3_x64_128(hashes, sizeof(hashes), 0);

    assert_int_equal((uint32_t) final.h1, 0x6384ba69);
}


TEST(murmur3_equals_libmurmurhash)
{
    size_t           i, len, offset;
    uint64_t         theirs[2];
    bloom_hash_t     ours;
    static uint32_t  seeds[] = { 0, 1, 42, 0x7fffffff, 0x80000000, 0xffffffff };

    for (i = 0; i < array_len(seeds); i++) {
        for (len = 0; len <= LEN_MAX; len++) {
            for (offset = 0; offset < OFFSETS; offset++) {
                ours = bloom_murmur3_x64_128(noise + offset, len, seeds[i]);
                lmmh_x64_128(noise + offset, (unsigned) len, seeds[i], theirs);

                assert_int_equal(ours.h1, theirs[0]);
                assert_int_equal(ours.h2, theirs[1]);
            }
        }
    }

    ours = bloom_murmur3_x64_128(NULL, 0, 7);
    lmmh_x64_128("", 0, 7, theirs);
    assert_int_equal(ours.h1, theirs[0]);
}


/* Aumasson and Bernstein's vectors_sip128: SipHash-2-4 of 0 to 63 bytes. */
static const char *const  sip_2_4[64] = {
    "a3817f04ba25a8e66df67214c7550293",
    "da87c1d86b99af44347659119b22fc45",
    "8177228da4a45dc7fca38bdef60affe4",
    "9c70b60c5267a94e5f33b6b02985ed51",
    "f88164c12d9c8faf7d0f6e7c7bcd5579",
    "1368875980776f8854527a07690e9627",
    "14eeca338b208613485ea0308fd7a15e",
    "a1f1ebbed8dbc153c0b84aa61ff08239",
    "3b62a9ba6258f5610f83e264f31497b4",
    "264499060ad9baabc47f8b02bb6d71ed",
    "00110dc378146956c95447d3f3d0fbba",
    "0151c568386b6677a2b4dc6f81e5dc18",
    "d626b266905ef35882634df68532c125",
    "9869e247e9c08b10d029934fc4b952f7",
    "31fcefac66d7de9c7ec7485fe4494902",
    "5493e99933b0a8117e08ec0f97cfc3d9",
    "6ee2a4ca67b054bbfd3315bf85230577",
    "473d06e8738db89854c066c47ae47740",
    "a426e5e423bf4885294da481feaef723",
    "78017731cf65fab074d5208952512eb1",
    "9e25fc833f2290733e9344a5e83839eb",
    "568e495abe525a218a2214cd3e071d12",
    "4a29b54552d16b9a469c10528eff0aae",
    "c9d184ddd5a9f5e0cf8ce29a9abf691c",
    "2db479ae78bd50d8882a8a178a6132ad",
    "8ece5f042d5e447b5051b9eacb8d8f6f",
    "9c0b53b4b3c307e87eaee08678141f66",
    "abf248af69a6eae4bfd3eb2f129eeb94",
    "0664da1668574b88b935f3027358aef4",
    "aa4b9dc4bf337de90cd4fd3c467c6ab7",
    "ea5c7f471faf6bde2b1ad7d4686d2287",
    "2939b0183223fafc1723de4f52c43d35",
    "7c3956ca5eeafc3e363e9d556546eb68",
    "77c6077146f01c32b6b69d5f4ea9ffcf",
    "37a6986cb8847edf0925f0f1309b54de",
    "a705f0e69da9a8f907241a2e923c8cc8",
    "3dc47d1f29c448461e9e76ed904f6711",
    "0d62bf01e6fc0e1a0d3c4751c5d3692b",
    "8c03468bca7c669ee4fd5e084bbee7b5",
    "528a5bb93baf2c9c4473cce5d0d22bd9",
    "df6a301e95c95dad97ae0cc8c6913bd8",
    "801189902c857f39e73591285e70b6db",
    "e617346ac9c231bb3650ae34ccca0c5b",
    "27d93437efb721aa401821dcec5adf89",
    "89237d9ded9c5e78d8b1c9b166cc7342",
    "4a6d8091bf5e7d651189fa94a250b14c",
    "0e33f96055e7ae893ffc0e3dcf492902",
    "e61c432b720b19d18ec8d84bdc63151b",
    "f7e5aef549f782cf379055a608269b16",
    "438d030fd0b7a54fa837f2ad201a6403",
    "a590d3ee4fbf04e3247e0d27f286423f",
    "5fe2c1a172fe93c4b15cd37caef9f538",
    "2c97325cbd06b36eb2133dd08b3a017c",
    "92c814227a6bca949ff0659f002ad39e",
    "dce850110bd8328cfbd50841d6911d87",
    "67f14984c7da791248e32bb5922583da",
    "1938f2cf72d54ee97e94166fa91d2a36",
    "74481e9646ed49fe0f6224301604698e",
    "57fca5de98a9d6d8006438d0583d8a1d",
    "9fecde1cefdc1cbed4763674d9575359",
    "e3040c00eb28f15366ca73cbd872e740",
    "7697009a6a831dfecca91c5993670f7a",
    "5853542321f567a005d547a4f04759bd",
    "5150d1772f50834a503e069a973fbd7c",
};


TEST(siphash_2_4_has_the_published_values)
{
    char    hex[33];
    size_t  len;

    for (len = 0; len < array_len(sip_2_4); len++) {
        hash_hex(hex, bloom_siphash_128(counting, len, counting, 2, 4));
        assert_string_equal(hex, sip_2_4[len]);
    }
}


/* Those of rustc's 64 vectors (sip128, SipHash-1-3) that are close to block
 * boundaries. */
static const struct {
    size_t       len;
    const char  *hex;
} sip_1_3[] = {
    {  0, "e77ebcb22788a5befd62db6add303001" },
    {  1, "fc6f370460d3eda85e0573cc2b2ff063" },
    {  2, "75787f090569839b855bc9548c6aea95" },
    {  7, "1084b923f2aae0c3a62f2ec80848ab77" },
    {  8, "aa12fee1d5e3dab4724f16ab35f9c799" },
    {  9, "81ddb8042cf33994f4720e0094137c42" },
    { 15, "c17e5505b2bd526c2921cdec1e7e0109" },
    { 16, "d0a8d95715518eebb513b0f83d9e1793" },
    { 17, "234126f93fbb668d975112e8febdf7ec" },
    { 31, "42ea961c5b3c858b17c3e550dfa79010" },
    { 32, "406c44dee67857b2943160f30c7417d3" },
    { 33, "c5f57bae1320fcf4b4e868e71d56c66b" },
    { 55, "d97cca3694fb206db8bd1f3650c33322" },
    { 56, "94ec2e19a40be41af3940d6b30c49384" },
    { 62, "271d5d00fbdb5d155d9dcea97cb40218" },
    { 63, "4c5800e34efe426f079f6b0aa75260ad" },
};


TEST(siphash_1_3_has_the_published_values)
{
    char    hex[33];
    size_t  i;

    for (i = 0; i < array_len(sip_1_3); i++) {
        hash_hex(hex, bloom_siphash_128(counting, sip_1_3[i].len, counting,
                                        1, 3));
        assert_string_equal(hex, sip_1_3[i].hex);
    }
}


static void
openssl_siphash_1_3(uint8_t out[16], EVP_MAC *mac, const void *data, size_t len,
    const uint8_t *key)
{
    size_t        size, written;
    unsigned      c, d;
    OSSL_PARAM    params[4];
    EVP_MAC_CTX  *ctx;

    size = 16;
    c = 1;
    d = 3;

    params[0] = OSSL_PARAM_construct_size_t(OSSL_MAC_PARAM_SIZE, &size);
    params[1] = OSSL_PARAM_construct_uint(OSSL_MAC_PARAM_C_ROUNDS, &c);
    params[2] = OSSL_PARAM_construct_uint(OSSL_MAC_PARAM_D_ROUNDS, &d);
    params[3] = OSSL_PARAM_construct_end();

    ctx = EVP_MAC_CTX_new(mac);
    assert_non_null(ctx);
    assert_int_equal(EVP_MAC_init(ctx, key, BLOOM_HASH_KEY_LEN, params), 1);
    assert_int_equal(EVP_MAC_update(ctx, data, len), 1);
    assert_int_equal(EVP_MAC_final(ctx, out, &written, 16), 1);
    assert_int_equal(written, 16);

    EVP_MAC_CTX_free(ctx);
}


TEST(siphash_1_3_equals_openssl)
{
    size_t          len, offset;
    EVP_MAC        *mac;
    uint8_t         ours[16], theirs[16];
    bloom_hasher_t  hasher;

    mac = EVP_MAC_fetch(NULL, "SIPHASH", NULL);
    assert_non_null(mac);

    hasher.kind = BLOOM_HASH_SIPHASH;

    for (len = 0; len <= LEN_MAX; len++) {
        offset = len % OFFSETS;
        memcpy(hasher.key, noise + len % 200, BLOOM_HASH_KEY_LEN);

        hash_bytes(ours, bloom_hash(&hasher, noise + offset, len));
        openssl_siphash_1_3(theirs, mac, noise + offset, len, hasher.key);

        assert_memory_equal(ours, theirs, sizeof(ours));
    }

    EVP_MAC_free(mac);
}


/* The seed is the first four bytes of the key, little-endian. */
TEST(a_murmur3_hasher_keeps_its_seed)
{
    bloom_hash_t          a, b;
    bloom_hasher_t        hasher;
    static const uint8_t  expected[BLOOM_HASH_KEY_LEN] = { 4, 3, 2, 0xf1 };

    memset(&hasher, 0xff, sizeof(hasher));
    bloom_hasher_murmur3(&hasher, 0xf1020304);

    assert_int_equal(hasher.kind, BLOOM_HASH_MURMUR3);
    assert_memory_equal(hasher.key, expected, sizeof(expected));
    assert_int_equal(bloom_hasher_seed(&hasher), 0xf1020304);

    a = bloom_hash(&hasher, noise, 33);
    b = bloom_murmur3_x64_128(noise, 33, 0xf1020304);
    assert_int_equal(a.h1, b.h1);
    assert_int_equal(a.h2, b.h2);
}


/* For each length, two runs of keys of falling and then rising lengths, as the
 * paths of a URL have them, for a hash of each kind. */
TEST(many_keys_have_the_hashes_that_they_have_alone)
{
    size_t          len;
    uint32_t        kind;
    unsigned        i, k, n, falling;
    bloom_key_t     key[24];
    bloom_hash_t    alone, hash[24];
    bloom_hasher_t  hasher;

    for (kind = BLOOM_HASH_MURMUR3; kind <= BLOOM_HASH_MURMUR64A; kind++) {

        if (kind == BLOOM_HASH_FUNNEL) {
            continue;                /* it takes numbers */
        }

        memset(&hasher, 0, sizeof(hasher));
        hasher.kind = kind;
        memcpy(hasher.key, noise, kind == BLOOM_HASH_MURMUR64A ? 0
                                  : kind == BLOOM_HASH_SIPHASH ? 16 : 4);

        for (len = 0; len < 200; len++) {
            n = 1 + (unsigned) (len % 12);
            falling = (unsigned) (len % 4) < n ? (unsigned) (len % 4)
                                               : n - 1;

            for (i = 0, k = 0; i < 2 * n; i++, k = i % n) {
                key[i].data = noise + len % OFFSETS + i / n;
                key[i].len = k < falling ? len + 40 - 7 * k
                                         : len * (k + 1) / (n + 1);
            }

            bloom_hash_many(hash, &hasher, key, 2 * n - (unsigned) len % 2);

            for (i = 0; i < 2 * n - (unsigned) len % 2; i++) {
                alone = bloom_hash(&hasher, key[i].data, key[i].len);
                assert_int_equal(hash[i].h1, alone.h1);
                assert_int_equal(hash[i].h2, alone.h2);
            }
        }
    }
}


TEST(hash_names_go_both_ways)
{
    assert_string_equal(bloom_hasher_name(BLOOM_HASH_MURMUR3), "murmur3");
    assert_string_equal(bloom_hasher_name(BLOOM_HASH_SIPHASH), "siphash");
    assert_null(bloom_hasher_name(0));
    assert_null(bloom_hasher_name(11));

    assert_int_equal(bloom_hasher_parse("murmur3", 7), BLOOM_HASH_MURMUR3);
    assert_int_equal(bloom_hasher_parse("siphash,", 7), BLOOM_HASH_SIPHASH);
    assert_int_equal(bloom_hasher_parse("siphas", 6), 0);
    assert_int_equal(bloom_hasher_parse("siphash2", 8), 0);
    assert_int_equal(bloom_hasher_parse("", 0), 0);
}
