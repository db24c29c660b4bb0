/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A census counts what the rate of the filter's layout depends on: all bits,
 * the sectors of each line, or the bits of each link.
 */

#include <math.h>
#include <string.h>

#include "bloom_census.h"
#include "bloom_layout.h"


static void
count_bits_set(bloom_census_t *census, const uint64_t *words, uint64_t n)
{
    census->words += n;
    census->bits_set += bloom_layout_bits_set(words, n);
}


/* Returns the geometry of a link as a filter of its own. */
static bloom_geometry_t
link_geometry(const bloom_link_t *link)
{
    bloom_geometry_t  g;

    memset(&g, 0, sizeof(g));

    g.layout = BLOOM_LAYOUT_DOUBLE;
    g.k = link->k;
    g.bits = link->bits;

    return g;
}


/* Continues in the link where the last call ended.  At the end of a link, its
 * items and its rate are added to the sums. */
static void
count_links(bloom_census_t *census, const bloom_geometry_t *g,
    const uint64_t *words, uint64_t n)
{
    double            rate;
    uint32_t          i;
    uint64_t          end, part;
    bloom_geometry_t  one;

    for (end = 0, i = 0; i < g->links && n != 0; i++) {

        end += bloom_geometry_whole_lines(g->link[i].bits) / 64;

        if (census->words >= end) {
            continue;
        }

        part = end - census->words < n ? end - census->words : n;

        count_bits_set(census, words, part);

        words += part;
        n -= part;

        if (census->words == end) {
            one = link_geometry(&g->link[i]);

            census->padding += bloom_geometry_whole_lines(one.bits) - one.bits;

            census->items += bloom_geometry_items(&one,
                                                  census->bits_set
                                                  - census->closed);

            rate = bloom_geometry_classic_fpr(&one, (double) (census->bits_set
                                                              - census->closed)
                                                    / (double) one.bits);

            census->matches += log1p(-fmin(rate, 1 - 1e-15));
            census->closed = census->bits_set;
        }
    }
}


/* Counts the bits in each sector of a blocked filter; `sector` is the number of
 * words in a sector. */
static inline __attribute__((always_inline)) void
count_sectors(bloom_census_t *census, const uint64_t *words, uint64_t n,
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
            census->bits_set += bits_set;
        }

        census->matches += match;
    }
}


#if defined(__x86_64__)

__attribute__((target("popcnt")))
static void
count_sectors_popcnt(bloom_census_t *census, const uint64_t *words, uint64_t n,
    uint32_t sector)
{
    if (sector == 1) {
        count_sectors(census, words, n, 1);

    } else {
        count_sectors(census, words, n, sector);
    }
}

#endif


static void
count_lines(bloom_census_t *census, const uint64_t *words, uint64_t n,
    uint32_t sector)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("popcnt")) {
        count_sectors_popcnt(census, words, n, sector);
        return;
    }
#endif

    count_sectors(census, words, n, sector);
}


void
bloom_census(bloom_census_t *census, const bloom_geometry_t *g,
    const uint64_t *words, uint64_t n)
{
    if (g->layout == BLOOM_LAYOUT_LINKS) {
        count_links(census, g, words, n);
        return;
    }

    if (g->layout != BLOOM_LAYOUT_BLOCKED) {
        count_bits_set(census, words, n);

        if (census->words == bloom_geometry_whole_lines(g->bits) / 64) {
            census->padding = bloom_geometry_whole_lines(g->bits) - g->bits;
        }

        return;
    }

    census->words += n;

    count_lines(census, words, n, BLOOM_LINE_WORDS * g->lines / g->k);
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
bloom_census_items(const bloom_census_t *census, const bloom_geometry_t *g)
{
    return g->layout == BLOOM_LAYOUT_LINKS
           ? census->items : bloom_geometry_items(g, census->bits_set);
}


double
bloom_census_fpr(const bloom_census_t *census, const bloom_geometry_t *g)
{
    double    rate, one;
    uint32_t  j;

    if (g->layout == BLOOM_LAYOUT_LINKS) {
        return -expm1(census->matches);
    }

    if (g->layout != BLOOM_LAYOUT_BLOCKED) {
        return bloom_geometry_classic_fpr(g, bloom_census_fill(census));
    }

    one = census->words ? census->matches * BLOOM_LINE_WORDS / census->words
                        : 0;

    for (rate = 1, j = 0; j < g->lines; j++) {
        rate *= one;
    }

    return rate;
}
