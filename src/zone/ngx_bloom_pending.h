/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Pending keys were added, and wait in memory until the journal can take them.
 *
 * They lie in the control page of the state directory, where they outlive every
 * process, or, where a zone has no state, in its shared memory.
 *
 * Keys are taken out only under the lock control->append.  Positions in them
 * only grow, so that a key keeps its own.
 */

#ifndef _NGX_BLOOM_PENDING_H_INCLUDED_
#define _NGX_BLOOM_PENDING_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/*
 * Makes a key pending.  A key that finds no room is lost to the next load, and
 * to other instances, which is noted: see `complete` in ngx_bloom_zone.h.  Its
 * bits have to be set afterwards, in whichever generation serves then.
 */
void ngx_bloom_pending_put(ngx_bloom_zone_t *zone, const bloom_key_t *key);

/*
 * Notes that the filter that serves has what the journal has lost while this
 * process synchronised it, if it has all that was added, and nobody has noted
 * another loss meanwhile.
 */
void ngx_bloom_pending_have_lost(ngx_bloom_zone_t *zone);

/*
 * Sets the bits of all pending keys.  Returns NGX_OK, or NGX_ERROR if others
 * hold the keys: then nothing is done.
 */
ngx_int_t ngx_bloom_pending_apply(ngx_bloom_zone_t *zone,
    ngx_bloom_zone_bits_t *bits);

/*
 * Sets the bits of all pending keys for a switch, under the locks sh->helper
 * and `append`.  No further key becomes pending until the release, which must
 * come soon: workers wait for it, and not long.  Returns NGX_OK, or NGX_ERROR
 * if others hold the keys.
 */
ngx_int_t ngx_bloom_pending_hold(ngx_bloom_zone_t *zone,
    ngx_bloom_zone_bits_t *bits);
void ngx_bloom_pending_release(ngx_bloom_zone_t *zone);

/*
 * Appends the pending keys to the journal; for the helper.  Returns NGX_OK if
 * none is left, NGX_AGAIN if it cannot be done now.
 */
ngx_int_t ngx_bloom_pending_drain(ngx_bloom_zone_t *zone);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_PENDING_H_INCLUDED_ */
