/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The rate is limited by the generic cell rate algorithm.  Its only state is
 * one number in shared memory: the time up to which keys have used the rate.
 */

#include "ngx_bloom_rate.h"


ngx_uint_t
ngx_bloom_rate_takes(uint64_t *used, uint64_t interval)
{
    uint64_t  now, until, next, last;

    now = (uint64_t) ngx_current_msec * 1000;
    last = now + ngx_max(NGX_BLOOM_RATE_BURST * interval, 1000000);
    until = __atomic_load_n(used, __ATOMIC_RELAXED);

    do {
        next = ngx_max(until, now) + interval;

        if (next > last) {
            return 0;
        }

    } while (!__atomic_compare_exchange_n(used, &until, next, 0,
                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED));

    return 1;
}
