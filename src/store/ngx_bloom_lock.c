/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * If the holder of a lock has died, the process that takes the lock next makes
 * it consistent again.
 */

#include "ngx_bloom_lock.h"


/* How long to sleep between attempts to take a lock, ns.  Appending a record
 * takes some microseconds. */
#define NGX_BLOOM_LOCK_PAUSE_MIN  20000
#define NGX_BLOOM_LOCK_PAUSE_MAX  1000000


ngx_int_t
ngx_bloom_lock_init(pthread_mutex_t *mutex)
{
    int                  err;
    pthread_mutexattr_t  attr;

    err = pthread_mutexattr_init(&attr);

    if (err == 0) {
        (void) pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
        (void) pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);

        err = pthread_mutex_init(mutex, &attr);

        (void) pthread_mutexattr_destroy(&attr);
    }

    if (err != 0) {
        ngx_set_errno(err);
        return NGX_ERROR;
    }

    return NGX_OK;
}


ngx_int_t
ngx_bloom_lock(pthread_mutex_t *mutex, ngx_msec_t wait)
{
    ngx_uint_t  died;

    return ngx_bloom_lock_died(mutex, wait, &died);
}


ngx_int_t
ngx_bloom_lock_died(pthread_mutex_t *mutex, ngx_msec_t wait, ngx_uint_t *died)
{
    int              err;
    uint64_t         now, until;
    struct timespec  ts, pause;

    *died = 0;
    until = 0;
    pause.tv_sec = 0;
    pause.tv_nsec = NGX_BLOOM_LOCK_PAUSE_MIN;

    for ( ;; ) {
        err = pthread_mutex_trylock(mutex);

        if (err == EOWNERDEAD) {
            *died = 1;
            err = pthread_mutex_consistent(mutex);
        }

        if (err != NGX_EBUSY || wait == 0) {
            return err == 0 ? NGX_OK : NGX_BUSY;
        }

        /* pthread_mutex_timedlock() would depend on the system's clock, which
         * may be set */

        (void) clock_gettime(CLOCK_MONOTONIC, &ts);
        now = (uint64_t) ts.tv_sec * 1000000000 + ts.tv_nsec;

        if (until == 0) {
            until = now + (uint64_t) wait * 1000000;

        } else if (now >= until) {
            return NGX_BUSY;
        }

        (void) nanosleep(&pause, NULL);

        pause.tv_nsec = ngx_min(2 * pause.tv_nsec, NGX_BLOOM_LOCK_PAUSE_MAX);
    }
}


void
ngx_bloom_unlock(pthread_mutex_t *mutex)
{
    (void) pthread_mutex_unlock(mutex);
}
