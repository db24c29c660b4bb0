/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A census reads all bits of a filter and computes its fill ratio, an estimate
 * of the number of its keys, and the false-positive rate of exactly these bits.
 *
 * In a fuse base about half of the bits are set, whatever its keys are.  Its
 * number of keys and its rate are those that its geometry states.
 */

#ifndef BLOOM_CENSUS_H
#define BLOOM_CENSUS_H

#include "bloom_geometry.h"

#pragma GCC visibility push(hidden)


/* What is known of a part of the filter; all but the first three when its last
 * word has been counted. */
typedef struct {
    uint64_t             bits_set;
    uint64_t             words;
    double               matches;        /* blocked: sum over the lines of the
                                            probability that a pattern
                                            matches */
    uint64_t             items;          /* estimated number of keys */
    double               error;          /* its standard error */
    double               fill;           /* share of bits set, 0 to 1 */
    double               fpr;
} bloom_census_part_t;

/* The sums over the words counted so far.  The caller sets it to zeros before
 * the first words. */
typedef struct {
    uint64_t             bits_set;       /* in complete parts */
    uint64_t             words;
    uint64_t             padding;        /* bits after the last bit of each
                                            complete part; they are zero */
    uint32_t             parts;          /* complete ones */
    bloom_census_part_t  part[BLOOM_PARTS_MAX];
} bloom_census_t;

/*
 * Counts n words, a number of whole lines.  The caller passes every word of the
 * filter once and in order, in as many calls as it likes.  The results below
 * are complete after the last word.  All slices of a ring are counted, also
 * those that are not live.
 */
void bloom_census(bloom_census_t *census, const bloom_geometry_t *g,
    const uint64_t *words, uint64_t n);

/* Returns the probability that a random absent key is found in these bits. */
double bloom_census_fpr(const bloom_census_t *census);

/* Returns the share of bits set, 0 to 1. */
double bloom_census_fill(const bloom_census_t *census);

/* Return the estimated number of keys, over all parts, and its standard error:
 * see bloom_geometry_items(). */
uint64_t bloom_census_items(const bloom_census_t *census);
double bloom_census_items_error(const bloom_census_t *census);


#pragma GCC visibility pop

#endif /* BLOOM_CENSUS_H */
