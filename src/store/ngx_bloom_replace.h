/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions replace the oldest segments of the journal, from its
 * beginning to a position END, by one new segment:
 *
 *     before   | segment | segment | segment | segment | the newest ...
 *              begin                         END
 *     after                        | segment | segment | the newest ...
 *                                  BASE      END
 *
 * The caller writes and synchronises the new segment as "compact.*.tmp".  Then:
 *
 *     1. It is renamed to "compact.BASE.END".  From now on it counts, and the
 *        segments below END do not.
 *     2. The segments below END are removed.
 *     3. The file "dropped" records that the journal begins at BASE.
 *     4. The new segment is renamed to "journal.BASE".
 *
 * The process may die after any step.  A process that finds "compact.BASE.END"
 * does the rest.  Under the lock control->history, only one process does so at
 * a time, and no process begins to read the journal meanwhile.
 */

#ifndef _NGX_BLOOM_REPLACE_H_INCLUDED_
#define _NGX_BLOOM_REPLACE_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_segment.h"

#pragma GCC visibility push(hidden)


/* Returns 1 if segments from `begin` on may be replaced, because the journal
 * begins there and no other instance uses it; else 0. */
ngx_uint_t ngx_bloom_replace_allowed(ngx_bloom_state_t *state, uint64_t begin);

/*
 * Replaces the segments from `begin` to `end` by the one in the file `tmp`,
 * which begins at `base`.  Returns NGX_OK; NGX_DECLINED if that is no longer
 * allowed, or if another process has the lock; or NGX_ERROR with errno.
 */
ngx_int_t ngx_bloom_replace(ngx_bloom_state_t *state, const u_char *tmp,
    uint64_t begin, uint64_t base, uint64_t end);

/*
 * Finishes a replacement that a process has left unfinished when it died, and
 * waits for a process that is replacing segments.  Call it before reading the
 * journal from its beginning.  Returns NGX_OK, or NGX_ERROR with errno.
 */
ngx_int_t ngx_bloom_replace_settle(ngx_bloom_state_t *state);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_REPLACE_H_INCLUDED_ */
