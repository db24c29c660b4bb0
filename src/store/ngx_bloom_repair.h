
/*
 * Gaps in the journal that a loss of power left, closed at the next start.
 *
 * A machine that lost its power may have written what came later and not what
 * came first.  Nobody was told that this is on disk; but whoever reads it later,
 * when all is, would take it for damage.  So the records behind it are numbered
 * anew and move up, in copies of their segments that take the place of these,
 * one after the other.
 */

#ifndef _NGX_BLOOM_REPAIR_H_INCLUDED_
#define _NGX_BLOOM_REPAIR_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_journal.h"

#pragma GCC visibility push(hidden)


/*
 * For who is alone, after a reader has read all; its end is where the journal
 * ends then.  NGX_OK; NGX_DECLINED if there is no room for it, and what was not
 * closed yet stays as it is, or NGX_ERROR; both with errno.
 */
ngx_int_t ngx_bloom_mend(ngx_bloom_state_t *state,
    ngx_bloom_reader_t *reader);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_REPAIR_H_INCLUDED_ */
