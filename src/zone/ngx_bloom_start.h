/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Fresh memory of a zone is filled, at a start or when the zone's size or kind
 * has changed, before any process serves from it.
 *
 * The master finds the zone's directory and forks a child, which is the
 * workers' user.  That loads the base and the journal, and hands back the
 * control page and the file by whose lock the instance lives.
 */

#ifndef _NGX_BLOOM_START_H_INCLUDED_
#define _NGX_BLOOM_START_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/*
 * Fills the zone's memory.  Returns NGX_OK, or NGX_ERROR, logged; a zone with
 * "required=off" that cannot be loaded stays without a filter.
 */
ngx_int_t ngx_bloom_start_zone(ngx_bloom_zone_t *zone);

/*
 * Checks for "nginx -t" that the zone could start: reads, and leaves nothing
 * behind.  Returns NGX_OK, or NGX_ERROR, logged; NGX_OK, too, for a zone with
 * "required=off".
 */
ngx_int_t ngx_bloom_start_check(ngx_bloom_zone_t *zone);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_START_H_INCLUDED_ */
