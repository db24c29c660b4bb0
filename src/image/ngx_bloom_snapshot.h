/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A snapshot is an image of a zone that is written for requests for its image.
 *
 * One snapshot answers many requests: a request gets the last snapshot if the
 * filter has not changed since that snapshot was begun, so the snapshot has
 * every key that was acknowledged before the request.  If the filter has
 * changed, the request waits for the next snapshot, which answers all requests
 * that wait.  Between two snapshots the helper pauses for nine times as long as
 * the first one took, at most 10 s.
 */

#ifndef _NGX_BLOOM_SNAPSHOT_H_INCLUDED_
#define _NGX_BLOOM_SNAPSHOT_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_save.h"
#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/* Returns after how many ms a snapshot that was asked for may be begun; 0 if
 * the last one can answer the request. */
ngx_msec_t ngx_bloom_snapshot_wait(ngx_bloom_zone_t *zone);

/*
 * Answers the requests for an image: by the last snapshot, or by a new one.
 * The caller holds sh->helper, and has begun the task.  Fills in *result.
 */
void ngx_bloom_snapshot(ngx_bloom_zone_t *zone, ngx_bloom_result_t *result);

/* Removes snapshots that nobody reads; the last one only when it is a minute
 * old.  The caller holds sh->helper. */
void ngx_bloom_snapshot_clean(ngx_bloom_zone_t *zone);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_SNAPSHOT_H_INCLUDED_ */
