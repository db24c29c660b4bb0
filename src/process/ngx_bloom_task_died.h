/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef _NGX_BLOOM_TASK_DIED_H_INCLUDED_
#define _NGX_BLOOM_TASK_DIED_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_task.h"
#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/*
 * Records in shared memory what a process that died in a task would have
 * recorded next, for example in a load that exceeded a memory limit, fills in
 * the task's result, and logs it.  `death` says how it died: a phrase that
 * follows "the process that was loading its file", or NULL if that is not
 * known.  The task is not repeated, since that could kill the next process,
 * too.
 */
void ngx_bloom_task_died(ngx_bloom_zone_t *zone, ngx_bloom_task_e task,
    const char *death, ngx_bloom_result_t *result);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_TASK_DIED_H_INCLUDED_ */
