/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file counts lines that were left out, by the reason.
 */

#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "reasons.h"


/* Returns the reason of this text, which is added if it is new. */
static reason_t *
find(reasons_t *reasons, const char *why, int bad)
{
    size_t     i;
    reason_t  *reason;

    if (reasons->last < reasons->n) {
        reason = &reasons->reason[reasons->last];

        if (reason->why == why && reason->bad == bad) {
            return reason;
        }
    }

    for (i = 0; i < reasons->n; i++) {
        reason = &reasons->reason[i];

        if (reason->bad == bad
            && (reason->why == why || strcmp(reason->why, why) == 0))
        {
            reasons->last = i;
            return reason;
        }
    }

    reasons->reason = cli_realloc(reasons->reason,
                                  (i + 1) * sizeof(reason_t));
    reasons->last = i;
    reasons->n = i + 1;

    reason = &reasons->reason[i];
    memset(reason, 0, sizeof(*reason));
    reason->why = why;
    reason->bad = bad;

    return reason;
}


void
reasons_add(reasons_t *reasons, const char *why, int bad,
    const place_t *place, const bloom_key_t *text)
{
    reason_t           *reason;
    reasons_example_t  *example;

    reason = find(reasons, why, bad);
    reason->count++;

    if (reason->n == REASONS_EXAMPLES) {
        return;
    }

    example = &reason->example[reason->n++];
    example->place = *place;
    (void) keyform_show(example->text, text);
}


static int
by_place(const void *one, const void *two)
{
    const reasons_example_t  *a = one, *b = two;

    return place_cmp(&a->place, &b->place);
}


void
reasons_merge(reasons_t *reasons, const reasons_t *from)
{
    size_t              i;
    unsigned            n;
    reason_t           *to;
    const reason_t     *reason;
    reasons_example_t   all[2 * REASONS_EXAMPLES];

    for (i = 0; i < from->n; i++) {
        reason = &from->reason[i];
        to = find(reasons, reason->why, reason->bad);

        memcpy(all, to->example, to->n * sizeof(*all));
        memcpy(all + to->n, reason->example, reason->n * sizeof(*all));
        n = to->n + reason->n;
        qsort(all, n, sizeof(*all), by_place);

        to->n = n < REASONS_EXAMPLES ? n : REASONS_EXAMPLES;
        memcpy(to->example, all, to->n * sizeof(*all));
        to->count += reason->count;
    }
}


static int
by_count(const void *one, const void *two)
{
    const reason_t  *a = one, *b = two;

    if (a->count != b->count) {
        return a->count > b->count ? -1 : 1;
    }

    if (by_place(&a->example[0], &b->example[0]) != 0) {
        return by_place(&a->example[0], &b->example[0]);
    }

    return strcmp(a->why, b->why);
}


void
reasons_sort(reasons_t *reasons)
{
    if (reasons->n != 0) {
        qsort(reasons->reason, reasons->n, sizeof(reason_t), by_count);
    }
}


void
reasons_free(reasons_t *reasons)
{
    free(reasons->reason);
    memset(reasons, 0, sizeof(*reasons));
}
