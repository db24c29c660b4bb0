/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions write the journal: a start recovers its end, workers append
 * records, and the helper creates, synchronises and removes segments.
 * ngx_bloom_reader.h reads the journal.
 */

#ifndef _NGX_BLOOM_JOURNAL_H_INCLUDED_
#define _NGX_BLOOM_JOURNAL_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_reader.h"

#pragma GCC visibility push(hidden)


/*
 * Recovers the end of the journal after a reader has read all of it, from a
 * point whose sequence is known.  There must be no other instance.  The journal
 * continues after the last valid record, and whatever follows that record is
 * removed.  If records are lost, the control page records that first.  Returns
 * NGX_OK, or NGX_ERROR with errno.
 */
ngx_int_t ngx_bloom_journal_recover(ngx_bloom_state_t *state,
    ngx_bloom_reader_t *reader);


/*
 * Finds out what the removals of all records come to, from the last segments
 * alone.  Records that do not count may be among them.  Returns NGX_OK, or
 * NGX_ERROR with errno.
 */
ngx_int_t ngx_bloom_journal_removals(ngx_bloom_state_t *state,
    bloom_removals_t *removals);


/* ---- appending: the caller holds the lock control->append ---- */

/*
 * What is kept prepared behind the end, in bytes.  The reserve is for changes
 * that cannot be refused: two workers with 2 MB of single keys a second, while
 * the helper is away for 5 s.  The room before it takes 0.12 s of additions by
 * POST, at 13 million keys a second, which is longer than it takes to prepare a
 * segment.
 */
#define NGX_BLOOM_JOURNAL_RESERVE  (20 * 1024 * 1024)
#define NGX_BLOOM_JOURNAL_ROOM     (16 * 1024 * 1024)

/*
 * Writes a record at the end of the journal, but does not move the end yet; the
 * new end is returned in *end, and the caller publishes the record before it
 * releases the lock.  With `wait`, the record leaves the reserve alone.
 * Returns NGX_OK; NGX_AGAIN if too little is prepared for the record, which the
 * helper changes when it is woken; NGX_ERROR if the record cannot be written,
 * which the control page records.
 *
 * A record of the type BLOOM_RECORD_CLEAR always goes to the next segment.
 */
ngx_int_t ngx_bloom_journal_append(ngx_bloom_state_t *state,
    bloom_record_maker_t *maker, ngx_uint_t wait, ngx_bloom_end_t *end);

/*
 * Moves the end past that record, which is part of the journal from then on.
 * Other instances are required to apply the record before they say "absent";
 * the caller applies it to its own.
 */
void ngx_bloom_journal_publish(ngx_bloom_state_t *state,
    ngx_bloom_end_t *end);


/*
 * Overwrites what a process that died has written behind the end, so that no
 * start takes it for a change: its process has not published it, and it may be
 * older than what clients have seen since.  Returns NGX_OK, or NGX_ERROR with
 * errno.
 */
ngx_int_t ngx_bloom_journal_wipe(ngx_bloom_state_t *state);


/* ---- segments: the helper calls these, with the lock control->keeper ---- */

/*
 * Creates the next segment if the journal has none, or if it has a record and
 * less than the reserve and the room are prepared.  Returns NGX_OK; NGX_AGAIN
 * if another one is needed; NGX_ERROR, which the control page records.
 */
ngx_int_t ngx_bloom_journal_prepare(ngx_bloom_state_t *state);

/* Creates a segment behind the one that has the journal's end, unless there is
 * one.  Returns as ngx_bloom_journal_prepare(). */
ngx_int_t ngx_bloom_journal_prepare_next(ngx_bloom_state_t *state);

/*
 * Synchronises all records to disk.  If the last synchronisation failed or did
 * not end, the records that were not on disk then are read, checked and written
 * again first.  If some of them are gone, loss.lost is raised before
 * control->synced, so that no request that waited for them is told that they
 * are on disk.  Returns NGX_OK, or NGX_ERROR, which the control page records.
 */
ngx_int_t ngx_bloom_journal_sync(ngx_bloom_state_t *state);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_JOURNAL_H_INCLUDED_ */
