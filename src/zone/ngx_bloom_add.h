/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Additions put keys into the journal and into the filter that serves.
 *
 * Keys are gathered in a batch and added all at once, as one record of the
 * journal.  Nothing here waits: a caller that cannot go on is told so, and
 * calls again later.
 */

#ifndef _NGX_BLOOM_ADD_H_INCLUDED_
#define _NGX_BLOOM_ADD_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/* Keys that are added together.  What a caller may read is above the line. */
typedef struct {
    ngx_bloom_zone_t      *zone;
    uint64_t               added;        /* keys so far that changed a bit */
    uint64_t               already_present;      /* keys so far that did not */
    ngx_uint_t             durable;      /* the zone can promise durability */

    /*
     * What the last failure was: a message that says what and what to do.
     */
    ngx_err_t              err;
    const char            *error;

    /* ---- */

    bloom_record_maker_t   maker;
    u_char                *buf;
    uint64_t               generation;   /* which has the bits; 0: none yet */
    uint64_t               keys;         /* set there, */
    uint64_t               fresh;        /* and how many changed a bit */
    uint64_t               position;     /* of the journal, that is to be on
                                            disk; 0: not known yet */
    uint64_t               lost;         /* as the state had it at the begin */
    ngx_uint_t             once;         /* it is tried only once */
    ngx_msec_t             waits;        /* since when; 0: it does not */
} ngx_bloom_add_batch_t;


/*
 * Begins with an empty batch.  `buf` has NGX_BLOOM_ADD_BATCH_SIZE bytes and is
 * the caller's.  NGX_OK; NGX_DECLINED with batch->error if the zone takes no
 * additions at all, NGX_ERROR with it if it takes none now.
 */
#define NGX_BLOOM_ADD_BATCH_SIZE  BLOOM_RECORD_MAX

ngx_int_t ngx_bloom_add_batch_init(ngx_bloom_add_batch_t *batch,
    ngx_bloom_zone_t *zone, u_char *buf);

/*
 * Copies a key, 1 to BLOOM_RECORD_KEY_MAX bytes, into the batch, in the zone's
 * key form.  Returns NGX_OK; NGX_AGAIN if there is no room until the batch is
 * added; NGX_DECLINED if the key is invalid, and batch->error says why, in a
 * phrase to follow the key.
 */
ngx_int_t ngx_bloom_add_batch_put(ngx_bloom_add_batch_t *batch, ngx_str_t *key);

/*
 * Adds the batch's keys, if it has any, and empties it.  NGX_OK: they are in
 * the filter that serves, and in the journal if the zone has one.  NGX_AGAIN:
 * not yet; wait in NGX_BLOOM_QUEUE_ROOM and call again, with nothing put in
 * between.
 * NGX_ERROR with batch->error: refused, none of them is added.
 */
ngx_int_t ngx_bloom_add_batch(ngx_bloom_add_batch_t *batch);

/*
 * Whether all that was added to the zone until the first such call is
 * synchronised to disk, through this batch or not: NGX_OK; NGX_AGAIN, not yet:
 * wait in NGX_BLOOM_QUEUE_SYNC, where those that came before are done before,
 * and call again; NGX_ERROR with batch->error: it cannot be
 * had, or some of it was lost since the batch began.
 */
ngx_int_t ngx_bloom_add_batch_synced(ngx_bloom_add_batch_t *batch);


/* Whether keys can be added to the zone as it is configured. */
ngx_uint_t ngx_bloom_add_possible(ngx_bloom_zone_t *zone);

/*
 * Adds one key and cannot be refused: where the journal cannot be written now,
 * the key is pending (ngx_bloom_pending.h) until that is possible.  Zones that
 * take no additions ignore it.  Returns NULL, or, if the key is too long or
 * invalid in the zone's key form, why: a phrase to follow the key.  Such keys
 * are counted.
 */
const char *ngx_bloom_add_key(ngx_bloom_zone_t *zone, ngx_str_t *key);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_ADD_H_INCLUDED_ */
