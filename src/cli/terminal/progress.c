/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file prints the progress line: how much is done, at what speed, and how
 * long the rest takes.
 */

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "progress.h"
#include "units.h"

#define INTERVAL  0.1                    /* seconds */
#define BAR       24                     /* columns */


void
progress_begin(progress_t *progress, int quiet)
{
    progress->shown = !quiet && isatty(STDERR_FILENO);
    progress->next = 2 * INTERVAL;       /* short work shows nothing */

    progress->begun = cli_now();
}


void
progress_update(progress_t *progress, uint64_t done, uint64_t total,
    uint64_t keys)
{
    int     filled;
    char    count[UNITS_LEN], rate[UNITS_LEN], left[UNITS_LEN];
    char    bar[BAR + 1];
    double  seconds, share;

    if (!progress->shown) {
        return;
    }

    seconds = cli_now() - progress->begun;

    if (seconds < progress->next) {
        return;
    }

    progress->next = seconds + INTERVAL;

    format_count(count, (double) keys);
    format_count(rate, (double) keys / seconds);

    if (total == 0 || done > total) {
        fprintf(stderr, "\r%s keys, %s keys/s, %s\033[K", count, rate,
                format_duration(left, seconds));
        return;
    }

    share = (double) done / (double) total;
    filled = (int) (share * BAR);

    memset(bar, '#', (size_t) filled);
    memset(bar + filled, '.', (size_t) (BAR - filled));
    bar[BAR] = '\0';

    format_duration(left, done ? seconds / share - seconds : 0);

    fprintf(stderr, "\r[%s] %3.0f %%  %s keys, %s keys/s, %s left\033[K",
            bar, share * 100, count, rate, left);
}


double
progress_end(progress_t *progress)
{
    if (progress->shown && progress->next > 2 * INTERVAL) {
        fputs("\r\033[K", stderr);
    }

    return cli_now() - progress->begun;
}
