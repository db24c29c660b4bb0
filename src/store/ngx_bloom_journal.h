/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The journal's end and its segments are kept here: a start recovers them,
 * workers append records, and the helper makes, synchronises and removes
 * segments.  ngx_bloom_reader.h reads what they have written.
 */

#ifndef _NGX_BLOOM_JOURNAL_H_INCLUDED_
#define _NGX_BLOOM_JOURNAL_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_reader.h"

#pragma GCC visibility push(hidden)


/*
 * Fills the control page where this instance is alone and a reader has read
 * all: the journal goes on behind the last record that counts, and nothing is
 * left behind that.  A loss is noted before.  Checkpoints of later positions
 * become ones of this.  Returns NGX_OK, or NGX_ERROR with errno.
 */
ngx_int_t ngx_bloom_journal_recover(ngx_bloom_state_t *state,
    ngx_bloom_reader_t *reader);


/* ---- appending: all under the lock control->append ---- */

/*
 * Writes a record behind the end, which does not move yet.  Returns NGX_OK;
 * NGX_AGAIN if no segment has been prepared for it; NGX_ERROR if it cannot be
 * written, which is noted in the control page.
 */
ngx_int_t ngx_bloom_journal_append(ngx_bloom_state_t *state,
    bloom_record_maker_t *maker, ngx_bloom_end_t *end);

/*
 * Moves the end behind that record, which counts from then on.  Its keys are in
 * the filter of the caller's instance; other instances are told to follow.
 */
void ngx_bloom_journal_publish(ngx_bloom_state_t *state,
    ngx_bloom_end_t *end);


/* ---- segments: all under the lock control->keeper, by the helper ---- */

/*
 * Makes the next segment if the last one is filling.  Returns NGX_OK, or
 * NGX_ERROR, which is noted in the control page.
 */
ngx_int_t ngx_bloom_journal_prepare(ngx_bloom_state_t *state);

/*
 * Synchronises all records before the end.  Where that failed before, what was
 * not on disk yet is read, checked and written again; if some of it is gone,
 * control->lost is raised before control->synced is, and nobody who waited
 * meanwhile may be told that it is on disk.  Returns NGX_OK, or NGX_ERROR,
 * which is noted in the control page.
 */
ngx_int_t ngx_bloom_journal_sync(ngx_bloom_state_t *state);

/*
 * Removes the oldest segment if all of its records are older than `time`, ms,
 * and every instance has applied them.  Records whose time is further ahead of
 * the clock than clocks differ are as old as the first one in the next segment.
 * Returns NGX_OK if one was removed, NGX_DECLINED if not, NGX_ERROR with errno.
 */
ngx_int_t ngx_bloom_journal_drop(ngx_bloom_state_t *state, uint64_t time);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_JOURNAL_H_INCLUDED_ */
