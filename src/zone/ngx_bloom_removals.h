/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions count the removed keys of each instance, so that no removal
 * is acknowledged for which some instance, or the next start, has no room
 * (I14).
 */

#ifndef _NGX_BLOOM_REMOVALS_H_INCLUDED_
#define _NGX_BLOOM_REMOVALS_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/* Tells the other instances that the filter of this one has what the journal
 * has before `applied`, where its removals come to `removals`. */
void ngx_bloom_removals_applied(ngx_bloom_zone_t *zone, uint64_t applied,
    const bloom_removals_t *removals);

/* Returns how many keys of the filter that serves are exceptions, besides those
 * of its image. */
uint64_t ngx_bloom_removals_count(ngx_bloom_zone_t *zone);

/*
 * Returns how many more keys may be removed, in every instance (I14).  Each has
 * the removed keys that it says, and will have those that the journal has
 * behind what it has applied.
 */
uint64_t ngx_bloom_removals_left(ngx_bloom_zone_t *zone);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_REMOVALS_H_INCLUDED_ */
