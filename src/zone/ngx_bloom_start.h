
/*
 * The master fills fresh memory of a zone, at a start or when the zone's size
 * has changed, before any process serves from it.
 */

#ifndef _NGX_BLOOM_START_H_INCLUDED_
#define _NGX_BLOOM_START_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/* Fills the zone's memory.  Returns NGX_OK, or NGX_ERROR, logged. */
ngx_int_t ngx_bloom_start_zone(ngx_bloom_zone_t *zone);

/*
 * Checks for "nginx -t" that the zone could start: reads, and leaves nothing
 * behind.  Returns NGX_OK, or NGX_ERROR, logged.
 */
ngx_int_t ngx_bloom_start_check(ngx_bloom_zone_t *zone);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_START_H_INCLUDED_ */
