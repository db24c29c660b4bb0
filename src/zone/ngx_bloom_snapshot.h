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


/* The last snapshot of a zone that this helper has written; all zeros at
 * first. */
typedef struct {
    u_char       name[80];               /* empty: no snapshot */
    uint64_t     generation;             /* that it was made of */
    uint64_t     position;               /* of the journal when it was begun */
    uint64_t     bits_set;               /* in the filter when it was begun */
    ngx_bloom_save_exceptions_t  excepted;       /* when it was begun */
    ngx_msec_t   begun;
    ngx_msec_t   ended;
    ngx_msec_t   next;                   /* earliest time for another one */
} ngx_bloom_snapshot_t;


/*
 * Begins the task if a process has asked for it and it may begin now.  The
 * caller holds sh->helper.  Returns
 *
 *     NGX_OK         with *result, which is known at once
 *     NGX_AGAIN      a snapshot has to be written first
 *     NGX_DECLINED   the task has not begun
 */
ngx_int_t ngx_bloom_snapshot_begin(ngx_bloom_snapshot_t *snapshot,
    ngx_bloom_zone_t *zone, ngx_bloom_result_t *result);

/* Returns after how many ms another snapshot may be written. */
ngx_msec_t ngx_bloom_snapshot_wait(ngx_bloom_snapshot_t *snapshot);

/* Record that a snapshot is being written, and that it has ended: `rc` is the
 * result of the save. */
void ngx_bloom_snapshot_begun(ngx_bloom_snapshot_t *snapshot,
    ngx_bloom_save_t *save);
void ngx_bloom_snapshot_ended(ngx_bloom_snapshot_t *snapshot,
    ngx_bloom_save_t *save, ngx_int_t rc);

/* Removes snapshots that nobody reads; the last one only when it is a minute
 * old. */
void ngx_bloom_snapshot_clean(ngx_bloom_snapshot_t *snapshot,
    ngx_bloom_zone_t *zone);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_SNAPSHOT_H_INCLUDED_ */
