/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * bloom_hash() hashes a key with the hash function that a filter's hasher
 * names.
 */

#ifndef BLOOM_HASH_H
#define BLOOM_HASH_H

#include "bloom_hasher.h"
#include "bloom_key.h"

#pragma GCC visibility push(hidden)


/*
 * Returns the hash of `len` bytes at `data`, which may have any alignment, and
 * may be NULL if len is 0.  If bloom_hasher_refers(), the hash points to those
 * bytes: they must stay unchanged as long as the hash is used.
 */
bloom_hash_t bloom_hash(const bloom_hasher_t *hasher, const void *data,
    size_t len);

/*
 * Hashes n keys, as bloom_hash() does.  Keys that follow each other and begin at
 * the same byte share the hash of what they share.  The lengths of such keys
 * fall first and rise then, and none of those that rise is longer than one of
 * those that fall:
 *
 *     /1/2/3?x    /1/2/3    /    /1/    /1/2/
 *
 * The 16 bytes behind such keys can be read.
 */
void bloom_hash_many(bloom_hash_t *hash, const bloom_hasher_t *hasher,
    const bloom_key_t *key, unsigned n);


#pragma GCC visibility pop

#endif /* BLOOM_HASH_H */
