/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file chooses a zone's next job, does its steps, and stores its result.
 */

#include "ngx_bloom_jobs.h"
#include "ngx_bloom_bank.h"
#include "ngx_bloom_base_change.h"
#include "ngx_bloom_clear.h"
#include "ngx_bloom_cleared.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_state_files.h"
#include "ngx_bloom_task.h"
#include "ngx_bloom_task_died.h"
#include "ngx_bloom_watch.h"


/* Bytes of a bank that one step gives back. */
#define NGX_BLOOM_JOBS_RELEASE_STEP    (32 * 1024 * 1024)


static ngx_uint_t ngx_bloom_jobs_snapshot(ngx_bloom_jobs_t *jobs);
static void ngx_bloom_jobs_died(ngx_bloom_jobs_t *jobs,
    ngx_bloom_task_e task);
static void ngx_bloom_jobs_load(ngx_bloom_jobs_t *jobs,
    ngx_bloom_task_e task);
static void ngx_bloom_jobs_save(ngx_bloom_jobs_t *jobs,
    ngx_bloom_task_e task);
static void ngx_bloom_jobs_save_begin(ngx_bloom_jobs_t *jobs);
static void ngx_bloom_jobs_loaded(ngx_bloom_jobs_t *jobs);
static void ngx_bloom_jobs_copied(ngx_bloom_jobs_t *jobs, ngx_int_t rc);
static void ngx_bloom_jobs_switch(ngx_bloom_jobs_t *jobs);
static void ngx_bloom_jobs_stood(ngx_bloom_jobs_t *jobs, ngx_int_t rc);
static void ngx_bloom_jobs_cleared(ngx_bloom_jobs_t *jobs, ngx_int_t rc);
static void ngx_bloom_jobs_restored(ngx_bloom_jobs_t *jobs, ngx_int_t rc);
static void ngx_bloom_jobs_serves(ngx_bloom_jobs_t *jobs, const char *does,
    const char *name);
static void ngx_bloom_jobs_refused(ngx_bloom_jobs_t *jobs);
static void ngx_bloom_jobs_saved(ngx_bloom_jobs_t *jobs, ngx_int_t rc);
static void ngx_bloom_jobs_done(ngx_bloom_jobs_t *jobs);
static ngx_int_t ngx_bloom_jobs_tell(ngx_bloom_jobs_t *jobs);


void
ngx_bloom_jobs_begin(ngx_bloom_jobs_t *jobs)
{
    ngx_bloom_zone_t  *zone;

    if (jobs->begun) {
        return;
    }

    zone = jobs->zone;

    /* remove what an earlier helper has left behind */

    if (zone->state != NULL) {
        ngx_bloom_state_files_clean(zone->state, NGX_BLOOM_STATE_FILES_OWN);
        (void) ngx_bloom_state_files_unused(zone->state, "body.", NULL);
        ngx_bloom_snapshot_clean(&jobs->snapshot, zone);
    }

    ngx_bloom_base_note_name(zone);

    if (zone->left != 0 && !zone->sh->left_told && zone->state != NULL) {

        /* nobody applies records to the previous instance any more */

        ngx_bloom_state_leave(zone->state, zone->left - 1);
        zone->sh->left_told = 1;
    }

    jobs->begun = 1;

    if (zone->file.name.len == 0) {
        return;
    }

    jobs->looked = ngx_current_msec;

    if (ngx_bloom_watch_file(zone) == NGX_BUSY) {
        jobs->begun = 0;                         /* try again */
    }
}


void
ngx_bloom_jobs_choose(ngx_bloom_jobs_t *jobs)
{
    ngx_bloom_task_e    left;
    ngx_bloom_zone_t   *zone;
    ngx_bloom_shctx_t  *sh;

    zone = jobs->zone;
    sh = zone->sh;

    jobs->asked = 1;

    left = ngx_bloom_task_left(zone);

    if (left != NGX_BLOOM_TASKS) {
        ngx_bloom_jobs_died(jobs, left);
        return;
    }

    if (sh->bank[!(sh->generation & 1)].filled) {

        /* a process died before it could give the idle bank back */

        jobs->tells = 0;
        jobs->current = NGX_BLOOM_JOBS_END;
        return;
    }

    if (ngx_bloom_clear_due(zone)) {
        jobs->asked = 0;
        sh->clear_tried = ngx_current_msec ? ngx_current_msec : 1;

        ngx_bloom_jobs_load(jobs, NGX_BLOOM_TASK_LOAD);
        return;
    }

    if (ngx_bloom_task_begin(zone, NGX_BLOOM_TASK_CLEAR, NULL) == NGX_OK) {
        ngx_bloom_jobs_load(jobs, NGX_BLOOM_TASK_CLEAR);
        return;
    }

    if (ngx_bloom_task_begin(zone, NGX_BLOOM_TASK_UPLOAD, jobs->path)
        == NGX_OK)
    {
        ngx_bloom_jobs_load(jobs, NGX_BLOOM_TASK_UPLOAD);
        return;
    }

    if (ngx_bloom_task_begin(zone, NGX_BLOOM_TASK_LOAD, NULL) == NGX_OK) {
        ngx_bloom_jobs_load(jobs, NGX_BLOOM_TASK_LOAD);
        return;
    }

    if (ngx_bloom_task_begin(zone, NGX_BLOOM_TASK_RESTORE, NULL) == NGX_OK) {
        ngx_bloom_restore_begin(&jobs->restore, zone, BLOOM_EXCEPTION_REMOVED);
        jobs->current = NGX_BLOOM_JOBS_RESTORE;
        jobs->task = NGX_BLOOM_TASK_RESTORE;
        return;
    }

    if (ngx_bloom_task_begin(zone, NGX_BLOOM_TASK_FORGET, NULL) == NGX_OK) {
        ngx_bloom_restore_begin(&jobs->restore, zone, BLOOM_EXCEPTION_FEEDBACK);
        jobs->current = NGX_BLOOM_JOBS_RESTORE;
        jobs->task = NGX_BLOOM_TASK_FORGET;
        return;
    }

    if (ngx_bloom_task_begin(zone, NGX_BLOOM_TASK_CHECKPOINT, NULL)
        == NGX_OK)
    {
        ngx_bloom_jobs_save(jobs, NGX_BLOOM_TASK_CHECKPOINT);
        return;
    }

    if (ngx_bloom_jobs_snapshot(jobs)) {
        return;
    }

    if (zone->state == NULL) {
        return;
    }

    if (ngx_bloom_save_due(zone)) {
        jobs->asked = 0;
        sh->checkpoint_tried = ngx_current_msec ? ngx_current_msec : 1;

        ngx_bloom_jobs_save(jobs, NGX_BLOOM_TASK_CHECKPOINT);
    }
}


ngx_msec_t
ngx_bloom_jobs_wait(ngx_bloom_jobs_t *jobs)
{
    ngx_uint_t  kind;

    for (kind = 0; kind < NGX_BLOOM_TASKS; kind++) {
        if (ngx_bloom_task_asked(jobs->zone, kind)) {
            return kind == NGX_BLOOM_TASK_SNAPSHOT
                   ? ngx_bloom_snapshot_wait(&jobs->snapshot) : 0;
        }
    }

    return NGX_BLOOM_JOBS_IDLE;
}


/* Answers all requests for an image, or begins to write one.  Returns 1 if it
 * has done either, or 0. */
static ngx_uint_t
ngx_bloom_jobs_snapshot(ngx_bloom_jobs_t *jobs)
{
    switch (ngx_bloom_snapshot_begin(&jobs->snapshot, jobs->zone,
                                     &jobs->result))
    {

    case NGX_OK:
        jobs->task = NGX_BLOOM_TASK_SNAPSHOT;
        ngx_bloom_jobs_done(jobs);
        return 1;

    case NGX_AGAIN:
        ngx_bloom_jobs_save(jobs, NGX_BLOOM_TASK_SNAPSHOT);
        return 1;

    default: /* NGX_DECLINED */
        return 0;
    }
}


/* Ends a task whose process died. */
static void
ngx_bloom_jobs_died(ngx_bloom_jobs_t *jobs, ngx_bloom_task_e task)
{
    jobs->task = task;
    ngx_bloom_task_died(jobs->zone, task, &jobs->result);
    ngx_bloom_jobs_done(jobs);
}


static void
ngx_bloom_jobs_load(ngx_bloom_jobs_t *jobs, ngx_bloom_task_e task)
{
    ngx_int_t                rc;
    bloom_image_t           *image, empty;
    ngx_bloom_zone_t        *zone;
    ngx_bloom_image_file_t   file;

    zone = jobs->zone;
    image = NULL;

    jobs->current = NGX_BLOOM_JOBS_LOAD;
    jobs->task = task;
    jobs->clear_waits = 0;
    ngx_bloom_copy_init(&jobs->copy);

    if (task != NGX_BLOOM_TASK_UPLOAD) {
        image = ngx_bloom_clear_image(zone, jobs->path, &empty);

        (void) ngx_bloom_watch_id(jobs->path, &zone->sh->loads);
    }

    ngx_memzero(&file, sizeof(ngx_bloom_image_file_t));
    file.fd = NGX_INVALID_FILE;
    file.name.data = jobs->path;
    file.name.len = ngx_strlen(jobs->path);

    if (task == NGX_BLOOM_TASK_CLEAR) {
        rc = ngx_bloom_load_begin_clear(&jobs->load, zone, &file, image);

    } else {
        rc = ngx_bloom_load_begin(&jobs->load, zone, &file, image, NULL,
                                  task == NGX_BLOOM_TASK_UPLOAD
                                  ? "the uploaded image" : NULL,
                                  ngx_bloom_task_forced(zone, task));
    }

    if (task != NGX_BLOOM_TASK_UPLOAD) {
        zone->sh->loads = jobs->load.file.id;
    }

    if (rc != NGX_OK) {
        ngx_bloom_jobs_refused(jobs);
    }
}


static void
ngx_bloom_jobs_save(ngx_bloom_jobs_t *jobs, ngx_bloom_task_e task)
{
    jobs->task = task;

    if (task == NGX_BLOOM_TASK_CHECKPOINT) {
        jobs->current = NGX_BLOOM_JOBS_STAND;
        ngx_bloom_stand_begin(&jobs->stand);
        return;
    }

    ngx_bloom_jobs_save_begin(jobs);
}


static void
ngx_bloom_jobs_save_begin(ngx_bloom_jobs_t *jobs)
{
    ngx_int_t           rc;
    ngx_bloom_task_e    task;
    ngx_bloom_zone_t   *zone;

    zone = jobs->zone;
    task = jobs->task;

    jobs->current = NGX_BLOOM_JOBS_SAVE;

    rc = ngx_bloom_save_prepare(&jobs->save, zone, task);

    if (rc == NGX_OK) {
        rc = ngx_bloom_save_begin(&jobs->save, zone, task);
    }

    if (task == NGX_BLOOM_TASK_SNAPSHOT) {
        ngx_bloom_snapshot_begun(&jobs->snapshot, &jobs->save);
    }

    if (rc != NGX_OK) {
        ngx_bloom_jobs_saved(jobs, rc);
    }
}


void
ngx_bloom_jobs_step(ngx_bloom_jobs_t *jobs)
{
    ngx_int_t  rc;

    switch (jobs->current) {

    case NGX_BLOOM_JOBS_LOAD:
        ngx_bloom_fault("load");

        rc = ngx_bloom_load_step(&jobs->load);

        if (rc == NGX_ERROR) {
            ngx_bloom_jobs_refused(jobs);

        } else if (rc == NGX_OK) {
            ngx_bloom_jobs_loaded(jobs);
        }

        break;

    case NGX_BLOOM_JOBS_COPY:
        rc = ngx_bloom_copy_step(&jobs->copy);

        if (rc != NGX_AGAIN) {
            ngx_bloom_jobs_copied(jobs, rc);
        }

        break;

    case NGX_BLOOM_JOBS_CLEAR:
        rc = ngx_bloom_clear_step(&jobs->load, &jobs->clear_waits);

        if (rc != NGX_AGAIN) {
            ngx_bloom_jobs_cleared(jobs, rc);
        }

        break;

    case NGX_BLOOM_JOBS_RESTORE:
        rc = ngx_bloom_restore_step(&jobs->restore);

        if (rc != NGX_AGAIN) {
            ngx_bloom_jobs_restored(jobs, rc);
        }

        break;

    case NGX_BLOOM_JOBS_STAND:
        rc = ngx_bloom_stand_step(&jobs->stand, jobs->zone);

        if (rc == NGX_AGAIN) {
            break;
        }

        if (jobs->task == NGX_BLOOM_TASK_CHECKPOINT) {
            ngx_bloom_jobs_save_begin(jobs);

        } else {
            ngx_bloom_jobs_stood(jobs, rc);
        }

        break;

    case NGX_BLOOM_JOBS_SAVE:
        rc = ngx_bloom_save_step(&jobs->save);

        if (rc != NGX_AGAIN) {
            ngx_bloom_jobs_saved(jobs, rc);
        }

        break;

    case NGX_BLOOM_JOBS_END:

        if (jobs->tells && ngx_bloom_jobs_tell(jobs) != NGX_OK) {
            break;
        }

        if (jobs->counts) {

            if (ngx_bloom_log_returned(jobs->zone, &jobs->returned) == NGX_OK) {
                jobs->counts = 0;
            }

            break;
        }

        if (!ngx_bloom_bank_release(jobs->zone,
                                    !(jobs->zone->sh->generation & 1),
                                    NGX_BLOOM_JOBS_RELEASE_STEP))
        {
            jobs->current = NGX_BLOOM_JOBS_NONE;
        }

        break;

    default: /* NGX_BLOOM_JOBS_NONE */
        break;
    }
}


void
ngx_bloom_jobs_abandon(ngx_bloom_jobs_t *jobs)
{
    switch (jobs->current) {

    case NGX_BLOOM_JOBS_SAVE:
        ngx_bloom_save_end(&jobs->save);
        jobs->zone->sh->checkpoint_tried = 0;
        break;

    case NGX_BLOOM_JOBS_STAND:
        jobs->zone->sh->checkpoint_tried = 0;

        if (jobs->task == NGX_BLOOM_TASK_CHECKPOINT) {
            break;
        }

        /* fall through */

    case NGX_BLOOM_JOBS_LOAD:
    case NGX_BLOOM_JOBS_COPY:
    case NGX_BLOOM_JOBS_CLEAR:
        ngx_bloom_copy_end(&jobs->copy);
        ngx_bloom_load_end(&jobs->load);
        jobs->zone->sh->clear_tried = 0;
        break;

    default:
        break;
    }

    if (jobs->current != NGX_BLOOM_JOBS_NONE) {

        if (jobs->current != NGX_BLOOM_JOBS_END
            || (jobs->tells && ngx_bloom_jobs_tell(jobs) != NGX_OK))
        {
            ngx_bloom_task_hand_on(jobs->zone, jobs->task);
        }

        jobs->current = NGX_BLOOM_JOBS_NONE;
        ngx_bloom_unlock(&jobs->zone->sh->helper);
    }

    ngx_bloom_stand_end(&jobs->stand);
}


/* Continues a load whose bank has the whole image and the journal's keys. */
static void
ngx_bloom_jobs_loaded(ngx_bloom_jobs_t *jobs)
{
    ngx_bloom_zone_t  *zone;

    zone = jobs->zone;

    if (jobs->task == NGX_BLOOM_TASK_CLEAR) {
        jobs->current = NGX_BLOOM_JOBS_CLEAR;
        return;
    }

    if (jobs->task == NGX_BLOOM_TASK_UPLOAD && !jobs->copy.whole) {

        /* store the upload first, so that a restart finds it */

        ngx_bloom_copy_begin(&jobs->copy, zone->state, jobs->path);
        jobs->current = NGX_BLOOM_JOBS_COPY;

        return;
    }

    ngx_bloom_jobs_switch(jobs);
}


static void
ngx_bloom_jobs_copied(ngx_bloom_jobs_t *jobs, ngx_int_t rc)
{
    ngx_err_t          err;
    ngx_bloom_load_t  *load;

    if (rc == NGX_OK) {

        /* load the keys that were added during the copy */

        jobs->current = NGX_BLOOM_JOBS_LOAD;
        return;
    }

    err = ngx_errno;
    load = &jobs->load;

    load->outcome = NGX_BLOOM_FAILED;
    ngx_bloom_print(load->error, sizeof(load->error),
                    "the image cannot be stored in \"%V\" (%d: %s)",
                    &jobs->zone->state->path, err, strerror(err));

    ngx_bloom_jobs_refused(jobs);
}


static void
ngx_bloom_jobs_switch(ngx_bloom_jobs_t *jobs)
{
    ngx_uint_t           uploaded;
    ngx_bloom_zone_t    *zone;
    ngx_bloom_result_t  *result;

    zone = jobs->zone;
    result = &jobs->result;
    uploaded = (jobs->task == NGX_BLOOM_TASK_UPLOAD);

    if (ngx_bloom_load_switch(&jobs->load, uploaded) != NGX_OK) {
        ngx_bloom_jobs_refused(jobs);
        return;
    }

    if (!uploaded) {
        ngx_bloom_base_note_loaded(zone, &jobs->load.image);
    }

    if (jobs->asked && ngx_bloom_base_returns(zone)) {

        /* no start brings the upload back once this task has ended */

        jobs->current = NGX_BLOOM_JOBS_STAND;
        ngx_bloom_stand_begin(&jobs->stand);

        return;
    }

    ngx_memzero(result, sizeof(ngx_bloom_result_t));
    result->outcome = NGX_BLOOM_DONE;

    /* a load that nobody asked for follows another instance's clear */

    if (jobs->asked
        && ngx_bloom_base_change(&jobs->load, uploaded ? &jobs->copy : NULL)
           != NGX_OK)
    {
        result->outcome = NGX_BLOOM_FAILED;

        ngx_bloom_print(result->message, sizeof(result->message),
                        "the image serves, but a restart brings the previous "
                        "image back: \"%V\" cannot be written (%d: %s)",
                        &zone->state->path, ngx_errno, strerror(ngx_errno));

        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "bloom zone \"%V\": %s", &zone->name, result->message);
    }

    ngx_bloom_jobs_serves(jobs, jobs->asked ? "serves"
                                            : "is cleared and serves",
                          uploaded ? "an uploaded image"
                                   : (char *) jobs->path);
}


/* Ends a load of the image of file= in place of an upload: NGX_OK if the zone
 * stands on that image now. */
static void
ngx_bloom_jobs_stood(ngx_bloom_jobs_t *jobs, ngx_int_t rc)
{
    ngx_bloom_result_t  *result;

    result = &jobs->result;

    ngx_memzero(result, sizeof(ngx_bloom_result_t));
    result->outcome = NGX_BLOOM_DONE;

    if (rc != NGX_OK) {
        result->outcome = NGX_BLOOM_FAILED;

        ngx_bloom_print(result->message, sizeof(result->message),
                        "the image serves, but a restart may bring the "
                        "uploaded image back until \"%s\" is known to be on "
                        "disk: see the error log", jobs->path);
    }

    ngx_bloom_jobs_serves(jobs, "serves", (char *) jobs->path);
}


/* Ends a clear: NGX_OK, NGX_DECLINED or NGX_ERROR of ngx_bloom_clear_step(). */
static void
ngx_bloom_jobs_cleared(ngx_bloom_jobs_t *jobs, ngx_int_t rc)
{
    ngx_err_t            err;
    ngx_bloom_zone_t    *zone;
    ngx_bloom_result_t  *result;

    err = ngx_errno;
    zone = jobs->zone;
    result = &jobs->result;

    if (rc == NGX_ERROR) {
        ngx_bloom_jobs_refused(jobs);
        return;
    }

    ngx_bloom_base_note_loaded(zone, &jobs->load.image);

    ngx_memzero(result, sizeof(ngx_bloom_result_t));
    result->outcome = NGX_BLOOM_DONE;

    if (rc == NGX_DECLINED) {
        result->outcome = NGX_BLOOM_FAILED;

        ngx_bloom_print(result->message, sizeof(result->message),
                        "the zone is cleared, but what was dropped is still "
                        "in \"%V\", which cannot be written; a restart may "
                        "bring it back until the helper process has removed "
                        "it (%d: %s)",
                        &zone->state->path, err, strerror(err));

        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "bloom zone \"%V\": %s", &zone->name, result->message);
    }

    ngx_bloom_jobs_serves(jobs, "is cleared and serves", (char *) jobs->path);
}


static void
ngx_bloom_jobs_restored(ngx_bloom_jobs_t *jobs, ngx_int_t rc)
{
    ngx_str_t            *name;
    const char           *kind;
    ngx_bloom_result_t   *result;
    ngx_bloom_restore_t  *restore;

    name = &jobs->zone->name;
    kind = jobs->task == NGX_BLOOM_TASK_FORGET ? "excepted" : "removed";
    result = &jobs->result;
    restore = &jobs->restore;

    ngx_memzero(result, sizeof(ngx_bloom_result_t));

    if (rc == NGX_OK) {
        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                      "bloom zone \"%V\": %uL %s key%s restored", name,
                      restore->keys, kind,
                      restore->keys == 1 ? " is" : "s are");

    } else {
        result->outcome = NGX_BLOOM_FAILED;

        ngx_bloom_print(result->message, sizeof(result->message),
                        "not all %s keys of bloom zone \"%V\" are restored: "
                        "%s", kind, name, restore->error);

        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, restore->err, "%s",
                      result->message);
    }

    ngx_bloom_jobs_done(jobs);
}


/* Ends a load whose image serves. */
static void
ngx_bloom_jobs_serves(ngx_bloom_jobs_t *jobs, const char *does,
    const char *name)
{
    ngx_bloom_shctx_t  *sh;

    sh = jobs->zone->sh;

    sh->clear_tried = 0;

    if (!jobs->asked) {
        jobs->load.clears = 1;           /* it follows another instance's */
    }

    if (!sh->file && !sh->uploaded) {
        sh->based = sh->generation;              /* a start begins empty, too */
    }

    ngx_bloom_copy_end(&jobs->copy);
    ngx_bloom_load_end(&jobs->load);

    /* before the client knows: its image is accepted, also if this process dies
     * then */

    if (name[0] != '\0') {
        ngx_bloom_guard_accept(jobs->zone, &jobs->load.image,
                               jobs->load.begun);
    }

    ngx_bloom_jobs_done(jobs);

    /* a clear brings removed keys back on purpose */

    jobs->counts = !jobs->load.clears;
    ngx_memzero(&jobs->returned, sizeof(ngx_bloom_log_returned_t));

    ngx_bloom_log_serves(&jobs->load, ngx_cycle->log, does,
                         name[0] != '\0' ? name : "an empty filter");

    jobs->cleaned = ngx_current_msec - NGX_BLOOM_JOBS_CLEAN;
    ngx_bloom_stand_begin(&jobs->stand);
    jobs->measure_hugepages = ngx_current_msec;
}


static void
ngx_bloom_jobs_refused(ngx_bloom_jobs_t *jobs)
{
    ngx_bloom_zone_t    *zone;
    ngx_bloom_result_t  *result;

    zone = jobs->zone;
    result = &jobs->result;

    if (jobs->load.replay.cleared) {

        /* begin again behind the clear */

        ngx_bloom_cleared_found(zone->state, jobs->load.replay.cleared);

        if (ngx_bloom_clear_settle(zone) == NGX_OK) {
            ngx_bloom_copy_end(&jobs->copy);
            ngx_bloom_load_end(&jobs->load);

            ngx_bloom_jobs_load(jobs, jobs->task);
            return;
        }
    }

    if (jobs->task == NGX_BLOOM_TASK_LOAD && jobs->asked
        && jobs->load.outcome != NGX_BLOOM_FAILED)
    {
        zone->sh->refused = zone->sh->loads;
    }

    ngx_memzero(result, sizeof(ngx_bloom_result_t));

    result->outcome = jobs->load.outcome;
    ngx_cpystrn(result->message, jobs->load.error, sizeof(result->message));

    ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                  "%s; bloom zone \"%V\" continues with generation %uL",
                  jobs->load.error, &zone->name, zone->sh->generation);

    ngx_bloom_copy_end(&jobs->copy);
    ngx_bloom_load_end(&jobs->load);

    ngx_bloom_jobs_done(jobs);
}


static void
ngx_bloom_jobs_saved(ngx_bloom_jobs_t *jobs, ngx_int_t rc)
{
    ngx_bloom_save_t    *save;
    ngx_bloom_zone_t    *zone;
    ngx_bloom_result_t  *result;

    zone = jobs->zone;
    save = &jobs->save;
    result = &jobs->result;

    ngx_memzero(result, sizeof(ngx_bloom_result_t));

    if (rc == NGX_OK) {
        ngx_cpystrn(result->name, save->name, sizeof(result->name));

        if (jobs->task == NGX_BLOOM_TASK_CHECKPOINT) {
            zone->sh->checkpoint_tried = 0;
        }

    } else {
        result->outcome = save->damaged ? NGX_BLOOM_LACKS : NGX_BLOOM_FAILED;

        if (rc == NGX_DECLINED) {
            save->err = 0;
            save->error = "is useless now, as another image serves: try again";
        }

        if (save->err != 0) {
            ngx_bloom_print(result->message, sizeof(result->message),
                            "\"%V/%s\" %s (%d: %s); %s, and try again",
                            &zone->state->path, save->tmp, save->error,
                            save->err, strerror(save->err),
                            save->err == ENOSPC || save->err == EDQUOT
                            ? "free space on its disk" : "correct that");

        } else {
            ngx_bloom_print(result->message, sizeof(result->message),
                            "\"%V/%s\" %s", &zone->state->path, save->tmp,
                            save->error);
        }

        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "bloom zone \"%V\": %s", &zone->name, result->message);
    }

    if (jobs->task == NGX_BLOOM_TASK_SNAPSHOT) {
        ngx_bloom_snapshot_ended(&jobs->snapshot, save, rc);
    }

    ngx_bloom_save_end(save);

    ngx_bloom_jobs_done(jobs);
}


/*
 * Ends the current job with jobs->result.  The steps that follow store the
 * result in the task and give the idle bank back.
 */
static void
ngx_bloom_jobs_done(ngx_bloom_jobs_t *jobs)
{
    uint64_t             now;
    ngx_bloom_zone_t    *zone;
    ngx_bloom_result_t  *result;

    zone = jobs->zone;
    result = &jobs->result;

    jobs->current = NGX_BLOOM_JOBS_END;
    jobs->tells = jobs->asked;

    if (!jobs->asked) {
        return;
    }

    now = ngx_bloom_time();

    result->generation = zone->sh->generation;
    result->started_at = zone->sh->task[jobs->task].running;
    result->duration = now - ngx_min(now, result->started_at);

    if (ngx_bloom_task_loads(jobs->task)) {
        ngx_bloom_count(zone, NGX_BLOOM_COUNTER_LOAD_OK + result->outcome, 1);
        ngx_bloom_count(zone, NGX_BLOOM_COUNTER_LOAD_MS, result->duration);
    }
}


static ngx_int_t
ngx_bloom_jobs_tell(ngx_bloom_jobs_t *jobs)
{
    ngx_int_t              rc;
    ngx_uint_t             all;
    ngx_bloom_shctx_t     *sh;
    ngx_bloom_image_id_t   id;

    sh = jobs->zone->sh;

    /* tickets drawn meanwhile are served if they mean the same file */

    all = (jobs->task == NGX_BLOOM_TASK_LOAD
           && ngx_bloom_watch_id(sh->file_name, &id)
           && ngx_bloom_image_file_same(&id, &sh->loads));

    rc = ngx_bloom_task_end(jobs->zone, jobs->task, &jobs->result, all);

    if (rc == NGX_OK) {
        jobs->tells = 0;
    }

    return rc;
}
