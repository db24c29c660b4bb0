/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A removal makes a key absent in the zone although its bits are set: the key
 * becomes an exception (bloom_exceptions.h) of the generation that serves, and
 * the journal has a record of it.
 *
 * The order of records in the journal decides between a removal and an addition
 * of the same key.
 */

#ifndef _NGX_BLOOM_REMOVE_H_INCLUDED_
#define _NGX_BLOOM_REMOVE_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "bloom_exceptions.h"
#include "ngx_bloom_write.h"

#pragma GCC visibility push(hidden)


/* Removals, for ngx_bloom_batch_begin(). */
extern const ngx_bloom_change_kind_t  ngx_bloom_remove_kind;

/*
 * Removes the batch's keys, if any, and empties the batch.  Returns
 *
 *     NGX_OK       the keys are absent in this instance, and the removal is in
 *                  the journal if the zone has one
 *     NGX_AGAIN    not yet: wait in NGX_BLOOM_QUEUE_ROOM and call again, with
 *                  nothing put into the batch meanwhile
 *     NGX_DONE     there is no room for all keys, with batch->error: those that
 *                  batch->removed and batch->absent count are removed
 *     NGX_ERROR    refused, with batch->error; none of the batch's keys is
 *                  removed
 *
 * ngx_bloom_batch_synced() then waits for the disk.
 */
ngx_int_t ngx_bloom_remove(ngx_bloom_batch_t *batch);

/*
 * Removes one key of at least one byte, and counts what became of it.  Waits
 * for another process for 20 ms at most.  Returns
 *
 *     NGX_OK        batch->removed or batch->absent is 1
 *     NGX_ABORT     the key is too long or invalid in the zone's key form;
 *                   batch->error is the reason, a phrase that follows the key
 *     NGX_DECLINED  the zone never takes removals, with batch->error
 *     NGX_DONE      there is no room, with batch->error: the key stays as it is
 *     NGX_ERROR     refused, with batch->error: the key stays as it is
 *
 * The members of `batch` below its line are not to be used.
 */
ngx_int_t ngx_bloom_remove_one(ngx_bloom_zone_t *zone, ngx_str_t *key,
    ngx_bloom_batch_t *batch);

/*
 * Removes one key.  If that is not possible now, the key stays as it is, which
 * is counted and logged.  Zones that take no removals ignore the key.  Returns
 * NULL; or, if the key is too long or invalid in the zone's key form, the
 * reason, a phrase that follows the key.  Such keys are counted.
 */
const char *ngx_bloom_remove_key(ngx_bloom_zone_t *zone, ngx_str_t *key);


/* Part of the exceptions of a zone. */
typedef struct {
    uint64_t            generation;      /* 0: nothing serves */
    uint64_t            cursor;          /* where the next part begins; 0: this
                                            is the last part */
    ngx_array_t         keys;            /* of bloom_exception_t; the keys are
                                            allocated from the pool */
} ngx_bloom_removed_t;

/*
 * Lists at most n keys that are exceptions of `kind`, BLOOM_EXCEPTION_..., from
 * `cursor` on, which is 0 at first; a cursor is valid as long as the generation
 * serves.  A part may have fewer keys, or no key, and not be the last.  Returns
 * NGX_OK, or NGX_ERROR if memory is short.
 */
ngx_int_t ngx_bloom_removed_list(ngx_bloom_zone_t *zone, unsigned kind,
    uint64_t cursor, ngx_uint_t n, ngx_bloom_removed_t *removed,
    ngx_pool_t *pool);

/* Returns how many keys of the generation that serves are removed or excepted.
 * Unless `limit` is NULL, *limit becomes how many may be. */
uint64_t ngx_bloom_removed_count(ngx_bloom_zone_t *zone, uint64_t *limit);


/* ---- within this layer ---- */

/*
 * Returns how many of a record's removals there is no room for; *last becomes
 * the end of the last key that there is room for, or of none.  The caller holds
 * the lock of the zone, and `bits` serve.
 */
uint32_t ngx_bloom_remove_excess(ngx_bloom_zone_t *zone,
    ngx_bloom_zone_bits_t *bits, const bloom_record_t *removals,
    const uint8_t **last);

/* Makes the keys of a record's removals, for which there is room, exceptions,
 * and counts them in the batch.  The caller holds the lock of the zone, and
 * `bits` serve.  `position` is where the record ends in the journal. */
void ngx_bloom_remove_except(ngx_bloom_batch_t *batch,
    ngx_bloom_zone_bits_t *bits, const bloom_record_t *removals, uint64_t time,
    uint64_t position);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_REMOVE_H_INCLUDED_ */
