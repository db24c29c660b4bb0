/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A census counts what the rate of each part of the filter depends on: all its
 * bits, or the sectors of each line.
 */

#include <math.h>

#include "bloom_census.h"
#include "bloom_layout.h"


/* Counts the bits in each sector of a blocked filter; `sector` is the number of
 * words in a sector. */
static inline __attribute__((always_inline)) void
count_sectors(bloom_census_part_t *part, const uint64_t *words, uint64_t n,
    uint32_t sector)
{
    double           match;
    uint32_t         i, w, bits_set;
    const uint64_t  *end;

    for (end = words + n; words < end; /* void */ ) {
        match = 1;

        for (i = 0; i < BLOOM_LINE_WORDS; i += sector) {

            for (bits_set = 0, w = 0; w < sector; w++) {
                bits_set += (uint32_t) __builtin_popcountll(*words++);
            }

            match *= bits_set / (64.0 * sector);
            part->bits_set += bits_set;
        }

        part->matches += match;
    }
}


#if defined(__x86_64__)

__attribute__((target("popcnt")))
static void
count_sectors_popcnt(bloom_census_part_t *part, const uint64_t *words,
    uint64_t n, uint32_t sector)
{
    if (sector == 1) {
        count_sectors(part, words, n, 1);

    } else {
        count_sectors(part, words, n, sector);
    }
}

#endif


static void
count_lines(bloom_census_part_t *part, const uint64_t *words, uint64_t n,
    uint32_t sector)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("popcnt")) {
        count_sectors_popcnt(part, words, n, sector);
        return;
    }
#endif

    count_sectors(part, words, n, sector);
}


/* Returns the rate of a part from the bits that were counted in it. */
static double
part_fpr(const bloom_census_part_t *part, const bloom_geometry_t *g)
{
    double    rate, one;
    uint32_t  j;

    if (g->layout == BLOOM_LAYOUT_FUSE) {
        return bloom_geometry_fpr(g, g->fuse.keys);
    }

    if (g->layout != BLOOM_LAYOUT_BLOCKED) {
        return bloom_geometry_classic_fpr(g, part->fill);
    }

    one = part->matches * BLOOM_LINE_WORDS / (double) part->words;

    for (rate = 1, j = 0; j < g->lines; j++) {
        rate *= one;
    }

    return rate;
}


/* Ends a part whose words are all counted. */
static void
end_part(bloom_census_t *census, bloom_census_part_t *part,
    const bloom_geometry_t *g)
{
    part->items = bloom_geometry_items(g, part->bits_set);
    part->error = bloom_geometry_items_error(g, part->items);
    part->fill = (double) part->bits_set / (double) g->bits;
    part->fpr = part_fpr(part, g);

    census->bits_set += part->bits_set;
    census->padding += bloom_geometry_whole_lines(g->bits) - g->bits;
    census->parts++;
}


void
bloom_census(bloom_census_t *census, const bloom_geometry_t *g,
    const uint64_t *words, uint64_t n)
{
    uint64_t              size, some;
    bloom_geometry_t      one;
    bloom_census_part_t  *part;

    while (n != 0 && census->parts < bloom_geometry_parts(g)) {
        part = &census->part[census->parts];
        one = bloom_geometry_part(g, census->parts);
        size = bloom_geometry_bytes(&one) / 8;
        some = size - part->words;
        some = some < n ? some : n;

        if (one.layout == BLOOM_LAYOUT_BLOCKED) {
            count_lines(part, words, some,
                        BLOOM_LINE_WORDS * one.lines / one.k);

        } else {
            part->bits_set += bloom_layout_bits_set(words, some);
        }

        words += some;
        n -= some;
        census->words += some;
        part->words += some;

        if (part->words == size) {
            end_part(census, part, &one);
        }
    }
}


double
bloom_census_fill(const bloom_census_t *census)
{
    return census->words ? (double) census->bits_set
                           / (64.0 * (double) census->words
                              - (double) census->padding)
                         : 0;
}


uint64_t
bloom_census_items(const bloom_census_t *census)
{
    uint32_t  i;
    uint64_t  items;

    for (items = 0, i = 0; i < census->parts; i++) {
        items += census->part[i].items;
    }

    return items;
}


double
bloom_census_items_error(const bloom_census_t *census)
{
    double    error;
    uint32_t  i;

    for (error = 0, i = 0; i < census->parts; i++) {
        error = hypot(error, census->part[i].error);
    }

    return error;
}


double
bloom_census_fpr(const bloom_census_t *census)
{
    double    none, rate;
    uint32_t  i;

    for (none = 0, i = 0; i < census->parts; i++) {
        rate = census->part[i].fpr;
        none += rate < 1 ? log1p(-rate) : -INFINITY;
    }

    return 0 - expm1(none);
}
