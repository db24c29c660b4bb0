
/*
 * Maintenance takes a millisecond or so at a time, apart from waiting for the
 * disk, which the helper alone may do.
 */

#include "ngx_bloom_maintenance.h"
#include "ngx_bloom_catch_up.h"
#include "ngx_bloom_pending.h"
#include "ngx_bloom_replace.h"
#include "ngx_bloom_state_files.h"


/* How often the journal is synchronised at least, ms; and not more often while
 * that fails, since all is written again each time. */
#define NGX_BLOOM_MAINTENANCE_SYNC          500

/* When files are removed, in seconds.  A snapshot is opened at once by whoever
 * has asked for it. */
#define NGX_BLOOM_MAINTENANCE_SNAPSHOT_AGE  60
#define NGX_BLOOM_MAINTENANCE_TMP_AGE       3600


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
        return NGX_BLOOM_JOBS_BUSY;            /* another does */
    }

    (void) ngx_bloom_journal_prepare(state);

    tail = ngx_bloom_state_tail(state);

    if (control->synced < tail
        && ((control->wanted > control->synced && !control->rewrite)
            || ngx_current_msec - jobs->synced >= NGX_BLOOM_MAINTENANCE_SYNC))
    {
        (void) ngx_bloom_journal_sync(state);

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

    if (ngx_bloom_pending_drain(zone) != NGX_OK) {
        next = NGX_BLOOM_JOBS_IDLE / 10;
    }

    if (ngx_bloom_catch_up(zone) != NGX_OK) {
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

    /* another's worker cannot wake this process */

    if (control->instances & ~((uint64_t) 1 << zone->state->instance)) {
        next = ngx_min(next, NGX_BLOOM_JOBS_BUSY);
    }

    return next;
}


/* Says once that the journal fails, and once that it does not any more. */
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
    ngx_bloom_zone_t   *zone;
    ngx_bloom_shctx_t  *sh;

    zone = jobs->zone;
    sh = zone->sh;

    ngx_bloom_state_prune(zone->state);

    ngx_bloom_state_files_remove(zone->state, "snapshot.", NULL,
                                 NGX_BLOOM_MAINTENANCE_SNAPSHOT_AGE);
    ngx_bloom_state_files_remove(zone->state, "save.", NULL,
                                 NGX_BLOOM_MAINTENANCE_TMP_AGE);

    if (zone->state->control->instances
        == (uint64_t) 1 << zone->state->instance)
    {
        /* uploads in place of an image that file= is no more */

        ngx_bloom_state_files_upload(zone->state,
                                     sh->file ? sh->file_build : NULL, name);

        ngx_bloom_state_files_remove(zone->state, "upload.", name, 0);
    }

    if (ngx_bloom_replace_settle(zone->state) != NGX_OK) {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, ngx_errno,
                      "bloom zone \"%V\": compacting the journal in \"%V\" "
                      "cannot be brought to its end; look at the disk",
                      &zone->name, &zone->state->path);
        return NGX_OK;
    }

    if (sh->generation == 0 || sh->based != sh->generation) {
        return NGX_OK;     /* a start would need what the image before lacks */
    }

    cut = ngx_bloom_load_cut(&sh->bank[sh->generation & 1].image);

    if (cut == 0 || ngx_bloom_journal_drop(zone->state, cut) != NGX_OK) {
        return NGX_OK;
    }

    ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                  "bloom zone \"%V\": a segment of the journal is not "
                  "needed any more and was removed", &zone->name);

    return NGX_AGAIN;
}
