/* SPDX-License-Identifier: BSD-2-Clause */

#include "ngx_bloom_wake.h"

#include <sys/eventfd.h>


static ngx_fd_t    ngx_bloom_wake_fds[NGX_BLOOM_HELPERS];
static ngx_uint_t  ngx_bloom_wake_n;     /* how many exist */


ngx_int_t
ngx_bloom_wake_init(ngx_cycle_t *cycle, ngx_uint_t n)
{
    ngx_fd_t  fd;

    while (ngx_bloom_wake_n < n) {
        fd = eventfd(0, EFD_NONBLOCK|EFD_CLOEXEC);

        if (fd == -1) {
            ngx_log_error(NGX_LOG_ALERT, cycle->log, ngx_errno,
                          "eventfd() failed");
            return NGX_ERROR;
        }

        ngx_bloom_wake_fds[ngx_bloom_wake_n++] = fd;
    }

    return NGX_OK;
}


ngx_fd_t
ngx_bloom_wake_fd(ngx_uint_t helper)
{
    return ngx_bloom_wake_fds[helper];
}


void
ngx_bloom_wake_clear(ngx_uint_t helper)
{
    uint64_t  n;

    (void) !read(ngx_bloom_wake_fds[helper], &n, sizeof(uint64_t));
}


void
ngx_bloom_wake(ngx_bloom_zone_t *zone)
{
    uint64_t  n;

    if (zone->helper >= ngx_bloom_wake_n) {
        return;
    }

    /* ignore the result: a full counter wakes the helper as well */

    n = 1;
    (void) !write(ngx_bloom_wake_fds[zone->helper], &n, sizeof(uint64_t));
}
