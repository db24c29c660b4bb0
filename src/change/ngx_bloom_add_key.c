/* SPDX-License-Identifier: BSD-2-Clause */

#include "ngx_bloom_add_key.h"
#include "ngx_bloom_layers.h"
#include "ngx_bloom_owed.h"
#include "ngx_bloom_rate.h"


ngx_int_t
ngx_bloom_add_one(ngx_bloom_zone_t *zone, ngx_str_t *key,
    ngx_bloom_batch_t *batch)
{
    u_char          buf[NGX_BLOOM_BATCH_SIZE];
    ngx_int_t       rc;
    bloom_key_t     put;
    bloom_record_t  record;

    if (ngx_bloom_batch_begin(batch, zone, &ngx_bloom_add_kind, buf)
        == NGX_DECLINED)
    {
        return NGX_DECLINED;
    }

    batch->single = 1;
    batch->waits_for_lock = 1;

    if (ngx_bloom_batch_key(batch, key) != NGX_OK) {
        return NGX_ABORT;
    }

    rc = ngx_bloom_owed(zone) ? NGX_BUSY : ngx_bloom_add_anyway(batch);

    if (rc == NGX_BUSY) {
        ngx_memzero(&record, sizeof(bloom_record_t));

        record.keys = buf + BLOOM_RECORD_HEADER;
        record.end = buf + batch->maker.len;

        (void) bloom_record_key(&record, &put);

        rc = ngx_bloom_owed_put(zone, &put);
        batch->added = (rc == NGX_OK);

        if (rc == NGX_ERROR) {
            batch->err = 0;
            batch->error = "another process has locked the zone, and there is "
                           "no room for more keys that wait for it; check the "
                           "processes of nginx";
        }
    }

    return rc;
}


const char *
ngx_bloom_add_key(ngx_bloom_zone_t *zone, ngx_str_t *key)
{
    ngx_bloom_batch_t  batch;

    if (key->len == 0) {
        return NULL;
    }

    return ngx_bloom_add_one(zone, key, &batch) == NGX_ABORT ? batch.error
                                                             : NULL;
}


ngx_bloom_audit_e
ngx_bloom_audit_add(ngx_bloom_zone_t *zone, ngx_str_t *key,
    ngx_uint_t interval)
{
    uint64_t           items;
    ngx_bloom_audit_e  rc;

    if (!ngx_bloom_write_possible(zone)) {
        rc = NGX_BLOOM_AUDIT_UNABLE;

    } else if (ngx_bloom_layers_overfull(zone, &items)) {
        rc = NGX_BLOOM_AUDIT_FULL;

    } else if (!ngx_bloom_rate_takes(&zone->sh->audited, interval)) {
        rc = NGX_BLOOM_AUDIT_FAST;

    } else if (ngx_bloom_add_key(zone, key) != NULL) {
        rc = NGX_BLOOM_AUDIT_UNABLE;

    } else {
        rc = NGX_BLOOM_AUDIT_ADDED;
    }

    ngx_bloom_count(zone, rc == NGX_BLOOM_AUDIT_ADDED
                          ? NGX_BLOOM_COUNTER_AUDIT_ADDED
                          : NGX_BLOOM_COUNTER_AUDIT_NOT_ADDED, 1);

    return rc;
}
