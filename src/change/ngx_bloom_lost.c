/* SPDX-License-Identifier: BSD-2-Clause */

#include "ngx_bloom_lost.h"
#include "ngx_bloom_io.h"


static void ngx_bloom_lost_mirror(ngx_bloom_zone_t *zone);
static uint64_t ngx_bloom_lost_record(ngx_bloom_zone_t *zone, uint64_t n,
    ngx_uint_t has);
static void ngx_bloom_lost_complete(ngx_bloom_zone_t *zone, uint64_t memory,
    uint64_t time);
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
    uint64_t           now, time, memory, lost, last, complete, others;
    uint64_t           before;
    ngx_uint_t         whole;
    ngx_bloom_loss_t  *loss;

    loss = &zone->control->loss;
    before = __atomic_fetch_add(&loss->lost_keys, n, __ATOMIC_RELAXED);

    now = ngx_bloom_zone_time(zone);
    others = (zone->state != NULL) ? ngx_bloom_state_others(zone->state) : 0;

    do {
        memory = __atomic_load_n(&zone->sh->control.loss.lost,
                                 __ATOMIC_SEQ_CST);
        lost = __atomic_load_n(&loss->lost, __ATOMIC_SEQ_CST);
        last = ngx_bloom_zone_lost(zone);

        complete = __atomic_load_n(&zone->sh->complete, __ATOMIC_SEQ_CST);
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

        /* without the lock, another process may raise `complete` meanwhile */

    } while (!__atomic_compare_exchange_n(&loss->lost, &lost, time, 0,
                                          __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)
             || (!has
                 && time < __atomic_load_n(&zone->sh->complete,
                                           __ATOMIC_SEQ_CST)));

    ngx_bloom_control_check_lost(loss);

    ngx_bloom_fault("lost");

    if (zone->state != NULL) {
        ngx_bloom_lost_mirror(zone);
    }

    if (whole && has) {
        ngx_bloom_lost_complete(zone, memory, time);
    }

    return before;
}


/*
 * Raises `complete` behind a loss at a time.  The caller holds the lock of the
 * zone, and loss.lost in shared memory was `memory` when it found that the
 * filter has all keys.  In a zone with a state directory, it is `time` for a
 * moment, so that a worker without that directory takes a later time.
 */
static void
ngx_bloom_lost_complete(ngx_bloom_zone_t *zone, uint64_t memory, uint64_t time)
{
    uint64_t  *lost;

    lost = &zone->sh->control.loss.lost;

    if (zone->state != NULL
        && !__atomic_compare_exchange_n(lost, &memory, time, 0,
                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
    {
        return;
    }

    __atomic_store_n(&zone->sh->complete, time + 1, __ATOMIC_SEQ_CST);

    if (zone->state != NULL) {
        (void) __atomic_compare_exchange_n(lost, &time, memory, 0,
                                           __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    }
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
    uint64_t            lost, memory;
    ngx_bloom_shctx_t  *sh;
    ngx_bloom_state_t  *state;

    sh = zone->sh;
    state = zone->state;

    lost = state->lost_now;
    state->lost_now = 0;

    if (lost == 0 || ngx_bloom_zone_lock(zone, NGX_BLOOM_TASK_WAIT) != NGX_OK) {
        return;
    }

    ngx_bloom_lost_mirror(zone);
    memory = __atomic_load_n(&sh->control.loss.lost, __ATOMIC_SEQ_CST);

    if (state->lost_before < sh->complete
        && ngx_bloom_zone_lost(zone) == lost
        && __atomic_load_n(zone->required, __ATOMIC_SEQ_CST)
           <= __atomic_load_n(&sh->applied, __ATOMIC_SEQ_CST))
    {
        ngx_bloom_lost_complete(zone, memory, lost);
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

    ngx_bloom_lost_mirror(zone);

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

    /* at once, even if a stopped process holds the lock */

    lost = __atomic_load_n(&zone->sh->control.loss.lost, __ATOMIC_SEQ_CST);

    if (lost != 0) {
        ngx_bloom_control_lose(&zone->control->loss, lost);
    }

    if (lost != 0 && ngx_bloom_zone_lock(zone, 0) == NGX_OK) {
        ngx_bloom_lost_move(zone);
        ngx_bloom_zone_unlock(zone);
    }

    lost = __atomic_load_n(&zone->control->loss.lost, __ATOMIC_SEQ_CST);

    ngx_bloom_lost_mirror(zone);

    if (lost != state->lost && ngx_bloom_io_sync(state->fd) == NGX_OK) {
        state->lost = lost;
    }
}
