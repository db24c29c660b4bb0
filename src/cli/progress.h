/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A progress line shows how far a long piece of work is, on standard error if
 * that is a terminal.
 */

#ifndef PROGRESS_H
#define PROGRESS_H

#include <stdint.h>
#include <time.h>


typedef struct {
    int              shown;
    struct timespec  begun;
    double           next;               /* seconds until it is drawn again */
} progress_t;


void progress_begin(progress_t *progress, int quiet);

/* `done` of `total` bytes, 0 if that is not known, and `keys` so far. */
void progress_update(progress_t *progress, uint64_t done, uint64_t total,
    uint64_t keys);

/* Takes the line away; the seconds since the beginning. */
double progress_end(progress_t *progress);


#endif /* PROGRESS_H */
