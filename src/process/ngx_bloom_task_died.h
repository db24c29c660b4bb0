/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef _NGX_BLOOM_TASK_DIED_H_INCLUDED_
#define _NGX_BLOOM_TASK_DIED_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_task.h"
#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/*
 * Ends the task of a process that died in it, if there is one, for example in a
 * load that exceeded a memory limit.  Records in shared memory what the process
 * would have recorded next, and logs the result.  `death` says how it died: a
 * phrase that follows "the process that was loading its file", empty if that is
 * not known.  The task is not repeated, since that could kill the next process,
 * too.  The caller holds sh->helper.  Returns NGX_OK; or NGX_BUSY if another
 * process holds sh->tasks, for example a worker that is stopped: then the
 * function is to be called again.
 */
ngx_int_t ngx_bloom_task_died(ngx_bloom_zone_t *zone, const u_char *death);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_TASK_DIED_H_INCLUDED_ */
