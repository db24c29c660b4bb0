
/*
 * Records are read from where this instance has applied the journal up to the
 * journal's end, and their bits are set in the bank that serves.
 */

#include "ngx_bloom_catch_up.h"
#include "ngx_bloom_journal.h"
#include "ngx_bloom_load.h"


static ngx_int_t ngx_bloom_catch_up_unrequire(ngx_bloom_zone_t *zone);


/* When a failure was last logged: catching up is tried again at once. */
static time_t  ngx_bloom_catch_up_logged;


ngx_int_t
ngx_bloom_catch_up(ngx_bloom_zone_t *zone)
{
    uint64_t               tail, added;
    ngx_int_t              rc;
    bloom_record_t         record;
    ngx_bloom_zone_bits_t  bits;
    ngx_bloom_shctx_t     *sh;
    ngx_bloom_state_t     *state;
    ngx_bloom_reader_t     reader;

    sh = zone->sh;
    state = zone->state;

    /*
     * The end first: what others appended before it was required before it was
     * published.
     */

    tail = ngx_bloom_state_tail(state);

    if (tail <= sh->applied) {

        if (__atomic_load_n(zone->required, __ATOMIC_SEQ_CST) > sh->applied) {
            return ngx_bloom_catch_up_unrequire(zone);
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
            __atomic_store_n(&sh->damaged,
                             ngx_bloom_load_damage(zone, &reader, 0),
                             __ATOMIC_SEQ_CST);
        }

        if (rc == NGX_ERROR && ngx_bloom_catch_up_logged != ngx_time()) {
            ngx_bloom_catch_up_logged = ngx_time();
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
           ? ngx_bloom_catch_up_unrequire(zone) : NGX_OK;
}


/*
 * Takes back a requirement that nobody will meet.  What is required and not
 * there yet is being published, or whoever was about to publish it has died.
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
