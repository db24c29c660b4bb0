/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The helper does the slow work of all zones.
 *
 * It runs in the process that nginx starts to manage its caches ("nginx: cache
 * manager process"), or, with "master_process off", in the only process.  If
 * state directories are on several file systems, it has a process of its own
 * for each further one ("nginx: bloom helper"), so that a disk that does not
 * answer stops no zone on another one.  In a round (ngx_bloom_round.h) each
 * process looks after its zones (ngx_bloom_maintenance.h), and begins a job in
 * a child if one is due (ngx_bloom_job.h).
 *
 * If a helper dies, its job dies with it, the task of the job has failed, and
 * nginx starts another helper.  A helper that nginx tells to exit ends its job,
 * and the next one begins the job again.  During a reload two helpers may run;
 * locks keep them apart.
 */

#ifndef _NGX_BLOOM_HELPER_H_INCLUDED_
#define _NGX_BLOOM_HELPER_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/*
 * Makes nginx start the helper.  Called in init_module, after
 * ngx_bloom_reload_accepted().  `zones` is an array of pointers.  Returns
 * NGX_OK or NGX_ERROR.
 */
ngx_int_t ngx_bloom_helper_init(ngx_cycle_t *cycle, ngx_array_t *zones);

/* Starts the helper's work if this process is the helper.  Called in
 * init_process.  Returns NGX_OK or NGX_ERROR. */
ngx_int_t ngx_bloom_helper_process(ngx_cycle_t *cycle);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_HELPER_H_INCLUDED_ */
