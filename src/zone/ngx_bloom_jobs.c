
#include "ngx_bloom_jobs.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_log.h"
#include "ngx_bloom_task.h"
#include "ngx_bloom_maintenance.h"


/* After a checkpoint that failed, in ms. */
#define NGX_BLOOM_WORK_RETRY      10000

/* For a synchronisation under way, in ms. */
#define NGX_BLOOM_WORK_KEEPER     1000

/* Replay takes about a second for each of these; bytes. */
#define NGX_BLOOM_CHECKPOINT_MIN  (64 * 1024 * 1024)

#define NGX_BLOOM_RELEASE         (32 * 1024 * 1024)


static void ngx_bloom_work_load(ngx_bloom_work_t *work,
    ngx_bloom_task_e task);
static void ngx_bloom_work_save(ngx_bloom_work_t *work,
    ngx_bloom_task_e task);
static ngx_int_t ngx_bloom_work_settle(ngx_bloom_work_t *work);
static void ngx_bloom_work_loaded(ngx_bloom_work_t *work);
static ngx_int_t ngx_bloom_work_copy(ngx_bloom_work_t *work);
static void ngx_bloom_work_close(ngx_bloom_work_t *work);
static ngx_int_t ngx_bloom_work_rebase(ngx_bloom_work_t *work,
    ngx_uint_t uploaded);
static void ngx_bloom_work_switch(ngx_bloom_work_t *work);
static void ngx_bloom_work_refused(ngx_bloom_work_t *work);
static void ngx_bloom_work_saved(ngx_bloom_work_t *work, ngx_int_t rc);
static void ngx_bloom_work_done(ngx_bloom_work_t *work,
    ngx_bloom_result_t *result, uint64_t begun);
static ngx_uint_t ngx_bloom_work_file_id(u_char *name,
    ngx_bloom_file_id_t *id);


/* Has the file been replaced? */
void
ngx_bloom_work_look(ngx_bloom_work_t *work)
{
    uint64_t              ticket;
    const char           *error;
    ngx_bloom_zone_t     *zone;
    ngx_bloom_shctx_t    *sh;
    ngx_bloom_file_id_t   id;

    zone = work->zone;
    sh = zone->sh;

    if (zone->watch == 0
        || ngx_current_msec - work->looked < zone->watch
        || ngx_strcmp(zone->file.name.data, sh->file_name) != 0)
    {
        return;
    }

    work->looked = ngx_current_msec;

    if (!ngx_bloom_work_file_id(sh->file_name, &id)) {
        ngx_bloom_notice_missing(zone, ngx_errno);
        return;
    }

    sh->missing = 0;

    if (ngx_bloom_file_same(&id, &sh->file_id)
        || ngx_bloom_file_same(&id, &work->refused))
    {
        return;
    }

    (void) ngx_bloom_task_request(zone, NGX_BLOOM_TASK_LOAD, NULL, &ticket,
                                  &error);
}


static ngx_uint_t
ngx_bloom_work_file_id(u_char *name, ngx_bloom_file_id_t *id)
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


/* What to do next, if anything. */
void
ngx_bloom_work_choose(ngx_bloom_work_t *work)
{
    uint64_t              behind, limit;
    ngx_bloom_zone_t     *zone;
    ngx_bloom_shctx_t    *sh;

    zone = work->zone;
    sh = zone->sh;

    work->asked = 1;

    if (ngx_bloom_task_begin(zone, NGX_BLOOM_TASK_UPLOAD, work->path)
        == NGX_OK)
    {
        ngx_bloom_work_load(work, NGX_BLOOM_TASK_UPLOAD);
        return;
    }

    if (ngx_bloom_task_begin(zone, NGX_BLOOM_TASK_LOAD, NULL) == NGX_OK) {
        ngx_bloom_work_load(work, NGX_BLOOM_TASK_LOAD);
        return;
    }

    if (ngx_bloom_task_begin(zone, NGX_BLOOM_TASK_CHECKPOINT, NULL)
        == NGX_OK)
    {
        ngx_bloom_work_save(work, NGX_BLOOM_TASK_CHECKPOINT);
        return;
    }

    if (ngx_bloom_task_begin(zone, NGX_BLOOM_TASK_SNAPSHOT, NULL) == NGX_OK) {
        ngx_bloom_work_save(work, NGX_BLOOM_TASK_SNAPSHOT);
        return;
    }

    if (zone->state == NULL) {
        return;
    }

    /* would a start take long? */

    behind = ngx_max(sh->checkpoint, zone->state->control->begin);
    limit = ngx_max(NGX_BLOOM_CHECKPOINT_MIN,
                    bloom_image_payload_size(&sh->bank[sh->generation & 1]
                                              .image));

    if (sh->generation != 0
        && sh->applied > behind && sh->applied - behind > limit
        && ngx_current_msec - work->save_failed >= NGX_BLOOM_WORK_RETRY)
    {
        work->asked = 0;
        ngx_bloom_work_save(work, NGX_BLOOM_TASK_CHECKPOINT);
        return;
    }

    if (work->compact == NULL) {
        work->compact = ngx_bloom_compact_begin(zone->state, sh->generation,
                                                &zone->name);
    }

    if (work->compact != NULL) {
        work->does = NGX_BLOOM_WORK_COMPACTS;
    }
}


static void
ngx_bloom_work_load(ngx_bloom_work_t *work, ngx_bloom_task_e task)
{
    ngx_int_t          rc;
    ngx_str_t          name;
    ngx_bloom_zone_t  *zone;

    zone = work->zone;

    work->does = NGX_BLOOM_WORK_LOADS;
    work->task = task;
    work->old = zone->sh->generation & 1;
    work->saved = 0;

    /* not zone->file: that may be of the cycle before */

    if (task == NGX_BLOOM_TASK_LOAD) {
        ngx_cpystrn(work->path, zone->sh->file_name, NGX_MAX_PATH);
    }

    name.data = work->path;
    name.len = ngx_strlen(work->path);

    rc = ngx_bloom_load_begin(&work->load, zone, &name, NULL, 0,
                              task == NGX_BLOOM_TASK_UPLOAD
                              ? "the uploaded image" : NULL);

    work->file_id = work->load.file.id;

    if (rc != NGX_OK) {
        ngx_bloom_work_refused(work);
    }
}


static void
ngx_bloom_work_save(ngx_bloom_work_t *work, ngx_bloom_task_e task)
{
    ngx_int_t           rc;
    ngx_bloom_zone_t   *zone;

    zone = work->zone;

    work->does = NGX_BLOOM_WORK_SAVES;
    work->task = task;
    work->save_begun = ngx_bloom_time();

    rc = ngx_bloom_work_settle(work);

    if (rc == NGX_OK) {
        rc = ngx_bloom_save_begin(&work->save, zone, task,
                                  zone->sh->task[task].begun);
    }

    if (rc != NGX_OK) {
        ngx_bloom_work_saved(work, rc);
    }
}


/*
 * A copy is of a position in the journal: all before it is to be in the filter,
 * and on disk.
 */
static ngx_int_t
ngx_bloom_work_settle(ngx_bloom_work_t *work)
{
    ngx_int_t             rc;
    ngx_bloom_save_t     *save;
    ngx_bloom_zone_t     *zone;
    ngx_bloom_control_t  *control;

    zone = work->zone;
    save = &work->save;
    control = zone->state->control;

    ngx_memzero(save, sizeof(ngx_bloom_save_t));
    save->fd = NGX_INVALID_FILE;
    ngx_bloom_state_name(zone->state, save->tmp, "journal");

    if (zone->sh->generation == 0) {
        save->error = "has no filter that it belongs to: the zone is not "
                      "loaded";
        return NGX_ERROR;
    }

    if (ngx_bloom_upkeep_follow(zone) != NGX_OK) {
        save->error = "has keys that the zone cannot read yet; try again, and "
                      "look at the error log";
        return NGX_ERROR;
    }

    if (ngx_bloom_lock(&control->keeper, NGX_BLOOM_WORK_KEEPER) != NGX_OK) {

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
ngx_bloom_work_step(ngx_bloom_work_t *work)
{
    ngx_int_t  rc;

    switch (work->does) {

    case NGX_BLOOM_WORK_LOADS:
        rc = ngx_bloom_load_step(&work->load);

        if (rc == NGX_ERROR) {
            ngx_bloom_work_refused(work);

        } else if (rc == NGX_OK) {
            ngx_bloom_work_loaded(work);
        }

        break;

    case NGX_BLOOM_WORK_COPIES:
        rc = ngx_bloom_work_copy(work);

        if (rc == NGX_ERROR) {
            ngx_bloom_work_refused(work);

        } else if (rc == NGX_OK) {

            /* what was added meanwhile */

            work->saved = 1;
            work->does = NGX_BLOOM_WORK_LOADS;
        }

        break;

    case NGX_BLOOM_WORK_RELEASES:

        if (!ngx_bloom_load_release(work->zone, work->old,
                                    NGX_BLOOM_RELEASE))
        {
            work->does = NGX_BLOOM_WORK_NOTHING;
        }

        break;

    case NGX_BLOOM_WORK_SAVES:
        rc = ngx_bloom_save_step(&work->save);

        if (rc != NGX_AGAIN) {
            ngx_bloom_work_saved(work, rc);
        }

        break;

    case NGX_BLOOM_WORK_COMPACTS:

        /* whatever else there is to do comes between its steps */

        if (ngx_bloom_compact_step(work->compact) == NGX_DONE) {
            ngx_bloom_compact_end(work->compact);
            work->compact = NULL;
        }

        work->does = NGX_BLOOM_WORK_NOTHING;
        break;

    default: /* NGX_BLOOM_WORK_NOTHING */
        break;
    }
}


void
ngx_bloom_work_abandon(ngx_bloom_work_t *work)
{
    if (work->does == NGX_BLOOM_WORK_SAVES) {
        ngx_bloom_save_end(&work->save);

    } else if (work->does == NGX_BLOOM_WORK_COPIES) {
        ngx_bloom_work_close(work);
        ngx_bloom_load_end(&work->load);

    } else if (work->does != NGX_BLOOM_WORK_NOTHING) {
        ngx_bloom_load_end(&work->load);
    }

    if (work->does != NGX_BLOOM_WORK_NOTHING) {
        work->does = NGX_BLOOM_WORK_NOTHING;
        ngx_bloom_unlock(&work->zone->sh->helper);
    }

    if (work->compact != NULL) {
        ngx_bloom_compact_end(work->compact);
        work->compact = NULL;
    }
}


/* An image is loaded, checked, and has the journal's keys. */
static void
ngx_bloom_work_loaded(ngx_bloom_work_t *work)
{
    ngx_bloom_zone_t  *zone;

    zone = work->zone;

    if (work->task == NGX_BLOOM_TASK_UPLOAD && !work->saved) {

        /* it must be there after a restart */

        ngx_bloom_state_name(zone->state, work->tmp, "upload.%P.tmp",
                             ngx_pid);

        work->copied = 0;
        work->from = ngx_bloom_io_open(work->path, O_RDONLY);
        work->to = ngx_bloom_io_open(work->tmp, O_RDWR|O_CREAT|O_TRUNC);
        work->does = NGX_BLOOM_WORK_COPIES;

        return;
    }

    ngx_bloom_work_switch(work);
}


static ngx_int_t
ngx_bloom_work_copy(ngx_bloom_work_t *work)
{
    u_char            *buf;
    ssize_t            n;
    ngx_err_t          err;
    ngx_int_t          rc;
    ngx_bloom_zone_t  *zone;

    zone = work->zone;
    rc = NGX_ERROR;
    buf = malloc(BLOOM_IMAGE_CHUNK);

    if (buf == NULL || work->from == NGX_INVALID_FILE
        || work->to == NGX_INVALID_FILE)
    {
        goto done;
    }

    n = ngx_bloom_io_read(work->from, buf, BLOOM_IMAGE_CHUNK, work->copied);

    if (n > 0 && ngx_bloom_io_write(work->to, buf, n, work->copied) == NGX_OK) {
        work->copied += n;
        free(buf);
        return NGX_AGAIN;
    }

    if (n == 0 && ngx_bloom_io_sync(work->to) == NGX_OK) {
        rc = NGX_OK;
    }

done:

    err = ngx_errno;

    free(buf);
    ngx_bloom_work_close(work);

    if (rc != NGX_OK) {
        (void) ngx_bloom_io_remove(work->tmp);
    }

    if (rc != NGX_OK) {
        work->load.outcome = NGX_BLOOM_FAILED;
        ngx_bloom_print(work->load.error, sizeof(work->load.error),
                            "the image cannot be kept in \"%V\" (%d: %s)",
                            &zone->state->path, err, strerror(err));
    }

    return rc;
}


static void
ngx_bloom_work_close(ngx_bloom_work_t *work)
{
    if (work->from != NGX_INVALID_FILE) {
        (void) ngx_close_file(work->from);
        work->from = NGX_INVALID_FILE;
    }

    if (work->to != NGX_INVALID_FILE) {
        (void) ngx_close_file(work->to);
        work->to = NGX_INVALID_FILE;
    }
}


/*
 * Names the image that serves the base: a crash before this is done leaves the
 * one before, which still has all of the journal that it needs, and nobody was
 * told otherwise.
 */
static ngx_int_t
ngx_bloom_work_rebase(ngx_bloom_work_t *work, ngx_uint_t uploaded)
{
    u_char             name[NGX_MAX_PATH];
    uint64_t           position;
    ngx_bloom_zone_t  *zone;

    zone = work->zone;

    if (zone->state == NULL) {
        return NGX_OK;
    }

    if (!uploaded) {
        ngx_bloom_save_remove(zone->state, "upload.", NULL, 0);

        if (ngx_bloom_io_sync_directory(zone->state->path.data) != NGX_OK) {
            return NGX_ERROR;
        }

    } else {
        ngx_bloom_save_upload_name(zone->state, zone->sh->file
                                   ? zone->sh->file_build
                                   : ngx_bloom_save_empty, name);

        if (ngx_bloom_io_rename(zone->state->path.data, work->tmp, name)
            != NGX_OK)
        {
            return NGX_ERROR;
        }

        ngx_bloom_save_remove(zone->state, "upload.",
                              (u_char *) strrchr((char *) name, '/') + 1, 0);
    }

    /* a start would use a checkpoint that was made of this image before */

    if (ngx_bloom_save_find(zone->state, work->load.image.build_id, name,
                            &position)
        == NGX_OK)
    {
        zone->sh->checkpoint = position;
    }

    return NGX_OK;
}


static void
ngx_bloom_work_switch(ngx_bloom_work_t *work)
{
    ngx_uint_t           uploaded;
    ngx_bloom_zone_t    *zone;
    ngx_bloom_shctx_t   *sh;
    ngx_bloom_result_t   result;

    zone = work->zone;
    sh = zone->sh;
    uploaded = (work->task == NGX_BLOOM_TASK_UPLOAD);

    if (ngx_bloom_load_switch(&work->load, uploaded) != NGX_OK) {

        if (uploaded) {
            (void) ngx_bloom_io_remove(work->tmp);
        }

        ngx_bloom_work_refused(work);
        return;
    }

    ngx_memzero(&result, sizeof(ngx_bloom_result_t));
    result.outcome = NGX_BLOOM_DONE;

    if (ngx_bloom_work_rebase(work, uploaded) != NGX_OK) {
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
        sh->file_id = work->file_id;
        ngx_memcpy(sh->file_build, work->load.image.build_id,
                   BLOOM_IMAGE_BUILD_ID_LEN);
    }

    ngx_bloom_load_end(&work->load);

    ngx_bloom_work_done(work, &result, work->load.begun);

    ngx_bloom_notice_serves(&work->load, ngx_cycle->log, "serves",
                            uploaded ? "an uploaded image"
                                     : (char *) work->path);

    work->housed = ngx_current_msec - NGX_BLOOM_UPKEEP_HOUSE;
    work->count_huge = ngx_current_msec;
    work->does = NGX_BLOOM_WORK_RELEASES;
}


static void
ngx_bloom_work_refused(ngx_bloom_work_t *work)
{
    ngx_bloom_zone_t    *zone;
    ngx_bloom_result_t   result;

    zone = work->zone;

    if (work->task == NGX_BLOOM_TASK_LOAD
        && work->load.outcome != NGX_BLOOM_FAILED)
    {
        work->refused = work->file_id;
    }

    ngx_memzero(&result, sizeof(ngx_bloom_result_t));

    result.outcome = work->load.outcome;
    ngx_cpystrn(result.message, work->load.error, sizeof(result.message));

    ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                  "%s; bloom zone \"%V\" goes on with generation %uL",
                  work->load.error, &zone->name, zone->sh->generation);

    ngx_bloom_load_end(&work->load);
    ngx_bloom_work_done(work, &result, work->load.begun);

    /* what was loaded of it */

    work->old = work->load.bank;
    work->does = NGX_BLOOM_WORK_RELEASES;
}


static void
ngx_bloom_work_saved(ngx_bloom_work_t *work, ngx_int_t rc)
{
    ngx_bloom_save_t    *save;
    ngx_bloom_zone_t    *zone;
    ngx_bloom_result_t   result;

    zone = work->zone;
    save = &work->save;

    ngx_memzero(&result, sizeof(ngx_bloom_result_t));

    if (rc == NGX_OK) {
        ngx_cpystrn(result.name, (u_char *) strrchr((char *) save->name, '/')
                                 + 1,
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

        work->save_failed = ngx_current_msec;
    }

    ngx_bloom_save_end(save);

    work->does = NGX_BLOOM_WORK_NOTHING;

    if (work->asked) {
        ngx_bloom_work_done(work, &result, work->save_begun);
    }
}


static void
ngx_bloom_work_done(ngx_bloom_work_t *work, ngx_bloom_result_t *result,
    uint64_t begun)
{
    ngx_uint_t            all;
    ngx_bloom_zone_t     *zone;
    ngx_bloom_file_id_t   id;

    zone = work->zone;

    result->generation = zone->sh->generation;
    result->when = begun;
    result->took = ngx_bloom_time() - begun;

    if (work->task == NGX_BLOOM_TASK_LOAD
        || work->task == NGX_BLOOM_TASK_UPLOAD)
    {
        ngx_bloom_count(zone, NGX_BLOOM_COUNT_LOAD_OK + result->outcome, 1);
        ngx_bloom_count(zone, NGX_BLOOM_COUNT_LOAD_MS, result->took);
    }

    /* who asked for the same file meanwhile has it as well */

    all = (work->task == NGX_BLOOM_TASK_LOAD
           && ngx_bloom_work_file_id(zone->sh->file_name, &id)
           && ngx_bloom_file_same(&id, &work->file_id));

    ngx_bloom_task_end(zone, work->task, result, all);
}
