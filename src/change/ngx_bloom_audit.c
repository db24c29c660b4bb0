/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file adds the keys that an audit finds missing, within bounds.
 */

#include "ngx_bloom_audit.h"
#include "ngx_bloom_add_key.h"
#include "ngx_bloom_layers.h"
#include "ngx_bloom_rate.h"


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
