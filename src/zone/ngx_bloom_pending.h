/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A pending key has been added to the filter, and waits in memory until the
 * journal can take it.
 *
 * Pending keys are in the control page of the state directory, where they
 * outlive every process, or, if the zone has no state, in its shared memory.
 *
 * They are a queue of bytes.  A key's position in it never changes, since
 * positions only grow.  Keys are removed only under the lock control->append.
 */

#ifndef _NGX_BLOOM_PENDING_H_INCLUDED_
#define _NGX_BLOOM_PENDING_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/*
 * Makes a key pending.  The caller then sets the key's bits in the generation
 * that serves.  Returns NGX_OK; or NGX_ERROR if there is no room: the key is
 * lost to other instances and to the next load, and the function records the
 * loss: see `complete` in ngx_bloom_zone.h.
 */
ngx_int_t ngx_bloom_pending_put(ngx_bloom_zone_t *zone, const bloom_key_t *key);

/*
 * Records that the filter that serves has the keys that the journal lost when
 * this process failed to synchronise it.  Does nothing if the filter lacks
 * other keys, or if another loss was recorded meanwhile.
 */
void ngx_bloom_pending_have_lost(ngx_bloom_zone_t *zone);

/*
 * Sets the bits of all pending keys.  Returns NGX_OK, or NGX_ERROR if another
 * process holds their lock: then no bit is set.
 */
ngx_int_t ngx_bloom_pending_apply(ngx_bloom_zone_t *zone,
    ngx_bloom_zone_bits_t *bits);

/*
 * Sets the bits of all pending keys before a switch; with `bits` NULL, sets no
 * bits, because the switch drops the keys.  The caller holds sh->helper and
 * `append`.  Returns NGX_OK, or NGX_ERROR if another process holds the lock of
 * the pending keys or that of the exceptions.  On NGX_OK the caller holds both,
 * so that no further key becomes pending and no process puts an exception into
 * a bank that serves no longer.  It must call ngx_bloom_pending_release() soon:
 * workers wait for the locks only briefly.
 */
ngx_int_t ngx_bloom_pending_hold(ngx_bloom_zone_t *zone,
    ngx_bloom_zone_bits_t *bits);
void ngx_bloom_pending_release(ngx_bloom_zone_t *zone);

/*
 * Appends the pending keys to the journal.  Called by the helper.  Returns
 * NGX_OK if none is left, or NGX_AGAIN if they cannot be appended now.
 */
ngx_int_t ngx_bloom_pending_drain(ngx_bloom_zone_t *zone);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_PENDING_H_INCLUDED_ */
