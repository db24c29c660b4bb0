/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The rate is limited by the generic cell rate algorithm.  Its only state is
 * one number in shared memory: the time up to which learned keys have used the
 * rate.
 */

#include "ngx_bloom_learn.h"
#include "ngx_bloom_add.h"
#include "ngx_bloom_layers.h"


ngx_bloom_learn_e
ngx_bloom_learn(ngx_bloom_zone_t *zone, ngx_str_t *key, ngx_uint_t interval)
{
    uint64_t           items;
    ngx_bloom_learn_e  rc;

    if (!ngx_bloom_add_possible(zone)) {
        rc = NGX_BLOOM_LEARN_UNABLE;

    } else if (ngx_bloom_layers_overfull(zone, &items)) {
        rc = NGX_BLOOM_LEARN_FULL;

    } else if (!ngx_bloom_learn_takes(&zone->sh->learned, interval)) {
        rc = NGX_BLOOM_LEARN_FAST;

    } else if (ngx_bloom_add_key(zone, key) != NULL) {
        rc = NGX_BLOOM_LEARN_UNABLE;

    } else {
        rc = NGX_BLOOM_LEARN_ADDED;
    }

    ngx_bloom_count(zone, rc == NGX_BLOOM_LEARN_ADDED
                          ? NGX_BLOOM_COUNTER_LEARNED
                          : NGX_BLOOM_COUNTER_NOT_LEARNED, 1);

    return rc;
}


ngx_uint_t
ngx_bloom_learn_takes(uint64_t *learned, uint64_t interval)
{
    uint64_t  now, used, next, last;

    now = (uint64_t) ngx_current_msec * 1000;
    last = now + ngx_max(NGX_BLOOM_LEARN_BURST * interval, 1000000);
    used = __atomic_load_n(learned, __ATOMIC_RELAXED);

    do {
        next = ngx_max(used, now) + interval;

        if (next > last) {
            return 0;
        }

    } while (!__atomic_compare_exchange_n(learned, &used, next, 0,
                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED));

    return 1;
}
