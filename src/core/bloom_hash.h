/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * bloom_hash() hashes a key with the hash function that a filter's hasher
 * names.
 */

#ifndef BLOOM_HASH_H
#define BLOOM_HASH_H

#include "bloom_hasher.h"

#pragma GCC visibility push(hidden)


/*
 * Returns the hash of `len` bytes at `data`, which may have any alignment, and
 * may be NULL if len is 0.  If bloom_hasher_refers(), the hash points to those
 * bytes: they must stay unchanged as long as the hash is used.
 */
bloom_hash_t bloom_hash(const bloom_hasher_t *hasher, const void *data,
    size_t len);


#pragma GCC visibility pop

#endif /* BLOOM_HASH_H */
