/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A task is work that any process asks of the helper, which lets a job do it,
 * and whose result the process then asks for.
 *
 * A zone has one task of each kind in its shared memory.  A request draws a
 * ticket.  A run of the task serves all tickets that were drawn before it
 * began, so requests that come at the same time share a run, and each request
 * gets a run that begins after it.
 *
 * The result of the last run of each kind is kept.  Any run that began after a
 * ticket was drawn answers that ticket.  Uploads are the exception, because two
 * uploads are two images: only the run for its own ticket answers an upload.
 *
 * If a process dies during a run, the run has failed and is not repeated:
 * whatever killed one process, such as a load that exceeds a memory limit,
 * would kill the next.
 *
 * All of this is read and written under the lock sh->tasks, which is held only
 * while some bytes are copied.  Only the holder of sh->helper begins and ends
 * runs.
 */

#ifndef _NGX_BLOOM_TASK_H_INCLUDED_
#define _NGX_BLOOM_TASK_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/* Returns NULL if the zone can do such a task, or a message why it cannot: for
 * example, it has no file to load again, or no state directory. */
const char *ngx_bloom_task_impossible(ngx_bloom_zone_t *zone,
    ngx_bloom_task_e kind);

/*
 * Asks for a task.  Returns
 *
 *     NGX_OK         with *ticket
 *     NGX_BUSY       no ticket: another image is being loaded, or the zone is
 *                    being cleared
 *     NGX_DECLINED   no ticket: impossible, with *error
 *
 * `force` lets the number of keys change by any part (ngx_bloom_guard.h), for
 * all tickets that the same run serves.
 *
 * `path` is used for NGX_BLOOM_TASK_UPLOAD alone.  It is the null-terminated
 * name of an image file that the workers' user can read.  The job copies the
 * file, which must stay until the task is done.
 */
ngx_int_t ngx_bloom_task_request(ngx_bloom_zone_t *zone,
    ngx_bloom_task_e kind, u_char *path, ngx_uint_t force, uint64_t *ticket,
    const char **error);

/*
 * Asks for the result of a ticket; called every few milliseconds.  Returns
 *
 *     NGX_AGAIN      not done yet, or another process holds the lock
 *     NGX_OK         with a copy of the result in *result
 *
 * The result is NGX_BLOOM_FAILED, with a message, if it is unknown because
 * another image was uploaded since, or because no helper is alive.
 */
ngx_int_t ngx_bloom_task_result(ngx_bloom_zone_t *zone, ngx_bloom_task_e kind,
    uint64_t ticket, ngx_bloom_result_t *result);

/*
 * Records and counts a load that was refused before a process requested it from
 * the helper.  Fills in the generation and the time in *result.
 */
void ngx_bloom_task_refused(ngx_bloom_zone_t *zone,
    ngx_bloom_result_t *result);


/* ---- for jobs, which hold sh->helper, and the helper ---- */

/*
 * Begins a run for all tickets drawn so far.  Returns NGX_OK, or NGX_DECLINED
 * if no ticket waits.  `path` has NGX_MAX_PATH bytes, and becomes the path of
 * an upload.
 */
ngx_int_t ngx_bloom_task_begin(ngx_bloom_zone_t *zone, ngx_bloom_task_e kind,
    u_char *path);

/* Returns 1 if the run that has begun, or is about to begin, serves a ticket
 * with `force`. */
ngx_uint_t ngx_bloom_task_forced(ngx_bloom_zone_t *zone,
    ngx_bloom_task_e kind);

/*
 * Returns the kind of a run whose process died, or NGX_BLOOM_TASKS if there is
 * none.  The caller has to end that run.  A run whose process was told to exit,
 * and that has changed nothing yet, is not left: its tickets wait again.
 */
ngx_bloom_task_e ngx_bloom_task_left(ngx_bloom_zone_t *zone);

/* Returns 1 if a task of this kind loads an image. */
ngx_uint_t ngx_bloom_task_loads(ngx_bloom_task_e kind);

/* Returns 1 if a ticket waits for a task of this kind. */
ngx_uint_t ngx_bloom_task_asked(ngx_bloom_zone_t *zone, ngx_bloom_task_e kind);

/*
 * Ends a run: fills in the generation and the times in *result, counts a load,
 * and stores the result.  With `all`, the run also serves tickets that were
 * drawn while it was running.
 */
void ngx_bloom_task_end(ngx_bloom_zone_t *zone, ngx_bloom_task_e kind,
    ngx_bloom_result_t *result, ngx_uint_t all);

/* Does the same, unless another process holds sh->tasks for longer than `wait`,
 * in ms.  Returns NGX_OK or NGX_BUSY. */
ngx_int_t ngx_bloom_task_try_end(ngx_bloom_zone_t *zone, ngx_bloom_task_e kind,
    ngx_bloom_result_t *result, ngx_uint_t all, ngx_msec_t wait);

/* Lets the run of a child of `runner`, a process of the helper that is told to
 * exit, begin again in the next helper, whose own run is left alone.  Called
 * before the child is killed. */
void ngx_bloom_task_hand_on(ngx_bloom_zone_t *zone, ngx_pid_t runner);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_TASK_H_INCLUDED_ */
