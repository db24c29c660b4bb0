/* SPDX-License-Identifier: BSD-2-Clause */

#include "ngx_bloom_wake.h"
#include "ngx_bloom_io.h"

#include <sys/eventfd.h>


/* Two descriptors of an eventfd.  A job closes those of nginx's events, and
 * must not write to the next file that gets the number. */
typedef struct {
    ngx_fd_t  write;
    ngx_fd_t  read;                      /* for events */
} ngx_bloom_wake_t;


static ngx_bloom_wake_t  ngx_bloom_wakes[NGX_BLOOM_HELPERS];
static ngx_uint_t        ngx_bloom_wake_n;     /* how many exist */


ngx_int_t
ngx_bloom_wake_init(ngx_cycle_t *cycle, ngx_uint_t n)
{
    ngx_bloom_wake_t  *wake;

    for ( /* void */ ; ngx_bloom_wake_n < n; ngx_bloom_wake_n++) {
        wake = &ngx_bloom_wakes[ngx_bloom_wake_n];

        wake->write = eventfd(0, EFD_NONBLOCK|EFD_CLOEXEC);

        if (wake->write == -1) {
            ngx_log_error(NGX_LOG_ALERT, cycle->log, ngx_errno,
                          "eventfd() failed");
            return NGX_ERROR;
        }

        wake->read = fcntl(wake->write, F_DUPFD_CLOEXEC, 0);

        if (wake->read == -1) {
            ngx_log_error(NGX_LOG_ALERT, cycle->log, ngx_errno,
                          "fcntl(F_DUPFD_CLOEXEC) failed");
            ngx_bloom_io_close(&wake->write);
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


ngx_fd_t
ngx_bloom_wake_fd(ngx_uint_t helper)
{
    return ngx_bloom_wakes[helper].read;
}


void
ngx_bloom_wake_clear(ngx_uint_t helper)
{
    uint64_t  n;

    (void) !read(ngx_bloom_wakes[helper].write, &n, sizeof(uint64_t));
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
    (void) !write(ngx_bloom_wakes[zone->helper].write, &n, sizeof(uint64_t));
}
