/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions build a fuse base, shard by shard, in memory that the caller
 * owns.  Shards do not depend on each other, so threads may build different
 * ones at the same time.
 *
 *     for (attempt = 0; ; attempt++) {
 *         bloom_geometry_size_fuse(&g, keys, fpr, attempt);
 *
 *         for each shard, until one fails:
 *             bloom_fuse_build(&g, shard, n, read, data, scratch, words)
 *     }
 *
 * An attempt fails for less than one shard in a hundred.  Exceptions are shards
 * of less than 300,000 keys, whose next attempt takes no time, and those of
 * about a million: up to 8 in a hundred fail, since more slots would be more
 * than 1.14 times the bound.  Later attempts get more slots, so that the loop
 * ends.
 *
 * A key's equation is slot 0 ^ slot 1 ^ slot 2 = print.  A slot that only one
 * key has can be set last, whatever the other two are.  So the key is taken
 * away, which may leave other slots with one key (peeling).  What cannot be
 * peeled is a core, in which each slot has several keys.  Small cores, and
 * those of small filters, are solved by lazy Gaussian elimination (Genuzio,
 * Ottaviano, Vigna, "Fast Scalable Construction of (Minimal Perfect Hash)
 * Functions", 2016).  Slots that are free stay zero.
 */

#ifndef BLOOM_FUSE_BUILD_H
#define BLOOM_FUSE_BUILD_H

#include <stddef.h>

#include "bloom_fuse.h"

#pragma GCC visibility push(hidden)


/* Attempts after which a caller gives up.  Only hashes that were made to
 * collide need so many. */
#define BLOOM_FUSE_ATTEMPTS  256


/* Returns the bytes of scratch memory that are needed to build a shard of n
 * keys. */
size_t bloom_fuse_scratch(const bloom_geometry_t *g, uint64_t n);

/* Return the first word of a shard, and the words of a shard; shards never
 * share a word.  The last one includes the padding. */
uint64_t bloom_fuse_shard_begin(const bloom_geometry_t *g, uint64_t shard);
uint64_t bloom_fuse_shard_words(const bloom_geometry_t *g, uint64_t shard);

/* Passes the bloom_fuse_signature() of all keys of a shard to `take`, many at a
 * time and in any order.  Each key comes once.  It is called a second time if
 * some keys cannot be peeled. */
typedef void (*bloom_fuse_take_t)(void *data, const uint64_t *x, size_t n);
typedef void (*bloom_fuse_read_t)(void *data, bloom_fuse_take_t take,
    void *take_data);

/*
 * Builds a shard of the n keys that `read` passes on.  `scratch` has
 * bloom_fuse_scratch() bytes, and should be aligned to 64.  `words` has
 * bloom_fuse_shard_words() words, all of which are written.  Returns 0, or -1 if
 * the attempt failed, as it does for equal keys in a shard that is peeled.
 */
int bloom_fuse_build(const bloom_geometry_t *g, uint64_t shard, uint64_t n,
    bloom_fuse_read_t read, void *data, void *scratch, uint64_t *words);


#pragma GCC visibility pop

#endif /* BLOOM_FUSE_BUILD_H */
