
/*
 * This file chooses a zone's next job, does its steps, and tells whoever asked
 * for it how it ended.
 */

#include "ngx_bloom_jobs.h"
#include "ngx_bloom_catch_up.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_log.h"
#include "ngx_bloom_state_files.h"
#include "ngx_bloom_task.h"


/* How long after a checkpoint that failed the next is tried, ms. */
#define NGX_BLOOM_JOBS_RETRY           10000

/* How long a synchronisation that is running is waited for, ms. */
#define NGX_BLOOM_JOBS_KEEPER          1000

/* Bytes of the journal; their replay takes about a second. */
#define NGX_BLOOM_JOBS_CHECKPOINT_MIN  (64 * 1024 * 1024)

/* Bytes of a bank that are given back in a step. */
#define NGX_BLOOM_JOBS_RELEASE_STEP    (32 * 1024 * 1024)


static void ngx_bloom_jobs_load(ngx_bloom_jobs_t *jobs,
    ngx_bloom_task_e task);
static void ngx_bloom_jobs_save(ngx_bloom_jobs_t *jobs,
    ngx_bloom_task_e task);
static ngx_int_t ngx_bloom_jobs_settle(ngx_bloom_jobs_t *jobs);
static void ngx_bloom_jobs_loaded(ngx_bloom_jobs_t *jobs);
static ngx_int_t ngx_bloom_jobs_copy(ngx_bloom_jobs_t *jobs);
static void ngx_bloom_jobs_close(ngx_bloom_jobs_t *jobs);
static ngx_int_t ngx_bloom_jobs_rebase(ngx_bloom_jobs_t *jobs,
    ngx_uint_t uploaded);
static void ngx_bloom_jobs_switch(ngx_bloom_jobs_t *jobs);
static void ngx_bloom_jobs_refused(ngx_bloom_jobs_t *jobs);
static void ngx_bloom_jobs_saved(ngx_bloom_jobs_t *jobs, ngx_int_t rc);
static void ngx_bloom_jobs_done(ngx_bloom_jobs_t *jobs,
    ngx_bloom_result_t *result, uint64_t begun);
static ngx_uint_t ngx_bloom_jobs_file_id(u_char *name,
    ngx_bloom_image_id_t *id);


void
ngx_bloom_jobs_look(ngx_bloom_jobs_t *jobs)
{
    uint64_t                   ticket;
    const char                *error;
    ngx_bloom_zone_t          *zone;
    ngx_bloom_shctx_t         *sh;
    ngx_bloom_image_id_t  id;

    zone = jobs->zone;
    sh = zone->sh;

    if (zone->watch == 0
        || ngx_current_msec - jobs->looked < zone->watch
        || ngx_strcmp(zone->file.name.data, sh->file_name) != 0)
    {
        return;
    }

    jobs->looked = ngx_current_msec;

    if (!ngx_bloom_jobs_file_id(sh->file_name, &id)) {
        ngx_bloom_log_missing_file(zone, ngx_errno);
        return;
    }

    sh->missing = 0;

    if (ngx_bloom_image_file_same(&id, &sh->file_id)
        || ngx_bloom_image_file_same(&id, &jobs->refused))
    {
        return;
    }

    (void) ngx_bloom_task_request(zone, NGX_BLOOM_TASK_LOAD, NULL, &ticket,
                                  &error);
}


static ngx_uint_t
ngx_bloom_jobs_file_id(u_char *name, ngx_bloom_image_id_t *id)
{
    struct stat  st;

    if (stat((char *) name, &st) == -1) {
        return 0;
    }

    id->device = st.st_dev;
    id->inode = st.st_ino;
    id->sec = st.st_ctim.tv_sec;
    id->nsec = st.st_ctim.tv_nsec;

    return 1;
}


void
ngx_bloom_jobs_choose(ngx_bloom_jobs_t *jobs)
{
    uint64_t              behind, limit;
    ngx_bloom_zone_t     *zone;
    ngx_bloom_shctx_t    *sh;

    zone = jobs->zone;
    sh = zone->sh;

    jobs->asked = 1;

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

    if (ngx_bloom_task_begin(zone, NGX_BLOOM_TASK_CHECKPOINT, NULL)
        == NGX_OK)
    {
        ngx_bloom_jobs_save(jobs, NGX_BLOOM_TASK_CHECKPOINT);
        return;
    }

    if (ngx_bloom_task_begin(zone, NGX_BLOOM_TASK_SNAPSHOT, NULL) == NGX_OK) {
        ngx_bloom_jobs_save(jobs, NGX_BLOOM_TASK_SNAPSHOT);
        return;
    }

    if (zone->state == NULL) {
        return;
    }

    /* would a start take long? */

    behind = ngx_max(sh->checkpoint, zone->state->control->begin);
    limit = ngx_max(NGX_BLOOM_JOBS_CHECKPOINT_MIN,
                    bloom_image_payload_size(&sh->bank[sh->generation & 1]
                                              .image));

    if (sh->generation != 0
        && sh->applied > behind && sh->applied - behind > limit
        && ngx_current_msec - jobs->save_failed >= NGX_BLOOM_JOBS_RETRY)
    {
        jobs->asked = 0;
        ngx_bloom_jobs_save(jobs, NGX_BLOOM_TASK_CHECKPOINT);
        return;
    }

    if (jobs->compact == NULL) {
        jobs->compact = ngx_bloom_compact_begin(zone->state,
                                                sh->generation, &zone->name);
    }

    if (jobs->compact != NULL) {
        jobs->current = NGX_BLOOM_JOBS_COMPACT;
    }
}


static void
ngx_bloom_jobs_load(ngx_bloom_jobs_t *jobs, ngx_bloom_task_e task)
{
    ngx_int_t          rc;
    ngx_str_t          name;
    ngx_bloom_zone_t  *zone;

    zone = jobs->zone;

    jobs->current = NGX_BLOOM_JOBS_LOAD;
    jobs->task = task;
    jobs->old = zone->sh->generation & 1;
    jobs->saved = 0;

    /* not zone->file: that may be of the cycle before */

    if (task == NGX_BLOOM_TASK_LOAD) {
        ngx_cpystrn(jobs->path, zone->sh->file_name, NGX_MAX_PATH);
    }

    name.data = jobs->path;
    name.len = ngx_strlen(jobs->path);

    rc = ngx_bloom_load_begin(&jobs->load, zone, &name, NULL, 0,
                              task == NGX_BLOOM_TASK_UPLOAD
                              ? "the uploaded image" : NULL);

    jobs->file_id = jobs->load.file.id;

    if (rc != NGX_OK) {
        ngx_bloom_jobs_refused(jobs);
    }
}


static void
ngx_bloom_jobs_save(ngx_bloom_jobs_t *jobs, ngx_bloom_task_e task)
{
    ngx_int_t           rc;
    ngx_bloom_zone_t   *zone;

    zone = jobs->zone;

    jobs->current = NGX_BLOOM_JOBS_SAVE;
    jobs->task = task;
    jobs->save_begun = ngx_bloom_time();

    rc = ngx_bloom_jobs_settle(jobs);

    if (rc == NGX_OK) {
        rc = ngx_bloom_save_begin(&jobs->save, zone, task,
                                  zone->sh->task[task].begun);
    }

    if (rc != NGX_OK) {
        ngx_bloom_jobs_saved(jobs, rc);
    }
}


/*
 * A copy is of a position in the journal: all before it is to be in the filter,
 * and on disk.
 */
static ngx_int_t
ngx_bloom_jobs_settle(ngx_bloom_jobs_t *jobs)
{
    ngx_int_t             rc;
    ngx_bloom_save_t     *save;
    ngx_bloom_zone_t     *zone;
    ngx_bloom_control_t  *control;

    zone = jobs->zone;
    save = &jobs->save;
    control = zone->state->control;

    ngx_memzero(save, sizeof(ngx_bloom_save_t));
    save->fd = NGX_INVALID_FILE;
    ngx_bloom_state_name(zone->state, save->tmp, "journal");

    if (zone->sh->generation == 0) {
        save->error = "has no filter that it belongs to: the zone is not "
                      "loaded";
        return NGX_ERROR;
    }

    if (ngx_bloom_catch_up(zone) != NGX_OK) {
        save->error = "has keys that the zone cannot read yet; try again, and "
                      "look at the error log";
        return NGX_ERROR;
    }

    if (ngx_bloom_lock(&control->keeper, NGX_BLOOM_JOBS_KEEPER) != NGX_OK) {

        /* whoever has it may be done with what matters here */

        if (__atomic_load_n(&control->synced, __ATOMIC_ACQUIRE)
            >= zone->sh->applied)
        {
            return NGX_OK;
        }

        save->error = "is being synchronised by another process, which takes "
                      "long; try again, and look at the disk";
        return NGX_ERROR;
    }

    rc = ngx_bloom_journal_sync(zone->state);

    if (rc != NGX_OK) {
        save->err = ngx_errno;
        save->error = "cannot be synchronised, as a copy of the zone needs";
    }

    ngx_bloom_unlock(&control->keeper);

    return rc;
}


void
ngx_bloom_jobs_step(ngx_bloom_jobs_t *jobs)
{
    ngx_int_t  rc;

    switch (jobs->current) {

    case NGX_BLOOM_JOBS_LOAD:
        rc = ngx_bloom_load_step(&jobs->load);

        if (rc == NGX_ERROR) {
            ngx_bloom_jobs_refused(jobs);

        } else if (rc == NGX_OK) {
            ngx_bloom_jobs_loaded(jobs);
        }

        break;

    case NGX_BLOOM_JOBS_COPY:
        rc = ngx_bloom_jobs_copy(jobs);

        if (rc == NGX_ERROR) {
            ngx_bloom_jobs_refused(jobs);

        } else if (rc == NGX_OK) {

            /* what was added meanwhile */

            jobs->saved = 1;
            jobs->current = NGX_BLOOM_JOBS_LOAD;
        }

        break;

    case NGX_BLOOM_JOBS_RELEASE:

        if (!ngx_bloom_load_release(jobs->zone, jobs->old,
                                    NGX_BLOOM_JOBS_RELEASE_STEP))
        {
            jobs->current = NGX_BLOOM_JOBS_NONE;
        }

        break;

    case NGX_BLOOM_JOBS_SAVE:
        rc = ngx_bloom_save_step(&jobs->save);

        if (rc != NGX_AGAIN) {
            ngx_bloom_jobs_saved(jobs, rc);
        }

        break;

    case NGX_BLOOM_JOBS_COMPACT:

        /* whatever else there is to do comes between its steps */

        if (ngx_bloom_compact_step(jobs->compact) == NGX_DONE) {
            ngx_bloom_compact_end(jobs->compact);
            jobs->compact = NULL;
        }

        jobs->current = NGX_BLOOM_JOBS_NONE;
        break;

    default: /* NGX_BLOOM_JOBS_NONE */
        break;
    }
}


void
ngx_bloom_jobs_abandon(ngx_bloom_jobs_t *jobs)
{
    if (jobs->current == NGX_BLOOM_JOBS_SAVE) {
        ngx_bloom_save_end(&jobs->save);

    } else if (jobs->current == NGX_BLOOM_JOBS_COPY) {
        ngx_bloom_jobs_close(jobs);
        ngx_bloom_load_end(&jobs->load);

    } else if (jobs->current != NGX_BLOOM_JOBS_NONE) {
        ngx_bloom_load_end(&jobs->load);
    }

    if (jobs->current != NGX_BLOOM_JOBS_NONE) {
        jobs->current = NGX_BLOOM_JOBS_NONE;
        ngx_bloom_unlock(&jobs->zone->sh->helper);
    }

    if (jobs->compact != NULL) {
        ngx_bloom_compact_end(jobs->compact);
        jobs->compact = NULL;
    }
}


/* An image is loaded, checked, and has the journal's keys. */
static void
ngx_bloom_jobs_loaded(ngx_bloom_jobs_t *jobs)
{
    ngx_bloom_zone_t  *zone;

    zone = jobs->zone;

    if (jobs->task == NGX_BLOOM_TASK_UPLOAD && !jobs->saved) {

        /* it must be there after a restart */

        ngx_bloom_state_name(zone->state, jobs->tmp, "upload.%P.tmp",
                             ngx_pid);

        jobs->copied = 0;
        jobs->from = ngx_bloom_io_open(jobs->path, O_RDONLY);
        jobs->to = ngx_bloom_io_open(jobs->tmp, O_RDWR|O_CREAT|O_TRUNC);
        jobs->current = NGX_BLOOM_JOBS_COPY;

        return;
    }

    ngx_bloom_jobs_switch(jobs);
}


static ngx_int_t
ngx_bloom_jobs_copy(ngx_bloom_jobs_t *jobs)
{
    u_char            *buf;
    ssize_t            n;
    ngx_err_t          err;
    ngx_int_t          rc;
    ngx_bloom_zone_t  *zone;

    zone = jobs->zone;
    rc = NGX_ERROR;
    buf = malloc(BLOOM_IMAGE_CHUNK);

    if (buf == NULL || jobs->from == NGX_INVALID_FILE
        || jobs->to == NGX_INVALID_FILE)
    {
        goto done;
    }

    n = ngx_bloom_io_read(jobs->from, buf, BLOOM_IMAGE_CHUNK, jobs->copied);

    if (n > 0 && ngx_bloom_io_write(jobs->to, buf, n, jobs->copied) == NGX_OK) {
        jobs->copied += n;
        free(buf);
        return NGX_AGAIN;
    }

    if (n == 0 && ngx_bloom_io_sync(jobs->to) == NGX_OK) {
        rc = NGX_OK;
    }

done:

    err = ngx_errno;

    free(buf);
    ngx_bloom_jobs_close(jobs);

    if (rc != NGX_OK) {
        (void) ngx_bloom_io_remove(jobs->tmp);
    }

    if (rc != NGX_OK) {
        jobs->load.outcome = NGX_BLOOM_FAILED;
        ngx_bloom_print(jobs->load.error, sizeof(jobs->load.error),
                            "the image cannot be kept in \"%V\" (%d: %s)",
                            &zone->state->path, err, strerror(err));
    }

    return rc;
}


static void
ngx_bloom_jobs_close(ngx_bloom_jobs_t *jobs)
{
    ngx_bloom_io_close(&jobs->from);
    ngx_bloom_io_close(&jobs->to);
}


/*
 * Names the image that serves the base: a crash before this is done leaves the
 * one before, which still has all of the journal that it needs, and nobody was
 * told otherwise.
 */
static ngx_int_t
ngx_bloom_jobs_rebase(ngx_bloom_jobs_t *jobs, ngx_uint_t uploaded)
{
    u_char             name[NGX_MAX_PATH];
    uint64_t           position;
    ngx_bloom_zone_t  *zone;

    zone = jobs->zone;

    if (zone->state == NULL) {
        return NGX_OK;
    }

    if (!uploaded) {
        ngx_bloom_state_files_remove(zone->state, "upload.", NULL, 0);

        if (ngx_bloom_io_sync_directory(zone->state->path.data) != NGX_OK) {
            return NGX_ERROR;
        }

    } else {
        ngx_bloom_state_files_upload(zone->state, zone->sh->file
                                     ? zone->sh->file_build : NULL, name);

        if (ngx_bloom_io_rename(zone->state->path.data, jobs->tmp, name)
            != NGX_OK)
        {
            return NGX_ERROR;
        }

        ngx_bloom_state_files_remove(zone->state, "upload.", name, 0);
    }

    /* a start would use a checkpoint that was made of this image before */

    if (ngx_bloom_state_files_find(zone->state, jobs->load.image.build_id,
                                   name, &position)
        == NGX_OK)
    {
        zone->sh->checkpoint = position;
    }

    return NGX_OK;
}


static void
ngx_bloom_jobs_switch(ngx_bloom_jobs_t *jobs)
{
    ngx_uint_t           uploaded;
    ngx_bloom_zone_t    *zone;
    ngx_bloom_shctx_t   *sh;
    ngx_bloom_result_t   result;

    zone = jobs->zone;
    sh = zone->sh;
    uploaded = (jobs->task == NGX_BLOOM_TASK_UPLOAD);

    if (ngx_bloom_load_switch(&jobs->load, uploaded) != NGX_OK) {

        if (uploaded) {
            (void) ngx_bloom_io_remove(jobs->tmp);
        }

        ngx_bloom_jobs_refused(jobs);
        return;
    }

    ngx_memzero(&result, sizeof(ngx_bloom_result_t));
    result.outcome = NGX_BLOOM_DONE;

    if (ngx_bloom_jobs_rebase(jobs, uploaded) != NGX_OK) {
        result.outcome = NGX_BLOOM_FAILED;

        ngx_bloom_print(result.message, sizeof(result.message),
                        "the image serves, but after a restart the one before "
                        "will: \"%V\" cannot be written (%d: %s)",
                        &zone->state->path, ngx_errno, strerror(ngx_errno));

        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "bloom zone \"%V\": %s", &zone->name, result.message);

    } else {
        sh->based = sh->generation;
    }

    if (!uploaded) {
        sh->file_id = jobs->file_id;
        ngx_memcpy(sh->file_build, jobs->load.image.build_id,
                   BLOOM_IMAGE_BUILD_ID_LEN);
    }

    ngx_bloom_load_end(&jobs->load);

    ngx_bloom_jobs_done(jobs, &result, jobs->load.begun);

    ngx_bloom_log_serves(&jobs->load, ngx_cycle->log, "serves",
                         uploaded ? "an uploaded image"
                                     : (char *) jobs->path);

    jobs->cleaned = ngx_current_msec - NGX_BLOOM_JOBS_CLEAN;
    jobs->measure_hugepages = ngx_current_msec;
    jobs->current = NGX_BLOOM_JOBS_RELEASE;
}


static void
ngx_bloom_jobs_refused(ngx_bloom_jobs_t *jobs)
{
    ngx_bloom_zone_t    *zone;
    ngx_bloom_result_t   result;

    zone = jobs->zone;

    if (jobs->task == NGX_BLOOM_TASK_LOAD
        && jobs->load.outcome != NGX_BLOOM_FAILED)
    {
        jobs->refused = jobs->file_id;
    }

    ngx_memzero(&result, sizeof(ngx_bloom_result_t));

    result.outcome = jobs->load.outcome;
    ngx_cpystrn(result.message, jobs->load.error, sizeof(result.message));

    ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                  "%s; bloom zone \"%V\" goes on with generation %uL",
                  jobs->load.error, &zone->name, zone->sh->generation);

    ngx_bloom_load_end(&jobs->load);
    ngx_bloom_jobs_done(jobs, &result, jobs->load.begun);

    /* what was loaded of it */

    jobs->old = jobs->load.bank;
    jobs->current = NGX_BLOOM_JOBS_RELEASE;
}


static void
ngx_bloom_jobs_saved(ngx_bloom_jobs_t *jobs, ngx_int_t rc)
{
    ngx_bloom_save_t    *save;
    ngx_bloom_zone_t    *zone;
    ngx_bloom_result_t   result;

    zone = jobs->zone;
    save = &jobs->save;

    ngx_memzero(&result, sizeof(ngx_bloom_result_t));

    if (rc == NGX_OK) {
        ngx_cpystrn(result.name, ngx_bloom_state_files_name(save->name),
                    sizeof(result.name));

    } else {
        result.outcome = NGX_BLOOM_FAILED;

        if (rc == NGX_DECLINED) {
            save->err = 0;
            save->error = "became of no use: another image serves";
        }

        if (save->err != 0) {
            ngx_bloom_print(result.message, sizeof(result.message),
                            "\"%s\" %s (%d: %s)", save->tmp, save->error,
                            save->err, strerror(save->err));

        } else {
            ngx_bloom_print(result.message, sizeof(result.message),
                            "\"%s\" %s", save->tmp, save->error);
        }

        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "bloom zone \"%V\": %s", &zone->name, result.message);

        jobs->save_failed = ngx_current_msec;
    }

    ngx_bloom_save_end(save);

    jobs->current = NGX_BLOOM_JOBS_NONE;

    if (jobs->asked) {
        ngx_bloom_jobs_done(jobs, &result, jobs->save_begun);
    }
}


static void
ngx_bloom_jobs_done(ngx_bloom_jobs_t *jobs, ngx_bloom_result_t *result,
    uint64_t begun)
{
    ngx_uint_t                 all;
    ngx_bloom_zone_t          *zone;
    ngx_bloom_image_id_t  id;

    zone = jobs->zone;

    result->generation = zone->sh->generation;
    result->started_at = begun;
    result->duration = ngx_bloom_time() - begun;

    if (jobs->task == NGX_BLOOM_TASK_LOAD
        || jobs->task == NGX_BLOOM_TASK_UPLOAD)
    {
        ngx_bloom_count(zone, NGX_BLOOM_COUNTER_LOAD_OK + result->outcome, 1);
        ngx_bloom_count(zone, NGX_BLOOM_COUNTER_LOAD_MS, result->duration);
    }

    /* who asked for the same file meanwhile has it as well */

    all = (jobs->task == NGX_BLOOM_TASK_LOAD
           && ngx_bloom_jobs_file_id(zone->sh->file_name, &id)
           && ngx_bloom_image_file_same(&id, &jobs->file_id));

    ngx_bloom_task_end(zone, jobs->task, result, all);
}
