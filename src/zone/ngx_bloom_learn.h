/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Learning adds a key that the zone lacks although the backend has it.  Bounds
 * apply, because a client may be able to choose what the backend answers.
 */

#ifndef _NGX_BLOOM_LEARN_H_INCLUDED_
#define _NGX_BLOOM_LEARN_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/* How many keys a zone may learn at once.  If the rate per second is more than
 * this, a zone may learn one second's keys at once. */
#define NGX_BLOOM_LEARN_BURST  10

/* The highest rate, in keys per second. */
#define NGX_BLOOM_LEARN_MAX    1000000

typedef enum {
    NGX_BLOOM_LEARN_ADDED = 0,
    NGX_BLOOM_LEARN_UNABLE,              /* the zone takes no additions, or the
                                            key is invalid */
    NGX_BLOOM_LEARN_FULL,                /* the zone is over-full */
    NGX_BLOOM_LEARN_FAST                 /* the rate is exceeded */
} ngx_bloom_learn_e;


/*
 * Adds a key to the zone within the bounds, and counts whether it was learned.
 * After a burst the zone learns one key per `interval`, over all workers.
 * `interval` is in microseconds, 1 to 60,000,000.  A zone that is over-full by
 * ngx_bloom_layers_overfull() learns no keys.
 */
ngx_bloom_learn_e ngx_bloom_learn(ngx_bloom_zone_t *zone, ngx_str_t *key,
    ngx_uint_t interval);

/*
 * Takes one key's share of a rate, of one key per `interval` microseconds with
 * bursts.  *learned is in shared memory and 0 at first.  Returns 1, or 0 if no
 * share is left.
 */
ngx_uint_t ngx_bloom_learn_takes(uint64_t *learned, uint64_t interval);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_LEARN_H_INCLUDED_ */
