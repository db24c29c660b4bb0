/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The slices of a ring: how many it needs, how large they are, how full, and
 * what rate they have together.
 */

#include <math.h>

#include "bloom_ring.h"


/* Returns how many keys a slice has room for; 0 if an argument is out of
 * range. */
static uint64_t
room(uint64_t capacity, uint32_t slices)
{
    return capacity == 0 || capacity > BLOOM_CAPACITY_MAX
           || slices < BLOOM_RING_SLICES_MIN || slices > BLOOM_RING_SLICES_MAX
           ? 0 : (capacity + slices - 1) / slices;
}


uint32_t
bloom_ring_slices(uint64_t life)
{
    uint64_t  seconds;

    seconds = life / 1000;

    return seconds < 8 ? (uint32_t) seconds : 8;
}


uint64_t
bloom_ring_max_keys(uint64_t capacity, uint32_t slices)
{
    return (BLOOM_RING_MAX - 1 - slices) * room(capacity, slices);
}


int
bloom_ring_size(bloom_geometry_t *g, uint64_t *slice_capacity,
    uint64_t capacity, double fpr, uint32_t slices, uint64_t max_keys)
{
    uint64_t          c, parts;
    bloom_geometry_t  ring;

    c = room(capacity, slices);
    max_keys = capacity < max_keys ? max_keys : capacity;

    if (c == 0 || max_keys > bloom_ring_max_keys(capacity, slices)
        || !(fpr >= BLOOM_FPR_MIN && fpr <= BLOOM_FPR_MAX))
    {
        return -1;
    }

    parts = slices + 1 + (max_keys + c - 1) / c;

    if (bloom_geometry_size(&ring, BLOOM_LAYOUT_BLOCKED, c,
                            fmax(fpr / (double) parts, BLOOM_FPR_MIN))
        != 0)
    {
        return -1;
    }

    /*
     * A key's lines are this many lines apart.  If the number is a multiple of
     * a large power of two, they compete for the same few places in the
     * processor's caches.  An odd number spreads them.
     */

    if (ring.bits / BLOOM_LINE_BITS % 2 == 0) {
        ring.bits += BLOOM_LINE_BITS;
    }

    ring.slices = (uint16_t) parts;
    ring.open = 0;
    ring.live = 1;

    if (!bloom_geometry_valid(&ring)) {
        return -1;
    }

    *g = ring;
    *slice_capacity = c;

    return 0;
}


double
bloom_ring_fpr(const bloom_geometry_t *g, const uint64_t *items)
{
    double            none;
    uint64_t          live;
    bloom_geometry_t  slice;

    slice = bloom_geometry_part(g, 0);

    for (none = 0, live = g->live; live != 0; live &= live - 1) {
        none += log1p(-fmin(bloom_geometry_fpr(
                                &slice, items[__builtin_ctzll(live)]),
                            1 - 1e-15));
    }

    return 0 - expm1(none);
}


uint64_t
bloom_ring_items(const bloom_geometry_t *g, const uint64_t *bits_set)
{
    uint64_t  items, live;

    for (items = 0, live = g->live; live != 0; live &= live - 1) {
        items += bloom_geometry_items(g, bits_set[__builtin_ctzll(live)]);
    }

    return items;
}


double
bloom_ring_items_error(const bloom_geometry_t *g, const uint64_t *bits_set)
{
    double    error;
    uint64_t  live;

    for (error = 0, live = g->live; live != 0; live &= live - 1) {
        error = hypot(error, bloom_geometry_items_error(
                                 g, bloom_geometry_items(
                                        g, bits_set[__builtin_ctzll(live)])));
    }

    return error;
}


int
bloom_ring_is_full(const bloom_geometry_t *g, uint64_t slice_capacity,
    uint64_t bits_set)
{
    return bloom_geometry_items(g, bits_set) >= slice_capacity;
}
