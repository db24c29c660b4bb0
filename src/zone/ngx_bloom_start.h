
/*
 * Zones at the start and at a reload: what the master does, before any process
 * that serves exists or while the old ones serve on.
 */

#ifndef _NGX_BLOOM_START_H_INCLUDED_
#define _NGX_BLOOM_START_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/*
 * The handler of a shared memory zone: fills one that is new, takes over one
 * that is kept.  Until the configuration is accepted, a kept one serves on as
 * it is.
 */
ngx_int_t ngx_bloom_start_zone(ngx_shm_zone_t *shm_zone, void *data);

/* Lets the images serve that were loaded for a configuration that has been
 * accepted.  Cannot fail. */
void ngx_bloom_zones_commit(ngx_cycle_t *cycle, ngx_array_t *zones);

/* Takes back what was prepared for a configuration that was refused. */
void ngx_bloom_start_abandon(ngx_bloom_zone_t *zone);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_START_H_INCLUDED_ */
