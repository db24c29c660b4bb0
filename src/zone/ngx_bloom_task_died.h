/* SPDX-License-Identifier: BSD-2-Clause */

#ifndef _NGX_BLOOM_TASK_DIED_H_INCLUDED_
#define _NGX_BLOOM_TASK_DIED_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_task.h"
#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/*
 * Ends a task whose process died, for example in a load that exceeded a memory
 * limit: records in shared memory what that process would have recorded next,
 * writes the task's result, and logs it.  The task is not repeated, since that
 * could kill this process, too.
 */
void ngx_bloom_task_died(ngx_bloom_zone_t *zone, ngx_bloom_task_e task,
    ngx_bloom_result_t *result);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_TASK_DIED_H_INCLUDED_ */
