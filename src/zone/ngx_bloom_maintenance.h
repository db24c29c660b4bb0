/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Maintenance is the helper's brief and frequent work on a zone's journal: it
 * creates segments before they are needed, synchronises them, applies
 * records of other instances, and removes files that nobody needs.
 */

#ifndef _NGX_BLOOM_MAINTENANCE_H_INCLUDED_
#define _NGX_BLOOM_MAINTENANCE_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_jobs.h"

#pragma GCC visibility push(hidden)


/*
 * Creates segments and synchronises the journal, on behalf of all instances of
 * the zone.  Returns after how many ms to call it again.
 */
ngx_msec_t ngx_bloom_maintenance_journal(ngx_bloom_jobs_t *jobs);

/*
 * Applies what other instances have appended, and removes files that nobody
 * needs.  The caller holds sh->helper.  Returns after how many ms to call it
 * again.
 */
ngx_msec_t ngx_bloom_maintenance_zone(ngx_bloom_jobs_t *jobs);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_MAINTENANCE_H_INCLUDED_ */
