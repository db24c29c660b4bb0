/* SPDX-License-Identifier: BSD-2-Clause */

#include "ngx_bloom_job_load.h"
#include "ngx_bloom_base_change.h"
#include "ngx_bloom_clear.h"
#include "ngx_bloom_cleared.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_load.h"
#include "ngx_bloom_log.h"
#include "ngx_bloom_stand.h"
#include "ngx_bloom_state_files.h"
#include "ngx_bloom_task.h"
#include "ngx_bloom_watch.h"


/* A load. */
typedef struct {
    ngx_bloom_zone_t    *zone;
    ngx_bloom_task_e     task;
    ngx_uint_t           asked;          /* 0: it follows another instance's
                                            clear, and is no task */
    u_char              *path;           /* of the image; empty: an empty
                                            filter */
    ngx_bloom_load_t     load;
    ngx_bloom_result_t   result;
} ngx_bloom_job_load_t;


static void ngx_bloom_job_load_run(ngx_bloom_job_load_t *job);
static ngx_int_t ngx_bloom_job_load_once(ngx_bloom_job_load_t *job);
static ngx_int_t ngx_bloom_job_load_begin(ngx_bloom_job_load_t *job);
static ngx_int_t ngx_bloom_job_load_sync(ngx_bloom_job_load_t *job);
static ngx_int_t ngx_bloom_job_load_clear(ngx_bloom_job_load_t *job);
static ngx_int_t ngx_bloom_job_load_switch(ngx_bloom_job_load_t *job);
static void ngx_bloom_job_load_store(ngx_bloom_job_load_t *job);
static ngx_uint_t ngx_bloom_job_load_cleared(ngx_bloom_job_load_t *job);
static void ngx_bloom_job_load_serves(ngx_bloom_job_load_t *job);
static void ngx_bloom_job_load_refused(ngx_bloom_job_load_t *job);
static void ngx_cdecl ngx_bloom_job_load_fails(ngx_bloom_job_load_t *job,
    const char *fmt, ...);
static void ngx_bloom_job_load_end(ngx_bloom_job_load_t *job, ngx_int_t rc);


void
ngx_bloom_job_load(ngx_bloom_zone_t *zone, ngx_bloom_task_e task, u_char *path)
{
    ngx_bloom_job_load_t  job;

    ngx_memzero(&job, sizeof(ngx_bloom_job_load_t));

    job.zone = zone;
    job.task = task;
    job.asked = 1;
    job.path = path;

    ngx_bloom_job_load_run(&job);
}


void
ngx_bloom_job_follow(ngx_bloom_zone_t *zone)
{
    u_char                path[NGX_MAX_PATH];
    ngx_bloom_job_load_t  job;

    ngx_memzero(&job, sizeof(ngx_bloom_job_load_t));

    job.zone = zone;
    job.task = NGX_BLOOM_TASK_LOAD;
    job.path = path;

    ngx_bloom_job_load_run(&job);
}


static void
ngx_bloom_job_load_run(ngx_bloom_job_load_t *job)
{
    ngx_int_t  rc;

    for ( ;; ) {
        rc = ngx_bloom_job_load_once(job);

        if (rc == NGX_OK || !ngx_bloom_job_load_cleared(job)) {
            break;
        }

        /* begin again behind the clear */

        ngx_bloom_load_end(&job->load);
    }

    ngx_time_update();

    if (rc == NGX_OK) {
        ngx_bloom_job_load_serves(job);

    } else {
        ngx_bloom_job_load_refused(job);
    }

    ngx_bloom_job_load_end(job, rc);
}


/* Loads the image and lets it serve.  Returns NGX_OK, with what went wrong
 * afterwards in the result; or NGX_ERROR with the reason in `load`. */
static ngx_int_t
ngx_bloom_job_load_once(ngx_bloom_job_load_t *job)
{
    if (ngx_bloom_job_load_begin(job) != NGX_OK
        || ngx_bloom_load_run(&job->load) != NGX_OK)
    {
        return NGX_ERROR;
    }

    switch (job->task) {

    case NGX_BLOOM_TASK_CLEAR:
        return ngx_bloom_job_load_clear(job);

    case NGX_BLOOM_TASK_UPLOAD:
        return ngx_bloom_job_load_sync(job) == NGX_OK
               ? ngx_bloom_job_load_switch(job) : NGX_ERROR;

    default: /* NGX_BLOOM_TASK_LOAD */
        return ngx_bloom_job_load_switch(job);
    }
}


static ngx_int_t
ngx_bloom_job_load_begin(ngx_bloom_job_load_t *job)
{
    ngx_int_t                rc;
    bloom_image_t           *image, empty;
    ngx_bloom_zone_t        *zone;
    ngx_bloom_image_file_t   file;

    zone = job->zone;
    image = NULL;

    if (job->task != NGX_BLOOM_TASK_UPLOAD) {
        image = ngx_bloom_clear_image(zone, job->path, &empty);

        (void) ngx_bloom_watch_id(job->path, &zone->sh->loads);
    }

    ngx_memzero(&file, sizeof(ngx_bloom_image_file_t));
    file.fd = NGX_INVALID_FILE;
    file.name.data = job->path;
    file.name.len = ngx_strlen(job->path);

    if (job->task == NGX_BLOOM_TASK_CLEAR) {
        rc = ngx_bloom_load_begin_clear(&job->load, zone, &file, image);

    } else {
        rc = ngx_bloom_load_begin(&job->load, zone, &file, image, NULL,
                                  job->task == NGX_BLOOM_TASK_UPLOAD
                                  ? "the uploaded image" : NULL,
                                  ngx_bloom_task_forced(zone, job->task));
    }

    if (job->task != NGX_BLOOM_TASK_UPLOAD) {
        zone->sh->loads = job->load.file.id;
    }

    return rc;
}


/* Synchronises the upload, which a worker has written, before it serves, and
 * loads the keys that were added meanwhile. */
static ngx_int_t
ngx_bloom_job_load_sync(ngx_bloom_job_load_t *job)
{
    ngx_err_t          err;
    ngx_bloom_load_t  *load;

    load = &job->load;

    if (ngx_bloom_io_sync_slices(load->file.fd) == NGX_OK) {
        return ngx_bloom_load_journal(load);
    }

    err = ngx_errno;

    load->outcome = NGX_BLOOM_FAILED;
    ngx_bloom_print(load->error, sizeof(load->error),
                    "the image cannot be stored in \"%V\" (%d: %s)",
                    &job->zone->state->path, err, strerror(err));

    return NGX_ERROR;
}


static ngx_int_t
ngx_bloom_job_load_clear(ngx_bloom_job_load_t *job)
{
    ngx_err_t          err;
    ngx_int_t          rc;
    ngx_bloom_zone_t  *zone;

    zone = job->zone;
    rc = ngx_bloom_clear(&job->load);
    err = ngx_errno;

    if (rc == NGX_ERROR) {
        return NGX_ERROR;
    }

    ngx_bloom_base_note_loaded(zone, &job->load.image);

    if (rc == NGX_DECLINED) {
        ngx_bloom_job_load_fails(job, "the zone is cleared, but what was "
                                 "dropped is still in \"%V\", which cannot be "
                                 "written; a restart may bring it back until "
                                 "the helper process has removed it (%d: %s)",
                                 &zone->state->path, err, strerror(err));
    }

    return NGX_OK;
}


static ngx_int_t
ngx_bloom_job_load_switch(ngx_bloom_job_load_t *job)
{
    ngx_uint_t  uploaded;

    uploaded = (job->task == NGX_BLOOM_TASK_UPLOAD);

    if (ngx_bloom_load_switch(&job->load, uploaded) != NGX_OK) {
        return NGX_ERROR;
    }

    if (!uploaded) {
        ngx_bloom_base_note_loaded(job->zone, &job->load.image);
    }

    if (job->asked) {
        ngx_bloom_job_load_store(job);
    }

    return NGX_OK;
}


/* Makes an upload that serves, or the image of file= that serves in place of
 * one, what the zone stands on. */
static void
ngx_bloom_job_load_store(ngx_bloom_job_load_t *job)
{
    ngx_bloom_zone_t  *zone;

    zone = job->zone;

    if (ngx_bloom_base_returns(zone)) {

        if (ngx_bloom_stand(zone) != NGX_OK) {
            ngx_bloom_job_load_fails(job, "the image serves, but a restart may "
                                     "bring the uploaded image back until "
                                     "\"%s\" is known to be on disk: see the "
                                     "error log", job->path);
        }

    } else if (job->task == NGX_BLOOM_TASK_UPLOAD
               && ngx_bloom_base_change(&job->load,
                                        ngx_bloom_state_files_name(job->path))
                  != NGX_OK)
    {
        ngx_bloom_job_load_fails(job, "the image serves, but a restart brings "
                                 "the previous image back: \"%V\" cannot be "
                                 "written (%d: %s)", &zone->state->path,
                                 ngx_errno, strerror(ngx_errno));
    }
}


/* Returns 1 if the load has failed because another instance has cleared the
 * zone, and what follows the clear can be loaded. */
static ngx_uint_t
ngx_bloom_job_load_cleared(ngx_bloom_job_load_t *job)
{
    if (job->load.replay.cleared == 0) {
        return 0;
    }

    ngx_bloom_cleared_found(job->zone->state, job->load.replay.cleared);

    return ngx_bloom_clear_settle(job->zone) == NGX_OK;
}


/* Records and logs that the image serves. */
static void
ngx_bloom_job_load_serves(ngx_bloom_job_load_t *job)
{
    const char         *does, *name;
    ngx_bloom_zone_t   *zone;
    ngx_bloom_shctx_t  *sh;

    zone = job->zone;
    sh = zone->sh;

    does = (job->task == NGX_BLOOM_TASK_CLEAR || !job->asked)
           ? "is cleared and serves" : "serves";
    name = (job->task == NGX_BLOOM_TASK_UPLOAD) ? "an uploaded image"
           : job->path[0] != '\0' ? (char *) job->path : "an empty filter";

    sh->clear_tried = 0;
    sh->stand_tried = 0;

    if (job->path[0] != '\0') {
        ngx_bloom_guard_accept(zone, &job->load.image, job->load.begun);
    }

    ngx_bloom_log_serves(&job->load, ngx_cycle->log, does, name);
}


static void
ngx_bloom_job_load_refused(ngx_bloom_job_load_t *job)
{
    ngx_bloom_zone_t    *zone;
    ngx_bloom_load_t    *load;
    ngx_bloom_result_t  *result;

    zone = job->zone;
    load = &job->load;
    result = &job->result;

    if (job->task == NGX_BLOOM_TASK_LOAD && job->asked
        && load->outcome != NGX_BLOOM_FAILED)
    {
        zone->sh->refused = zone->sh->loads;
    }

    ngx_memzero(result, sizeof(ngx_bloom_result_t));

    result->outcome = load->outcome;
    ngx_cpystrn(result->message, load->error, sizeof(result->message));

    ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                  "%s; bloom zone \"%V\" continues with generation %uL",
                  load->error, &zone->name, zone->sh->generation);
}


/* Says what went wrong although the image serves. */
static void ngx_cdecl
ngx_bloom_job_load_fails(ngx_bloom_job_load_t *job, const char *fmt, ...)
{
    u_char               *p;
    va_list               args;
    ngx_bloom_result_t   *result;

    result = &job->result;
    result->outcome = NGX_BLOOM_FAILED;

    va_start(args, fmt);
    p = ngx_vslprintf(result->message,
                      result->message + sizeof(result->message) - 1, fmt, args);
    va_end(args);

    *p = '\0';

    ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0, "bloom zone \"%V\": %s",
                  &job->zone->name, result->message);
}


/* Tells the result, looks for removed keys that are back, and gives the idle
 * bank back. */
static void
ngx_bloom_job_load_end(ngx_bloom_job_load_t *job, ngx_int_t rc)
{
    ngx_bloom_zone_t  *zone;

    zone = job->zone;

    ngx_bloom_load_end(&job->load);

    if (job->asked) {

        ngx_bloom_task_end(zone, job->task, &job->result,
                           job->task == NGX_BLOOM_TASK_LOAD
                           && ngx_bloom_watch_is_loaded(zone));
    }

    /* a clear brings removed keys back on purpose */

    if (rc == NGX_OK && job->task != NGX_BLOOM_TASK_CLEAR) {
        ngx_bloom_log_returned(zone);
    }

    ngx_bloom_zone_release(zone, !(zone->sh->generation & 1));
}
