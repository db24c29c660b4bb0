/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions look keys up in a fuse base, without its layers.
 * bloom_layout.h calls them, and bloom_fuse.h describes the base.
 */

#ifndef BLOOM_LAYOUT_FUSE_H
#define BLOOM_LAYOUT_FUSE_H

#include "bloom_geometry.h"
#include "bloom_hasher.h"

#pragma GCC visibility push(hidden)


/* Returns 1 if the key may be in the base, 0 if it is absent. */
int bloom_layout_fuse_test(const bloom_geometry_t *g, const uint64_t *words,
    bloom_hash_t hash);

/* Tests n keys, at most 64.  Returns a bitmap: bit i is 1 if the
 * base may have key i. */
uint64_t bloom_layout_fuse_test_batch(const bloom_geometry_t *g,
    const uint64_t *words, const bloom_hash_t *hash, unsigned n);

/* Prefetches all slots of the key. */
void bloom_layout_fuse_prefetch(const bloom_geometry_t *g,
    const uint64_t *words, bloom_hash_t hash);


#pragma GCC visibility pop

#endif /* BLOOM_LAYOUT_FUSE_H */
