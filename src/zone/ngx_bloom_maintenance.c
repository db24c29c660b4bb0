/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Each call takes about a millisecond, apart from waiting for the disk, which
 * only the helper may do.
 */

#include "ngx_bloom_maintenance.h"
#include "ngx_bloom_as_of.h"
#include "ngx_bloom_catch_up.h"
#include "ngx_bloom_clear.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_pending.h"
#include "ngx_bloom_replace.h"
#include "ngx_bloom_state_files.h"


/* How often the journal is synchronised even if nobody waits for it, ms.  While
 * that fails it is not tried more often, since each attempt writes everything
 * again. */
#define NGX_BLOOM_MAINTENANCE_SYNC          500


static ngx_uint_t ngx_bloom_maintenance_base(ngx_bloom_jobs_t *jobs);
static ngx_int_t ngx_bloom_maintenance_open_base(ngx_bloom_jobs_t *jobs);
static ngx_uint_t ngx_bloom_maintenance_is_base(ngx_bloom_jobs_t *jobs);
static void ngx_bloom_maintenance_log_base(ngx_bloom_jobs_t *jobs,
    ngx_err_t err, const char *error);
static void ngx_bloom_maintenance_log(ngx_bloom_jobs_t *jobs);
static ngx_int_t ngx_bloom_maintenance_clean(ngx_bloom_jobs_t *jobs);


ngx_msec_t
ngx_bloom_maintenance_journal(ngx_bloom_jobs_t *jobs)
{
    uint64_t              tail;
    ngx_bloom_state_t    *state;
    ngx_bloom_control_t  *control;

    state = jobs->zone->state;
    control = state->control;

    if (ngx_bloom_lock(&control->keeper, 0) != NGX_OK) {
        return NGX_BLOOM_JOBS_BUSY;     /* another process does it */
    }

    (void) ngx_bloom_journal_prepare(state);

    tail = ngx_bloom_state_tail(state);

    if (control->synced < tail
        && ((control->wanted > control->synced && !control->rewrite)
            || ngx_current_msec - jobs->synced >= NGX_BLOOM_MAINTENANCE_SYNC))
    {
        (void) ngx_bloom_journal_sync(state);
        ngx_bloom_pending_have_lost(jobs->zone);

        ngx_time_update();
        jobs->synced = ngx_current_msec;
    }

    ngx_bloom_unlock(&control->keeper);

    ngx_bloom_maintenance_log(jobs);

    return control->synced < ngx_bloom_state_tail(state)
           ? NGX_BLOOM_JOBS_BUSY : NGX_BLOOM_JOBS_IDLE;
}


ngx_msec_t
ngx_bloom_maintenance_zone(ngx_bloom_jobs_t *jobs)
{
    ngx_msec_t            next;
    ngx_bloom_zone_t     *zone;
    ngx_bloom_control_t  *control;

    zone = jobs->zone;
    control = zone->state->control;
    next = NGX_BLOOM_JOBS_IDLE;

    if (ngx_bloom_clear_settle(zone) != NGX_OK) {
        next = NGX_BLOOM_JOBS_IDLE / 10;
    }

    if (ngx_bloom_pending_drain(zone) != NGX_OK) {
        next = NGX_BLOOM_JOBS_IDLE / 10;
    }

    if (ngx_bloom_catch_up(zone) != NGX_OK) {
        next = NGX_BLOOM_JOBS_BUSY;
    }

    if (ngx_bloom_maintenance_base(jobs)) {
        next = NGX_BLOOM_JOBS_BUSY;
    }

    if (jobs->current == NGX_BLOOM_JOBS_NONE
        && ngx_current_msec - jobs->cleaned >= NGX_BLOOM_JOBS_CLEAN
        && ngx_bloom_lock(&control->keeper, 0) == NGX_OK)
    {
        if (ngx_bloom_maintenance_clean(jobs) == NGX_AGAIN) {
            next = NGX_BLOOM_JOBS_BUSY;

        } else {
            jobs->cleaned = ngx_current_msec;
        }

        ngx_bloom_unlock(&control->keeper);
    }

    /* workers of another nginx cannot wake this process */

    if (control->instances & ~((uint64_t) 1 << zone->state->instance)) {
        next = ngx_min(next, NGX_BLOOM_JOBS_BUSY);
    }

    return next;
}


/*
 * Synchronises the file of file= once its image serves, a slice at a time.
 * The program that wrote the file perhaps did not synchronise it.  Until it is
 * synchronised, the journal keeps what the file might lack after a power
 * failure.  Returns 1 while there is more to do.
 */
static ngx_uint_t
ngx_bloom_maintenance_base(ngx_bloom_jobs_t *jobs)
{
    ngx_int_t           rc;
    ngx_file_info_t     fi;
    ngx_bloom_shctx_t  *sh;

    sh = jobs->zone->sh;

    if (sh->based == sh->generation || !sh->file || sh->uploaded) {
        ngx_bloom_image_file_close(&jobs->base);
        return 0;
    }

    if (jobs->base.fd == NGX_INVALID_FILE) {
        return ngx_bloom_maintenance_open_base(jobs) == NGX_OK;
    }

    rc = (ngx_fd_info(jobs->base.fd, &fi) == NGX_FILE_ERROR) ? NGX_ERROR
                                                              : NGX_OK;

    if (rc == NGX_OK && jobs->base_synced < (uint64_t) ngx_file_size(&fi)) {
        rc = ngx_bloom_io_sync_slice(jobs->base.fd, jobs->base_synced);
        jobs->base_synced += NGX_BLOOM_IO_SLICE;

        if (rc == NGX_OK) {
            return 1;
        }
    }

    if (rc == NGX_OK) {
        rc = ngx_bloom_io_sync(jobs->base.fd);
    }

    if (rc != NGX_OK) {
        ngx_bloom_maintenance_log_base(jobs, ngx_errno,
                                       "cannot be synchronised");

    } else if (ngx_bloom_maintenance_is_base(jobs)) {
        sh->based = sh->generation;
        jobs->cleaned = ngx_current_msec - NGX_BLOOM_JOBS_CLEAN;
    }

    ngx_bloom_image_file_close(&jobs->base);

    return 0;
}


/* Opens file=.  Returns NGX_OK, or NGX_DECLINED if a start would not begin with
 * the image of file= that serves. */
static ngx_int_t
ngx_bloom_maintenance_open_base(ngx_bloom_jobs_t *jobs)
{
    u_char              name[NGX_MAX_PATH];
    ngx_bloom_zone_t   *zone;
    ngx_bloom_shctx_t  *sh;

    zone = jobs->zone;
    sh = zone->sh;

    if (ngx_current_msec - jobs->base_tried < NGX_BLOOM_JOBS_CLEAN) {
        return NGX_DECLINED;
    }

    jobs->base_tried = ngx_current_msec;

    /* a start would use an upload instead: one that could not be loaded, or
     * that a process did not remove because it died */

    ngx_bloom_state_files_upload(sh->file_build, name);

    if (faccessat(zone->state->dir, (char *) name, F_OK, 0) == 0) {
        return NGX_DECLINED;
    }

    jobs->base.name.data = sh->file_name;
    jobs->base.name.len = ngx_strlen(sh->file_name);
    jobs->base_synced = 0;

    if (ngx_bloom_image_file_open(&jobs->base) != NGX_OK) {
        ngx_bloom_maintenance_log_base(jobs, jobs->base.err, jobs->base.error);
        return NGX_DECLINED;
    }

    if (!ngx_bloom_maintenance_is_base(jobs)) {
        ngx_bloom_image_file_close(&jobs->base);
        return NGX_DECLINED;
    }

    return NGX_OK;
}


/* Returns 1 if the open file has the image that serves. */
static ngx_uint_t
ngx_bloom_maintenance_is_base(ngx_bloom_jobs_t *jobs)
{
    return ngx_memcmp(jobs->base.reader.image.build_id,
                      jobs->zone->sh->file_build, BLOOM_IMAGE_BUILD_ID_LEN)
           == 0;
}


/* Logs, once for each generation, why no segment is removed. */
static void
ngx_bloom_maintenance_log_base(ngx_bloom_jobs_t *jobs, ngx_err_t err,
    const char *error)
{
    ngx_bloom_shctx_t  *sh;

    sh = jobs->zone->sh;

    if (jobs->base_logged == sh->generation) {
        return;
    }

    jobs->base_logged = sh->generation;

    ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, err,
                  "bloom zone \"%V\": nothing is removed from the journal in "
                  "\"%V\" until the image that serves is known to be on disk, "
                  "and \"%s\" %s%s", &jobs->zone->name,
                  &jobs->zone->state->path, sh->file_name, error,
                  err ? "; correct its owner or mode, or check its disk"
                      : "");
}


/* Logs once that the journal fails, and once that it works again. */
static void
ngx_bloom_maintenance_log(ngx_bloom_jobs_t *jobs)
{
    uint64_t              failed;
    ngx_bloom_zone_t     *zone;
    ngx_bloom_control_t  *control;

    zone = jobs->zone;
    control = zone->state->control;
    failed = __atomic_load_n(&control->failed, __ATOMIC_ACQUIRE);

    if (failed == jobs->failed) {
        return;
    }

    jobs->failed = failed;

    if (failed == 0) {
        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                      "bloom zone \"%V\": the journal in \"%V\" can be "
                      "written again", &zone->name, &zone->state->path);
        return;
    }

    ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, (ngx_err_t) control->err,
                  "bloom zone \"%V\": %s (\"%V\")", &zone->name,
                  ngx_bloom_state_error(failed, (ngx_err_t) control->err),
                  &zone->state->path);
}


/*
 * Forgets instances that have ended and removes files that nobody needs.
 * Returns NGX_OK, or NGX_AGAIN if there may be another segment to remove.
 */
static ngx_int_t
ngx_bloom_maintenance_clean(ngx_bloom_jobs_t *jobs)
{
    u_char              name[NGX_MAX_PATH];
    uint64_t            cut;
    bloom_image_t      *image;
    bloom_source_t     *source;
    ngx_bloom_zone_t   *zone;
    ngx_bloom_shctx_t  *sh;

    static bloom_source_t  none;

    zone = jobs->zone;
    sh = zone->sh;

    ngx_bloom_state_prune(zone->state);

    ngx_bloom_state_files_clean(zone->state, NGX_BLOOM_STATE_FILES_DEAD);
    (void) ngx_bloom_state_files_unused(zone->state, "body.", NULL);
    ngx_bloom_snapshot_clean(&jobs->snapshot, zone);

    if (zone->state->control->instances
        == (uint64_t) 1 << zone->state->instance)
    {
        /* remove uploads that replaced an image which file= no longer has */

        ngx_bloom_state_files_upload(sh->file ? sh->file_build : NULL, name);

        (void) ngx_bloom_state_files_remove(zone->state, "upload.", name);
    }

    if (ngx_bloom_replace_settle(zone->state) != NGX_OK) {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, ngx_errno,
                      "bloom zone \"%V\": a compaction of the journal in "
                      "\"%V\" cannot be completed; check the owner and the "
                      "mode of the directory, and its disk",
                      &zone->name, &zone->state->path);
        return NGX_OK;
    }

    if (sh->generation == 0 || sh->based != sh->generation) {
        return NGX_OK;     /* a start would load the previous image */
    }

    image = &sh->bank[sh->generation & 1].image;
    cut = ngx_bloom_as_of_cut(zone->state, image);

    source = (zone->source.len != 0) ? &image->source : &none;

    if ((cut == 0 && source->len == 0)
        || ngx_bloom_journal_drop(zone->state, cut, source) != NGX_OK)
    {
        return NGX_OK;
    }

    ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                  "bloom zone \"%V\": a segment of the journal was not needed "
                  "any more and has been removed", &zone->name);

    return NGX_AGAIN;
}
