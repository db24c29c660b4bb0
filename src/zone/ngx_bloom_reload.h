
/*
 * A zone whose memory is kept at a reload serves on as it is until the new
 * configuration is accepted; then what was prepared for it takes effect.
 */

#ifndef _NGX_BLOOM_RELOAD_H_INCLUDED_
#define _NGX_BLOOM_RELOAD_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/*
 * Takes over the memory of `old`, the zone of the configuration before, and
 * prepares what changes.  Returns NGX_OK, or NGX_ERROR, logged.
 */
ngx_int_t ngx_bloom_reload_zone(ngx_bloom_zone_t *zone, ngx_bloom_zone_t *old);

/* Lets the prepared images serve, after the configuration has been accepted.
 * Cannot fail: a zone whose image cannot serve goes on as it was. */
void ngx_bloom_reload_accepted(ngx_cycle_t *cycle, ngx_array_t *zones);

/* Drops what was prepared for a configuration that was refused. */
void ngx_bloom_reload_abandon(ngx_bloom_zone_t *zone);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_RELOAD_H_INCLUDED_ */
