/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The parts of a filter that has grown: how large they are, how full, and what
 * rate they have together.
 */

#include <math.h>

#include "bloom_growth.h"


uint64_t
bloom_growth_room(const bloom_geometry_t *g, uint64_t capacity, uint32_t part)
{
    if (g->layout == BLOOM_LAYOUT_FUSE) {
        return part == 0 ? g->fuse.keys : g->fuse.room << (part - 1);
    }

    return capacity << part;
}


/* Returns how many of the rest of the keys are in a part: as many as it has
 * room for; the last part has all of them. */
static uint64_t
share(const bloom_geometry_t *g, uint64_t capacity, uint32_t part,
    uint64_t rest)
{
    uint64_t  room;

    room = bloom_growth_room(g, capacity, part);

    return part < g->layers && room < rest ? room : rest;
}


uint64_t
bloom_growth_capacity(const bloom_geometry_t *g, uint64_t capacity,
    uint32_t layers)
{
    if (g->layout == BLOOM_LAYOUT_FUSE) {
        return layers <= BLOOM_LAYERS_MAX
               ? g->fuse.keys
                 + g->fuse.room * (((uint64_t) 1 << layers) - 1)
               : UINT64_MAX;
    }

    return capacity <= BLOOM_CAPACITY_MAX && layers <= BLOOM_LAYERS_MAX
           ? capacity * (((uint64_t) 2 << layers) - 1) : UINT64_MAX;
}


uint32_t
bloom_growth_layers(const bloom_geometry_t *g, uint64_t capacity,
    uint64_t max_keys)
{
    uint32_t  layers;

    for (layers = g->layout == BLOOM_LAYOUT_FUSE;
         layers <= BLOOM_LAYERS_MAX
         && bloom_growth_capacity(g, capacity, layers) < max_keys;
         layers++)
    {
        /* void */
    }

    return layers;
}


int
bloom_growth_extend(bloom_geometry_t *g, uint64_t capacity, uint32_t layers)
{
    double            fpr;
    uint32_t          i;
    bloom_geometry_t  base, one;

    if (bloom_geometry_is_foreign(g->layout) || g->slices != 0
        || capacity > BLOOM_CAPACITY_MAX)
    {
        return -1;
    }

    base = bloom_geometry_part(g, 0);
    fpr = bloom_geometry_fpr(&base, capacity);

    if (g->layout == BLOOM_LAYOUT_FUSE) {
        base.fuse.keys = 1;
        fpr = bloom_geometry_fpr(&base, 1);
    }

    for (i = g->layers + 1; i <= layers; i++) {

        if (bloom_geometry_size(&one, BLOOM_LAYOUT_BLOCKED,
                                bloom_growth_room(g, capacity, i),
                                fmin(fmax(ldexp(fpr, (int) i)
                                          / (ldexp(2, (int) layers) - 2),
                                          BLOOM_FPR_MIN),
                                     BLOOM_FPR_MAX))
            != 0)
        {
            return -1;
        }

        g->layer[i - 1].bits = one.bits;
        g->layer[i - 1].k = one.k;
        g->layer[i - 1].lines = one.lines;
        g->layers = (uint16_t) i;
    }

    return bloom_geometry_bytes(g) <= BLOOM_BITS_MAX / 8 ? 0 : -1;
}


uint64_t
bloom_growth_offset(const bloom_geometry_t *g, uint32_t part)
{
    uint32_t  i;
    uint64_t  bits;

    if (part == 0) {
        return 0;
    }

    if (g->slices != 0) {
        return part * (g->bits / 8);
    }

    bits = bloom_geometry_whole_lines(g->bits);

    for (i = 1; i < part; i++) {
        bits += g->layer[i - 1].bits;
    }

    return bits / 8;
}


double
bloom_growth_fpr(const bloom_geometry_t *g, uint64_t capacity, uint64_t items)
{
    double            none;
    uint32_t          i;
    uint64_t          some;
    bloom_geometry_t  part;

    if (g->layers == 0) {
        return bloom_geometry_fpr(g, items);
    }

    for (none = 0, i = 0; i <= g->layers; i++, items -= some) {
        part = bloom_geometry_part(g, i);
        some = share(g, capacity, i, items);
        none += log1p(-fmin(bloom_geometry_fpr(&part, some), 1 - 1e-15));
    }

    return 0 - expm1(none);
}


uint64_t
bloom_growth_items(const bloom_geometry_t *g, const uint64_t *bits_set)
{
    uint32_t          i;
    uint64_t          items;
    bloom_geometry_t  part;

    items = bloom_geometry_items(g, bits_set[0]);

    for (i = 1; i <= g->layers; i++) {
        part = bloom_geometry_part(g, i);
        items += bloom_geometry_items(&part, bits_set[i]);
    }

    return items;
}


double
bloom_growth_items_error(const bloom_geometry_t *g, const uint64_t *bits_set)
{
    double            error;
    uint32_t          i;
    bloom_geometry_t  part;

    error = bloom_geometry_items_error(g, bloom_geometry_items(g, bits_set[0]));

    for (i = 1; i <= g->layers; i++) {
        part = bloom_geometry_part(g, i);
        error = hypot(error, bloom_geometry_items_error(
                                 &part,
                                 bloom_geometry_items(&part, bits_set[i])));
    }

    return error;
}


double
bloom_growth_items_error_at(const bloom_geometry_t *g, uint64_t capacity,
    uint64_t items)
{
    double            error;
    uint32_t          i;
    uint64_t          some;
    bloom_geometry_t  part;

    if (g->layers == 0) {
        return bloom_geometry_items_error(g, items);
    }

    for (error = 0, i = 0; i <= g->layers; i++, items -= some) {
        part = bloom_geometry_part(g, i);
        some = share(g, capacity, i, items);
        error = hypot(error, bloom_geometry_items_error(&part, some));
    }

    return error;
}


int
bloom_growth_is_full(const bloom_geometry_t *g, uint64_t capacity,
    uint64_t bits_set)
{
    bloom_geometry_t  last;

    if (g->layers == 0) {
        return g->layout == BLOOM_LAYOUT_FUSE
               || bloom_geometry_items(g, bits_set) >= capacity;
    }

    last = bloom_geometry_part(g, g->layers);

    return bloom_geometry_items(&last, bits_set)
           >= bloom_growth_room(g, capacity, g->layers);
}
