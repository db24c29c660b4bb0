/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Compaction makes the journal shorter: keys that were added again and again,
 * and records of a key or two, take room on disk and time at every load.
 *
 * A run rewrites the oldest segments, from the journal's begin to a position
 * END, as one segment that ends there (ngx_bloom_replace.h).  Of each key its
 * last occurrence stays, so that no image drops it earlier than before.
 * Records of the same minute become one, with the newest of their times.  They
 * are numbered backwards from the first one behind END.  Positions below END
 * have a new meaning then; whoever had one, in a checkpoint, reads the whole
 * segment it lies in.
 *
 * The keys are walked in their order several times:
 *
 *     mark      which ones come again later (ngx_bloom_compact_keys.h), once
 *               for each share of them; is it worth it, going by the first?
 *     measure   what the records of the others will take, since the first
 *               one's position and number depend on it
 *     write     these records, and replace the segments
 *
 * A run reads segments that are synchronised and applied, which nobody changes,
 * and only while this instance is alone.  It ends when another instance appears
 * or a segment is removed; loads may come between its steps.
 *
 * A run that would not pay, or fails, or that its process dies of, is put off
 * until there is twice as much: control->compacted says so from its begin on.
 */

#ifndef _NGX_BLOOM_COMPACT_H_INCLUDED_
#define _NGX_BLOOM_COMPACT_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_state.h"

#pragma GCC visibility push(hidden)


typedef struct ngx_bloom_compact_s  ngx_bloom_compact_t;


/*
 * Begins a run, of one zone of a process at a time.  `generation` is the
 * zone's, and `name` its name for the log.  Returns NULL if the journal has not
 * grown enough, or must not be compacted now, as before the first image.
 */
ngx_bloom_compact_t *ngx_bloom_compact_begin(ngx_bloom_state_t *state,
    uint64_t generation, ngx_str_t *name);

/*
 * Does a millisecond or two of the run.  Returns NGX_AGAIN if there is more to
 * do; NGX_DONE when it has ended, one way or the other, and the log says how.
 */
ngx_int_t ngx_bloom_compact_step(ngx_bloom_compact_t *compact);

/* Frees it, at any time.  A run that has not ended may begin again at once. */
void ngx_bloom_compact_end(ngx_bloom_compact_t *compact);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_COMPACT_H_INCLUDED_ */
