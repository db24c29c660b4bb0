/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Keys that were added and acknowledged although another process, which is
 * stopped or waits for a disk, held the lock of the zone.  This process owes
 * them: it keeps them in its own memory, and adds them later.  Until then no
 * instance says "absent", and removals wait (I12).  If the process dies, the
 * keys are lost, which its successor records (I13).
 */

#ifndef _NGX_BLOOM_OWED_H_INCLUDED_
#define _NGX_BLOOM_OWED_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/* Returns 1 if this process owes keys of the zone. */
ngx_uint_t ngx_bloom_owed(ngx_bloom_zone_t *zone);

/*
 * Owes a key from now on.  Returns NGX_OK; or NGX_ERROR if there is no room:
 * the key is lost, which is recorded.
 */
ngx_int_t ngx_bloom_owed_put(ngx_bloom_zone_t *zone, const bloom_key_t *key);

/* Adds what this process still owes the zones of an array of pointers.  What
 * takes more than a second is lost, which is recorded.  Called in
 * exit_process. */
void ngx_bloom_owed_end(ngx_array_t *zones);

/* Records the loss of what processes that have died owed.  Called by the
 * helper. */
void ngx_bloom_owed_settle(ngx_bloom_zone_t *zone);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_OWED_H_INCLUDED_ */
