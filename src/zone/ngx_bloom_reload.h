/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A zone whose memory is kept at a reload serves on as it is.  A file that has
 * changed is checked here, by a child that is the workers' user, and loaded by
 * the helper of the new configuration.
 */

#ifndef _NGX_BLOOM_RELOAD_H_INCLUDED_
#define _NGX_BLOOM_RELOAD_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/*
 * Whether the zone has to get new memory, since it is of another kind than
 * `old`, that of the configuration before: a filter does not become another
 * one.
 */
ngx_uint_t ngx_bloom_reload_differs(ngx_bloom_zone_t *zone,
    ngx_bloom_zone_t *old);

/*
 * Takes over the memory of `old`, the zone of the configuration before.
 * Returns NGX_OK, or NGX_ERROR, logged.
 */
ngx_int_t ngx_bloom_reload_zone(ngx_bloom_zone_t *zone, ngx_bloom_zone_t *old);

/*
 * To be called in init_module, when the configuration has been accepted: memory
 * that was made anew is kept from now on, that before is freed by nginx.  Warns
 * of files that the workers' user will not be able to open.
 */
void ngx_bloom_reload_accepted(ngx_cycle_t *cycle, ngx_array_t *zones);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_RELOAD_H_INCLUDED_ */
