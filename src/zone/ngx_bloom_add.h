/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Additions put keys into the journal and into the filter that serves.
 *
 * A caller gathers keys in a batch and adds them together, as one record of the
 * journal.  What becomes of them is counted in the batch and for the zone.  No
 * function here waits: if one cannot finish now, it returns NGX_AGAIN, and the
 * caller calls it again later.
 */

#ifndef _NGX_BLOOM_ADD_H_INCLUDED_
#define _NGX_BLOOM_ADD_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_set.h"
#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/* Keys that are added together.  Callers read only the members above the
 * line. */
typedef struct {
    ngx_bloom_zone_t      *zone;
    uint64_t               added;        /* keys so far that were absent */
    uint64_t               already_present;      /* keys so far that were not */
    uint64_t               removed;      /* of a batch of removals: keys so far
                                            that were present, */
    uint64_t               absent;       /* and keys so far that were absent */
    uint64_t               invalid;      /* keys so far that were put, and that
                                            are invalid in the form of the image
                                            that served then */
    ngx_uint_t             durable;      /* the zone can promise durability */

    /* the last failure: a message that says what failed and what to do */
    ngx_err_t              err;
    const char            *error;

    /* ---- */

    bloom_record_maker_t   maker;
    u_char                *buf;
    uint64_t               generation;   /* that has the bits; 0: none yet */
    ngx_bloom_set_tally_t tally;        /* of the keys whose bits it has */
    uint64_t               puts;         /* of its exceptions, before that */
    uint64_t               position;     /* up to which the journal has to be on
                                            disk; 0: not known yet */
    uint64_t               lost;         /* pending->lost at the beginning */
    ngx_uint_t             once;         /* 1: do not retry */
    ngx_msec_t             waits;        /* since when; 0: it does not wait */
} ngx_bloom_add_batch_t;


/*
 * Initialises an empty batch.  `buf` has NGX_BLOOM_ADD_BATCH_SIZE bytes and
 * belongs to the caller.  Returns NGX_OK; NGX_DECLINED with batch->error if the
 * zone never takes additions; NGX_ERROR with batch->error if it takes none now.
 */
#define NGX_BLOOM_ADD_BATCH_SIZE  BLOOM_RECORD_MAX

ngx_int_t ngx_bloom_add_batch_init(ngx_bloom_add_batch_t *batch,
    ngx_bloom_zone_t *zone, u_char *buf);

/*
 * Copies a key into the batch, in the zone's key form.  Returns NGX_OK;
 * NGX_AGAIN if the batch is full and has to be added first; NGX_DECLINED if the
 * key is invalid, with the reason in batch->error, a phrase that follows the
 * key.
 */
ngx_int_t ngx_bloom_add_batch_put(ngx_bloom_add_batch_t *batch, ngx_str_t *key);

/*
 * Adds the batch's keys, if any, and empties the batch.  Returns
 *
 *     NGX_OK       the keys are in the filter that serves, and in the journal
 *                  if the zone has one
 *     NGX_AGAIN    not yet: wait in NGX_BLOOM_QUEUE_ROOM and call again, with
 *                  nothing put into the batch meanwhile
 *     NGX_ERROR    refused, with batch->error; none of the keys is added
 */
ngx_int_t ngx_bloom_add_batch(ngx_bloom_add_batch_t *batch);

/*
 * Checks whether all keys that this batch or others had added to the zone
 * before the first call are on disk.  Returns
 *
 *     NGX_OK       they are
 *     NGX_AGAIN    not yet: wait in NGX_BLOOM_QUEUE_SYNC, which is served in
 *                  order of arrival, and call again
 *     NGX_ERROR    with batch->error: this cannot be promised, or keys were
 *                  lost since the batch began
 */
ngx_int_t ngx_bloom_add_batch_synced(ngx_bloom_add_batch_t *batch);


/* Returns 1 if the configuration lets keys be added to the zone. */
ngx_uint_t ngx_bloom_add_possible(ngx_bloom_zone_t *zone);

/*
 * Adds one key of at least one byte, and counts what became of it.  If the
 * journal cannot be written now, the key is pending (ngx_bloom_pending.h) until
 * it can.  Waits for the journal for 5 ms at most, and for the pending keys for
 * 100 ms.  Returns
 *
 *     NGX_OK        batch->added or batch->already_present is 1
 *     NGX_ABORT     the key is too long or invalid in the zone's key form;
 *                   batch->error is the reason, a phrase that follows the key
 *     NGX_DECLINED  the zone never takes additions, with batch->error
 *     NGX_ERROR     the key is in the filter that serves, and nowhere else,
 *                   with batch->error: the next load or start loses it
 *
 * The members of `batch` below its line are not to be used.
 */
ngx_int_t ngx_bloom_add_one(ngx_bloom_zone_t *zone, ngx_str_t *key,
    ngx_bloom_add_batch_t *batch);

/*
 * Does what ngx_bloom_add_one() does, but ignores an empty key, and a key for a
 * zone that takes no additions.  Returns NULL; or, if the key is too long or
 * invalid in the zone's key form, the reason, a phrase that follows the key.
 */
const char *ngx_bloom_add_key(ngx_bloom_zone_t *zone, ngx_str_t *key);


/* ---- within this layer ---- */

/* Counts `n` keys that a batch has added, in the batch and for the zone. */
void ngx_bloom_add_count(ngx_bloom_add_batch_t *batch,
    const ngx_bloom_set_tally_t *tally, uint64_t n);

/* Initialises a batch as ngx_bloom_add_batch_init() does, also of a zone that
 * takes its changes from a source. */
ngx_int_t ngx_bloom_add_batch_begin(ngx_bloom_add_batch_t *batch,
    ngx_bloom_zone_t *zone, u_char *buf);

/* Returns 1 if the zone would have a journal if anything in the configuration
 * added or removed keys: only Lua asks it to. */
ngx_uint_t ngx_bloom_add_unannounced(ngx_bloom_zone_t *zone);

/* Takes the journal's lock `append` for a batch.  Returns NGX_OK; NGX_BUSY if
 * another process holds it: the batch then calls ngx_bloom_add_wait(). */
ngx_int_t ngx_bloom_add_lock(ngx_bloom_add_batch_t *batch);

/* Returns NGX_AGAIN; or, if the batch has waited for long, NGX_ERROR with
 * `error` as batch->error. */
ngx_int_t ngx_bloom_add_wait(ngx_bloom_add_batch_t *batch, const char *error);

/* Returns NGX_ERROR, with the journal's last failure as batch->error. */
ngx_int_t ngx_bloom_add_refuse(ngx_bloom_add_batch_t *batch);

/*
 * Waits until no key is pending: such a key is added, and in no record yet.
 * Returns NGX_OK, NGX_AGAIN, or NGX_ERROR with batch->error.
 */
ngx_int_t ngx_bloom_add_drained(ngx_bloom_add_batch_t *batch);

/* Does what follows an append that ends at `end`: informs the helper. */
void ngx_bloom_add_appended(ngx_bloom_zone_t *zone, const ngx_bloom_end_t *end);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_ADD_H_INCLUDED_ */
