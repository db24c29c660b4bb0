/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A round takes about a millisecond, apart from waiting for the disk, which
 * only the helper may do.
 */

#include "ngx_bloom_maintenance.h"
#include "ngx_bloom_as_of.h"
#include "ngx_bloom_base_change.h"
#include "ngx_bloom_base_file.h"
#include "ngx_bloom_catch_up.h"
#include "ngx_bloom_clear.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_job.h"
#include "ngx_bloom_journal_drop.h"
#include "ngx_bloom_log.h"
#include "ngx_bloom_lost.h"
#include "ngx_bloom_owed.h"
#include "ngx_bloom_snapshot.h"
#include "ngx_bloom_state_files.h"
#include "ngx_bloom_task.h"
#include "ngx_bloom_task_died.h"
#include "ngx_bloom_watch.h"


/* How often the journal is synchronised even if nobody waits for it, ms.  While
 * that fails it is not tried more often, since each attempt writes everything
 * again. */
#define NGX_BLOOM_MAINTENANCE_SYNC       500

/* How often files that nobody needs are removed, ms. */
#define NGX_BLOOM_MAINTENANCE_CLEAN      10000

/* After how many ms huge pages are measured again, at least. */
#define NGX_BLOOM_MAINTENANCE_HUGEPAGES  10000


static ngx_msec_t ngx_bloom_maintenance_journal(ngx_bloom_maintenance_t *work);
static ngx_msec_t ngx_bloom_maintenance_filter(ngx_bloom_maintenance_t *work);
static ngx_msec_t ngx_bloom_maintenance_settle(ngx_bloom_maintenance_t *work);
static ngx_msec_t ngx_bloom_maintenance_files(ngx_bloom_maintenance_t *work,
    ngx_uint_t *due);
static void ngx_bloom_maintenance_tidy(ngx_bloom_maintenance_t *work);
static void ngx_bloom_maintenance_begin(ngx_bloom_maintenance_t *work);
static void ngx_bloom_maintenance_hugepages(ngx_bloom_maintenance_t *work);
static void ngx_bloom_maintenance_log(ngx_bloom_maintenance_t *work);
static void ngx_bloom_maintenance_log_ahead(ngx_bloom_maintenance_t *work);
static ngx_int_t ngx_bloom_maintenance_clean(ngx_bloom_maintenance_t *work);
static ngx_uint_t ngx_bloom_maintenance_stands(ngx_bloom_zone_t *zone,
    const bloom_base_t *base);
static ngx_int_t ngx_bloom_maintenance_drop(ngx_bloom_zone_t *zone,
    bloom_base_t *base);


ngx_msec_t
ngx_bloom_maintenance(ngx_bloom_maintenance_t *work, ngx_uint_t *due)
{
    ngx_msec_t          next, wait;
    ngx_uint_t          died;
    ngx_bloom_zone_t   *zone;
    ngx_bloom_shctx_t  *sh;

    zone = work->zone;
    sh = zone->sh;
    next = NGX_BLOOM_MAINTENANCE_IDLE;

    __atomic_store_n(&sh->heartbeat, ngx_current_msec, __ATOMIC_RELAXED);

    ngx_bloom_owed_settle(zone);

    if (zone->state != NULL) {
        next = ngx_bloom_maintenance_journal(work);

        /* before this round applies what it requires */

        wait = ngx_bloom_maintenance_settle(work);
        next = ngx_min(next, wait);
    }

    if (ngx_bloom_lock(&sh->applying, 0) != NGX_OK) {
        next = NGX_BLOOM_MAINTENANCE_BUSY;     /* another process does it */

    } else {
        wait = ngx_bloom_maintenance_filter(work);
        next = ngx_min(next, wait);

        ngx_bloom_unlock(&sh->applying);
    }

    *due = 0;

    if (ngx_bloom_lock_died(&sh->helper, 0, &died) != NGX_OK) {
        return ngx_min(next, NGX_BLOOM_MAINTENANCE_BUSY);
    }

    if (died) {

        /* a job has died, perhaps one of another helper: remove its files */

        work->tidy = 0;
        work->wiped = 0;
    }

    wait = ngx_bloom_maintenance_files(work, due);

    ngx_bloom_unlock(&sh->helper);

    return ngx_min(next, wait);
}


/* Creates segments and synchronises the journal, on behalf of all instances of
 * the zone. */
static ngx_msec_t
ngx_bloom_maintenance_journal(ngx_bloom_maintenance_t *work)
{
    uint64_t              tail;
    ngx_int_t             prepared;
    ngx_bloom_state_t    *state;
    ngx_bloom_control_t  *control;

    state = work->zone->state;
    control = state->control;

    if (ngx_bloom_lock(&control->keeper, 0) != NGX_OK) {
        return NGX_BLOOM_MAINTENANCE_BUSY;     /* another process does it */
    }

    prepared = ngx_bloom_journal_prepare(state);

    tail = ngx_bloom_state_tail(state);

    if (control->synced < tail
        && ((control->wanted > control->synced && !control->rewrite)
            || ngx_current_msec - work->synced >= NGX_BLOOM_MAINTENANCE_SYNC))
    {
        (void) ngx_bloom_journal_sync(state);
        ngx_bloom_lost_by_disk(work->zone);

        ngx_time_update();
        work->synced = ngx_current_msec;
    }

    ngx_bloom_unlock(&control->keeper);

    ngx_bloom_maintenance_log(work);
    ngx_bloom_maintenance_log_ahead(work);

    return prepared == NGX_AGAIN
           || control->synced < ngx_bloom_state_tail(state)
           ? NGX_BLOOM_MAINTENANCE_BUSY : NGX_BLOOM_MAINTENANCE_IDLE;
}


/* Brings the filter that serves up to date.  The caller holds sh->applying, so
 * no other generation serves meanwhile. */
static ngx_msec_t
ngx_bloom_maintenance_filter(ngx_bloom_maintenance_t *work)
{
    ngx_msec_t           next, wait;
    ngx_bloom_zone_t    *zone;
    ngx_bloom_shctx_t   *sh;

    zone = work->zone;
    sh = zone->sh;
    next = NGX_BLOOM_MAINTENANCE_IDLE;

    if (zone->adapts) {
        ngx_bloom_recent_turn(&sh->recent, sh->generation);
    }

    if (zone->expire != 0) {
        wait = ngx_bloom_ring_tick(zone, &work->ring);
        next = ngx_min(next, wait);
    }

    if (zone->state != NULL && ngx_bloom_catch_up(zone) != NGX_OK) {
        next = NGX_BLOOM_MAINTENANCE_BUSY;
    }

    ngx_bloom_log_warnings(zone, &work->bits_set);

    return next;
}


/* Ends what a process that died has begun, and records losses. */
static ngx_msec_t
ngx_bloom_maintenance_settle(ngx_bloom_maintenance_t *work)
{
    ngx_msec_t            next;
    ngx_bloom_zone_t     *zone;
    ngx_bloom_control_t  *control;

    zone = work->zone;
    control = zone->state->control;
    next = NGX_BLOOM_MAINTENANCE_IDLE;

    /* if a process has died with the lock, its change is applied now (I2), and
     * not only behind the next one */

    if (ngx_bloom_zone_lock(zone, 0) == NGX_OK) {

        /* a process may have died before it published a clear */

        if (!work->wiped) {
            work->wiped = (ngx_bloom_journal_wipe(zone->state) == NGX_OK);
        }

        ngx_bloom_zone_unlock(zone);
    }

    if (ngx_bloom_clear_settle(zone) != NGX_OK) {
        next = NGX_BLOOM_MAINTENANCE_IDLE / 10;
    }

    /* before a segment is removed that shows a loss */

    ngx_bloom_lost_sync(zone);

    /* workers of another nginx cannot wake this process */

    if (control->instances & ~((uint64_t) 1 << zone->state->instance)) {
        next = NGX_BLOOM_MAINTENANCE_BUSY;
    }

    return next;
}


/* Looks after files while no job does.  The caller holds sh->helper. */
static ngx_msec_t
ngx_bloom_maintenance_files(ngx_bloom_maintenance_t *work, ngx_uint_t *due)
{
    ngx_msec_t          next;
    ngx_bloom_zone_t   *zone;
    ngx_bloom_state_t  *state;

    zone = work->zone;
    state = zone->state;
    next = NGX_BLOOM_MAINTENANCE_IDLE;

    if (zone->helpers == 0) {
        zone->helpers = ++zone->sh->helpers;
    }

    if (zone->helpers != zone->sh->helpers) {
        return next;                 /* the next helper does this */
    }

    /* a load that died has left its memory; no other process could take it, not
     * even a child that would give it back */

    ngx_bloom_zone_release(zone, !(zone->sh->generation & 1));

    ngx_bloom_maintenance_begin(work);
    ngx_bloom_maintenance_tidy(work);

    if (work->generation != zone->sh->generation) {
        work->generation = zone->sh->generation;
        work->cleaned = ngx_current_msec - NGX_BLOOM_MAINTENANCE_CLEAN;
        work->measure_hugepages = ngx_current_msec;
    }

    ngx_bloom_maintenance_hugepages(work);

    ngx_bloom_watch(zone, &work->looked);

    if (zone->watch != 0) {
        next = ngx_min(next, zone->watch);
    }

    if (state != NULL
        && ngx_current_msec - work->cleaned >= NGX_BLOOM_MAINTENANCE_CLEAN
        && ngx_bloom_lock(&state->control->keeper, 0) == NGX_OK)
    {
        if (ngx_bloom_maintenance_clean(work) == NGX_AGAIN) {
            next = NGX_BLOOM_MAINTENANCE_BUSY;

        } else {
            work->cleaned = ngx_current_msec;
        }

        ngx_bloom_unlock(&state->control->keeper);
    }

    if (!work->job && ngx_bloom_task_died(zone, work->death) == NGX_OK) {
        work->death[0] = '\0';
    }

    *due = ngx_bloom_job_due(zone);

    if (!*due && state != NULL
        && ngx_bloom_task_asked(zone, NGX_BLOOM_TASK_SNAPSHOT))
    {
        next = ngx_min(next, ngx_bloom_snapshot_wait(zone));
    }

    return next;
}


/* Removes what a process that has died has left behind. */
static void
ngx_bloom_maintenance_tidy(ngx_bloom_maintenance_t *work)
{
    ngx_bloom_zone_t  *zone;

    zone = work->zone;

    if (work->tidy || zone->state == NULL) {
        return;
    }

    ngx_bloom_state_files_clean(zone->state, NGX_BLOOM_STATE_FILES_OWN);
    (void) ngx_bloom_state_files_unused(zone->state, "body.", NULL);
    ngx_bloom_snapshot_clean(zone);

    work->tidy = 1;
}


/* Begins to look after the zone: asks for a load if file= is not as it was last
 * seen. */
static void
ngx_bloom_maintenance_begin(ngx_bloom_maintenance_t *work)
{
    ngx_bloom_zone_t  *zone;

    if (work->begun) {
        return;
    }

    zone = work->zone;

    /* the file that this configuration names is the zone's file from now on */

    ngx_bloom_base_note_name(zone);

    if (zone->left != 0 && !zone->sh->left_told && zone->state != NULL) {

        /* nobody applies records to the previous instance any more */

        ngx_bloom_state_leave(zone->state, zone->left - 1);
        zone->sh->left_told = 1;
    }

    work->begun = 1;

    if (zone->file.name.len == 0) {
        return;
    }

    work->looked = ngx_current_msec;

    if (ngx_bloom_watch_file(zone) == NGX_BUSY) {
        work->begun = 0;                         /* try again */
    }
}


/* Measures the huge pages so rarely that this takes at most a thousandth of the
 * time. */
static void
ngx_bloom_maintenance_hugepages(ngx_bloom_maintenance_t *work)
{
    ngx_msec_t  begun;

    begun = ngx_current_msec;

    if ((ngx_msec_int_t) (begun - work->measure_hugepages) < 0) {
        return;
    }

    ngx_bloom_zone_measure_hugepages(work->zone);
    ngx_time_update();

    work->measure_hugepages = ngx_current_msec
                              + NGX_BLOOM_MAINTENANCE_HUGEPAGES
                              + 1000 * (ngx_current_msec - begun);
}


/* Logs once that the journal fails, and once that it works again. */
static void
ngx_bloom_maintenance_log(ngx_bloom_maintenance_t *work)
{
    uint64_t              failed;
    ngx_bloom_zone_t     *zone;
    ngx_bloom_control_t  *control;

    zone = work->zone;
    control = zone->state->control;
    failed = __atomic_load_n(&control->failed, __ATOMIC_ACQUIRE);

    if (failed == work->failed) {
        return;
    }

    work->failed = failed;

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
ngx_bloom_maintenance_log_ahead(ngx_bloom_maintenance_t *work)
{
    ngx_tm_t            tm;
    uint64_t            end;
    ngx_uint_t          ahead;
    ngx_bloom_zone_t   *zone;

    zone = work->zone;
    end = ngx_bloom_state_end(zone->state).time;
    ahead = (end > ngx_bloom_state_time(zone->state) + NGX_BLOOM_CLOCKS_DIFFER);

    if (ahead && !work->ahead) {
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

    work->ahead = ahead;
}


/*
 * Forgets instances that have ended and removes files that nobody needs.
 * Returns NGX_OK, or NGX_AGAIN if there may be another segment to remove.
 */
static ngx_int_t
ngx_bloom_maintenance_clean(ngx_bloom_maintenance_t *work)
{
    bloom_base_t        base;
    ngx_bloom_zone_t   *zone;
    ngx_bloom_state_t  *state;

    zone = work->zone;
    state = zone->state;

    ngx_bloom_state_prune(state);

    ngx_bloom_state_files_clean(state, NGX_BLOOM_STATE_FILES_DEAD);
    (void) ngx_bloom_state_files_unused(state, "body.", NULL);
    ngx_bloom_snapshot_clean(zone);

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
