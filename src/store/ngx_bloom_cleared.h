/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A clear drops everything that a zone has beyond the image of file=: added
 * keys, removed keys, pending keys, an uploaded image, and the record that keys
 * were lost.  These functions remove it from the state directory.
 *
 *     intend    The file "clearing" records that a clear is about to happen.
 *     publish   A clear record is published.  It is the first record of its
 *               segment, and the journal begins with that segment from then on.
 *     settle    The clear record is synchronised.  Then what it has dropped is
 *               removed: the pending keys, the record of the loss, uploads,
 *               checkpoints and older segments.
 *
 * The clear has happened when its record is published.  A process that dies
 * before that has changed nothing; if it dies later, the next process that
 * calls ngx_bloom_cleared_settle() or starts the zone does the rest.
 *
 * Nothing is removed before the clear record is on disk, because a machine that
 * loses power earlier has not cleared the zone.
 */

#ifndef _NGX_BLOOM_CLEARED_H_INCLUDED_
#define _NGX_BLOOM_CLEARED_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_journal.h"

#pragma GCC visibility push(hidden)


/*
 * Records that a clear is about to happen, and creates a segment for its record
 * unless one is prepared.  The caller holds the lock control->keeper until it
 * has called ngx_bloom_cleared_settle() or ngx_bloom_cleared_void().  Returns
 * NGX_OK, or NGX_ERROR with errno.
 */
ngx_int_t ngx_bloom_cleared_intend(ngx_bloom_state_t *state);

/*
 * Writes the clear record.  Returns what ngx_bloom_journal_append() returns;
 * the caller publishes the record or calls ngx_bloom_cleared_void().  The
 * caller holds the locks control->keeper and control->append.
 */
ngx_int_t ngx_bloom_cleared_append(ngx_bloom_state_t *state,
    ngx_bloom_end_t *end);

/*
 * Publishes the clear record: all instances, this one included, are required to
 * apply it.  The caller also holds the lock of the pending keys, and has loaded
 * `image`, which is what the zone goes back to.
 */
void ngx_bloom_cleared_publish(ngx_bloom_state_t *state, ngx_bloom_end_t *end,
    bloom_image_t *image);

/*
 * Forgets a clear whose record has been written but not published, because its
 * process failed: the record must not count later.  The caller holds the lock
 * control->keeper.  Returns NGX_OK, or NGX_ERROR with errno.
 */
ngx_int_t ngx_bloom_cleared_void(ngx_bloom_state_t *state);

/*
 * Returns 1 if the last clear record was published, and an instance that has
 * applied the journal up to `applied` still has to apply it.  The journal then
 * begins with it.
 */
ngx_uint_t ngx_bloom_cleared_since(ngx_bloom_state_t *state, uint64_t applied);

/* Returns 1 if ngx_bloom_cleared_settle() has something to do. */
static ngx_inline ngx_uint_t
ngx_bloom_cleared_unsettled(ngx_bloom_state_t *state)
{
    return __atomic_load_n(&state->control->clear.unsettled, __ATOMIC_SEQ_CST)
           != 0;
}

/* Returns the position up to which pending keys were dropped by a clear that is
 * not settled; 0 if all are settled. */
uint64_t ngx_bloom_cleared_pending(ngx_bloom_state_t *state);

/*
 * Removes from disk what the last clear has dropped, unless that is done.  The
 * caller holds the lock control->keeper.  Returns NGX_OK, or NGX_ERROR with
 * errno: then the function is to be called again.
 */
ngx_int_t ngx_bloom_cleared_settle(ngx_bloom_state_t *state);

/*
 * Does the same in a start, before it chooses what to load; `image` is that of
 * file=, or describes the empty filter.  The only instance first finds out
 * whether there was a clear that was not settled; `read` is 1 if it has read a
 * clear record.  Returns NGX_OK, or NGX_ERROR with errno.
 */
ngx_int_t ngx_bloom_cleared_recover(ngx_bloom_state_t *state,
    bloom_image_t *image, ngx_uint_t read);

/*
 * Renames the file `tmp`, an upload or a checkpoint with the journal's records
 * up to `position`, to `name`.  Returns NGX_OK, or NGX_ERROR with errno, which
 * is ECANCELED if the zone has been cleared since.
 */
ngx_int_t ngx_bloom_cleared_place(ngx_bloom_state_t *state, const u_char *tmp,
    const u_char *name, uint64_t position);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_CLEARED_H_INCLUDED_ */
