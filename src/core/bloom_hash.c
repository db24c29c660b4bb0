
#include "bloom_hash.h"
#include "bloom_bytes.h"
#include "bloom_hash_foreign.h"


static inline uint64_t
rotl(uint64_t x, unsigned r)
{
    return (x << r) | (x >> (64 - r));
}


/*
 * The last n bytes of a message, 0 to 7, as a little-endian number: no loop,
 * but pieces that overlap.
 */
static inline uint64_t
tail_bytes(const uint8_t *p, size_t n)
{
    size_t  middle;

    if (n >= 4) {
        return bloom_get32(p)
               | (uint64_t) bloom_get32(p + n - 4) << (8 * (n - 4));
    }

    if (n == 0) {
        return 0;
    }

    middle = n / 2;

    return p[0] | (uint64_t) p[middle] << (8 * middle)
           | (uint64_t) p[n - 1] << (8 * (n - 1));
}


bloom_hash_t
bloom_hash(const bloom_hasher_t *hasher, const void *data, size_t len)
{
    if (hasher->kind == BLOOM_HASH_MURMUR3) {
        return bloom_murmur3_x64_128(data, len, bloom_get32(hasher->key));
    }

    if (hasher->kind == BLOOM_HASH_SIPHASH) {
        return bloom_siphash_128(data, len, hasher->key, 1, 3);
    }

    return bloom_hash_foreign(hasher, data, len);
}


uint64_t
bloom_murmur3_mix(uint64_t x)
{
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccd;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53;
    x ^= x >> 33;

    return x;
}


#define MURMUR_C1  0x87c37b91114253d5
#define MURMUR_C2  0x4cf5ad432745937f

#define murmur_k1(k)  (rotl((k) * MURMUR_C1, 31) * MURMUR_C2)
#define murmur_k2(k)  (rotl((k) * MURMUR_C2, 33) * MURMUR_C1)


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

    if (rest > 8) {
        h2 ^= murmur_k2(tail_bytes(p + 8, rest - 8));
        rest = 8;
    }

    if (rest == 8) {
        h1 ^= murmur_k1(bloom_get64(p));

    } else if (rest != 0) {
        h1 ^= murmur_k1(tail_bytes(p, rest));
    }

    return murmur_end(h1, h2, len);
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

    /* zeros mix to zeros: an empty half changes nothing */

    return murmur_end(m->h1 ^ murmur_k1(bloom_get64(tail)),
                      m->h2 ^ murmur_k2(bloom_get64(tail + 8)), m->len);
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


bloom_hash_t
bloom_siphash_128(const void *data, size_t len,
    const uint8_t key[BLOOM_HASH_KEY_LEN], unsigned c, unsigned d)
{
    size_t          rest;
    uint64_t        k0, k1, m, v[4];
    bloom_hash_t    hash;
    const uint8_t  *p;

    k0 = bloom_get64(key);
    k1 = bloom_get64(key + 8);

    /* "somepseudorandomlygeneratedbytes"; 0xee marks the 128-bit variant */

    v[0] = k0 ^ 0x736f6d6570736575;
    v[1] = k1 ^ 0x646f72616e646f6d ^ 0xee;
    v[2] = k0 ^ 0x6c7967656e657261;
    v[3] = k1 ^ 0x7465646279746573;

    p = data;

    for (rest = len; rest >= 8; rest -= 8, p += 8) {
        m = bloom_get64(p);
        v[3] ^= m;
        sip_rounds(v, c);
        v[0] ^= m;
    }

    m = tail_bytes(p, rest) | (uint64_t) len << 56;
    v[3] ^= m;
    sip_rounds(v, c);
    v[0] ^= m;

    v[2] ^= 0xee;
    sip_rounds(v, d);
    hash.h1 = v[0] ^ v[1] ^ v[2] ^ v[3];

    v[1] ^= 0xdd;
    sip_rounds(v, d);
    hash.h2 = v[0] ^ v[1] ^ v[2] ^ v[3];

    return hash;
}


void
bloom_hasher_murmur3(bloom_hasher_t *hasher, uint32_t seed)
{
    memset(hasher, 0, sizeof(*hasher));

    hasher->kind = BLOOM_HASH_MURMUR3;
    bloom_put32(hasher->key, seed);
}


uint32_t
bloom_hasher_seed(const bloom_hasher_t *hasher)
{
    return bloom_get32(hasher->key);
}


const char *
bloom_hasher_name(uint32_t kind)
{
    switch (kind) {

    case BLOOM_HASH_MURMUR3:
        return "murmur3";

    case BLOOM_HASH_SIPHASH:
        return "siphash";
    }

    return bloom_hash_foreign_name(kind);
}


uint32_t
bloom_hasher_parse(const char *name, size_t len)
{
    uint32_t     kind;
    const char  *known;

    for (kind = BLOOM_HASH_MURMUR3; kind <= BLOOM_HASH_SIPHASH; kind++) {
        known = bloom_hasher_name(kind);

        if (strlen(known) == len && memcmp(known, name, len) == 0) {
            return kind;
        }
    }

    return 0;
}
