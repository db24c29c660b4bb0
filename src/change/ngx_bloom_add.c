/* SPDX-License-Identifier: BSD-2-Clause */

#include "ngx_bloom_add.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_lost.h"


static void ngx_bloom_add_apply(ngx_bloom_batch_t *batch,
    ngx_bloom_zone_bits_t *bits, uint64_t time, uint64_t position);


const ngx_bloom_change_kind_t  ngx_bloom_add_kind = {
    .apply = ngx_bloom_add_apply,
    .type = BLOOM_RECORD_ADD,
    .adds = 1
};


ngx_int_t
ngx_bloom_add(ngx_bloom_batch_t *batch)
{
    ngx_int_t  rc;

    if (batch->maker.count == 0) {
        return NGX_OK;
    }

    ngx_memzero(&batch->tally, sizeof(ngx_bloom_set_tally_t));

    rc = ngx_bloom_write(batch);

    if (rc == NGX_OK) {
        ngx_bloom_add_count(batch, &batch->tally, batch->maker.count);
        ngx_bloom_batch_record(batch, batch->buf);
    }

    return rc;
}


static void
ngx_bloom_add_apply(ngx_bloom_batch_t *batch, ngx_bloom_zone_bits_t *bits,
    uint64_t time, uint64_t position)
{
    ngx_uint_t             again;
    ngx_bloom_set_tally_t  tally;

    if (bits == NULL) {
        batch->tally.keys = batch->maker.count;  /* the next load adds them */
        return;
    }

    again = (batch->tally.keys != 0);

    ngx_bloom_add_keys(bits, batch->buf + BLOOM_RECORD_HEADER,
                       batch->buf + batch->maker.len, position, &tally);

    if (again) {
        batch->tally.begun = tally.begun;        /* they were counted before */

    } else {
        batch->tally = tally;
    }
}


void
ngx_bloom_add_keys(ngx_bloom_zone_bits_t *bits, const uint8_t *keys,
    const uint8_t *end, uint64_t position, ngx_bloom_set_tally_t *tally)
{
    ngx_bloom_set_keys(bits, keys, end, tally);

    if (tally->excepted != 0) {
        ngx_bloom_zone_lift(bits, keys, end,
                            position != 0 ? position : UINT64_MAX);
    }
}


ngx_int_t
ngx_bloom_add_anyway(ngx_bloom_batch_t *batch)
{
    ngx_int_t              rc;
    ngx_bloom_zone_t      *zone;
    ngx_bloom_zone_bits_t  bits;

    zone = batch->zone;

    ngx_memzero(&batch->tally, sizeof(ngx_bloom_set_tally_t));

    if (zone->state_error == NULL) {
        rc = ngx_bloom_write(batch);

        if (rc == NGX_BUSY) {
            return NGX_BUSY;
        }

    } else {
        rc = NGX_ERROR;
    }

    if (rc != NGX_OK) {

        /* not written, so the loss is recorded before the bits are set */

        if (ngx_bloom_write_lock(batch) != NGX_OK) {
            return NGX_BUSY;
        }

        /* a process that could not map the control page does not know what the
         * others have lost */

        ngx_bloom_lost_keys(zone, batch->maker.count,
                            zone->state_error == NULL);

        if (ngx_bloom_zone_serving(zone, &bits) != 0) {
            ngx_bloom_add_apply(batch, &bits, 0, 0);
        }

        ngx_bloom_zone_unlock(zone);

        if (batch->error == NULL) {
            batch->error = "the journal has no room left for keys of "
                           "bloom_add; check whether \"nginx: cache manager "
                           "process\" is running, and the disk of "
                           "bloom_state_path";
        }

        rc = NGX_ERROR;
    }

    ngx_bloom_add_count(batch, &batch->tally, batch->maker.count);

    return rc;
}


void
ngx_bloom_add_count(ngx_bloom_batch_t *batch,
    const ngx_bloom_set_tally_t *tally, uint64_t n)
{
    uint64_t  present;

    present = tally->keys - tally->added;

    batch->added += tally->added;
    batch->already_present += present;
    batch->invalid += n - tally->keys;

    ngx_bloom_count(batch->zone, NGX_BLOOM_COUNTER_ADDED, tally->added);
    ngx_bloom_count(batch->zone, NGX_BLOOM_COUNTER_ALREADY_PRESENT, present);
}
