
/*
 * Compaction of the journal: keys that were added again and again, and records
 * of a key or two, take room on disk and time at every load.
 *
 * A run rewrites the oldest segments, from the journal's begin to a position
 * E, as one segment that ends at E:
 *
 *     before   | segment | segment | segment | segment | the newest ...
 *              begin                         E
 *     after                        | segment | segment | the newest ...
 *                                  BASE      E
 *
 * Of each key its last occurrence stays, so that no image drops it earlier
 * than before.  Records that follow within a minute become one, with the
 * newest of their times, up to the longest that a record may be; none is
 * split, so there are not more of them than there were, and they are numbered
 * backwards from the first one behind E.  Positions below E have a new meaning
 * then; who had one, in a checkpoint, reads the whole segment it lies in.
 *
 *     count     how many keys there are, and, from a sample, how many distinct
 *               ones and their bytes: is it worth it?
 *     mark      which ones stay: of the distinct ones a million at a time, in
 *               a table by fingerprint, so that memory is bounded: 40 MB, and
 *               a bit for each key
 *     size      how long the records will be
 *     write     them
 *     replace   the segments
 *
 * A run reads segments that are synchronised and applied, which nobody changes,
 * and only while this instance is alone.  It ends when another instance appears
 * or a segment is removed; loads may come between its steps.
 *
 * The new segment takes the place of the old ones in steps, and any process
 * may die behind any of them:
 *
 *     save.compact.PID.tmp    written, synchronised, and renamed to
 *     compact.BASE.E          from now on this counts, and no segment below E;
 *                             these are removed, the file "dropped" says
 *                             that the journal begins at BASE, and it becomes
 *     journal.BASE
 *
 * Whoever finds compact.BASE.E does the rest; the lock control->history keeps
 * two from doing so at once, and who begins to read the journal out of it
 * meanwhile.
 */

#ifndef _NGX_BLOOM_COMPACT_H_INCLUDED_
#define _NGX_BLOOM_COMPACT_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


typedef struct ngx_bloom_compact_s  ngx_bloom_compact_t;


/*
 * Begins a run if the journal has grown enough for one, and may be compacted
 * now; NULL if not.  One zone of a process at a time.
 */
ngx_bloom_compact_t *ngx_bloom_compact_begin(ngx_bloom_zone_t *zone);

/*
 * A millisecond or two of it.  NGX_AGAIN: there is more to do; NGX_DONE: it has
 * ended, one way or the other, and the log says how.
 */
ngx_int_t ngx_bloom_compact_step(ngx_bloom_compact_t *compact);

/* Frees it, at any time. */
void ngx_bloom_compact_end(ngx_bloom_compact_t *compact);

/*
 * Does what is left to do of a run whose process has died, and waits for one
 * that is replacing segments.  To be called before the journal is read from
 * its beginning.  NGX_OK, or NGX_ERROR with errno.
 */
ngx_int_t ngx_bloom_compact_settle(ngx_bloom_state_t *state);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_COMPACT_H_INCLUDED_ */
