/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The caller passes the numbers of rounds, c and d, so that tests can compare
 * with the published vectors of SipHash-2-4.
 */

#include "bloom_siphash.h"


static inline uint64_t
rotl(uint64_t x, unsigned r)
{
    return (x << r) | (x >> (64 - r));
}


static inline void
sip_rounds(uint64_t v[4], unsigned n)
{
    while (n--) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = rotl(v[1], 13) ^ v[0];
        v[3] = rotl(v[3], 16) ^ v[2];
        v[0] = rotl(v[0], 32);

        v[2] += v[1];
        v[0] += v[3];
        v[1] = rotl(v[1], 17) ^ v[2];
        v[3] = rotl(v[3], 21) ^ v[0];
        v[2] = rotl(v[2], 32);
    }
}


static inline void
sip_begin(uint64_t v[4], const uint8_t key[BLOOM_HASH_KEY_LEN])
{
    uint64_t  k0, k1;

    k0 = bloom_get64(key);
    k1 = bloom_get64(key + 8);

    /* "somepseudorandomlygeneratedbytes"; 0xee marks the 128-bit variant */

    v[0] = k0 ^ 0x736f6d6570736575;
    v[1] = k1 ^ 0x646f72616e646f6d ^ 0xee;
    v[2] = k0 ^ 0x6c7967656e657261;
    v[3] = k1 ^ 0x7465646279746573;
}


static inline void
sip_block(uint64_t v[4], uint64_t m, unsigned c)
{
    v[3] ^= m;
    sip_rounds(v, c);
    v[0] ^= m;
}


/* Ends a message of `len` bytes, of which the last len mod 8 are at p. */
static inline bloom_hash_t
sip_end(uint64_t v[4], const uint8_t *p, size_t len, unsigned c, unsigned d)
{
    bloom_hash_t  hash;

    sip_block(v, bloom_get_short(p, len % 8) | (uint64_t) len << 56, c);

    v[2] ^= 0xee;
    sip_rounds(v, d);
    hash.h1 = v[0] ^ v[1] ^ v[2] ^ v[3];

    v[1] ^= 0xdd;
    sip_rounds(v, d);
    hash.h2 = v[0] ^ v[1] ^ v[2] ^ v[3];

    return hash;
}


bloom_hash_t
bloom_siphash_128(const void *data, size_t len,
    const uint8_t key[BLOOM_HASH_KEY_LEN], unsigned c, unsigned d)
{
    size_t          rest;
    uint64_t        v[4];
    const uint8_t  *p;

    sip_begin(v, key);
    p = data;

    for (rest = len; rest >= 8; rest -= 8, p += 8) {
        sip_block(v, bloom_get64(p), c);
    }

    return sip_end(v, p, len, c, d);
}


/* Hashes a key, of which the blocks before *p have been mixed into v, and moves
 * *p behind the other ones. */
static inline bloom_hash_t
sip_longer(uint64_t v[4], const uint8_t **p, const bloom_key_t *key)
{
    uint64_t        w[4];
    const uint8_t  *end;

    end = key->data + (key->len & ~(size_t) 7);

    for ( /* void */ ; *p != end; *p += 8) {
        sip_block(v, bloom_get64(*p), 1);
    }

    memcpy(w, v, sizeof(w));

    return sip_end(w, end, key->len, 1, 3);
}


void
bloom_siphash_prefixes(bloom_hash_t *hash, const bloom_key_t *key, unsigned n,
    unsigned shortest, const uint8_t secret[BLOOM_HASH_KEY_LEN])
{
    unsigned        i;
    uint64_t        v[4];
    const uint8_t  *p;

    sip_begin(v, secret);
    p = key->data;

    for (i = shortest; i < n; i++) {
        hash[i] = sip_longer(v, &p, &key[i]);
    }

    for (i = shortest; i-- != 0; /* void */ ) {
        hash[i] = sip_longer(v, &p, &key[i]);
    }
}
