/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A ring is a filter whose keys expire.  Keys are added to the open slice, and
 * a key is present if any live slice has it.  A slice is closed when a part of
 * a life has passed since its first key was added, or when it is full, and
 * another slice is opened.  A slice is dropped one life after it was closed.
 * So a key lives at least one life, and at most one life and one part.
 *
 *     time  --->     a life has S parts, here S = 4
 *
 *     | slice 2 |            dropped: closed more than a life ago
 *               | slice 3 |
 *                         | slice 4 |
 *                                   | slice 0 |
 *                                             | slice 1 |
 *                                                       | slice 2   open
 *               |<-------- live -------->
 *
 * At any time these slices are live, at most:
 *
 *   S   closed because their part had passed: two such closings are at least a
 *       part apart, and those of live slices are all within one life;
 *   F   closed because they were full: with c keys in a slice, F such closings
 *       within one life need more than (F - 1) c keys added within that life,
 *       so for n keys F = ceil(n / c);
 *   1   the open slice.
 *
 * The ring has P = S + 1 + F slices, so it is never short of one, as long as no
 * more than n keys are added within any life.  Each slice has the rate fpr / P
 * when it is full.  A lookup is wrong if it is wrong in any live slice, so the
 * rate of the ring is at most the sum, fpr.
 *
 * A slice has an odd number of lines, so that the lines of a key, which are at
 * the same place in each slice, do not compete for the same places in the
 * processor's caches.
 */

#ifndef BLOOM_RING_H
#define BLOOM_RING_H

#include "bloom_geometry.h"

#pragma GCC visibility push(hidden)


#define BLOOM_RING_SLICES_MIN  2         /* parts of a life */
#define BLOOM_RING_SLICES_MAX  20
#define BLOOM_RING_MAX         42        /* slices in memory */

/* The shortest and the longest life, ms: two seconds, and 3650 days. */
#define BLOOM_RING_LIFE_MIN    UINT64_C(2000)
#define BLOOM_RING_LIFE_MAX    (UINT64_C(3650) * 86400 * 1000)


/* Returns the number of parts of a life of so many ms: 8, or as many as it has
 * seconds if it is shorter.  With more parts, keys would live a little less
 * beyond their life, and a lookup would read more slices. */
uint32_t bloom_ring_slices(uint64_t life);

/*
 * Computes a ring for `capacity` keys within any life at the rate `fpr`, with a
 * life of `slices` parts, BLOOM_RING_SLICES_MIN to BLOOM_RING_SLICES_MAX.  A
 * slice has room for ceil(capacity / slices) keys.  The ring has slices for
 * `max_keys` keys within a life if that is more than `capacity`, and keeps the
 * rate with so many.  A slice has at least the rate BLOOM_FPR_MIN, so the rate
 * of the ring may be higher than `fpr` if that is below BLOOM_RING_MAX times
 * BLOOM_FPR_MIN.
 *
 * Fills *g, with slice 0 open and live, and *slice_capacity.  Returns 0, or -1
 * if an argument is out of range, see bloom_geometry_size(), if the ring would
 * have more than BLOOM_RING_MAX slices, or if it would have more than
 * BLOOM_BITS_MAX bits.
 */
int bloom_ring_size(bloom_geometry_t *g, uint64_t *slice_capacity,
    uint64_t capacity, double fpr, uint32_t slices, uint64_t max_keys);

/* Returns the greatest `max_keys` that bloom_ring_size() accepts, at least
 * `capacity`, unless the ring is too large; 0 if capacity or slices is out of
 * range. */
uint64_t bloom_ring_max_keys(uint64_t capacity, uint32_t slices);

/* Returns the expected rate of the live slices; items[i] is the number of
 * distinct keys in slice i. */
double bloom_ring_fpr(const bloom_geometry_t *g, const uint64_t *items);

/*
 * Estimates the number of keys over the live slices, and its standard error,
 * from bits_set[i], the number of bits set in slice i: see
 * bloom_geometry_items().  A key counts once in each live slice that has it.
 */
uint64_t bloom_ring_items(const bloom_geometry_t *g, const uint64_t *bits_set);
double bloom_ring_items_error(const bloom_geometry_t *g,
    const uint64_t *bits_set);

/* Returns 1 if a slice with so many bits set has as many keys as it has room
 * for, else 0. */
int bloom_ring_is_full(const bloom_geometry_t *g, uint64_t slice_capacity,
    uint64_t bits_set);


#pragma GCC visibility pop

#endif /* BLOOM_RING_H */
