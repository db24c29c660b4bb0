/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Catching up applies records of the journal that this instance has not
 * applied: those of other instances, restorations, and what a process had
 * written and not applied when it died.
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
 * Applies what the zone has not applied of its journal; the zone has one.  The
 * caller holds sh->applying, so the generation does not change meanwhile.
 * Returns NGX_OK if all is applied; NGX_AGAIN if there is more, or if a record
 * is being appended; NGX_ERROR, logged, if the journal cannot be read.
 */
ngx_int_t ngx_bloom_catch_up(ngx_bloom_zone_t *zone);

/* Logs that keys were lost if a filter that is complete up to `complete` lacks
 * them, with the damage that the reader has found. */
void ngx_bloom_catch_up_log_lost(ngx_bloom_zone_t *zone,
    ngx_bloom_reader_t *reader, uint64_t complete);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_CATCH_UP_H_INCLUDED_ */
