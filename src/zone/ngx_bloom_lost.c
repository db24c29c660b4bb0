/* SPDX-License-Identifier: BSD-2-Clause */

#include "ngx_bloom_lost.h"
#include "ngx_bloom_io.h"


static void ngx_bloom_lost_mirror(ngx_bloom_zone_t *zone);
static uint64_t ngx_bloom_lost_record(ngx_bloom_zone_t *zone, uint64_t n,
    ngx_uint_t has);
static ngx_uint_t ngx_bloom_lost_says(uint64_t before, uint64_t n);


void
ngx_bloom_lost_keys(ngx_bloom_zone_t *zone, uint64_t n, ngx_uint_t has)
{
    uint64_t  before;

    before = ngx_bloom_lost_record(zone, n, has);

    if (!ngx_bloom_lost_says(before, n)) {
        return;
    }

    n += before;

    ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, 0,
                  "bloom zone \"%V\" could not write added keys to its "
                  "journal: %uL key%s only in the filter that serves, so from "
                  "the next load or start on the zone answers \"unknown\" "
                  "instead of \"absent\"; check the disk of bloom_state_path",
                  &zone->name, n, n == 1 ? " is" : "s are");
}


void
ngx_bloom_lost_owed(ngx_bloom_zone_t *zone)
{
    if (!ngx_bloom_lost_says(ngx_bloom_lost_record(zone, 1, 0), 1)) {
        return;
    }

    ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, 0,
                  "bloom zone \"%V\" has lost keys of bloom_add that a worker "
                  "kept while another process held the lock of the zone: from "
                  "now on it answers \"unknown\" instead of \"absent\"; look "
                  "for a process of nginx that is stopped or waits for a disk, "
                  "and load an image that has these keys", &zone->name);
}


/*
 * Two losses at the same time could not be told apart: an instance that has one
 * of the keys would seem to have the other.  So the recorded time is later than
 * any earlier one.  The time of the last loss is used again only if this
 * instance recorded it, that is, if `complete` is right behind it or if there
 * is no other instance.
 *
 * The same time is recorded for workers of this instance without the control
 * page of the state directory.  If one of them has recorded another meanwhile,
 * the filter does not have all keys.
 *
 * Returns how many keys were lost before.
 */
static uint64_t
ngx_bloom_lost_record(ngx_bloom_zone_t *zone, uint64_t n, ngx_uint_t has)
{
    uint64_t            now, time, besides, lost, last, complete, others;
    uint64_t            before;
    ngx_uint_t          whole;
    ngx_bloom_loss_t   *loss;
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;
    loss = &zone->control->loss;
    before = __atomic_fetch_add(&loss->lost_keys, n, __ATOMIC_RELAXED);

    now = ngx_bloom_zone_time(zone);
    others = (zone->state != NULL) ? ngx_bloom_state_others(zone->state) : 0;
    besides = __atomic_load_n(zone->lost, __ATOMIC_SEQ_CST);
    lost = __atomic_load_n(&loss->lost, __ATOMIC_SEQ_CST);

    do {
        complete = __atomic_load_n(&sh->complete, __ATOMIC_SEQ_CST);
        last = ngx_max(lost, besides);
        whole = (last < complete);

        if (!whole) {
            time = ngx_max(now, last + (others != 0 || !has));

        } else if (has && complete == last + 1 && now <= last) {
            return before;

        } else {

            /* if the clock went back, `now` may be before what the image
             * covers */

            time = ngx_max(now, complete);
        }
    } while (!__atomic_compare_exchange_n(&loss->lost, &lost, time, 0,
                                          __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));

    ngx_bloom_control_check_lost(loss);

    ngx_bloom_fault("lost");

    if (zone->state != NULL) {
        ngx_bloom_lost_mirror(zone);

        whole = whole && has
                && __atomic_compare_exchange_n(&sh->control.loss.lost, &besides,
                                               time, 0, __ATOMIC_SEQ_CST,
                                               __ATOMIC_SEQ_CST);
    }

    if (whole && has) {
        __atomic_store_n(&sh->complete, time + 1, __ATOMIC_SEQ_CST);
    }

    return before;
}


/* Tells workers without the control page of the state directory what was
 * lost. */
static void
ngx_bloom_lost_mirror(ngx_bloom_zone_t *zone)
{
    uint64_t  lost, *from;

    from = &zone->control->loss.lost;

    /* another process may change it meanwhile */

    do {
        lost = __atomic_load_n(from, __ATOMIC_SEQ_CST);
        __atomic_store_n(&zone->sh->lost, lost, __ATOMIC_SEQ_CST);
    } while (__atomic_load_n(from, __ATOMIC_SEQ_CST) != lost);
}


/* Returns 1 if this loss is logged: their number reaches 1, 2, 4, 8 ... */
static ngx_uint_t
ngx_bloom_lost_says(uint64_t before, uint64_t n)
{
    uint64_t  power;

    for (power = 1; power <= before; power *= 2) {
        /* void */
    }

    return before + n >= power;
}


void
ngx_bloom_lost_by_disk(ngx_bloom_zone_t *zone)
{
    uint64_t            lost;
    ngx_bloom_shctx_t  *sh;
    ngx_bloom_state_t  *state;

    sh = zone->sh;
    state = zone->state;

    lost = state->lost_now;
    state->lost_now = 0;

    if (lost == 0 || ngx_bloom_zone_lock(zone, NGX_BLOOM_TASK_WAIT) != NGX_OK) {
        return;
    }

    if (state->lost_before < sh->complete
        && ngx_bloom_zone_lost(zone) == lost
        && __atomic_load_n(zone->required, __ATOMIC_SEQ_CST)
           <= __atomic_load_n(&sh->applied, __ATOMIC_SEQ_CST))
    {
        __atomic_store_n(&sh->complete, lost + 1, __ATOMIC_SEQ_CST);
    }

    ngx_bloom_zone_unlock(zone);
}


/*
 * A lookup that no longer sees the loss in shared memory sees it in the control
 * page, which it reads afterwards.
 */
void
ngx_bloom_lost_move(ngx_bloom_zone_t *zone)
{
    uint64_t           lost;
    ngx_bloom_loss_t  *loss, *memory;

    loss = &zone->control->loss;
    memory = &zone->sh->control.loss;

    lost = __atomic_load_n(&memory->lost, __ATOMIC_SEQ_CST);

    if (lost == 0) {
        return;
    }

    ngx_bloom_control_lose(loss, lost);

    (void) __atomic_fetch_add(&loss->lost_keys,
                              __atomic_exchange_n(&memory->lost_keys, 0,
                                                  __ATOMIC_SEQ_CST),
                              __ATOMIC_SEQ_CST);

    /* unless another worker has recorded a later loss meanwhile */

    (void) __atomic_compare_exchange_n(&memory->lost, &lost, 0, 0,
                                       __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    ngx_bloom_control_check_lost(memory);
}


void
ngx_bloom_lost_sync(ngx_bloom_zone_t *zone)
{
    uint64_t            lost;
    ngx_bloom_state_t  *state;

    state = zone->state;

    ngx_bloom_lost_move(zone);

    lost = __atomic_load_n(&zone->control->loss.lost, __ATOMIC_SEQ_CST);

    ngx_bloom_lost_mirror(zone);

    if (lost != state->lost && ngx_bloom_io_sync(state->fd) == NGX_OK) {
        state->lost = lost;
    }
}
