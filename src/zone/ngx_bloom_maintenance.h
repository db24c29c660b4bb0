/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Maintenance of a zone's journal is brief and frequent: segments are made
 * before they are needed and synchronised, pending keys are appended, records
 * of other instances are applied, and files that nobody needs are removed.
 */

#ifndef _NGX_BLOOM_MAINTENANCE_H_INCLUDED_
#define _NGX_BLOOM_MAINTENANCE_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_jobs.h"

#pragma GCC visibility push(hidden)


/*
 * Makes segments and synchronises the journal, for whichever instance.  Returns
 * when to come again, in ms.
 */
ngx_msec_t ngx_bloom_maintenance_journal(ngx_bloom_jobs_t *jobs);

/*
 * Appends pending keys, applies what other instances have appended, and removes
 * files that nobody needs.  The lock sh->helper is held.  Returns when to come
 * again, in ms.
 */
ngx_msec_t ngx_bloom_maintenance_zone(ngx_bloom_jobs_t *jobs);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_MAINTENANCE_H_INCLUDED_ */
