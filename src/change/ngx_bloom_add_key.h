/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * bloom_add, and programs in Lua, add single keys, which cannot be refused.
 *
 * An audit adds a key that the zone lacks although the backend has it.  Bounds
 * apply, because a client may be able to choose what the backend answers.
 */

#ifndef _NGX_BLOOM_ADD_KEY_H_INCLUDED_
#define _NGX_BLOOM_ADD_KEY_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_add.h"

#pragma GCC visibility push(hidden)


/* What became of a key that an audit adds. */
typedef enum {
    NGX_BLOOM_AUDIT_ADDED = 0,
    NGX_BLOOM_AUDIT_UNABLE,              /* the zone takes no additions, or the
                                            key is invalid */
    NGX_BLOOM_AUDIT_FULL,                /* the zone is over-full */
    NGX_BLOOM_AUDIT_FAST                 /* the rate is exceeded */
} ngx_bloom_audit_e;


/*
 * Adds one key of at least one byte, and counts what became of it.  Waits for
 * another process for 20 ms at most, and not at all while this process owes
 * keys (ngx_bloom_owed.h).  Returns
 *
 *     NGX_OK        batch->added or batch->already_present is 1; of a key that
 *                   is owed, `added` is
 *     NGX_ABORT     the key is too long or invalid in the zone's key form;
 *                   batch->error is the reason, a phrase that follows the key
 *     NGX_DECLINED  the zone never takes additions, with batch->error
 *     NGX_ERROR     the key is lost, with batch->error: the filter that serves
 *                   may have it, but the next load or start does not
 *
 * The members of `batch` below its line are not to be used.
 */
ngx_int_t ngx_bloom_add_one(ngx_bloom_zone_t *zone, ngx_str_t *key,
    ngx_bloom_batch_t *batch);

/*
 * Does what ngx_bloom_add_one() does, but ignores an empty key, and a key for a
 * zone that takes no additions.  Returns NULL; or, if the key is too long or
 * invalid in the zone's key form, the reason, a phrase that follows the key.
 */
const char *ngx_bloom_add_key(ngx_bloom_zone_t *zone, ngx_str_t *key);

/*
 * Adds a key to the zone within the bounds, and counts whether it was added.
 * After a burst the zone takes one key per `interval`, over all workers.
 * `interval` is in microseconds, 1 to 60,000,000.  A zone that is over-full by
 * ngx_bloom_layers_overfull() takes no keys.
 */
ngx_bloom_audit_e ngx_bloom_audit_add(ngx_bloom_zone_t *zone, ngx_str_t *key,
    ngx_uint_t interval);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_ADD_KEY_H_INCLUDED_ */
