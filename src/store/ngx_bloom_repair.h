
/*
 * Repair closes the gaps in the journal that a loss of power left.
 *
 * A machine that lost its power may have written what came later and not what
 * came first.  The lost records were never acknowledged as being on disk, but
 * whoever reads the journal later would take the gap for damage.  So the next
 * start renumbers the records behind a gap and moves them up, in copies of
 * their segments that take the place of the old ones, one after the other.
 */

#ifndef _NGX_BLOOM_REPAIR_H_INCLUDED_
#define _NGX_BLOOM_REPAIR_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_reader.h"

#pragma GCC visibility push(hidden)


/*
 * Closes the gaps, where this instance is alone and `reader` has read all;
 * reader->end is then where the journal ends.  Returns NGX_OK; NGX_DECLINED if
 * the disk is full, and what was not closed yet stays as it is; or NGX_ERROR.
 * Both come with errno.
 */
ngx_int_t ngx_bloom_repair(ngx_bloom_state_t *state,
    ngx_bloom_reader_t *reader);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_REPAIR_H_INCLUDED_ */
