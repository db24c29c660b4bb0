
/*
 * Maintenance of a zone's journal, each bounded and often: segments made before
 * they are needed, synchronisation, what other instances have appended, pending
 * keys, files that are of no use any more.
 */

#ifndef _NGX_BLOOM_MAINTENANCE_H_INCLUDED_
#define _NGX_BLOOM_MAINTENANCE_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_jobs.h"

#pragma GCC visibility push(hidden)


/* Removing and pruning, in milliseconds. */
#define NGX_BLOOM_UPKEEP_HOUSE    10000


/* Segments and disks, for whichever instance; when to come again, in ms. */
ngx_msec_t ngx_bloom_upkeep_journal(ngx_bloom_work_t *work);

/*
 * What others have appended, and pending keys; when to come again, in
 * ms.  The lock sh->helper is held.
 */
ngx_msec_t ngx_bloom_upkeep_catch_up(ngx_bloom_work_t *work);

/*
 * Applies what other instances have appended.  The lock sh->helper is held, so
 * no other generation comes to serve meanwhile.  NGX_OK; NGX_AGAIN: somebody is
 * publishing; NGX_ERROR: the journal cannot be read, which is logged.
 */
ngx_int_t ngx_bloom_upkeep_follow(ngx_bloom_zone_t *zone);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_MAINTENANCE_H_INCLUDED_ */
