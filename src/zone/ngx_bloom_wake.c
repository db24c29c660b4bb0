/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Both ends of a pipe are non-blocking.  A write to a full pipe may fail,
 * because a full pipe wakes the helper as well.  A flag in shared memory says
 * that a process has written to the pipe and the helper has not read it yet, so
 * that no other process needs to write.
 */

#include "ngx_bloom_wake.h"

#include <sys/mman.h>


static ngx_int_t ngx_bloom_wake_create(ngx_cycle_t *cycle);


static ngx_fd_t       ngx_bloom_wake_pipe[NGX_BLOOM_HELPERS][2];
static ngx_uint_t     ngx_bloom_wake_pipes;      /* how many exist */
static ngx_atomic_t  *ngx_bloom_wake_written;    /* of each of them */


ngx_int_t
ngx_bloom_wake_init(ngx_cycle_t *cycle, ngx_uint_t n)
{
    void  *p;

    if (ngx_bloom_wake_written == NULL) {
        p = mmap(NULL, NGX_BLOOM_HELPERS * sizeof(ngx_atomic_t),
                 PROT_READ|PROT_WRITE, MAP_ANON|MAP_SHARED, -1, 0);

        if (p == MAP_FAILED) {
            ngx_log_error(NGX_LOG_ALERT, cycle->log, ngx_errno,
                          "mmap() failed");
            return NGX_ERROR;
        }

        ngx_bloom_wake_written = p;
    }

    while (ngx_bloom_wake_pipes < n) {

        if (ngx_bloom_wake_create(cycle) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* Creates the next pipe. */
static ngx_int_t
ngx_bloom_wake_create(ngx_cycle_t *cycle)
{
    ngx_fd_t    *fd;
    ngx_uint_t   i;

    fd = ngx_bloom_wake_pipe[ngx_bloom_wake_pipes];

    if (pipe(fd) == -1) {
        ngx_log_error(NGX_LOG_ALERT, cycle->log, ngx_errno, "pipe() failed");
        return NGX_ERROR;
    }

    for (i = 0; i < 2; i++) {
        if (ngx_nonblocking(fd[i]) == -1
            || fcntl(fd[i], F_SETFD, FD_CLOEXEC) == -1)
        {
            ngx_log_error(NGX_LOG_ALERT, cycle->log, ngx_errno,
                          "fcntl() failed");

            (void) close(fd[0]);
            (void) close(fd[1]);

            return NGX_ERROR;
        }
    }

    ngx_bloom_wake_pipes++;

    return NGX_OK;
}


ngx_fd_t
ngx_bloom_wake_fd(ngx_uint_t helper)
{
    return ngx_bloom_wake_pipe[helper][0];
}


void
ngx_bloom_wake_clear(ngx_uint_t helper)
{
    u_char   buf[256];
    ssize_t  n;

    /* clear the flag before reading: a later write wakes the helper again */

    __atomic_store_n(&ngx_bloom_wake_written[helper], 0, __ATOMIC_SEQ_CST);

    do {
        n = read(ngx_bloom_wake_pipe[helper][0], buf, sizeof(buf));
    } while (n == (ssize_t) sizeof(buf) || (n == -1 && ngx_errno == NGX_EINTR));
}


void
ngx_bloom_wake(ngx_bloom_zone_t *zone)
{
    u_char      c;
    ngx_uint_t  helper;

    helper = zone->helper;

    if (helper >= ngx_bloom_wake_pipes
        || __atomic_exchange_n(&ngx_bloom_wake_written[helper], 1,
                               __ATOMIC_SEQ_CST))
    {
        return;
    }

    /* ignore the result: a full pipe wakes the helper as well */

    c = 0;
    (void) !write(ngx_bloom_wake_pipe[helper][1], &c, 1);
}
