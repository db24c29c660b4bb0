/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * bloom_hash() hashes a key as a filter's hasher says, whichever function that
 * is.
 */

#ifndef BLOOM_HASH_H
#define BLOOM_HASH_H

#include "bloom_hasher.h"

#pragma GCC visibility push(hidden)


/*
 * Returns the hash of `len` bytes at `data`, of any alignment; NULL only if len
 * is 0.  The hash of MURMUR3_TWICE and MURMUR3_EACH refers to those bytes,
 * which must then be there until it has been used.
 */
bloom_hash_t bloom_hash(const bloom_hasher_t *hasher, const void *data,
    size_t len);


#pragma GCC visibility pop

#endif /* BLOOM_HASH_H */
