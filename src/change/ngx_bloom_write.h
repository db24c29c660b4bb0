/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Every change of a zone takes one path, with the lock of the zone:
 *
 *  1. look whether the change can be made; if not, nothing has changed (I3)
 *  2. write the record behind the journal's end (I4)
 *  3. require it of the other instances, and move the end: now it exists (I5)
 *  4. apply it to the filter that serves, and move `applied` behind it (I6)
 *
 * A zone without a journal leaves out steps 2 and 3.  If a process dies, the
 * next holder of the lock requires the record of every instance (I2), and
 * catching up applies it (ngx_bloom_catch_up.h).
 *
 * A batch has the keys of one record.  No function here waits for another
 * process, except for a batch of a single key that cannot be tried again: if
 * one cannot finish now, it returns NGX_AGAIN, and the caller calls it again
 * later.  That leaves the batch as it was (I1).
 */

#ifndef _NGX_BLOOM_WRITE_H_INCLUDED_
#define _NGX_BLOOM_WRITE_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_set.h"
#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


typedef struct ngx_bloom_batch_s  ngx_bloom_batch_t;

/* A kind of change. */
typedef struct {
    /*
     * Looks whether the batch can be applied to what serves, and may replace
     * its record.  Returns NGX_OK; or NGX_DONE, NGX_DECLINED or NGX_ABORT,
     * which ngx_bloom_write() then returns.  NULL: it always can.
     */
    ngx_int_t            (*look)(ngx_bloom_batch_t *batch,
                                 ngx_bloom_zone_bits_t *bits);

    /*
     * Applies the record, of this time, in ms since 1970, and with this end in
     * the journal, which is 0 if there is no journal.  `bits` is NULL if
     * nothing serves.  NULL: catching up applies it.
     */
    void                 (*apply)(ngx_bloom_batch_t *batch,
                                  ngx_bloom_zone_bits_t *bits, uint64_t time,
                                  uint64_t position);

    ngx_uint_t             type;         /* of the record, BLOOM_RECORD_... */
    unsigned               source:1;     /* comes from the zone's source */
    unsigned               adds:1;       /* only adds keys: it does not wait for
                                            owed keys, nor for a filter that
                                            serves */
    unsigned               reserve:1;    /* may use the journal's reserve */
} ngx_bloom_change_kind_t;

/* Keys that are added or removed together.  Callers read only the members above
 * the line. */
struct ngx_bloom_batch_s {
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

    const ngx_bloom_change_kind_t  *kind;
    bloom_record_maker_t   maker;
    u_char                *buf;
    void                  *data;         /* of its kind */
    ngx_uint_t             single;       /* 1: it may use the reserve, and is
                                            not tried again */
    ngx_uint_t             waits_for_lock;         /* 1: it does so for a
                                            moment, if it is single */
    ngx_bloom_set_tally_t  tally;        /* of the last record's additions */
    uint64_t               end;          /* of its last record in the journal */
    uint64_t               position;     /* up to which the journal has to be on
                                            disk; 0: not known yet */
    uint64_t               lost;         /* loss.lost at the beginning */
    ngx_msec_t             waits;        /* since when; 0: it does not wait */
};


/* Bytes of a batch's buffer, which has room for any key; and how many bytes a
 * batch of several keys may have, and how many keys.  A key takes up to 0.3
 * microseconds to apply. */
#define NGX_BLOOM_BATCH_SIZE                                                  \
    (BLOOM_RECORD_HEADER + BLOOM_KEY_MAX + 1 + 8)
#define NGX_BLOOM_BATCH_FULL  (32 * 1024)
#define NGX_BLOOM_BATCH_KEYS  1500

/*
 * Initialises an empty batch of a kind.  `buf` has NGX_BLOOM_BATCH_SIZE bytes
 * and belongs to the caller; NULL: `look` makes the record.  Returns NGX_OK;
 * NGX_DECLINED with batch->error if the zone never takes such changes;
 * NGX_ERROR with batch->error if it takes none now.
 */
ngx_int_t ngx_bloom_batch_begin(ngx_bloom_batch_t *batch,
    ngx_bloom_zone_t *zone, const ngx_bloom_change_kind_t *kind, u_char *buf);

/*
 * Copies a key into the batch, in the zone's key form; to be removed, its
 * canonical key.  Returns NGX_OK; NGX_AGAIN if the batch is full and has to be
 * added or removed first; NGX_DECLINED if the key is invalid, with the reason
 * in batch->error, a phrase that follows the key.
 */
ngx_int_t ngx_bloom_batch_key(ngx_bloom_batch_t *batch, ngx_str_t *key);

/*
 * Checks whether all keys that this batch or others had added to the zone
 * before the first call are on disk.  The batch is durable.  Returns
 *
 *     NGX_OK       they are
 *     NGX_AGAIN    not yet: wait in NGX_BLOOM_QUEUE_SYNC, which is served in
 *                  order of arrival, and call again
 *     NGX_ERROR    with batch->error: this cannot be promised, or keys were
 *                  lost since the batch began
 */
ngx_int_t ngx_bloom_batch_synced(ngx_bloom_batch_t *batch);

/* Returns 1 if the configuration lets the zone be changed. */
ngx_uint_t ngx_bloom_write_possible(ngx_bloom_zone_t *zone);


/* ---- within this layer ---- */

/* Begins an empty record of the batch's kind in a buffer of
 * NGX_BLOOM_BATCH_SIZE bytes, or of what the record needs. */
void ngx_bloom_batch_record(ngx_bloom_batch_t *batch, u_char *buf);

/*
 * Converts a key that is added, or else removed, to the key form of the image
 * that serves.  If another image serves when the change is applied, the key is
 * converted again to its form.  Returns NULL, or the reason why the key is
 * invalid, a phrase that follows the key.
 */
const char *ngx_bloom_write_convert(ngx_bloom_zone_t *zone, ngx_uint_t added,
    bloom_key_t *key);

/* Copies a converted key into the record.  Returns NGX_OK, or NGX_AGAIN if the
 * record is full. */
ngx_int_t ngx_bloom_batch_put(ngx_bloom_batch_t *batch, const bloom_key_t *key);

/*
 * Makes the change.  Returns
 *
 *     NGX_OK       it is made
 *     NGX_AGAIN    not yet: wait in NGX_BLOOM_QUEUE_ROOM and call again, with
 *                  the batch as it is
 *     NGX_BUSY     another process holds the lock, and the batch is a single
 *                  key that does not wait longer
 *     NGX_ERROR    refused, with batch->error; nothing has changed
 *     other        what `look` has returned; nothing has changed
 */
ngx_int_t ngx_bloom_write(ngx_bloom_batch_t *batch);

/* Takes the lock of the zone for a batch.  Returns NGX_OK, or as
 * ngx_bloom_write() NGX_AGAIN, NGX_BUSY or NGX_ERROR. */
ngx_int_t ngx_bloom_write_lock(ngx_bloom_batch_t *batch);

/* Returns NGX_AGAIN; or, if the batch has waited for long, NGX_ERROR with
 * `error` as batch->error. */
ngx_int_t ngx_bloom_write_wait(ngx_bloom_batch_t *batch, const char *error);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_WRITE_H_INCLUDED_ */
