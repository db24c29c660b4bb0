/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A census finds out what a filter's bits themselves say: how full it is, about
 * how many keys it has, and the false-positive rate of exactly these bits.
 */

#ifndef BLOOM_CENSUS_H
#define BLOOM_CENSUS_H

#include "bloom_geometry.h"

#pragma GCC visibility push(hidden)


/* Begins with zeros. */
typedef struct {
    uint64_t  bits_set;
    uint64_t  words;                     /* words given */
    uint64_t  padding;                   /* zeros that fill up a last line */
    double    matches;                   /* blocked: sum over lines of the
                                            chance that a pattern matches;
                                            links: sum of the logarithms of
                                            the chance that it does not */
    uint64_t  items;                     /* links: of those at an end */
    uint64_t  closed;                    /* links: their bits_set */
} bloom_census_t;

/* Adds n words.  Every word of a filter is given once, in their order, in
 * pieces of whole lines. */
void bloom_census(bloom_census_t *census, const bloom_geometry_t *g,
    const uint64_t *words, uint64_t n);

/* Returns the false-positive rate of exactly these bits for a random absent
 * key. */
double bloom_census_fpr(const bloom_census_t *census,
    const bloom_geometry_t *g);

/* Returns the share of bits set, 0 to 1. */
double bloom_census_fill(const bloom_census_t *census);

/* Returns bloom_geometry_items() of all words. */
uint64_t bloom_census_items(const bloom_census_t *census,
    const bloom_geometry_t *g);


#pragma GCC visibility pop

#endif /* BLOOM_CENSUS_H */
