/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Compaction makes the journal shorter.  Keys that are added repeatedly, and
 * records of few keys, take room on disk and time at every load.
 *
 * A run rewrites the oldest segments, from the beginning of the journal to a
 * position END, as one segment that ends there (ngx_bloom_replace.h).  It keeps
 * the last addition of each key, because an image may cover an earlier one but
 * not the last, and the last removal or restoration, if no addition follows it.
 * The order stays.  Additions of the same minute become one record with the
 * newest of their times; removals and restorations keep their times.  A clear
 * at the beginning of the journal goes; elsewhere it has not been carried out
 * yet, and the journal stays as it is.
 *
 * The sequence numbers of the new records end just before that of the first
 * record after END.  A position below END, such as a checkpoint's, may then lie
 * within another record, and records from before that position may lie after
 * it, or the other way round.  A reader that begins at such a position reads
 * the whole segment that it lies in, and ngx_bloom_segment_compacted() tells it
 * that no record there is known to be older.
 *
 * A run walks the keys in order several times:
 *
 *     mark      finds the keys that occur again later
 *               (ngx_bloom_compact_keys.h), in one walk for each share of the
 *               keys; after the first share it decides if the run is worth it
 *     measure   computes the size of the remaining records, on which the
 *               position and number of the first one depend
 *     write     writes these records, and replaces the segments
 *
 * A run reads only segments that are synchronised and applied, because no
 * process changes them any more.  It runs only while there is no other
 * instance, and ends when another instance appears or a segment is removed.
 * Loads may run between its steps.
 *
 * A run may fail, kill its process, or not be worth it.  The next run then
 * waits until the journal is twice as long, because a run sets
 * control->compacted when it begins.
 */

#ifndef _NGX_BLOOM_COMPACT_H_INCLUDED_
#define _NGX_BLOOM_COMPACT_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_state.h"

#pragma GCC visibility push(hidden)


typedef struct ngx_bloom_compact_s  ngx_bloom_compact_t;


/*
 * Begins a run.  A process can have one run at a time.  `generation` is the
 * zone's generation, and `name` the zone's name for the log.  Returns NULL if
 * the journal has not grown enough, or must not be compacted now, for example
 * before the first image is loaded.
 */
ngx_bloom_compact_t *ngx_bloom_compact_begin(ngx_bloom_state_t *state,
    uint64_t generation, ngx_str_t *name);

/*
 * Does a step of the run, one or two milliseconds of work.  Returns NGX_AGAIN
 * if there is more to do; NGX_DONE if the run has succeeded, failed or been
 * cancelled.
 */
ngx_int_t ngx_bloom_compact_step(ngx_bloom_compact_t *compact);

/* Frees a run; may be called at any time.  If the run has not ended, a new one
 * may begin at once. */
void ngx_bloom_compact_end(ngx_bloom_compact_t *compact);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_COMPACT_H_INCLUDED_ */
