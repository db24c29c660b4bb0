/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * SipHash-c-d, by Jean-Philippe Aumasson and Daniel J. Bernstein, hashes with a
 * secret and has 128 bits of output here: "SipHash: a fast short-input PRF"
 * (2012), and the authors' later 128-bit variant.
 */

#ifndef BLOOM_SIPHASH_H
#define BLOOM_SIPHASH_H

#include "bloom_hasher.h"

#pragma GCC visibility push(hidden)


/*
 * Returns the hash of `len` bytes at `data`, of any alignment; NULL only if len
 * is 0.  h1 is the first eight bytes of the output read as little-endian, h2
 * the last eight.
 */
bloom_hash_t bloom_siphash_128(const void *data, size_t len,
    const uint8_t key[BLOOM_HASH_KEY_LEN], unsigned c, unsigned d);


#pragma GCC visibility pop

#endif /* BLOOM_SIPHASH_H */
