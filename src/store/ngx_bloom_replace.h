/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Replacing puts one segment in the place of the journal's oldest ones, from
 * its begin to a position END:
 *
 *     before   | segment | segment | segment | segment | the newest ...
 *              begin                         END
 *     after                        | segment | segment | the newest ...
 *                                  BASE      END
 *
 * The new segment is whole and synchronised in a file "compact.*.tmp".  Then it
 * is renamed, and any process may die behind any step:
 *
 *     compact.BASE.END        from now on this counts, and no segment below
 *                             END; these are removed, the file "dropped" says
 *                             that the journal begins at BASE, and it becomes
 *     journal.BASE
 *
 * Whoever finds compact.BASE.END does the rest; the lock control->history keeps
 * two from doing so at once, and keeps whoever begins to read the journal out
 * of it meanwhile.
 */

#ifndef _NGX_BLOOM_REPLACE_H_INCLUDED_
#define _NGX_BLOOM_REPLACE_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_segment.h"

#pragma GCC visibility push(hidden)


/* Returns whether segments from `begin` on may be replaced: the journal begins
 * there, and no other instance uses it. */
ngx_uint_t ngx_bloom_replace_allowed(ngx_bloom_state_t *state, uint64_t begin);

/*
 * Replaces the segments from `begin` to `end` by the one in the file `tmp`,
 * which begins at `base`.  Returns NGX_OK; NGX_DECLINED if that is not allowed
 * any more, or somebody else is at it; or NGX_ERROR with errno.
 */
ngx_int_t ngx_bloom_replace(ngx_bloom_state_t *state, const u_char *tmp,
    uint64_t begin, uint64_t base, uint64_t end);

/*
 * Does what a process that has died left to do, and waits for one that is
 * replacing segments.  It is called before the journal is read from its
 * beginning.  Returns NGX_OK, or NGX_ERROR with errno.
 */
ngx_int_t ngx_bloom_replace_settle(ngx_bloom_state_t *state);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_REPLACE_H_INCLUDED_ */
