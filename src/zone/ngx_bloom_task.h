/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Processes ask the helper for tasks, and learn what came of them.
 *
 * A zone has one task of each kind in its shared memory.  A request draws a
 * ticket; each run of the task serves all tickets drawn before it began, so
 * requests that come at once share a run, and one that comes later gets a run
 * that begins after it.
 *
 * The result of the last run of each kind is kept.  A run that began after a
 * ticket was drawn answers it, however many there were since.  Two uploads are
 * two images, however: there the run of that very ticket answers it, or nobody.
 *
 * A run that a process has begun and neither ended nor handed on has killed it,
 * or died with it.  Such a run has failed, and is not begun again: what killed
 * one process, as a load does that exceeds the memory's limit, would kill the
 * next.
 *
 * All of this is read and written under the lock `tasks`, which guards a copy
 * of some bytes.  Only who holds the lock sh->helper begins and ends runs.
 */

#ifndef _NGX_BLOOM_TASK_H_INCLUDED_
#define _NGX_BLOOM_TASK_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/* Returns why the zone has no such task (no file to load again, no state
 * directory), a message; NULL if it has. */
const char *ngx_bloom_task_impossible(ngx_bloom_zone_t *zone,
    ngx_bloom_task_e kind);

/*
 * Asks for a task.  NGX_OK with *ticket.  Without one: NGX_BUSY if another
 * image is being loaded, NGX_DECLINED with *error if it is impossible.
 *
 * `path` is for NGX_BLOOM_TASK_UPLOAD alone: a null-terminated name of an image
 * file that the workers' user can read and that stays until the task is done;
 * the file is copied.
 */
ngx_int_t ngx_bloom_task_request(ngx_bloom_zone_t *zone,
    ngx_bloom_task_e kind, u_char *path, uint64_t *ticket, const char **error);

/*
 * What came of it: NGX_AGAIN while it is not done, or while another process
 * looks; then NGX_OK with *result, a copy.  Ask every few milliseconds.  An
 * upload after which another was loaded, and a task whose helper does not live,
 * get NGX_BLOOM_FAILED and a message that nothing is known of it.
 */
ngx_int_t ngx_bloom_task_result(ngx_bloom_zone_t *zone, ngx_bloom_task_e kind,
    uint64_t ticket, ngx_bloom_result_t *result);

/*
 * Notes and counts a load that was refused before the helper was asked for it;
 * the generation that serves and the time are filled in.
 */
void ngx_bloom_task_refused(ngx_bloom_zone_t *zone,
    ngx_bloom_result_t *result);


/* ---- for the helper, which holds the lock sh->helper ---- */

/*
 * Begins a run for all tickets drawn so far: NGX_OK, with the path of an
 * upload in `path` of NGX_MAX_PATH bytes if that is not NULL; NGX_DECLINED if
 * nobody waits.
 */
ngx_int_t ngx_bloom_task_begin(ngx_bloom_zone_t *zone, ngx_bloom_task_e kind,
    u_char *path);

/*
 * Returns the kind of a run whose process died, or NGX_BLOOM_TASKS if there is
 * none.  It is for the caller to end it.
 */
ngx_bloom_task_e ngx_bloom_task_left(ngx_bloom_zone_t *zone);

/* Returns whether anybody waits for a task of this kind. */
ngx_uint_t ngx_bloom_task_asked(ngx_bloom_zone_t *zone, ngx_bloom_task_e kind);

/*
 * Ends a run; with `all`, tickets drawn since are served by it as well.
 * Returns NGX_OK, or NGX_AGAIN if another process has the lock: try again.
 */
ngx_int_t ngx_bloom_task_end(ngx_bloom_zone_t *zone, ngx_bloom_task_e kind,
    ngx_bloom_result_t *result, ngx_uint_t all);

/* Hands a run on: this process exits in good order, and the next one begins it
 * from the beginning. */
void ngx_bloom_task_hand_on(ngx_bloom_zone_t *zone, ngx_bloom_task_e kind);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_TASK_H_INCLUDED_ */
