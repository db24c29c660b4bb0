/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A survey of the journal looks at the beginnings of its segments, so it costs
 * little, however long the journal is.  It tells a load what to expect.
 */

#ifndef _NGX_BLOOM_JOURNAL_SURVEY_H_INCLUDED_
#define _NGX_BLOOM_JOURNAL_SURVEY_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_segment.h"

#pragma GCC visibility push(hidden)


/*
 * Finds the oldest segment of version 2.  No record before it is anything but
 * an addition.  Segments before control->begin, and those without a published
 * record, do not count; before a start has recovered the end of the journal,
 * segments without a record may count.  Returns NGX_OK with the segment's base
 * in *base; NGX_DONE if all have version 1; or NGX_ERROR with errno.
 */
ngx_int_t ngx_bloom_journal_first_v2(ngx_bloom_state_t *state, uint64_t *base);

/*
 * Finds the last record that clears the zone; it is the first one of its
 * segment.  Records before control->begin, and those that are not published, do
 * not count.  May be called before a start has recovered the end of the
 * journal.  Returns NGX_OK with the segment's base in *base; NGX_DONE if no
 * record clears the zone; or NGX_ERROR with errno.
 */
ngx_int_t ngx_bloom_journal_cleared(ngx_bloom_state_t *state, uint64_t *base);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_JOURNAL_SURVEY_H_INCLUDED_ */
