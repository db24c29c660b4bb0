/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * An image of a zone is written for all who ask for one.
 *
 * Whoever asks while the filter is as it was when the last image of it was
 * begun gets that one: so it has all that was acknowledged before the request.
 * Where the filter has changed, another is written, but no more than a tenth of
 * the time is spent on writing them: until then the request waits, with all
 * that come meanwhile.
 */

#ifndef _NGX_BLOOM_SNAPSHOT_H_INCLUDED_
#define _NGX_BLOOM_SNAPSHOT_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_save.h"
#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/* The last image that this helper has written of a zone; all zeros at first. */
typedef struct {
    u_char       name[80];               /* empty: there is none */
    uint64_t     generation;             /* of which it is, */
    uint64_t     position;               /* the journal's when it was begun, */
    uint64_t     bits_set;               /* and the filter's */
    ngx_msec_t   begun;
    ngx_msec_t   ended;
    ngx_msec_t   next;                   /* not before then another is begun */
} ngx_bloom_snapshot_t;


/*
 * Begins the task, under the lock sh->helper, if somebody has asked for it and
 * it need not wait.  Returns NGX_OK with *result if that is known at once;
 * NGX_AGAIN if an image is to be written first; NGX_DECLINED.
 */
ngx_int_t ngx_bloom_snapshot_begin(ngx_bloom_snapshot_t *snapshot,
    ngx_bloom_zone_t *zone, ngx_bloom_result_t *result);

/* Returns how long to wait until another image may be written, ms. */
ngx_msec_t ngx_bloom_snapshot_wait(ngx_bloom_snapshot_t *snapshot);

/* Notes that one is written now, and how that ended: with NGX_OK or not. */
void ngx_bloom_snapshot_begun(ngx_bloom_snapshot_t *snapshot,
    ngx_bloom_save_t *save);
void ngx_bloom_snapshot_ended(ngx_bloom_snapshot_t *snapshot,
    ngx_bloom_save_t *save, ngx_int_t rc);

/* Removes those that nobody reads, the last one when it is a minute old. */
void ngx_bloom_snapshot_clean(ngx_bloom_snapshot_t *snapshot,
    ngx_bloom_zone_t *zone);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_SNAPSHOT_H_INCLUDED_ */
