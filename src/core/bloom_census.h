/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A census reads all bits of a filter and computes its fill ratio, an estimate
 * of the number of its keys, and the false-positive rate of exactly these bits.
 */

#ifndef BLOOM_CENSUS_H
#define BLOOM_CENSUS_H

#include "bloom_geometry.h"

#pragma GCC visibility push(hidden)


/*
 * The sums over the words counted so far.  The caller sets it to zeros before
 * the first words.
 */
typedef struct {
    uint64_t  bits_set;
    uint64_t  words;                     /* counted so far */
    uint64_t  padding;                   /* bits after the filter's last bit,
                                            or after the last bit of each
                                            link; they are zero */
    double    matches;                   /* blocked: sum over the lines of the
                                            probability that a pattern matches;
                                            links: sum over the complete links
                                            of log(1 - rate) */
    uint64_t  items;                     /* links: keys in complete links */
    uint64_t  closed;                    /* links: bits set in complete links */
} bloom_census_t;

/*
 * Counts n words, a number of whole lines.  The caller passes every word of the
 * filter once and in order, in as many calls as it likes.
 */
void bloom_census(bloom_census_t *census, const bloom_geometry_t *g,
    const uint64_t *words, uint64_t n);

/* Returns the probability that a random absent key is found in these bits. */
double bloom_census_fpr(const bloom_census_t *census,
    const bloom_geometry_t *g);

/* Returns the share of bits set, 0 to 1. */
double bloom_census_fill(const bloom_census_t *census);

/* Returns the estimated number of keys: see bloom_geometry_items(). */
uint64_t bloom_census_items(const bloom_census_t *census,
    const bloom_geometry_t *g);


#pragma GCC visibility pop

#endif /* BLOOM_CENSUS_H */
