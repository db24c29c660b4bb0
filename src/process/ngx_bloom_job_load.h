/* SPDX-License-Identifier: BSD-2-Clause */

/* Jobs that load an image: see ngx_bloom_job.h. */

#ifndef _NGX_BLOOM_JOB_LOAD_H_INCLUDED_
#define _NGX_BLOOM_JOB_LOAD_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/* Does a task that has begun: loads file=, the uploaded image `path`, or what a
 * clear goes back to.  `path` has NGX_MAX_PATH bytes. */
void ngx_bloom_job_load(ngx_bloom_zone_t *zone, ngx_bloom_task_e task,
    u_char *path);

/* Loads what another instance's clear goes back to. */
void ngx_bloom_job_follow(ngx_bloom_zone_t *zone);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_JOB_LOAD_H_INCLUDED_ */
