/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Starting fills a zone's new memory before any process serves from it: when
 * nginx starts, or when the zone's size or kind has changed.
 *
 * The master opens the zone's directory and forks a loader, which runs as the
 * workers' user.  The loader loads the base and the journal.  It hands the
 * control page and the locked file of the instance back to the master.
 */

#ifndef _NGX_BLOOM_START_H_INCLUDED_
#define _NGX_BLOOM_START_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/*
 * Fills the zone's memory.  Returns NGX_OK, or NGX_ERROR, logged.  If a zone
 * with "required=off" cannot be loaded, returns NGX_OK and leaves the zone
 * without a filter.
 */
ngx_int_t ngx_bloom_start_zone(ngx_bloom_zone_t *zone);

/*
 * Checks for "nginx -t" that the zone could start.  Reads everything, and
 * changes nothing on disk.  Returns NGX_OK, or NGX_ERROR, logged.  For a zone
 * with "required=off" always returns NGX_OK.
 */
ngx_int_t ngx_bloom_start_check(ngx_bloom_zone_t *zone);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_START_H_INCLUDED_ */
