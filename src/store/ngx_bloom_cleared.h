/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A clear drops everything that a zone has beyond the image of file=: added
 * keys, removed keys, an uploaded image, and the record that keys were lost.
 *
 *     append    A clear record is written and published, as the first record of
 *               its segment.  The clear has happened.
 *     settle    The record is synchronised.  Then the entry of the file "base"
 *               begins with the record, and what was dropped is removed: the
 *               record of the loss, uploads, checkpoints and older segments.
 *
 * The record is the truth: whoever finds one behind the beginning of the
 * journal settles the clear, whichever process has died meanwhile.  Nothing is
 * removed before the record is on disk, because a machine that loses power
 * earlier has not cleared the zone.
 */

#ifndef _NGX_BLOOM_CLEARED_H_INCLUDED_
#define _NGX_BLOOM_CLEARED_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_journal.h"

#pragma GCC visibility push(hidden)


/*
 * Writes and publishes the clear record: all instances, this one included, are
 * required to apply it.  *end becomes the journal's end.  Returns what
 * ngx_bloom_journal_append() returns; if that is not NGX_OK, nothing has
 * changed.  The caller holds the lock control->append, and has called
 * ngx_bloom_journal_prepare_next().
 */
ngx_int_t ngx_bloom_cleared_append(ngx_bloom_state_t *state,
    ngx_bloom_end_t *end);

/* Tells all processes of a clear record that was found at a position: they need
 * not wait until they find it themselves. */
void ngx_bloom_cleared_found(ngx_bloom_state_t *state, uint64_t position);

/* Returns 1 if an instance that has applied the journal up to `applied` still
 * has to apply the last clear record that was found. */
ngx_uint_t ngx_bloom_cleared_since(ngx_bloom_state_t *state, uint64_t applied);

/* Returns 1 if ngx_bloom_cleared_settle() has something to do. */
ngx_uint_t ngx_bloom_cleared_unsettled(ngx_bloom_state_t *state);

/*
 * Stores that the last clear is the beginning of the journal, unless that is
 * done, and removes from disk what it has dropped and what can be removed.
 * `build` is the build id of what the zone goes back to, the image of file=;
 * NULL for an empty filter.  The caller holds the lock control->keeper.
 * Returns NGX_OK, or NGX_ERROR with errno: then the function is to be called
 * again.
 */
ngx_int_t ngx_bloom_cleared_settle(ngx_bloom_state_t *state,
    const u_char *build);

/*
 * Renames the file `tmp`, an upload or a checkpoint with the journal's records
 * up to `position`, to `name`.  The caller holds the lock control->keeper.
 * Returns NGX_OK, or NGX_ERROR with errno, which is ECANCELED if the zone has
 * been cleared since.
 */
ngx_int_t ngx_bloom_cleared_place(ngx_bloom_state_t *state, const u_char *tmp,
    const u_char *name, uint64_t position);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_CLEARED_H_INCLUDED_ */
