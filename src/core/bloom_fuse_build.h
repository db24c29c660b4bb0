/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions build a fuse base, shard by shard, in memory that the caller
 * owns.  Shards do not depend on each other, so threads may build different
 * ones at the same time.
 *
 *     bloom_geometry_size_fuse(&g, keys, fpr);
 *
 *     for each shard
 *         bloom_fuse_build(&g, shard, n, read, data, scratch, words, salt)
 *
 * A key's equation is slot 0 ^ slot 1 ^ slot 2 = print.  A slot that only one
 * key has can be set last, whatever the other two are.  So the key is taken
 * away, which may leave other slots with one key (peeling).  If some keys
 * cannot be peeled, the shard is tried again with another salt.  That happens
 * to less than one shard in a hundred; of shards of about a million keys, to up
 * to 8 in a hundred, since more slots would be more than 1.14 times the bound.
 * Slots that are free stay zero.
 */

#ifndef BLOOM_FUSE_BUILD_H
#define BLOOM_FUSE_BUILD_H

#include <stddef.h>

#include "bloom_fuse.h"

#pragma GCC visibility push(hidden)


/* Returns the bytes of scratch memory that are needed to build a shard of n
 * keys. */
size_t bloom_fuse_scratch(const bloom_geometry_t *g, uint64_t n);

/* Return the first word of a shard, and the words of a shard; shards never
 * share a word.  The last one includes the padding. */
uint64_t bloom_fuse_shard_begin(const bloom_geometry_t *g, uint64_t shard);
uint64_t bloom_fuse_shard_words(const bloom_geometry_t *g, uint64_t shard);

/* Passes h2 of all keys of a shard to `take`, many at a time and in any order.
 * Each key comes once.  It is called again for each further salt. */
typedef void (*bloom_fuse_take_t)(void *data, const uint64_t *h2, size_t n);
typedef void (*bloom_fuse_read_t)(void *data, bloom_fuse_take_t take,
    void *take_data);

/*
 * Builds a shard of the n keys that `read` passes on.  `scratch` has
 * bloom_fuse_scratch() bytes, and should be aligned to 64.  `words` has
 * bloom_fuse_shard_words() words, all of which are written.  Stores the salt,
 * which the caller puts where bloom_fuse_salt() reads it.  Returns 0; or -1 if
 * there are more keys than slots, or if none of BLOOM_FUSE_SALTS salts is good.
 * That happens if two keys have the same h2, or if keys were chosen whose h2
 * differ in few bits.
 */
int bloom_fuse_build(const bloom_geometry_t *g, uint64_t shard, uint64_t n,
    bloom_fuse_read_t read, void *data, void *scratch, uint64_t *words,
    uint8_t *salt);


#pragma GCC visibility pop

#endif /* BLOOM_FUSE_BUILD_H */
