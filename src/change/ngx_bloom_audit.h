/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * An audit adds a key that the zone lacks although the backend has it.  Bounds
 * apply, because a client may be able to choose what the backend answers.
 */

#ifndef _NGX_BLOOM_AUDIT_H_INCLUDED_
#define _NGX_BLOOM_AUDIT_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


typedef enum {
    NGX_BLOOM_AUDIT_ADDED = 0,
    NGX_BLOOM_AUDIT_UNABLE,              /* the zone takes no additions, or the
                                            key is invalid */
    NGX_BLOOM_AUDIT_FULL,                /* the zone is over-full */
    NGX_BLOOM_AUDIT_FAST                 /* the rate is exceeded */
} ngx_bloom_audit_e;


/*
 * Adds a key to the zone within the bounds, and counts whether it was added.
 * After a burst the zone takes one key per `interval`, over all workers.
 * `interval` is in microseconds, 1 to 60,000,000.  A zone that is over-full by
 * ngx_bloom_layers_overfull() takes no keys.
 */
ngx_bloom_audit_e ngx_bloom_audit_add(ngx_bloom_zone_t *zone, ngx_str_t *key,
    ngx_uint_t interval);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_AUDIT_H_INCLUDED_ */
