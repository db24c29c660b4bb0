/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The helper does the slow work of all zones, in slices of some milliseconds.
 *
 * It runs in the process that nginx starts to manage its caches ("nginx: cache
 * manager process"), or, with "master_process off", in the only process.  For
 * each zone it
 *
 *     creates journal segments before they are needed, and synchronises them;
 *     records the loss of what processes that have died still owed;
 *     applies what other instances have appended;
 *     checks whether the watched file was replaced, and loads images;
 *     synchronises the image of file=, so that the zone can stand on it;
 *     writes checkpoints and snapshots, and removes files not needed any more.
 *
 * If a helper dies, the task that it was running has failed, and nginx starts
 * another helper.  A helper that nginx tells to exit hands its task on to the
 * next one.  During a reload two helpers may run; locks keep them apart.
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
