/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A limit for the lines that may be left out.
 */

#ifndef COLLECT_LIMIT_H
#define COLLECT_LIMIT_H

#include <stdint.h>


/* A number of lines, or a share of those that are not empty and not
 * comments. */
typedef struct {
    int       relative;                  /* the share is the limit */
    uint64_t  count;
    double    share;                     /* from 0 to 1 */
} collect_limit_t;


/* Returns 1 if n of so many lines are more than the limit allows.  A line may
 * have several entries, so n may be larger than the number of lines. */
int collect_limit_exceeded(const collect_limit_t *limit, uint64_t n,
    uint64_t lines);

/* Returns the limit for messages, such as "5%". */
#define COLLECT_LIMIT_SHOWN  32

const char *collect_limit_show(char text[COLLECT_LIMIT_SHOWN],
    const collect_limit_t *limit);


#endif /* COLLECT_LIMIT_H */
