/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions count lines that were left out, by the reason, and keep the
 * first ones as examples.
 *
 * Each thread has a reasons_t of its own; the sum over all of them does not
 * depend on which thread read which lines.
 */

#ifndef REASONS_H
#define REASONS_H

#include <stddef.h>
#include <stdint.h>

#include "keyform.h"
#include "place.h"

#define REASONS_EXAMPLES  3


typedef struct {
    place_t   place;
    char      text[KEYFORM_SHOWN];       /* what was left out, escaped */
} reasons_example_t;

typedef struct {
    const char         *why;             /* follows the text in a message */
    int                 bad;             /* the lines are invalid */
    uint64_t            count;
    unsigned            n;               /* examples, in order */
    reasons_example_t   example[REASONS_EXAMPLES];
} reason_t;

/* All members are 0 at first. */
typedef struct {
    reason_t  *reason;
    size_t     n;
    size_t     last;                     /* the reason that was used last */
} reasons_t;


/* Counts a line.  A thread reads lines in order, and `why` is a constant. */
void reasons_add(reasons_t *reasons, const char *why, int bad,
    const place_t *place, const bloom_key_t *text);

/* Adds what another reasons_t has, which stays unchanged. */
void reasons_merge(reasons_t *reasons, const reasons_t *from);

/* Sorts the reasons: the most frequent one first. */
void reasons_sort(reasons_t *reasons);

void reasons_free(reasons_t *reasons);


#endif /* REASONS_H */
