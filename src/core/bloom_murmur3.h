/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions compute MurmurHash3_x64_128 by Austin Appleby (public domain,
 * SMHasher) of a message that is complete or comes in pieces.
 */

#ifndef BLOOM_MURMUR3_H
#define BLOOM_MURMUR3_H

#include "bloom_hasher.h"
#include "bloom_key.h"

#pragma GCC visibility push(hidden)


/* MurmurHash3's 64-bit finalizer: a bijection that mixes every bit. */
static inline uint64_t
bloom_murmur3_mix(uint64_t x)
{
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccd;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53;
    x ^= x >> 33;

    return x;
}

/*
 * Returns the hash of `len` bytes at `data`, which may have any alignment, and
 * may be NULL if len is 0.  The published verification value is 0x6384BA69.
 */
bloom_hash_t bloom_murmur3_x64_128(const void *data, size_t len,
    uint32_t seed);

/*
 * Hashes n keys that begin at the same byte.  Their lengths fall up to the key
 * with the number `shortest`, and rise behind it, not above the length of any
 * key before it.  The 16 bytes behind each key can be read.
 */
void bloom_murmur3_prefixes(bloom_hash_t *hash, const bloom_key_t *key,
    unsigned n, unsigned shortest, uint32_t seed);

/*
 * The state of a hash with seed 0 of a message that comes in pieces.  It may be
 * copied, to hash several messages with the same beginning.
 */
typedef struct {
    uint64_t  h1;
    uint64_t  h2;
    uint64_t  len;
    uint8_t   tail[16];                  /* its first len mod 16 are in use */
} bloom_murmur3_t;

void bloom_murmur3_begin(bloom_murmur3_t *m);
void bloom_murmur3_update(bloom_murmur3_t *m, const void *data, size_t len);
bloom_hash_t bloom_murmur3_end(const bloom_murmur3_t *m);


#pragma GCC visibility pop

#endif /* BLOOM_MURMUR3_H */
