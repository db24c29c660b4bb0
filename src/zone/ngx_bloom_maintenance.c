/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Each call takes about a millisecond, apart from waiting for the disk, which
 * only the helper may do.
 */

#include "ngx_bloom_maintenance.h"
#include "ngx_bloom_as_of.h"
#include "ngx_bloom_base_file.h"
#include "ngx_bloom_catch_up.h"
#include "ngx_bloom_clear.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_journal_drop.h"
#include "ngx_bloom_lost.h"
#include "ngx_bloom_state_files.h"


/* How often the journal is synchronised even if nobody waits for it, ms.  While
 * that fails it is not tried more often, since each attempt writes everything
 * again. */
#define NGX_BLOOM_MAINTENANCE_SYNC          500


static void ngx_bloom_maintenance_log(ngx_bloom_jobs_t *jobs);
static void ngx_bloom_maintenance_log_ahead(ngx_bloom_jobs_t *jobs);
static ngx_int_t ngx_bloom_maintenance_clean(ngx_bloom_jobs_t *jobs);
static ngx_uint_t ngx_bloom_maintenance_stands(ngx_bloom_zone_t *zone,
    const bloom_base_t *base);
static ngx_int_t ngx_bloom_maintenance_drop(ngx_bloom_zone_t *zone,
    bloom_base_t *base);


ngx_msec_t
ngx_bloom_maintenance_journal(ngx_bloom_jobs_t *jobs)
{
    uint64_t              tail;
    ngx_int_t             prepared;
    ngx_bloom_state_t    *state;
    ngx_bloom_control_t  *control;

    state = jobs->zone->state;
    control = state->control;

    if (ngx_bloom_lock(&control->keeper, 0) != NGX_OK) {
        return NGX_BLOOM_JOBS_BUSY;     /* another process does it */
    }

    prepared = ngx_bloom_journal_prepare(state);

    tail = ngx_bloom_state_tail(state);

    if (control->synced < tail
        && ((control->wanted > control->synced && !control->rewrite)
            || ngx_current_msec - jobs->synced >= NGX_BLOOM_MAINTENANCE_SYNC))
    {
        (void) ngx_bloom_journal_sync(state);
        ngx_bloom_lost_by_disk(jobs->zone);

        ngx_time_update();
        jobs->synced = ngx_current_msec;
    }

    ngx_bloom_unlock(&control->keeper);

    ngx_bloom_maintenance_log(jobs);
    ngx_bloom_maintenance_log_ahead(jobs);

    return prepared == NGX_AGAIN
           || control->synced < ngx_bloom_state_tail(state)
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

    /* if a process has died with the lock, its change is applied now (I2), and
     * not only behind the next one */

    if (ngx_bloom_zone_lock(zone, 0) == NGX_OK) {

        /* an earlier helper may have died before it published a clear */

        if (!jobs->wiped) {
            jobs->wiped = (ngx_bloom_journal_wipe(zone->state) == NGX_OK);
        }

        ngx_bloom_zone_unlock(zone);
    }

    if (ngx_bloom_clear_settle(zone) != NGX_OK) {
        next = NGX_BLOOM_JOBS_IDLE / 10;
    }

    if (ngx_bloom_catch_up(zone) != NGX_OK) {
        next = NGX_BLOOM_JOBS_BUSY;
    }

    /* before a segment is removed that shows a loss */

    ngx_bloom_lost_sync(zone);

    if (ngx_bloom_stand_step(&jobs->stand, zone) == NGX_AGAIN) {
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


/* Logs once that a clock was ahead, whose time new records keep (I19). */
static void
ngx_bloom_maintenance_log_ahead(ngx_bloom_jobs_t *jobs)
{
    ngx_tm_t            tm;
    uint64_t            end;
    ngx_uint_t          ahead;
    ngx_bloom_zone_t   *zone;

    zone = jobs->zone;
    end = ngx_bloom_state_end(zone->state).time;
    ahead = (end > ngx_bloom_state_time(zone->state) + NGX_BLOOM_CLOCKS_DIFFER);

    if (ahead && !jobs->ahead) {
        ngx_gmtime((time_t) (end / 1000), &tm);

        ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                      "bloom zone \"%V\": the clock was ahead once, so the "
                      "journal in \"%V\" has times up to "
                      "%4d-%02d-%02dT%02d:%02d:%02dZ; until then new records "
                      "get that time, and no image covers them", &zone->name,
                      &zone->state->path, tm.ngx_tm_year, tm.ngx_tm_mon,
                      tm.ngx_tm_mday, tm.ngx_tm_hour, tm.ngx_tm_min,
                      tm.ngx_tm_sec);
    }

    jobs->ahead = ahead;
}


/*
 * Forgets instances that have ended and removes files that nobody needs.
 * Returns NGX_OK, or NGX_AGAIN if there may be another segment to remove.
 */
static ngx_int_t
ngx_bloom_maintenance_clean(ngx_bloom_jobs_t *jobs)
{
    bloom_base_t        base;
    ngx_bloom_zone_t   *zone;
    ngx_bloom_state_t  *state;

    zone = jobs->zone;
    state = zone->state;

    ngx_bloom_state_prune(state);

    ngx_bloom_state_files_clean(state, NGX_BLOOM_STATE_FILES_DEAD);
    (void) ngx_bloom_state_files_unused(state, "body.", NULL);
    ngx_bloom_snapshot_clean(&jobs->snapshot, zone);

    if (ngx_bloom_base_file_settle(state) != NGX_OK) {
        return NGX_OK;
    }

    ngx_bloom_base_file_get(state, &base);
    ngx_bloom_state_files_sweep(state, &base);

    if (ngx_bloom_segment_remove(state, base.from.position) != NGX_OK) {
        return NGX_OK;
    }

    if (zone->sh->generation == 0
        || ngx_bloom_maintenance_drop(zone, &base) != NGX_OK)
    {
        return NGX_OK;
    }

    ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                  "bloom zone \"%V\": a segment of the journal was not needed "
                  "any more and has been removed", &zone->name);

    return NGX_AGAIN;
}


/* Returns 1 if a start would load the image that serves, and that is the last
 * one that was accepted.  An empty filter covers nothing. */
static ngx_uint_t
ngx_bloom_maintenance_stands(ngx_bloom_zone_t *zone, const bloom_base_t *base)
{
    bloom_image_t      *image;
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;
    image = &sh->bank[sh->generation & 1].image;

    return sh->based == sh->generation
           && (sh->file || sh->uploaded)
           && ngx_memcmp(base->accepted[0].build_id, image->build_id,
                         BLOOM_IMAGE_BUILD_ID_LEN)
              == 0;
}


/*
 * Removes what no start needs from the beginning of the journal: what the older
 * checkpoint has, in a zone without file= (S5); what both accepted images cover
 * (S6); what has expired.  Returns NGX_OK if something was removed.
 */
static ngx_int_t
ngx_bloom_maintenance_drop(ngx_bloom_zone_t *zone, bloom_base_t *base)
{
    uint64_t            cut;
    bloom_source_t      source;
    ngx_bloom_state_t  *state;

    state = zone->state;

    /* this zone has loaded the newer checkpoint or the older one, or written
     * it, so one of them is good */

    if (!zone->sh->file
        && base->checkpoint[0].position <= zone->sh->checkpoint
        && ngx_bloom_journal_advance(state, base) == NGX_OK)
    {
        return (ngx_bloom_base_file_put(state, base) == NGX_OK
                && ngx_bloom_segment_remove(state, base->from.position)
                   == NGX_OK)
               ? NGX_OK : NGX_ERROR;
    }

    ngx_memzero(&source, sizeof(bloom_source_t));

    if (zone->expire != 0) {
        cut = ngx_bloom_state_expired(state);

    } else if (!ngx_bloom_maintenance_stands(zone, base)) {
        return NGX_DECLINED;

    } else {
        cut = ngx_bloom_as_of_both(state, base, &source);

        if (zone->source.len != 0 && !bloom_position_is_zero(source.position)) {
            source.len = (uint32_t) zone->source.len;
            ngx_memcpy(source.name, zone->source.data, zone->source.len);
        }
    }

    return (cut != 0 || source.len != 0)
           ? ngx_bloom_journal_drop(state, cut, &source) : NGX_DECLINED;
}
