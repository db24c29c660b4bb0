/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions look keys up in the live slices of a ring.  bloom_layout.h
 * describes slices, and its functions call these.
 *
 * Slices have equal dimensions, so the place of a key is computed once.  Its
 * lines in all live slices are requested from memory before the first of them
 * is read.
 */

#ifndef BLOOM_LAYOUT_RING_H
#define BLOOM_LAYOUT_RING_H

#include "bloom_hasher.h"
#include "bloom_geometry.h"

#pragma GCC visibility push(hidden)


/* Returns the bitmap of the live slices that may have the key.  The geometry
 * must have slices, here and below. */
uint64_t bloom_layout_ring_slices(const bloom_geometry_t *g,
    const uint64_t *words, bloom_hash_t hash);

/* Tests n keys, at most BLOOM_BATCH (64).  Returns a bitmap: bit i is 1 if any
 * live slice may have key i. */
uint64_t bloom_layout_ring_test_batch(const bloom_geometry_t *g,
    const uint64_t *words, const bloom_hash_t *hash, unsigned n);

/* Prefetches the first line of the key in each live slice. */
void bloom_layout_ring_prefetch(const bloom_geometry_t *g,
    const uint64_t *words, bloom_hash_t hash);


#pragma GCC visibility pop

#endif /* BLOOM_LAYOUT_RING_H */
