/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The interface may be called for one cycle: the one whose state directories
 * this process has attached.  While nginx reads another configuration, which
 * may run Lua, ngx_cycle is another one.
 */

#include "ngx_http_bloom_ffi_zone.h"
#include "ngx_bloom_declare.h"

#include <pthread.h>


/* The cycle, or NULL; and the thread that may call. */
static ngx_cycle_t  *ngx_http_bloom_ffi_zone_cycle;
static pthread_t     ngx_http_bloom_ffi_zone_thread;

/* The zones of that cycle. */
static ngx_array_t  *ngx_http_bloom_ffi_zone_all;


void
ngx_http_bloom_ffi_zone_open(ngx_cycle_t *cycle)
{
    ngx_http_bloom_main_conf_t  *bmcf;

    /* OpenResty's privileged agent is a helper, too, and runs as root, which
     * does not trust the shared memory */

    if (ngx_process != NGX_PROCESS_WORKER
        && ngx_process != NGX_PROCESS_SINGLE)
    {
        return;
    }

    bmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_bloom_module);

    ngx_http_bloom_ffi_zone_all = (bmcf != NULL) ? &bmcf->zones : NULL;
    ngx_http_bloom_ffi_zone_thread = pthread_self();
    ngx_http_bloom_ffi_zone_cycle = cycle;
}


void
ngx_http_bloom_ffi_zone_close(void)
{
    ngx_http_bloom_ffi_zone_cycle = NULL;
}


ngx_uint_t
ngx_http_bloom_ffi_zone_may(void)
{
    return ngx_http_bloom_ffi_zone_cycle != NULL
           && ngx_http_bloom_ffi_zone_cycle == ngx_cycle
           && pthread_equal(ngx_http_bloom_ffi_zone_thread, pthread_self());
}


ngx_bloom_zone_t *
ngx_http_bloom_ffi_zone_find(const ngx_str_t *name)
{
    return ngx_http_bloom_ffi_zone_all == NULL
           ? NULL : ngx_bloom_declare_find(ngx_http_bloom_ffi_zone_all, name);
}
