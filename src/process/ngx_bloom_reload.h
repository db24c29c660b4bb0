/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * At a reload a zone keeps its memory and serves on if its size and kind stay
 * the same.
 *
 * If its file has changed, a loader, a child of the master that runs as the
 * workers' user, checks the file.  The helper of the new configuration loads
 * it.
 */

#ifndef _NGX_BLOOM_RELOAD_H_INCLUDED_
#define _NGX_BLOOM_RELOAD_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/*
 * Returns 1 if the zone needs new memory although the size is equal: its kind
 * differs from that of `old`, the zone of the previous configuration, and a
 * filter cannot be converted, or the room for removed keys differs.
 */
ngx_uint_t ngx_bloom_reload_differs(ngx_bloom_zone_t *zone,
    ngx_bloom_zone_t *old);

/*
 * Takes over the memory of `old`, the zone of the previous configuration.
 * Returns NGX_OK, or NGX_ERROR, logged.
 */
ngx_int_t ngx_bloom_reload_zone(ngx_bloom_zone_t *zone, ngx_bloom_zone_t *old);

/*
 * Finishes the change of memory once the configuration has been accepted:
 * recreated memory is kept from now on, and nginx frees the old one.  Called in
 * init_module.
 */
void ngx_bloom_reload_accepted(ngx_cycle_t *cycle, ngx_array_t *zones);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_RELOAD_H_INCLUDED_ */
