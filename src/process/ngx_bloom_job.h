/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A job is work for a zone that takes long:
 *
 *     load       load an image, synchronise it if it was uploaded, let it serve
 *     clear      load the image of file=, drop everything else, let it serve
 *     restore    make removed or excepted keys ordinary ones again
 *     save       write a checkpoint or a snapshot
 *     stand      make the image that serves what the zone stands on
 *
 * A job is done in a child of the helper, from beginning to end, while the
 * helper goes on with the journals of all zones.  It holds sh->helper, so a
 * zone has one job at a time.  It may wait for disks and for other processes.
 * It tells its results in shared memory: of a task that a process asked for, in
 * the task.
 *
 * If it dies, the helper ends its task: the task has failed.
 */

#ifndef _NGX_BLOOM_JOB_H_INCLUDED_
#define _NGX_BLOOM_JOB_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/* Returns 1 if a job has to be done for the zone now, else 0. */
ngx_uint_t ngx_bloom_job_due(ngx_bloom_zone_t *zone);

/* Does a job that has to be done.  The caller is a child that ends then. */
void ngx_bloom_job(ngx_bloom_zone_t *zone);

/* Ends the task that the zone needs next, because no child can be made for it,
 * with `err` of fork(). */
void ngx_bloom_job_refuse(ngx_bloom_zone_t *zone, ngx_err_t err);

/* Lets the next helper begin the zone's job again if a child of `runner` does
 * it, a process of the helper that is told to exit.  Called before the child is
 * killed, so that the process that gets the child's lock knows it. */
void ngx_bloom_job_hand_on(ngx_bloom_zone_t *zone, ngx_pid_t runner);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_JOB_H_INCLUDED_ */
