/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The helper does the slow work of all zones, in slices of some milliseconds.
 *
 * It lives in the process that nginx starts for the managers of its caches
 * ("nginx: cache manager process"), or, with "master_process off", in the only
 * one.  For each zone it
 *
 *     makes segments before they are needed, and synchronises them;
 *     appends pending keys;
 *     applies what other instances have appended;
 *     looks whether the file was replaced, and loads images;
 *     saves checkpoints and snapshots; removes what is not needed any more;
 *     compacts the journal while there is nothing else to do.
 *
 * nginx starts another helper for one that dies, and the task that it had begun
 * has failed.  One that exits because it is told to hands its task on.  While
 * nginx reloads there may be two: locks keep them apart.
 */

#ifndef _NGX_BLOOM_HELPER_H_INCLUDED_
#define _NGX_BLOOM_HELPER_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/*
 * Has nginx start the process.  To be called in init_module, behind
 * ngx_bloom_reload_accepted().  `zones` is an array of pointers.
 */
ngx_int_t ngx_bloom_helper_init(ngx_cycle_t *cycle, ngx_array_t *zones);

/* To be called in init_process. */
ngx_int_t ngx_bloom_helper_process(ngx_cycle_t *cycle);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_HELPER_H_INCLUDED_ */
