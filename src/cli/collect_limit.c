/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file compares numbers of lines with limits.
 */

#include <inttypes.h>
#include <stdio.h>

#include "collect_limit.h"


/* Far below the share of one line. */
#define ROUNDING  1e-14


int
collect_limit_exceeded(const collect_limit_t *limit, uint64_t n, uint64_t lines)
{
    if (!limit->relative) {
        return n > limit->count;
    }

    return limit->share < 1
           && (double) n > limit->share * (double) lines * (1 + ROUNDING);
}


const char *
collect_limit_show(char text[COLLECT_LIMIT_SHOWN],
    const collect_limit_t *limit)
{
    if (limit->relative) {
        snprintf(text, COLLECT_LIMIT_SHOWN, "%g%%", limit->share * 100);

    } else {
        snprintf(text, COLLECT_LIMIT_SHOWN, "%" PRIu64, limit->count);
    }

    return text;
}
