/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file compares numbers of lines with limits.
 */

#include <inttypes.h>
#include <stdio.h>

#include "line_limit.h"


/* Far below the share of one line. */
#define ROUNDING  1e-14


int
line_limit_exceeded(const line_limit_t *limit, uint64_t n, uint64_t lines)
{
    if (!limit->relative) {
        return n > limit->count;
    }

    return limit->share < 1
           && (double) n > limit->share * (double) lines * (1 + ROUNDING);
}


const char *
line_limit_show(char text[LINE_LIMIT_SHOWN],
    const line_limit_t *limit)
{
    if (limit->relative) {
        snprintf(text, LINE_LIMIT_SHOWN, "%g%%", limit->share * 100);

    } else {
        snprintf(text, LINE_LIMIT_SHOWN, "%" PRIu64, limit->count);
    }

    return text;
}
