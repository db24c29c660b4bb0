
#include "ngx_bloom_maintenance.h"
#include "ngx_bloom_add.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_replace.h"
#include "ngx_bloom_task.h"


/* At least so often, in ms; and not more often while it fails, since all is
 * written again each time. */
#define NGX_BLOOM_UPKEEP_SYNC     500

/* A snapshot is opened at once by who has asked for it; seconds. */
#define NGX_BLOOM_SNAPSHOT_AGE    60
#define NGX_BLOOM_TMP_AGE         3600


static void ngx_bloom_upkeep_log(ngx_bloom_work_t *work);
static ngx_int_t ngx_bloom_upkeep_unrequire(ngx_bloom_zone_t *zone);
static ngx_int_t ngx_bloom_upkeep_house(ngx_bloom_work_t *work);


/* When a failure to follow was last logged: it is tried again at once. */
static time_t  ngx_bloom_follow_logged;


ngx_msec_t
ngx_bloom_upkeep_journal(ngx_bloom_work_t *work)
{
    uint64_t              tail;
    ngx_bloom_state_t    *state;
    ngx_bloom_control_t  *control;

    state = work->zone->state;
    control = state->control;

    if (ngx_bloom_lock(&control->keeper, 0) != NGX_OK) {
        return NGX_BLOOM_WORK_BUSY;            /* another does */
    }

    (void) ngx_bloom_journal_prepare(state);

    tail = ngx_bloom_state_tail(state);

    if (control->synced < tail
        && ((control->wanted > control->synced && !control->rewrite)
            || ngx_current_msec - work->synced >= NGX_BLOOM_UPKEEP_SYNC))
    {
        (void) ngx_bloom_journal_sync(state);

        ngx_time_update();
        work->synced = ngx_current_msec;
    }

    ngx_bloom_unlock(&control->keeper);

    ngx_bloom_upkeep_log(work);

    return control->synced < ngx_bloom_state_tail(state)
           ? NGX_BLOOM_WORK_BUSY : NGX_BLOOM_WORK_IDLE;
}


ngx_msec_t
ngx_bloom_upkeep_catch_up(ngx_bloom_work_t *work)
{
    ngx_msec_t            next;
    ngx_bloom_zone_t     *zone;
    ngx_bloom_control_t  *control;

    zone = work->zone;
    control = zone->state->control;
    next = NGX_BLOOM_WORK_IDLE;

    if (ngx_bloom_kept_drain(zone) != NGX_OK) {
        next = NGX_BLOOM_WORK_IDLE / 10;
    }

    if (ngx_bloom_upkeep_follow(zone) != NGX_OK) {
        next = NGX_BLOOM_WORK_BUSY;
    }

    if (work->does == NGX_BLOOM_WORK_NOTHING
        && ngx_current_msec - work->housed >= NGX_BLOOM_UPKEEP_HOUSE
        && ngx_bloom_lock(&control->keeper, 0) == NGX_OK)
    {
        if (ngx_bloom_upkeep_house(work) == NGX_AGAIN) {
            next = NGX_BLOOM_WORK_BUSY;

        } else {
            work->housed = ngx_current_msec;
        }

        ngx_bloom_unlock(&control->keeper);
    }

    /* another's worker cannot wake this process */

    if (control->instances & ~((uint64_t) 1 << zone->state->instance)) {
        next = ngx_min(next, NGX_BLOOM_WORK_BUSY);
    }

    return next;
}


/* Says once that the journal fails, and once that it does not any more. */
static void
ngx_bloom_upkeep_log(ngx_bloom_work_t *work)
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


ngx_int_t
ngx_bloom_upkeep_follow(ngx_bloom_zone_t *zone)
{
    uint64_t              tail, added;
    ngx_int_t             rc;
    bloom_record_t        record;
    ngx_bloom_bits_t      bits;
    ngx_bloom_shctx_t    *sh;
    ngx_bloom_state_t    *state;
    ngx_bloom_reader_t    reader;

    sh = zone->sh;
    state = zone->state;

    /*
     * The end first: what others appended before it was required before it was
     * published.
     */

    tail = ngx_bloom_state_tail(state);

    if (tail <= sh->applied) {

        if (__atomic_load_n(zone->required, __ATOMIC_SEQ_CST) > sh->applied) {
            return ngx_bloom_upkeep_unrequire(zone);
        }

        return NGX_OK;
    }

    if (__atomic_load_n(zone->required, __ATOMIC_SEQ_CST) > sh->applied) {

        if (ngx_bloom_reader_open(&reader, state, sh->applied, tail)
            != NGX_OK)
        {
            return NGX_ERROR;
        }

        /* the lock sh->helper is held: no other generation comes to serve */

        ngx_bloom_zone_bits(zone, sh->generation & 1, &bits);

        while ((rc = ngx_bloom_reader_next(&reader, &record)) == NGX_OK) {
            (void) ngx_bloom_zone_set(&bits, record.keys, record.end, &added);
        }

        if (rc == NGX_DONE && reader.lost != 0) {
            __atomic_store_n(&sh->doubt,
                             ngx_bloom_load_doubt(zone, &reader, 0),
                             __ATOMIC_SEQ_CST);
        }

        if (rc == NGX_ERROR && ngx_bloom_follow_logged != ngx_time()) {
            ngx_bloom_follow_logged = ngx_time();
            ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, reader.err,
                          "bloom zone \"%V\": %s", &zone->name, reader.error);
        }

        ngx_bloom_reader_close(&reader);

        if (rc == NGX_ERROR) {
            return NGX_ERROR;
        }
    }

    __atomic_store_n(&sh->applied, tail, __ATOMIC_SEQ_CST);
    __atomic_store_n(&state->control->instance[state->instance].applied, tail,
                     __ATOMIC_SEQ_CST);

    return (__atomic_load_n(zone->required, __ATOMIC_SEQ_CST) > tail)
           ? ngx_bloom_upkeep_unrequire(zone) : NGX_OK;
}


/*
 * Something is required that is not there yet: it is being published, or who
 * was about to publish it has died, and then it never will be.
 */
static ngx_int_t
ngx_bloom_upkeep_unrequire(ngx_bloom_zone_t *zone)
{
    uint64_t              old, tail, *required;
    ngx_bloom_state_t    *state;
    ngx_bloom_control_t  *control;

    state = zone->state;
    control = state->control;

    if (ngx_bloom_lock(&control->append, NGX_BLOOM_TASK_WAIT) != NGX_OK) {
        return NGX_AGAIN;
    }

    required = &control->instance[state->instance].required;
    old = __atomic_load_n(required, __ATOMIC_SEQ_CST);
    tail = ngx_bloom_state_tail(state);

    if (old > tail
        && ((old & NGX_BLOOM_KEPT) == 0
            || ngx_bloom_kept_empty(&control->kept)))
    {
        (void) __atomic_compare_exchange_n(required, &old, tail, 0,
                                           __ATOMIC_SEQ_CST,
                                           __ATOMIC_SEQ_CST);
    }

    ngx_bloom_unlock(&control->append);

    return NGX_OK;
}


/* NGX_OK, or NGX_AGAIN if there may be another segment to remove. */
static ngx_int_t
ngx_bloom_upkeep_house(ngx_bloom_work_t *work)
{
    u_char              name[NGX_MAX_PATH];
    uint64_t            cut;
    ngx_bloom_zone_t   *zone;
    ngx_bloom_shctx_t  *sh;

    zone = work->zone;
    sh = zone->sh;

    ngx_bloom_state_prune(zone->state);

    ngx_bloom_save_remove(zone->state, "snapshot.", NULL,
                          NGX_BLOOM_SNAPSHOT_AGE);
    ngx_bloom_save_remove(zone->state, "save.", NULL, NGX_BLOOM_TMP_AGE);

    if (zone->state->control->instances
        == (uint64_t) 1 << zone->state->instance)
    {
        /* uploads in place of an image that file= is no more */

        ngx_bloom_save_upload_name(zone->state, sh->file
                                   ? sh->file_build : ngx_bloom_save_empty,
                                   name);

        ngx_bloom_save_remove(zone->state, "upload.",
                              (u_char *) strrchr((char *) name, '/') + 1, 0);
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
