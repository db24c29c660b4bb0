/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What `make coverage` includes first into each file that it compiles.
 *
 * A process writes its counts when it exits.  This header makes it write them
 * also before it leaves by _exit(), and before it kills itself or stops at a
 * fault point.  A process that another one kills writes none. */

#ifndef COVERAGE_H
#define COVERAGE_H


#ifndef _GNU_SOURCE
#define _GNU_SOURCE  1
#endif

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>


extern void __gcov_dump(void);
extern void __gcov_reset(void);


/* Lifts a limit of the size of files, which would cut off the counts.  Under a
 * limit that cannot be lifted, this process writes no counts, nor libgcov's
 * complaints.  This function runs just before libgcov writes. */
static __attribute__((destructor)) void
coverage_lift_limit(void)
{
    struct rlimit  limit;

    if (getrlimit(RLIMIT_FSIZE, &limit) == -1) {
        return;
    }

    limit.rlim_cur = limit.rlim_max;
    (void) setrlimit(RLIMIT_FSIZE, &limit);

    if (limit.rlim_max < 1 << 24) {
        (void) setenv("GCOV_PREFIX", "/dev/null", 1);
        (void) freopen("/dev/null", "w", stderr);
    }
}


/* The counts are reset because libgcov writes them once, but a process that has
 * stopped goes on. */
static inline void
coverage_write(void)
{
    __gcov_dump();
    __gcov_reset();
}


#define _exit(status)  (coverage_write(), _exit(status))
#define raise(signal)  (coverage_write(), raise(signal))


#endif
