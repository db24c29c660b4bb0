/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A tally of what a zone has done with the changes that it received.  The names
 * are those of nginx's response, in which `received` is the sum of the others.
 */

#ifndef FOLLOW_COUNTS_H
#define FOLLOW_COUNTS_H

#include <stdint.h>

#include "document.h"


typedef struct {
    uint64_t  received;
    uint64_t  added;
    uint64_t  already_present;
    uint64_t  removed;
    uint64_t  absent;
    uint64_t  superseded;                /* another change of the key follows */
    uint64_t  invalid;
} follow_counts_t;


/* Reads the counts of a response.  A count that it lacks is 0, as all are if
 * the zone had the changes before. */
void follow_counts_read(follow_counts_t *counts, const json_t *doc);

void follow_counts_add(follow_counts_t *sum, const follow_counts_t *counts);

/* Logs the counts, unless the zone received nothing. */
void follow_counts_say(const follow_counts_t *counts, const char *zone);


#endif /* FOLLOW_COUNTS_H */
