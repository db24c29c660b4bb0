/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The message is read as little-endian numbers, so the hash is the same on
 * every machine.
 */

#include "bloom_murmur3.h"

#define MURMUR_C1  0x87c37b91114253d5
#define MURMUR_C2  0x4cf5ad432745937f

#define murmur_k1(k)  (rotl((k) * MURMUR_C1, 31) * MURMUR_C2)
#define murmur_k2(k)  (rotl((k) * MURMUR_C2, 33) * MURMUR_C1)


static inline uint64_t
rotl(uint64_t x, unsigned r)
{
    return (x << r) | (x >> (64 - r));
}


static inline void
murmur_block(uint64_t *h1, uint64_t *h2, const uint8_t *p)
{
    *h1 ^= murmur_k1(bloom_get64(p));
    *h1 = (rotl(*h1, 27) + *h2) * 5 + 0x52dce729;

    *h2 ^= murmur_k2(bloom_get64(p + 8));
    *h2 = (rotl(*h2, 31) + *h1) * 5 + 0x38495ab5;
}


static inline bloom_hash_t
murmur_end(uint64_t h1, uint64_t h2, uint64_t len)
{
    bloom_hash_t  hash;

    h1 ^= len;
    h2 ^= len;

    h1 += h2;
    h2 += h1;

    h1 = bloom_murmur3_mix(h1);
    h2 = bloom_murmur3_mix(h2);

    h1 += h2;
    h2 += h1;

    hash.h1 = h1;
    hash.h2 = h2;

    return hash;
}


/* Ends a message of `len` bytes, of which the last len mod 16 are at p. */
static inline bloom_hash_t
murmur_tail(uint64_t h1, uint64_t h2, const uint8_t *p, size_t len)
{
    size_t  rest;

    rest = len % 16;

    if (rest > 8) {
        h2 ^= murmur_k2(bloom_get_short(p + 8, rest - 8));
        rest = 8;
    }

    if (rest == 8) {
        h1 ^= murmur_k1(bloom_get64(p));

    } else if (rest != 0) {
        h1 ^= murmur_k1(bloom_get_short(p, rest));
    }

    return murmur_end(h1, h2, len);
}


bloom_hash_t
bloom_murmur3_x64_128(const void *data, size_t len, uint32_t seed)
{
    size_t          rest;
    uint64_t        h1, h2;
    const uint8_t  *p;

    p = data;
    h1 = seed;
    h2 = seed;

    for (rest = len; rest >= 16; rest -= 16, p += 16) {
        murmur_block(&h1, &h2, p);
    }

    return murmur_tail(h1, h2, p, len);
}


/* Masks of the first n bytes of 16, which are read as two numbers, by n. */
#define mask_of(n)  ((n) <= 0 ? 0 : (n) >= 8 ? UINT64_MAX                    \
                     : ((uint64_t) 1 << (8 * (n) & 63)) - 1)
#define masks_of(n)  { mask_of(n), mask_of((n) - 8) }

static const uint64_t  masks[16][2] = {
    masks_of(0), masks_of(1), masks_of(2), masks_of(3),
    masks_of(4), masks_of(5), masks_of(6), masks_of(7),
    masks_of(8), masks_of(9), masks_of(10), masks_of(11),
    masks_of(12), masks_of(13), masks_of(14), masks_of(15)
};


/* Hashes a key, of which the blocks before *p have been mixed into h1 and h2,
 * and moves *p behind the other ones. */
static inline bloom_hash_t
murmur_longer(uint64_t *h1, uint64_t *h2, const uint8_t **p,
    const bloom_key_t *key)
{
    const uint8_t   *end;
    const uint64_t  *mask;

    end = key->data + (key->len & ~(size_t) 15);

    for ( /* void */ ; *p != end; *p += 16) {
        murmur_block(h1, h2, *p);
    }

    /* mixing zeros gives zeros, so an empty half changes nothing */

    mask = masks[key->len % 16];

    return murmur_end(*h1 ^ murmur_k1(bloom_get64(end) & mask[0]),
                      *h2 ^ murmur_k2(bloom_get64(end + 8) & mask[1]),
                      key->len);
}


void
bloom_murmur3_prefixes(bloom_hash_t *hash, const bloom_key_t *key, unsigned n,
    unsigned shortest, uint32_t seed)
{
    unsigned        i;
    uint64_t        h1, h2;
    const uint8_t  *p;

    p = key->data;
    h1 = seed;
    h2 = seed;

    for (i = shortest; i < n; i++) {
        hash[i] = murmur_longer(&h1, &h2, &p, &key[i]);
    }

    for (i = shortest; i-- != 0; /* void */ ) {
        hash[i] = murmur_longer(&h1, &h2, &p, &key[i]);
    }
}


void
bloom_murmur3_begin(bloom_murmur3_t *m)
{
    memset(m, 0, sizeof(*m));
}


void
bloom_murmur3_update(bloom_murmur3_t *m, const void *data, size_t len)
{
    size_t          n, used;
    const uint8_t  *p;

    p = data;
    used = m->len % 16;
    m->len += len;

    if (used != 0) {
        n = len < 16 - used ? len : 16 - used;

        memcpy(m->tail + used, p, n);

        if (used + n < 16) {
            return;
        }

        murmur_block(&m->h1, &m->h2, m->tail);
        p += n;
        len -= n;
    }

    for ( /* void */ ; len >= 16; len -= 16, p += 16) {
        murmur_block(&m->h1, &m->h2, p);
    }

    if (len != 0) {
        memcpy(m->tail, p, len);
    }
}


bloom_hash_t
bloom_murmur3_end(const bloom_murmur3_t *m)
{
    uint8_t  tail[16];

    memset(tail, 0, sizeof(tail));
    memcpy(tail, m->tail, m->len % 16);

    /* mixing zeros gives zeros, so an empty half changes nothing */

    return murmur_end(m->h1 ^ murmur_k1(bloom_get64(tail)),
                      m->h2 ^ murmur_k2(bloom_get64(tail + 8)), m->len);
}
