/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This function computes SipHash-c-d, a hash with a secret, by Jean-Philippe
 * Aumasson and Daniel J. Bernstein ("SipHash: a fast short-input PRF", 2012),
 * in the authors' later variant with 128 bits of output.
 */

#ifndef BLOOM_SIPHASH_H
#define BLOOM_SIPHASH_H

#include "bloom_hasher.h"
#include "bloom_key.h"

#pragma GCC visibility push(hidden)


/*
 * Returns the hash of `len` bytes at `data`, which may have any alignment, and
 * may be NULL if len is 0.  h1 is the first eight bytes of the output, h2 the
 * last eight, both read as little-endian numbers.
 */
bloom_hash_t bloom_siphash_128(const void *data, size_t len,
    const uint8_t key[BLOOM_HASH_KEY_LEN], unsigned c, unsigned d);

/*
 * Hashes n keys that begin at the same byte with SipHash-1-3.  Their lengths
 * fall up to the key with the number `shortest`, and rise behind it, not above
 * the length of any key before it.
 */
void bloom_siphash_prefixes(bloom_hash_t *hash, const bloom_key_t *key,
    unsigned n, unsigned shortest, const uint8_t secret[BLOOM_HASH_KEY_LEN]);


#pragma GCC visibility pop

#endif /* BLOOM_SIPHASH_H */
