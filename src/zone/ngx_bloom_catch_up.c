/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file reads records from the position that this instance has applied up
 * to the journal's end, and sets their bits in the bank that serves.
 */

#include "ngx_bloom_catch_up.h"
#include "ngx_bloom_as_of.h"
#include "ngx_bloom_journal.h"
#include "ngx_bloom_load.h"


/* Bytes of the journal applied in one call.  A zone that gets its journal back
 * may have much to apply, while journals of other zones need the helper. */
#define NGX_BLOOM_CATCH_UP_STEP  (1024 * 1024)


static ngx_int_t ngx_bloom_catch_up_lost(ngx_bloom_zone_t *zone,
    ngx_bloom_reader_t *reader);
static ngx_int_t ngx_bloom_catch_up_unrequire(ngx_bloom_zone_t *zone);


/* When a failure was last logged.  Catching up is tried again at once, but the
 * failure is not logged each time. */
static time_t  ngx_bloom_catch_up_logged;


void
ngx_bloom_catch_up_begin(ngx_bloom_zone_t *zone)
{
    uint64_t              begin;
    ngx_bloom_state_t    *state;
    ngx_bloom_control_t  *control;

    state = zone->state;
    control = state->control;
    begin = control->begin;

    __atomic_store_n(&zone->sh->applied, begin, __ATOMIC_SEQ_CST);
    __atomic_store_n(&control->instance[state->instance].applied, begin,
                     __ATOMIC_SEQ_CST);
    __atomic_store_n(&control->instance[state->instance].required,
                     ngx_bloom_state_tail(state), __ATOMIC_SEQ_CST);
}


ngx_int_t
ngx_bloom_catch_up(ngx_bloom_zone_t *zone)
{
    uint64_t               tail, until, added;
    ngx_int_t              rc;
    ngx_uint_t             more;
    bloom_record_t         record;
    ngx_bloom_zone_bits_t  bits;
    ngx_bloom_shctx_t     *sh;
    ngx_bloom_state_t     *state;
    ngx_bloom_reader_t     reader;

    sh = zone->sh;
    state = zone->state;
    more = 0;

    /*
     * Read the end first: whatever lies before it was required by its appender
     * before it was published.
     */

    tail = ngx_bloom_state_tail(state);

    if (tail <= sh->applied) {

        if (__atomic_load_n(zone->required, __ATOMIC_SEQ_CST) > sh->applied) {
            return ngx_bloom_catch_up_unrequire(zone);
        }

        return NGX_OK;
    }

    /* if nothing serves yet, the next load will read the whole journal */

    if (sh->generation != 0
        && __atomic_load_n(zone->required, __ATOMIC_SEQ_CST) > sh->applied)
    {
        until = sh->applied + NGX_BLOOM_CATCH_UP_STEP;

        if (ngx_bloom_reader_open(&reader, state, sh->applied, tail)
            != NGX_OK)
        {
            return NGX_ERROR;
        }

        /* sh->helper is held, so the generation does not change */

        ngx_bloom_zone_bits(zone, sh->generation & 1, &bits);

        while ((rc = ngx_bloom_reader_next(&reader, &record)) == NGX_OK) {
            (void) ngx_bloom_zone_set(&bits, record.keys, record.end, &added);

            if (reader.position >= until && reader.position < tail) {
                tail = reader.position;
                more = 1;
                break;
            }
        }

        if (rc != NGX_ERROR && reader.lost != 0) {
            rc = ngx_bloom_catch_up_lost(zone, &reader);
        }

        if (rc == NGX_ERROR && ngx_bloom_catch_up_logged != ngx_time()) {
            ngx_bloom_catch_up_logged = ngx_time();
            ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, reader.err,
                          "bloom zone \"%V\": %s", &zone->name, reader.error);
        }

        ngx_bloom_reader_close(&reader);

        if (rc == NGX_ERROR || rc == NGX_AGAIN) {
            return rc;
        }
    }

    __atomic_store_n(&sh->applied, tail, __ATOMIC_SEQ_CST);
    __atomic_store_n(&state->control->instance[state->instance].applied, tail,
                     __ATOMIC_SEQ_CST);

    if (more) {
        return NGX_AGAIN;
    }

    return (__atomic_load_n(zone->required, __ATOMIC_SEQ_CST) > tail)
           ? ngx_bloom_catch_up_unrequire(zone) : NGX_OK;
}


/*
 * Records that the filter that serves lacks the keys missing in the journal:
 * lowers `complete` to what its image covers.  Returns NGX_OK, or NGX_AGAIN if
 * another process holds the lock.
 */
static ngx_int_t
ngx_bloom_catch_up_lost(ngx_bloom_zone_t *zone, ngx_bloom_reader_t *reader)
{
    uint64_t            covered;
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;

    if (ngx_bloom_lock(&zone->pending->mutex, NGX_BLOOM_TASK_WAIT) != NGX_OK) {
        return NGX_AGAIN;
    }

    covered = ngx_bloom_as_of_cut(zone->state,
                                  &sh->bank[sh->generation & 1].image);
    covered = ngx_max(covered, 1);

    if (covered < sh->complete) {
        __atomic_store_n(&sh->complete, covered, __ATOMIC_SEQ_CST);
    }

    ngx_bloom_unlock(&zone->pending->mutex);

    (void) ngx_bloom_state_lose(zone->state, reader->lost);

    ngx_bloom_load_log_lost(zone, reader, covered);

    return NGX_OK;
}


/*
 * Lowers `required` to the journal's end.  If it is higher, a process was about
 * to publish a record; as this function holds the lock `append`, that process
 * has died before it did.
 */
static ngx_int_t
ngx_bloom_catch_up_unrequire(ngx_bloom_zone_t *zone)
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
        && ((old & NGX_BLOOM_PENDING) == 0
            || ngx_bloom_pending_empty(&control->pending)))
    {
        (void) __atomic_compare_exchange_n(required, &old, tail, 0,
                                           __ATOMIC_SEQ_CST,
                                           __ATOMIC_SEQ_CST);
    }

    ngx_bloom_unlock(&control->append);

    return NGX_OK;
}
