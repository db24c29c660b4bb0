/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * bloom_add, and programs in Lua, add single keys, which cannot be refused.
 */

#ifndef _NGX_BLOOM_ADD_KEY_H_INCLUDED_
#define _NGX_BLOOM_ADD_KEY_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_add.h"

#pragma GCC visibility push(hidden)


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


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_ADD_KEY_H_INCLUDED_ */
