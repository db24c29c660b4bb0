/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A filter grows by layers.  The base has room for `capacity` keys, and the
 * i-th part (the base is part 0, the layers are parts 1, 2, ...) for twice as
 * many as the part before it:
 *
 *     |-- base --|---- layer 1 ----|-------- layer 2 --------| ...
 *       capacity     2 * capacity         4 * capacity
 *
 * A key is added to the last part unless it is present, and a key is present if
 * any part has it.  So the false-positive rates of the parts add up.
 *
 * All layers together have the rate of the base, R, and each has a share in
 * proportion to its keys: with L layers, layer i has R 2^i / (2^(L+1) - 2).  A
 * part of n keys at the rate p takes n log2(1/p) / ln 2 bits; with the sum of
 * the rates given, the sum of the bits is least if all p / n are equal
 * (Lagrange).  Rates that tighten from layer to layer, as in scalable filters
 * (Almeida and others, 2007), are for growth without an end, and take more.
 *
 * A fuse base has its keys and no room: any addition goes to a layer.  Layer 1
 * has room for g->fuse.room keys, and each layer after it for twice as many as
 * the one before.  `capacity` is the sum of the keys and the room, and does not
 * count here.
 *
 *     |-- base --|- layer 1 -|---- layer 2 ----| ...
 *         keys       room         2 * room
 */

#ifndef BLOOM_GROWTH_H
#define BLOOM_GROWTH_H

#include "bloom_geometry.h"

#pragma GCC visibility push(hidden)


/* A filter has at most this many times the capacity of its base, unless that is
 * a fuse base: 2^(BLOOM_LAYERS_MAX + 1) - 1. */
#define BLOOM_GROWTH_MAX  131071


/* Returns how many keys a part has room for; part 0, a fuse base: how many it
 * has. */
uint64_t bloom_growth_room(const bloom_geometry_t *g, uint64_t capacity,
    uint32_t part);

/* Returns how many keys a filter with that base and that many layers has room
 * for; UINT64_MAX if capacity or layers is out of range. */
uint64_t bloom_growth_capacity(const bloom_geometry_t *g, uint64_t capacity,
    uint32_t layers);

/* Returns how many layers a filter with that base needs for `max_keys` keys;
 * more than BLOOM_LAYERS_MAX if it cannot have so many.  A fuse base needs one
 * at least. */
uint32_t bloom_growth_layers(const bloom_geometry_t *g, uint64_t capacity,
    uint64_t max_keys);

/*
 * Adds layers to a geometry that has fewer, until it has `layers`, at most
 * BLOOM_LAYERS_MAX.  Returns 0, or -1 if the filter is imported or a ring, if
 * it would have more than BLOOM_BITS_MAX bits, or if its capacity is out of
 * range.
 */
int bloom_growth_extend(bloom_geometry_t *g, uint64_t capacity,
    uint32_t layers);

/* Returns the offset of the first byte of a layer or slice, a multiple of 64.
 * Part bloom_geometry_parts() begins where the filter ends. */
uint64_t bloom_growth_offset(const bloom_geometry_t *g, uint32_t part);

/* Returns the expected rate after `items` distinct keys were added, one part
 * after the other. */
double bloom_growth_fpr(const bloom_geometry_t *g, uint64_t capacity,
    uint64_t items);

/* Estimates the number of distinct keys from the number of bits set in each
 * part, and its standard error: see bloom_geometry_items(). */
uint64_t bloom_growth_items(const bloom_geometry_t *g,
    const uint64_t *bits_set);
double bloom_growth_items_error(const bloom_geometry_t *g,
    const uint64_t *bits_set);

/* Returns the standard error of that estimate after `items` distinct keys were
 * added, one part after the other. */
double bloom_growth_items_error_at(const bloom_geometry_t *g,
    uint64_t capacity, uint64_t items);

/* Returns 1 if the last part with so many bits set has as many keys as it has
 * room for, else 0.  A fuse base is always full. */
int bloom_growth_is_full(const bloom_geometry_t *g, uint64_t capacity,
    uint64_t bits_set);


#pragma GCC visibility pop

#endif /* BLOOM_GROWTH_H */
