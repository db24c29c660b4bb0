/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A progress line shows how much of a long task is done, on standard error if
 * that is a terminal.
 */

#ifndef PROGRESS_H
#define PROGRESS_H

#include <stdint.h>


typedef struct {
    int     shown;
    double  begun;                       /* by cli_now() */
    double  next;                        /* when to draw it again, in seconds
                                            since the beginning */
} progress_t;


void progress_begin(progress_t *progress, int quiet);

/* Shows that `done` of `total` bytes (0: unknown) and `keys` keys are done. */
void progress_update(progress_t *progress, uint64_t done, uint64_t total,
    uint64_t keys);

/* Removes the line.  Returns the seconds since the beginning. */
double progress_end(progress_t *progress);


#endif /* PROGRESS_H */
