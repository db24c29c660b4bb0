/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * t/unit/test_hash_foreign.c compares each function with values that its source
 * system publishes or computes.
 */

#include "bloom_hash_foreign.h"
#include "bloom_bytes.h"
#include "bloom_murmur3.h"
#include "bloom_utf8.h"

#define REDISBLOOM_SEED  0xc6a4a7935bd1e995
#define LIBBLOOM_SEED    0x9747b28c


static const uint64_t  redisson_key[4] = {
    0x9e3779b97f4a7c15, 0xf39cc0605cedc834,
    0x1082276bf3a27251, 0xf86c6a11d0c18e95
};


static inline uint64_t
rotl64(uint64_t x, unsigned r)
{
    return (x << r) | (x >> (64 - r));
}


static inline uint32_t
rotl32(uint32_t x, unsigned r)
{
    return r == 0 ? x : (x << r) | (x >> (32 - r));
}


uint64_t
bloom_murmur64a(const void *data, size_t len, uint64_t seed)
{
    size_t          i, rest;
    uint64_t        h, k;
    const uint8_t  *p;

    const uint64_t  m = 0xc6a4a7935bd1e995;

    p = data;
    h = seed ^ (len * m);

    for (rest = len; rest >= 8; rest -= 8, p += 8) {
        k = bloom_get64(p) * m;
        k = (k ^ (k >> 47)) * m;
        h = (h ^ k) * m;
    }

    if (rest != 0) {
        for (k = 0, i = 0; i < rest; i++) {
            k |= (uint64_t) p[i] << (8 * i);
        }

        h = (h ^ k) * m;
    }

    h = (h ^ (h >> 47)) * m;

    return h ^ (h >> 47);
}


uint32_t
bloom_murmur2(const void *data, size_t len, uint32_t seed)
{
    size_t          i, rest;
    uint32_t        h, k;
    const uint8_t  *p;

    const uint32_t  m = 0x5bd1e995;

    p = data;
    h = seed ^ (uint32_t) len;

    for (rest = len; rest >= 4; rest -= 4, p += 4) {
        k = bloom_get32(p) * m;
        k = (k ^ (k >> 24)) * m;
        h = (h * m) ^ k;
    }

    if (rest != 0) {
        for (k = 0, i = 0; i < rest; i++) {
            k |= (uint32_t) p[i] << (8 * i);
        }

        h = (h ^ k) * m;
    }

    h = (h ^ (h >> 13)) * m;

    return h ^ (h >> 15);
}


static inline uint32_t
murmur3_32_mix(uint32_t h, uint32_t k)
{
    k = rotl32(k * 0xcc9e2d51, 15) * 0x1b873593;

    return rotl32(h ^ k, 13) * 5 + 0xe6546b64;
}


uint32_t
bloom_murmur3_32_spark(const void *data, size_t len, uint32_t seed)
{
    size_t          rest;
    uint32_t        h;
    const uint8_t  *p;

    p = data;
    h = seed;

    for (rest = len; rest >= 4; rest -= 4, p += 4) {
        h = murmur3_32_mix(h, bloom_get32(p));
    }

    for ( /* void */ ; rest != 0; rest--, p++) {
        h = murmur3_32_mix(h, (uint32_t) (int32_t) (int8_t) *p);
    }

    h ^= (uint32_t) len;
    h = (h ^ (h >> 16)) * 0x85ebca6b;
    h = (h ^ (h >> 13)) * 0xc2b2ae35;

    return h ^ (h >> 16);
}


uint64_t
bloom_fnv1(const void *data, size_t len)
{
    uint64_t        h;
    const uint8_t  *p, *end;

    h = 0xcbf29ce484222325;
    end = (const uint8_t *) data + len;

    for (p = data; p != end; p++) {
        h = (h * 0x100000001b3) ^ *p;
    }

    return h;
}


/* ---- HighwayHash ---- */

/* Four lanes, in two pairs. */
typedef struct {
    uint64_t  v0[4];
    uint64_t  v1[4];
    uint64_t  mul0[4];
    uint64_t  mul1[4];
} highway_t;


#define byte_of(x, n)  ((x) & ((uint64_t) 0xff << (8 * (n))))


/*
 * Adds the bytes of src[0] and src[1] to dst[0] and dst[1] in another order,
 * which spreads the well-mixed middle bytes of products.  With the bytes of
 * src[0] numbered 0 to 7 and those of src[1] 8 to 15:
 *
 *     dst[0] += 3 12 2 5 14 1 15 0      dst[1] += 11 4 10 13 9 6 8 7
 */
static inline void
highway_zip(uint64_t dst[2], const uint64_t src[2])
{
    uint64_t  a, b;

    a = src[0];
    b = src[1];

    dst[0] += ((byte_of(a, 3) | byte_of(b, 4)) >> 24)
              | ((byte_of(a, 5) | byte_of(b, 6)) >> 16)
              | byte_of(a, 2) | (byte_of(a, 1) << 32)
              | (byte_of(b, 7) >> 8) | (a << 56);

    dst[1] += ((byte_of(b, 3) | byte_of(a, 4)) >> 24)
              | byte_of(b, 2) | (byte_of(b, 5) >> 16)
              | (byte_of(b, 1) << 24) | (byte_of(a, 6) >> 8)
              | (byte_of(b, 0) << 48) | byte_of(a, 7);
}


static inline void
highway_lanes(highway_t *h, const uint64_t lane[4])
{
    unsigned  i;

    for (i = 0; i < 4; i++) {
        h->v1[i] += h->mul0[i] + lane[i];
        h->mul0[i] ^= (h->v1[i] & 0xffffffff) * (h->v0[i] >> 32);
        h->v0[i] += h->mul1[i];
        h->mul1[i] ^= (h->v0[i] & 0xffffffff) * (h->v1[i] >> 32);
    }

    highway_zip(h->v0, h->v1);
    highway_zip(h->v0 + 2, h->v1 + 2);
    highway_zip(h->v1, h->v0);
    highway_zip(h->v1 + 2, h->v0 + 2);
}


static inline void
highway_packet(highway_t *h, const uint8_t packet[32])
{
    unsigned  i;
    uint64_t  lane[4];

    for (i = 0; i < 4; i++) {
        lane[i] = bloom_get64(packet + 8 * i);
    }

    highway_lanes(h, lane);
}


/* Hashes the last len mod 32 bytes. */
static void
highway_rest(highway_t *h, const uint8_t *p, unsigned n)
{
    uint8_t   packet[32];
    unsigned  i, whole, odd;

    whole = n & ~3u;
    odd = n & 3;

    for (i = 0; i < 4; i++) {
        h->v0[i] += ((uint64_t) n << 32) + n;
        h->v1[i] = (uint64_t) rotl32((uint32_t) (h->v1[i] >> 32), n) << 32
                   | rotl32((uint32_t) h->v1[i], n);
    }

    memset(packet, 0, sizeof(packet));
    memcpy(packet, p, whole);

    if (n >= 16) {
        memcpy(packet + 28, p + n - 4, 4);

    } else if (odd != 0) {
        packet[16] = p[whole];
        packet[17] = p[whole + odd / 2];
        packet[18] = p[n - 1];
    }

    highway_packet(h, packet);
}


bloom_hash_t
bloom_highway_128(const void *data, size_t len, const uint64_t key[4])
{
    size_t          rest;
    unsigned        i, round;
    uint64_t        lane[4];
    highway_t       h;
    bloom_hash_t    hash;
    const uint8_t  *p;

    /* digits of pi */

    static const uint64_t  mul0[4] = {
        0xdbe6d5d5fe4cce2f, 0xa4093822299f31d0,
        0x13198a2e03707344, 0x243f6a8885a308d3
    };
    static const uint64_t  mul1[4] = {
        0x3bd39e10cb0ef593, 0xc0acf169b5f18a8c,
        0xbe5466cf34e90c6c, 0x452821e638d01377
    };

    for (i = 0; i < 4; i++) {
        h.mul0[i] = mul0[i];
        h.mul1[i] = mul1[i];
        h.v0[i] = mul0[i] ^ key[i];
        h.v1[i] = mul1[i] ^ rotl64(key[i], 32);
    }

    p = data;

    for (rest = len; rest >= 32; rest -= 32, p += 32) {
        highway_packet(&h, p);
    }

    if (rest != 0) {
        highway_rest(&h, p, (unsigned) rest);
    }

    for (round = 0; round < 6; round++) {
        for (i = 0; i < 4; i++) {
            lane[i] = rotl64(h.v0[i ^ 2], 32);
        }

        highway_lanes(&h, lane);
    }

    hash.h1 = h.v0[0] + h.mul0[0] + h.v1[2] + h.mul1[2];
    hash.h2 = h.v0[1] + h.mul0[1] + h.v1[3] + h.mul1[3];

    return hash;
}


/* ---- funnels ---- */

/*
 * Returns the next character of text that should be UTF-8.  A byte that begins
 * no character gives U+FFFD, and so does a character that is cut short, once
 * for all of its bytes.
 */
static uint32_t
utf8_next(const uint8_t **pos, const uint8_t *end)
{
    uint8_t         low, high;
    uint32_t        c;
    unsigned        len;
    const uint8_t  *p;

    p = *pos;
    c = *p++;
    len = bloom_utf8_begin((uint8_t) c, &low, &high);

    if (len <= 1) {
        *pos = p;
        return len == 1 ? c : 0xfffd;
    }

    for (c &= 0x7fu >> len; len != 1; len--, p++) {

        if (p == end || *p < low || *p > high) {
            *pos = p;
            return 0xfffd;
        }

        c = c << 6 | (*p & 0x3f);
        low = 0x80;
        high = 0xbf;
    }

    *pos = p;

    return c;
}


static bloom_hash_t
murmur3_utf16(const void *data, size_t len)
{
    size_t            n;
    uint8_t           units[256];
    uint32_t          c;
    const uint8_t    *p, *end;
    bloom_murmur3_t   m;

    bloom_murmur3_begin(&m);

    n = 0;
    p = data;
    end = p + len;

    while (p != end) {
        c = utf8_next(&p, end);

        if (c >= 0x10000) {
            c -= 0x10000;
            units[n++] = (uint8_t) (c >> 10);
            units[n++] = (uint8_t) (0xd8 | c >> 18);
            c = 0xdc00 | (c & 0x3ff);
        }

        units[n++] = (uint8_t) c;
        units[n++] = (uint8_t) (c >> 8);

        if (n > sizeof(units) - 4) {
            bloom_murmur3_update(&m, units, n);
            n = 0;
        }
    }

    bloom_murmur3_update(&m, units, n);

    return bloom_murmur3_end(&m);
}


/*
 * Reads a decimal number of `bits` bits with an optional sign, as Java's
 * Long.parseLong() does.  Returns 0, or -1 if it is not a number or is out of
 * range.
 */
static int
parse_integer(const uint8_t *p, size_t len, unsigned bits, uint64_t *value)
{
    int       negative;
    uint64_t  v, limit;

    negative = len != 0 && *p == '-';

    if (len != 0 && (*p == '-' || *p == '+')) {
        p++;
        len--;
    }

    if (len == 0) {
        return -1;
    }

    limit = ((uint64_t) 1 << (bits - 1)) - !negative;

    for (v = 0; len != 0; len--, p++) {

        if (*p < '0' || *p > '9' || v > (limit - (uint64_t) (*p - '0')) / 10) {
            return -1;
        }

        v = v * 10 + (uint64_t) (*p - '0');
    }

    *value = negative ? 0 - v : v;

    return 0;
}


/* Replaces the digits of a number by its bytes. */
static void
funnel_number(uint32_t funnel, uint8_t number[8], const void **data,
    size_t *len)
{
    uint64_t  value;
    unsigned  bits;

    bits = funnel == BLOOM_FUNNEL_LONG ? 64 : 32;

    if (parse_integer(*data, *len, bits, &value) == 0) {
        bloom_put64(number, value);
        *data = number;
        *len = bits / 8;
    }
}


bloom_hash_t
bloom_hash_foreign(const bloom_hasher_t *hasher, const void *data, size_t len)
{
    uint8_t       number[8];
    uint32_t      funnel, a, b;
    bloom_hash_t  hash;

    hash.h1 = 0;
    hash.h2 = 0;

    funnel = bloom_hasher_funnel(hasher);

    if (funnel == BLOOM_FUNNEL_LONG || funnel == BLOOM_FUNNEL_INT) {
        funnel_number(funnel, number, &data, &len);
    }

    switch (hasher->kind) {

    case BLOOM_HASH_FUNNEL:
        return funnel == BLOOM_FUNNEL_UTF16
               ? murmur3_utf16(data, len)
               : bloom_murmur3_x64_128(data, len, 0);

    case BLOOM_HASH_MURMUR64A:
        hash.h1 = bloom_murmur64a(data, len, REDISBLOOM_SEED);
        hash.h2 = bloom_murmur64a(data, len, hash.h1);
        break;

    case BLOOM_HASH_MURMUR2:
        a = bloom_murmur2(data, len, LIBBLOOM_SEED);
        hash.h1 = a;
        hash.h2 = bloom_murmur2(data, len, a);
        break;

    case BLOOM_HASH_MURMUR3_32:
        a = bloom_murmur3_32_spark(data, len, bloom_hasher_seed(hasher));
        b = bloom_murmur3_32_spark(data, len, a);
        hash.h1 = a | (uint64_t) b << 32;
        break;

    case BLOOM_HASH_HIGHWAY:
        return bloom_highway_128(data, len, redisson_key);

    case BLOOM_HASH_FNV1:
        hash.h1 = bloom_fnv1(data, len);
        break;

    case BLOOM_HASH_MURMUR3_TWICE:
    case BLOOM_HASH_MURMUR3_EACH:
        hash.h1 = (uintptr_t) data;
        hash.h2 = len;
        break;
    }

    return hash;
}
