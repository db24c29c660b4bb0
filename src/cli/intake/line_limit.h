/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A limit for the lines that may be left out.
 */

#ifndef LINE_LIMIT_H
#define LINE_LIMIT_H

#include <stdint.h>


/* A number of lines, or a share of those that are not empty and not
 * comments. */
typedef struct {
    int       relative;                  /* the share is the limit */
    uint64_t  count;
    double    share;                     /* from 0 to 1 */
} line_limit_t;


/* Returns 1 if n of so many lines are more than the limit allows.  A line may
 * have several entries, so n may be larger than the number of lines. */
int line_limit_exceeded(const line_limit_t *limit, uint64_t n,
    uint64_t lines);

/* Returns the limit for messages, such as "5%". */
#define LINE_LIMIT_SHOWN  32

const char *line_limit_show(char text[LINE_LIMIT_SHOWN],
    const line_limit_t *limit);


#endif /* LINE_LIMIT_H */
