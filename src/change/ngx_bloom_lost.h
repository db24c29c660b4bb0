/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Keys that were added and acknowledged, and that no start and no other
 * instance can know of: the zone says "unknown" instead of "absent" where it
 * may lack them.  See `complete` in ngx_bloom_shared.h.
 */

#ifndef _NGX_BLOOM_LOST_H_INCLUDED_
#define _NGX_BLOOM_LOST_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/*
 * Records that `n` keys are in no journal.  With `has`, the filter that serves
 * is going to have them at once, and the caller holds the lock of the zone.
 */
void ngx_bloom_lost_keys(ngx_bloom_zone_t *zone, uint64_t n, ngx_uint_t has);

/* Records that keys are lost that a process owed; they count as one. */
void ngx_bloom_lost_owed(ngx_bloom_zone_t *zone);

/*
 * Records that the filter that serves has the keys that the journal lost when
 * this process failed to synchronise it.  Does nothing if the filter lacks
 * other keys, or if another loss was recorded meanwhile.
 */
void ngx_bloom_lost_by_disk(ngx_bloom_zone_t *zone);

/*
 * Moves to the control page of the state directory what workers of a
 * configuration without a journal have lost, which recorded it in shared
 * memory.  The zone has a state directory, and the caller holds its lock.
 */
void ngx_bloom_lost_move(ngx_bloom_zone_t *zone);

/*
 * Writes to disk that keys were lost.  Workers record it only in mapped memory,
 * which outlives them but not a loss of power.  Called by the helper; the zone
 * has a state directory.
 */
void ngx_bloom_lost_sync(ngx_bloom_zone_t *zone);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_LOST_H_INCLUDED_ */
