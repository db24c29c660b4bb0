/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Both ends of the pipe are non-blocking.  A write to a full pipe may fail,
 * because a full pipe wakes the helper as well.  A flag in shared memory says
 * that a process has written to the pipe and the helper has not read it yet, so
 * that no other process needs to write.
 */

#include "ngx_bloom_wake.h"

#include <sys/mman.h>


static ngx_fd_t  ngx_bloom_wake_pipe[2] = {
    NGX_INVALID_FILE, NGX_INVALID_FILE
};


static ngx_atomic_t  *ngx_bloom_wake_written;


ngx_int_t
ngx_bloom_wake_init(ngx_cycle_t *cycle)
{
    void        *p;
    ngx_uint_t   i;

    if (ngx_bloom_wake_pipe[0] != NGX_INVALID_FILE) {
        return NGX_OK;
    }

    p = mmap(NULL, sizeof(ngx_atomic_t), PROT_READ|PROT_WRITE,
             MAP_ANON|MAP_SHARED, -1, 0);

    if (p == MAP_FAILED) {
        ngx_log_error(NGX_LOG_ALERT, cycle->log, ngx_errno, "mmap() failed");
        return NGX_ERROR;
    }

    ngx_bloom_wake_written = p;

    if (pipe(ngx_bloom_wake_pipe) == -1) {
        ngx_log_error(NGX_LOG_ALERT, cycle->log, ngx_errno, "pipe() failed");
        return NGX_ERROR;
    }

    for (i = 0; i < 2; i++) {
        if (ngx_nonblocking(ngx_bloom_wake_pipe[i]) == -1
            || fcntl(ngx_bloom_wake_pipe[i], F_SETFD, FD_CLOEXEC) == -1)
        {
            ngx_log_error(NGX_LOG_ALERT, cycle->log, ngx_errno,
                          "fcntl() failed");
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


ngx_fd_t
ngx_bloom_wake_fd(void)
{
    return ngx_bloom_wake_pipe[0];
}


void
ngx_bloom_wake_clear(void)
{
    u_char   buf[256];
    ssize_t  n;

    /* clear the flag before reading: a later write wakes the helper again */

    __atomic_store_n(ngx_bloom_wake_written, 0, __ATOMIC_SEQ_CST);

    do {
        n = read(ngx_bloom_wake_pipe[0], buf, sizeof(buf));
    } while (n == (ssize_t) sizeof(buf) || (n == -1 && ngx_errno == NGX_EINTR));
}


void
ngx_bloom_wake(void)
{
    u_char  c;

    if (ngx_bloom_wake_pipe[1] == NGX_INVALID_FILE
        || __atomic_exchange_n(ngx_bloom_wake_written, 1, __ATOMIC_SEQ_CST))
    {
        return;
    }

    /* ignore the result: a full pipe wakes the helper as well */

    c = 0;
    (void) !write(ngx_bloom_wake_pipe[1], &c, 1);
}
