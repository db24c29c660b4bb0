/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A zone learns keys that a backend's answers show it to lack, within bounds:
 * what a backend answers may be what a client wants it to.
 */

#ifndef _NGX_BLOOM_LEARN_H_INCLUDED_
#define _NGX_BLOOM_LEARN_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/* How many keys a zone may learn at once, before its rate counts, or those of a
 * second, if that is more. */
#define NGX_BLOOM_LEARN_BURST  10

/* The highest rate, in keys a second. */
#define NGX_BLOOM_LEARN_MAX    1000000

typedef enum {
    NGX_BLOOM_LEARN_ADDED = 0,
    NGX_BLOOM_LEARN_UNABLE,              /* no additions, or an invalid key */
    NGX_BLOOM_LEARN_FULL,                /* the zone is over-full */
    NGX_BLOOM_LEARN_FAST                 /* it has learned too many lately */
} ngx_bloom_learn_e;


/*
 * Adds a key to the zone, and counts whether it was learned.  `interval` is the
 * time for one key in microseconds, 1 to 60,000,000: after a burst the zone
 * learns one key in each interval, in all workers together.  A zone that
 * ngx_bloom_zone_overfull() tells of learns none.
 */
ngx_bloom_learn_e ngx_bloom_learn(ngx_bloom_zone_t *zone, ngx_str_t *key,
    ngx_uint_t interval);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_LEARN_H_INCLUDED_ */
