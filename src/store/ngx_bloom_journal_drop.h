/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions remove from the beginning of the journal what no start needs.
 * The helper calls them, with the lock control->keeper.
 */

#ifndef _NGX_BLOOM_JOURNAL_DROP_H_INCLUDED_
#define _NGX_BLOOM_JOURNAL_DROP_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_reader.h"

#pragma GCC visibility push(hidden)


/*
 * Removes the oldest segment if all of its records are older than `time`, ms
 * since 1970, and every instance has applied them.  Records of changes of
 * `source` are instead compared with its position, whatever their times.
 * Returns NGX_OK if a segment was removed, NGX_DECLINED if not, NGX_ERROR with
 * errno.
 */
ngx_int_t ngx_bloom_journal_drop(ngx_bloom_state_t *state, uint64_t time,
    const bloom_source_t *source);

/*
 * Lets an entry begin with its older checkpoint, if a segment ends before it
 * and every instance has applied what is before it.  The caller stores the
 * entry, and then calls ngx_bloom_segment_remove().  Returns NGX_OK, or
 * NGX_DECLINED if the entry stays as it was.
 */
ngx_int_t ngx_bloom_journal_advance(ngx_bloom_state_t *state,
    bloom_base_t *base);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_JOURNAL_DROP_H_INCLUDED_ */
