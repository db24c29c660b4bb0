/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file removes keys: it journals them and makes them exceptions.
 */

#include "ngx_bloom_remove.h"


ngx_int_t
ngx_bloom_remove_batch_init(ngx_bloom_add_batch_t *batch,
    ngx_bloom_zone_t *zone, u_char *buf)
{
    return ngx_bloom_add_batch_init(batch, zone, buf);
}


ngx_int_t
ngx_bloom_remove_batch_put(ngx_bloom_add_batch_t *batch, ngx_str_t *key)
{
    return ngx_bloom_add_batch_put(batch, key);
}


ngx_int_t
ngx_bloom_remove_batch(ngx_bloom_add_batch_t *batch)
{
    batch->error = "not yet";
    return NGX_ERROR;
}


const char *
ngx_bloom_remove_key(ngx_bloom_zone_t *zone, ngx_str_t *key)
{
    return NULL;
}


ngx_int_t
ngx_bloom_removed_list(ngx_bloom_zone_t *zone, uint64_t cursor, ngx_uint_t n,
    ngx_bloom_removed_t *removed, ngx_pool_t *pool)
{
    ngx_memzero(removed, sizeof(ngx_bloom_removed_t));
    return ngx_array_init(&removed->keys, pool, 1, sizeof(bloom_exception_t));
}


uint64_t
ngx_bloom_removed_count(ngx_bloom_zone_t *zone, uint64_t *limit)
{
    *limit = 0;
    return 0;
}
