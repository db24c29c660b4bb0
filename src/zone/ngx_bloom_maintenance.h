
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


/* Segments and disks, for whichever instance; when to come again, in ms. */
ngx_msec_t ngx_bloom_upkeep_journal(ngx_bloom_work_t *work);

/*
 * What others have appended, and pending keys; when to come again, in
 * ms.  The lock sh->helper is held.
 */
ngx_msec_t ngx_bloom_upkeep_zone(ngx_bloom_work_t *work);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_MAINTENANCE_H_INCLUDED_ */
