/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file chooses a zone's next job and does it: saves, restorations, and
 * what is left of jobs that died.  Loads are in ngx_bloom_job_load.c.
 */

#include "ngx_bloom_job.h"
#include "ngx_bloom_checkpoint.h"
#include "ngx_bloom_clear.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_job_load.h"
#include "ngx_bloom_restore.h"
#include "ngx_bloom_save.h"
#include "ngx_bloom_snapshot.h"
#include "ngx_bloom_stand.h"
#include "ngx_bloom_task.h"


/* How long to wait for sh->helper, ms: another helper may look after the
 * zone. */
#define NGX_BLOOM_JOB_WAIT  100


/* What a zone needs. */
typedef enum {
    NGX_BLOOM_JOB_NONE = 0,
    NGX_BLOOM_JOB_FOLLOW,                /* apply another instance's clear */
    NGX_BLOOM_JOB_TASK,                  /* that a process asked for */
    NGX_BLOOM_JOB_CHECKPOINT,
    NGX_BLOOM_JOB_STAND
} ngx_bloom_job_e;


static ngx_bloom_job_e ngx_bloom_job_next(ngx_bloom_zone_t *zone,
    ngx_bloom_task_e *task);
static void ngx_bloom_job_run(ngx_bloom_zone_t *zone);
static void ngx_bloom_job_task(ngx_bloom_zone_t *zone, ngx_bloom_task_e task);
static void ngx_bloom_job_checkpoint(ngx_bloom_zone_t *zone,
    ngx_bloom_result_t *result);
static void ngx_bloom_job_restore(ngx_bloom_zone_t *zone,
    ngx_bloom_task_e task, ngx_bloom_result_t *result);


/* Returns the time for a field in which 0 has another meaning. */
static ngx_msec_t
ngx_bloom_job_now(void)
{
    return ngx_current_msec ? ngx_current_msec : 1;
}


ngx_uint_t
ngx_bloom_job_due(ngx_bloom_zone_t *zone)
{
    ngx_bloom_task_e  task;

    return ngx_bloom_job_next(zone, &task) != NGX_BLOOM_JOB_NONE;
}


/* Returns what the zone needs most, and sets *task if that is a task. */
static ngx_bloom_job_e
ngx_bloom_job_next(ngx_bloom_zone_t *zone, ngx_bloom_task_e *task)
{
    ngx_uint_t  i;

    /* in this order: a checkpoint has what was loaded before */
    static const ngx_bloom_task_e  order[] = {
        NGX_BLOOM_TASK_CLEAR,
        NGX_BLOOM_TASK_UPLOAD,
        NGX_BLOOM_TASK_LOAD,
        NGX_BLOOM_TASK_RESTORE,
        NGX_BLOOM_TASK_FORGET,
        NGX_BLOOM_TASK_CHECKPOINT,
        NGX_BLOOM_TASK_SNAPSHOT
    };

    if (ngx_bloom_clear_due(zone)) {
        return NGX_BLOOM_JOB_FOLLOW;
    }

    for (i = 0; i < NGX_BLOOM_TASKS; i++) {
        *task = order[i];

        if (ngx_bloom_task_asked(zone, *task)
            && (*task != NGX_BLOOM_TASK_SNAPSHOT || zone->state == NULL
                || ngx_bloom_snapshot_wait(zone) == 0))
        {
            return NGX_BLOOM_JOB_TASK;
        }
    }

    if (zone->state == NULL) {
        return NGX_BLOOM_JOB_NONE;
    }

    return ngx_bloom_checkpoint_due(zone) ? NGX_BLOOM_JOB_CHECKPOINT
           : ngx_bloom_stand_due(zone) ? NGX_BLOOM_JOB_STAND
           : NGX_BLOOM_JOB_NONE;
}


void
ngx_bloom_job(ngx_bloom_zone_t *zone)
{
    if (ngx_bloom_lock(&zone->sh->helper, NGX_BLOOM_JOB_WAIT) != NGX_OK) {
        return;                      /* another helper does it */
    }

    if (zone->helpers == zone->sh->helpers) {
        ngx_bloom_job_run(zone);
    }

    ngx_bloom_unlock(&zone->sh->helper);
}


static void
ngx_bloom_job_run(ngx_bloom_zone_t *zone)
{
    ngx_bloom_task_e     task;
    ngx_bloom_shctx_t   *sh;
    ngx_bloom_result_t   result;

    sh = zone->sh;
    ngx_memzero(&result, sizeof(ngx_bloom_result_t));

    switch (ngx_bloom_job_next(zone, &task)) {

    case NGX_BLOOM_JOB_FOLLOW:
        sh->clear_tried = ngx_bloom_job_now();
        ngx_bloom_job_follow(zone);
        break;

    case NGX_BLOOM_JOB_TASK:
        ngx_bloom_job_task(zone, task);
        break;

    case NGX_BLOOM_JOB_CHECKPOINT:
        sh->checkpoint_tried = ngx_bloom_job_now();
        ngx_bloom_job_checkpoint(zone, &result);
        break;

    case NGX_BLOOM_JOB_STAND:
        (void) ngx_bloom_stand(zone);
        break;

    default: /* NGX_BLOOM_JOB_NONE */
        break;
    }
}


static void
ngx_bloom_job_task(ngx_bloom_zone_t *zone, ngx_bloom_task_e task)
{
    u_char               path[NGX_MAX_PATH];
    const char          *error;
    ngx_bloom_result_t   result;

    if (ngx_bloom_task_begin(zone, task, path) != NGX_OK) {
        return;
    }

    ngx_memzero(&result, sizeof(ngx_bloom_result_t));

    /* a reload may have taken away what the task needs */

    error = ngx_bloom_task_impossible(zone, task);

    if (error != NULL) {
        result.outcome = NGX_BLOOM_FAILED;
        ngx_bloom_print(result.message, sizeof(result.message),
                        "bloom zone \"%V\": %s", &zone->name, error);

        ngx_bloom_task_end(zone, task, &result, 0);
        return;
    }

    switch (task) {

    case NGX_BLOOM_TASK_LOAD:
    case NGX_BLOOM_TASK_UPLOAD:
    case NGX_BLOOM_TASK_CLEAR:
        ngx_bloom_job_load(zone, task, path);
        return;

    case NGX_BLOOM_TASK_CHECKPOINT:
        ngx_bloom_job_checkpoint(zone, &result);
        break;

    case NGX_BLOOM_TASK_SNAPSHOT:
        ngx_bloom_snapshot(zone, &result);
        break;

    default: /* NGX_BLOOM_TASK_RESTORE, NGX_BLOOM_TASK_FORGET */
        ngx_bloom_job_restore(zone, task, &result);
        break;
    }

    ngx_bloom_task_end(zone, task, &result, 0);
}


/* Writes a checkpoint of the image that serves, when the zone stands on it. */
static void
ngx_bloom_job_checkpoint(ngx_bloom_zone_t *zone, ngx_bloom_result_t *result)
{
    ngx_bloom_save_t  save;

    (void) ngx_bloom_stand(zone);

    if (ngx_bloom_save(&save, zone, NGX_BLOOM_TASK_CHECKPOINT) == NGX_OK) {
        ngx_cpystrn(result->name, save.name, sizeof(result->name));
        zone->sh->checkpoint_tried = 0;

    } else {
        ngx_bloom_save_report(&save, result);
    }

    ngx_bloom_save_end(&save);
}


static void
ngx_bloom_job_restore(ngx_bloom_zone_t *zone, ngx_bloom_task_e task,
    ngx_bloom_result_t *result)
{
    const char           *kind;
    ngx_bloom_restore_t   restore;

    kind = (task == NGX_BLOOM_TASK_FORGET) ? "excepted" : "removed";

    if (ngx_bloom_restore(&restore, zone, task == NGX_BLOOM_TASK_FORGET
                                          ? BLOOM_EXCEPTION_FEEDBACK
                                          : BLOOM_EXCEPTION_REMOVED)
        == NGX_OK)
    {
        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                      "bloom zone \"%V\": %uL %s key%s restored", &zone->name,
                      restore.keys, kind, restore.keys == 1 ? " is" : "s are");
        return;
    }

    result->outcome = NGX_BLOOM_FAILED;

    ngx_bloom_print(result->message, sizeof(result->message),
                    "not all %s keys of bloom zone \"%V\" are restored: %s",
                    kind, &zone->name, restore.error);

    ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, restore.err, "%s",
                  result->message);
}


void
ngx_bloom_job_refuse(ngx_bloom_zone_t *zone, ngx_err_t err)
{
    u_char               path[NGX_MAX_PATH];
    ngx_bloom_task_e     task;
    ngx_bloom_shctx_t   *sh;
    ngx_bloom_result_t   result;

    sh = zone->sh;

    if (ngx_bloom_lock(&sh->helper, 0) != NGX_OK) {
        return;
    }

    ngx_memzero(&result, sizeof(ngx_bloom_result_t));

    result.outcome = NGX_BLOOM_FAILED;

    ngx_bloom_print(result.message, sizeof(result.message),
                    "bloom zone \"%V\": fork() failed for a job (%d: %s); free "
                    "memory, or raise the limit of processes, and try again",
                    &zone->name, err, strerror(err));

    switch (ngx_bloom_job_next(zone, &task)) {

    case NGX_BLOOM_JOB_TASK:

        /* this is the helper: if a stopped worker holds the tasks, the next round
         * ends the run */

        if (ngx_bloom_task_begin(zone, task, path) == NGX_OK) {
            (void) ngx_bloom_task_try_end(zone, task, &result, 0,
                                          NGX_BLOOM_TASK_WAIT);
        }

        break;

    case NGX_BLOOM_JOB_FOLLOW:
        sh->clear_tried = ngx_bloom_job_now();
        break;

    case NGX_BLOOM_JOB_CHECKPOINT:
        sh->checkpoint_tried = ngx_bloom_job_now();
        break;

    case NGX_BLOOM_JOB_STAND:
        sh->stand_tried = ngx_bloom_job_now();
        break;

    default: /* NGX_BLOOM_JOB_NONE */
        break;
    }

    ngx_bloom_unlock(&sh->helper);

    ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0, "%s", result.message);
}


void
ngx_bloom_job_hand_on(ngx_bloom_zone_t *zone, ngx_pid_t runner)
{
    zone->sh->checkpoint_tried = 0;
    zone->sh->clear_tried = 0;
    zone->sh->stand_tried = 0;

    ngx_bloom_task_hand_on(zone, runner);
}
