/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Catching up applies the records that other instances of a zone have appended
 * to the journal, and restorations, which this instance may have appended.
 */

#ifndef _NGX_BLOOM_CATCH_UP_H_INCLUDED_
#define _NGX_BLOOM_CATCH_UP_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_journal.h"
#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/*
 * Begins to catch up, for an instance whose filter has no keys of the journal
 * yet.  The instance answers "unknown" instead of "absent" until it has applied
 * all of them.
 */
void ngx_bloom_catch_up_begin(ngx_bloom_zone_t *zone);

/*
 * Applies what other instances have appended to the zone's journal; the zone
 * has one.  The caller holds sh->helper, so the generation does not change
 * meanwhile.  Returns NGX_OK if all is applied; NGX_AGAIN if there is more, or
 * if a record is being appended; NGX_ERROR, logged, if the journal cannot be
 * read.
 */
ngx_int_t ngx_bloom_catch_up(ngx_bloom_zone_t *zone);

/*
 * Requires that this instance applies the journal up to `position` before it
 * says "absent".  The caller holds the lock `append`.
 */
void ngx_bloom_catch_up_require(ngx_bloom_zone_t *zone, uint64_t position);

/* Logs that keys were lost if a filter that is complete up to `complete` lacks
 * them, with the damage that the reader has found. */
void ngx_bloom_catch_up_log_lost(ngx_bloom_zone_t *zone,
    ngx_bloom_reader_t *reader, uint64_t complete);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_CATCH_UP_H_INCLUDED_ */
