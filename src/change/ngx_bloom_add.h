/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Additions of keys that are gathered in batches.  What becomes of them is
 * counted in the batch and for the zone.
 */

#ifndef _NGX_BLOOM_ADD_H_INCLUDED_
#define _NGX_BLOOM_ADD_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_write.h"

#pragma GCC visibility push(hidden)


/* Additions, for ngx_bloom_batch_begin(). */
extern const ngx_bloom_change_kind_t  ngx_bloom_add_kind;

/*
 * Adds the batch's keys, if any, and empties the batch.  Returns
 *
 *     NGX_OK       the keys are in the filter that serves, and in the journal
 *                  if the zone has one
 *     NGX_AGAIN    not yet: wait in NGX_BLOOM_QUEUE_ROOM and call again, with
 *                  nothing put into the batch meanwhile
 *     NGX_ERROR    refused, with batch->error; none of the keys is added
 */
ngx_int_t ngx_bloom_add(ngx_bloom_batch_t *batch);


/* ---- within this layer ---- */

/*
 * Adds the batch's keys, which cannot be refused; the batch is a single one,
 * and stays as it is.  Returns NGX_OK; NGX_BUSY if another process holds the
 * lock of the zone; NGX_ERROR with batch->error if the keys are in the filter
 * that serves and nowhere else, which is recorded as a loss.
 */
ngx_int_t ngx_bloom_add_anyway(ngx_bloom_batch_t *batch);

/* Counts `n` keys that a batch has added, in the batch and for the zone. */
void ngx_bloom_add_count(ngx_bloom_batch_t *batch,
    const ngx_bloom_set_tally_t *tally, uint64_t n);

/* Sets the bits of the keys of a record that ends at `position` in the journal,
 * and ends their exceptions from before.  The caller holds the lock of the
 * zone. */
void ngx_bloom_add_keys(ngx_bloom_zone_bits_t *bits, const uint8_t *keys,
    const uint8_t *end, uint64_t position, ngx_bloom_set_tally_t *tally);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_ADD_H_INCLUDED_ */
