/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file switches to a filter without anything that was added or removed,
 * and journals the clear.
 */

#include "ngx_bloom_clear.h"
#include "ngx_bloom_cleared.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_place.h"
#include "ngx_bloom_source.h"
#include "ngx_bloom_load_checks.h"
#include "ngx_bloom_lost.h"


/* How long a clear waits for locks in all, ms. */
#define NGX_BLOOM_CLEAR_PATIENCE  10000

/* How long to wait for one lock, ms, and the pause between attempts. */
#define NGX_BLOOM_CLEAR_WAIT      1000
#define NGX_BLOOM_CLEAR_PAUSE     5

/* After how many ms a load that applies another instance's clear is repeated if
 * it failed or killed its process. */
#define NGX_BLOOM_CLEAR_RETRY     60000


static ngx_int_t ngx_bloom_clear_try(ngx_bloom_load_t *load);
static ngx_int_t ngx_bloom_clear_on_disk(ngx_bloom_load_t *load);
static ngx_int_t ngx_bloom_clear_sync(ngx_bloom_load_t *load);
static ngx_int_t ngx_bloom_clear_in_memory(ngx_bloom_load_t *load);
static ngx_int_t ngx_bloom_clear_switch(ngx_bloom_load_t *load);
static void ngx_bloom_clear_complete(ngx_bloom_load_t *load);
static ngx_int_t ngx_bloom_clear_fails(ngx_bloom_load_t *load);


bloom_image_t *
ngx_bloom_clear_image(ngx_bloom_zone_t *zone, u_char *path,
    bloom_image_t *empty)
{
    /* not zone->file: a newer cycle may have another file */

    ngx_cpystrn(path, zone->sh->file_name, NGX_MAX_PATH);

    if (path[0] != '\0') {
        return NULL;
    }

    if (ngx_bloom_zone_empty(zone, empty) != NGX_OK) {

        /* without random bytes the seed stays that of the configuration */

        *empty = zone->image;
    }

    return empty;
}


ngx_int_t
ngx_bloom_clear(ngx_bloom_load_t *load)
{
    ngx_int_t   rc;
    ngx_msec_t  begun;

    if (load->zone->state != NULL && ngx_bloom_clear_sync(load) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_time_update();
    begun = ngx_current_msec;

    for ( ;; ) {
        rc = ngx_bloom_clear_try(load);

        if (rc != NGX_AGAIN) {
            return rc;
        }

        ngx_msleep(NGX_BLOOM_CLEAR_PAUSE);
        ngx_time_update();

        if (ngx_current_msec - begun >= NGX_BLOOM_CLEAR_PATIENCE) {
            return ngx_bloom_load_busy(load);
        }
    }
}


/* Returns as ngx_bloom_clear() does, or NGX_AGAIN if another process holds a
 * lock. */
static ngx_int_t
ngx_bloom_clear_try(ngx_bloom_load_t *load)
{
    ngx_err_t           err;
    ngx_int_t           rc;
    ngx_bloom_shctx_t  *sh;

    sh = load->zone->sh;

    if (ngx_bloom_lock(&sh->applying, NGX_BLOOM_CLEAR_WAIT) != NGX_OK) {
        return NGX_AGAIN;
    }

    rc = (load->zone->state == NULL) ? ngx_bloom_clear_in_memory(load)
                                     : ngx_bloom_clear_on_disk(load);
    err = ngx_errno;

    ngx_bloom_unlock(&sh->applying);
    ngx_set_errno(err);

    return rc;
}


static ngx_int_t
ngx_bloom_clear_on_disk(ngx_bloom_load_t *load)
{
    ngx_err_t           err;
    ngx_int_t           rc;
    ngx_bloom_state_t  *state;

    state = load->zone->state;

    if (ngx_bloom_lock(&state->control->keeper, 0) != NGX_OK) {
        return NGX_AGAIN;
    }

    rc = ngx_bloom_clear_switch(load);
    err = ngx_errno;

    if (rc == NGX_OK
        && ngx_bloom_cleared_settle(state, load->file.name.len != 0
                                           ? load->image.build_id : NULL)
           != NGX_OK)
    {
        err = ngx_errno;
        rc = NGX_DECLINED;
    }

    ngx_bloom_lost_by_disk(load->zone);

    ngx_bloom_unlock(&state->control->keeper);
    ngx_set_errno(err);

    return rc;
}


/* Synchronises the image of file= and its name.  The journal goes, which has
 * what the image before lacks, so that one must not come back. */
static ngx_int_t
ngx_bloom_clear_sync(ngx_bloom_load_t *load)
{
    if (load->file.name.len == 0
        || ngx_bloom_io_sync_foreign(load->file.fd) == NGX_OK)
    {
        return NGX_OK;
    }

    return ngx_bloom_load_fails(load, NGX_BLOOM_FAILED, ngx_errno,
                                "bloom zone \"%V\" cannot be cleared, because "
                                "\"%V\" cannot be synchronised; repair its "
                                "disk, and try again", &load->zone->name,
                                &load->file.name);
}


static ngx_int_t
ngx_bloom_clear_in_memory(ngx_bloom_load_t *load)
{
    uint64_t            lost, besides;
    ngx_bloom_loss_t   *loss;
    ngx_bloom_shctx_t  *sh;

    sh = load->zone->sh;
    loss = &sh->control.loss;

    if (ngx_bloom_zone_lock_unowed(load->zone, NGX_BLOOM_CLEAR_WAIT)
        != NGX_OK)
    {
        return NGX_AGAIN;
    }

    if (ngx_bloom_load_knows(load) != NGX_OK) {
        ngx_bloom_zone_unlock(load->zone);
        return NGX_ERROR;
    }

    lost = __atomic_load_n(&loss->lost, __ATOMIC_SEQ_CST);
    besides = __atomic_load_n(&sh->lost, __ATOMIC_SEQ_CST);

    ngx_bloom_clear_complete(load);

    ngx_bloom_load_turn(load, 0, 0, NULL);

    /* the loss is forgotten only now, and a later one stays */

    loss->lost_keys = 0;
    (void) __atomic_compare_exchange_n(&loss->lost, &lost, 0, 0,
                                       __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    (void) __atomic_compare_exchange_n(&sh->lost, &besides, 0, 0,
                                       __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    ngx_bloom_control_check_lost(loss);

    ngx_bloom_zone_unlock(load->zone);

    return NGX_OK;
}


/*
 * The order of these steps, with the lock `keeper` held, so that no other
 * process synchronises, removes segments or clears meanwhile (S7):
 *
 *  1. create a segment for the record
 *  2. lock the zone, unless a process owes keys, which would come back (I12)
 *  3. write and publish the record: the clear has happened
 *  4. raise the generation; set `applied`; unlock
 *
 * If the process dies after step 3, `required` of this instance is greater than
 * `applied`, and the next helper finds the record and loads the image again.
 */
static ngx_int_t
ngx_bloom_clear_switch(ngx_bloom_load_t *load)
{
    ngx_int_t              rc;
    bloom_reached_t        place;
    ngx_bloom_end_t        end;
    ngx_bloom_zone_t      *zone;
    ngx_bloom_state_t     *state;
    ngx_bloom_control_t   *control;

    zone = load->zone;
    state = zone->state;
    control = state->control;

    if (ngx_bloom_journal_prepare_next(state) != NGX_OK) {
        return ngx_bloom_clear_fails(load);
    }

    ngx_bloom_fault("switch");

    if (ngx_bloom_zone_lock_unowed(zone, NGX_BLOOM_CLEAR_WAIT) != NGX_OK) {
        return NGX_AGAIN;
    }

    /* the record drops this as well */

    ngx_bloom_lost_move(zone);

    /* before the record exists: whoever finds it must not take what the source
     * has sent for what the zone has */

    ngx_bloom_source_place(control, &place);
    ngx_bloom_place_clear(zone, load->replay.start);

    rc = ngx_bloom_cleared_append(state, &end);

    if (rc != NGX_OK) {
        ngx_bloom_source_store(control, &place);
        ngx_bloom_zone_unlock(zone);

        return rc == NGX_ERROR ? ngx_bloom_clear_fails(load) : rc;
    }

    ngx_bloom_clear_complete(load);

    ngx_bloom_load_turn(load, 0, end.tail, &end.removals);

    ngx_bloom_zone_unlock(zone);

    return NGX_OK;
}


/* The new filter has all keys that were lost: they were additions, and are
 * dropped.  The caller holds the lock of the zone. */
static void
ngx_bloom_clear_complete(ngx_bloom_load_t *load)
{
    uint64_t  lost;

    lost = ngx_bloom_zone_lost(load->zone);

    load->complete = ngx_max(load->complete, lost + 1);
}


static ngx_int_t
ngx_bloom_clear_fails(ngx_bloom_load_t *load)
{
    ngx_err_t          err;
    ngx_bloom_zone_t  *zone;

    err = ngx_errno;
    zone = load->zone;

    return ngx_bloom_load_fails(load, err == NGX_ENOSPC || err == EDQUOT
                                      ? NGX_BLOOM_NO_ROOM : NGX_BLOOM_FAILED,
                                err, "bloom zone \"%V\" cannot be cleared, "
                                "because \"%V\" cannot be written; free space "
                                "on its disk, or repair it, and try again",
                                &zone->name, &zone->state->path);
}


ngx_int_t
ngx_bloom_clear_settle(ngx_bloom_zone_t *zone)
{
    ngx_err_t             err;
    ngx_int_t             rc;
    ngx_bloom_control_t  *control;

    if (zone->state == NULL || !ngx_bloom_cleared_unsettled(zone->state)) {
        return NGX_OK;
    }

    control = zone->state->control;

    if (ngx_bloom_lock(&control->keeper, NGX_BLOOM_CLEAR_WAIT) != NGX_OK) {
        ngx_set_errno(NGX_EBUSY);
        return NGX_ERROR;
    }

    rc = ngx_bloom_cleared_settle(zone->state, zone->sh->file
                                               ? zone->sh->file_build : NULL);
    err = ngx_errno;

    ngx_bloom_unlock(&control->keeper);
    ngx_set_errno(err);

    return rc;
}


ngx_uint_t
ngx_bloom_clear_due(ngx_bloom_zone_t *zone)
{
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;

    return zone->state != NULL && sh->generation != 0
           && ngx_bloom_cleared_since(zone->state, sh->applied)
           && (sh->clear_tried == 0
               || ngx_current_msec - sh->clear_tried >= NGX_BLOOM_CLEAR_RETRY);
}
