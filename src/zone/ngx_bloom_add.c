/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A batch sets its bits before it takes the journal's lock, so that it holds
 * the lock for the write alone.
 */

#include "ngx_bloom_add.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_journal.h"
#include "ngx_bloom_pending.h"
#include "ngx_bloom_shutdown.h"
#include "ngx_bloom_wake.h"
#include "ngx_bloom_writers.h"


/* How often a batch tries the lock before it returns NGX_AGAIN.  A round takes
 * about 100 ns, and an append a few microseconds. */
#define NGX_BLOOM_ADD_SPINS     500

/* How long a key of bloom_add, which cannot be tried again, waits for the lock,
 * ms; and for how long after such a wait in vain the worker does not wait at
 * all, ms: otherwise each of its requests would wait for a stuck process. */
#define NGX_BLOOM_ADD_ONCE      5
#define NGX_BLOOM_ADD_STALLED   1000

/* Room for a record of one key, however long. */
#define NGX_BLOOM_ADD_ONE_SIZE                                                \
    (BLOOM_RECORD_HEADER + BLOOM_KEY_MAX + 1 + 8)

/* After how many ms a batch is refused, since the helper does nothing. */
#define NGX_BLOOM_ADD_PATIENCE  10000


static uint64_t ngx_bloom_add_bits(ngx_bloom_zone_t *zone,
    const uint8_t *keys, const uint8_t *end, ngx_bloom_set_tally_t *tally,
    uint64_t *puts);
static void ngx_bloom_add_lift(ngx_bloom_zone_t *zone, const uint8_t *keys,
    const uint8_t *end);
static void ngx_bloom_add_keep(ngx_bloom_zone_t *zone, const uint8_t *keys,
    const uint8_t *end, const ngx_bloom_set_tally_t *tally);
static const char *ngx_bloom_add_accept(ngx_bloom_zone_t *zone,
    bloom_key_t *key);


ngx_int_t
ngx_bloom_add_lock(ngx_bloom_add_batch_t *batch)
{
    ngx_uint_t         i, j;
    pthread_mutex_t   *mutex;
    ngx_bloom_zone_t  *zone;

    zone = batch->zone;
    mutex = &zone->state->control->append;

    if (batch->once) {

        /* this key cannot be tried again: wait in the lock, so that a holder
         * that was preempted can run */

        if (ngx_bloom_lock(mutex, 0) == NGX_OK) {
            return NGX_OK;
        }

        if ((ngx_msec_int_t) (ngx_current_msec - zone->stalled) < 0) {
            return NGX_BUSY;
        }

        ngx_bloom_fault("wait");

        if (ngx_bloom_lock(mutex, NGX_BLOOM_ADD_ONCE) == NGX_OK) {
            return NGX_OK;
        }

        zone->stalled = ngx_current_msec + NGX_BLOOM_ADD_STALLED;

        return NGX_BUSY;
    }

    for (i = 0; i < NGX_BLOOM_ADD_SPINS; i++) {

        if (ngx_bloom_lock(mutex, 0) == NGX_OK) {
            return NGX_OK;
        }

        for (j = 0; j < 8; j++) {
            ngx_cpu_pause();
        }
    }

    return NGX_BUSY;
}


/*
 * Sets the bits of a record's keys.  Returns the generation that has them; it
 * still served after they were set.  Stores in *puts how many exceptions it had
 * got before.
 */
static uint64_t
ngx_bloom_add_bits(ngx_bloom_zone_t *zone, const uint8_t *keys,
    const uint8_t *end, ngx_bloom_set_tally_t *tally, uint64_t *puts)
{
    uint64_t               generation;
    ngx_bloom_zone_bits_t  bits;

    *puts = 0;
    ngx_memzero(tally, sizeof(ngx_bloom_set_tally_t));

    do {
        generation = ngx_bloom_zone_serving(zone, &bits);

        if (generation == 0) {
            break;                               /* nothing serves yet */
        }

        if (ngx_bloom_writers_enter(zone, generation) == NGX_OK) {
            *puts = ngx_bloom_zone_puts(&bits);

            ngx_bloom_fault("puts");

            ngx_bloom_set_keys(&bits, keys, end, tally);

            ngx_bloom_fault("set");
        }

        ngx_bloom_writers_leave();

        /* set the bits before the generation is read again */

        __atomic_thread_fence(__ATOMIC_SEQ_CST);

    } while (__atomic_load_n(&zone->sh->generation, __ATOMIC_SEQ_CST)
             != generation);

    return generation;
}


/* Makes sure that the keys of a record, whose bits are set, are no exceptions
 * of the generation that serves. */
static void
ngx_bloom_add_lift(ngx_bloom_zone_t *zone, const uint8_t *keys,
    const uint8_t *end)
{
    uint64_t               generation;
    ngx_bloom_zone_bits_t  bits;

    do {
        generation = ngx_bloom_zone_serving(zone, &bits);

        if (generation == 0) {
            return;
        }

        if (ngx_bloom_writers_enter(zone, generation) == NGX_OK) {
            ngx_bloom_zone_lift(&bits, keys, end);
        }

        ngx_bloom_writers_leave();

        __atomic_thread_fence(__ATOMIC_SEQ_CST);

    } while (__atomic_load_n(&zone->sh->generation, __ATOMIC_SEQ_CST)
             != generation);
}


/* Makes sure that the keys of a record, whose bits are set, live long enough if
 * keys expire, however long this process was stopped meanwhile. */
static void
ngx_bloom_add_keep(ngx_bloom_zone_t *zone, const uint8_t *keys,
    const uint8_t *end, const ngx_bloom_set_tally_t *tally)
{
    uint64_t               puts;
    ngx_bloom_set_tally_t  again;

    for (again = *tally; ngx_bloom_set_keep(zone, &again) != NGX_OK; ) {
        (void) ngx_bloom_add_bits(zone, keys, end, &again, &puts);
        ngx_bloom_add_lift(zone, keys, end);
    }
}


ngx_int_t
ngx_bloom_add_batch_init(ngx_bloom_add_batch_t *batch, ngx_bloom_zone_t *zone,
    u_char *buf)
{
    if (zone->source.len != 0) {
        ngx_memzero(batch, sizeof(ngx_bloom_add_batch_t));

        batch->zone = zone;
        batch->error = "the zone takes its changes from its source alone; send "
                       "the change there, or remove \"bloom_source\"";
        return NGX_DECLINED;
    }

    return ngx_bloom_add_batch_begin(batch, zone, buf);
}


ngx_int_t
ngx_bloom_add_batch_begin(ngx_bloom_add_batch_t *batch, ngx_bloom_zone_t *zone,
    u_char *buf)
{
    ngx_memzero(batch, sizeof(ngx_bloom_add_batch_t));

    batch->zone = zone;
    batch->buf = buf;

    if (zone->state == NULL) {

        if (zone->state_error != NULL) {
            batch->err = zone->state_err;
            batch->error = zone->state_error;
            return NGX_ERROR;
        }

        if (ngx_bloom_add_unannounced(zone)) {
            batch->error = "nothing in the configuration adds or removes "
                           "keys of the zone, so it has no journal; write "
                           "\"journal=on\" in its \"bloom_zone\"";
            return NGX_DECLINED;
        }

        if (!ngx_bloom_add_possible(zone)) {
            batch->error = "the zone has an image file and no journal, so an "
                           "added key would be lost at the next load; remove "
                           "\"journal=off\" or \"bloom_state_path off\"";
            return NGX_DECLINED;
        }
    }

    if (zone->sh->generation == 0) {
        batch->error = "the zone is not loaded; load an image";
        return NGX_ERROR;
    }

    if (zone->state != NULL) {
        batch->durable = 1;
        batch->lost = __atomic_load_n(&zone->state->control->pending.lost,
                                      __ATOMIC_SEQ_CST);
    }

    bloom_record_begin(&batch->maker, buf, NGX_BLOOM_ADD_BATCH_SIZE);

    return NGX_OK;
}


/*
 * Converts a key to the key form of the image that serves.  If another image
 * serves when the bits are set, the key is converted again to its form.
 */
static const char *
ngx_bloom_add_accept(ngx_bloom_zone_t *zone, bloom_key_t *key)
{
    uint64_t  generation;

    generation = __atomic_load_n(&zone->sh->generation, __ATOMIC_ACQUIRE);

    if (generation == 0) {
        return ngx_bloom_zone_accept(BLOOM_FORM_RAW, key);
    }

    if (generation != zone->generation) {
        (void) ngx_bloom_zone_refresh(zone, generation);
    }

    return ngx_bloom_zone_accept(zone->form, key);
}


ngx_int_t
ngx_bloom_add_batch_put(ngx_bloom_add_batch_t *batch, ngx_str_t *key)
{
    const char   *why;
    bloom_key_t   k;

    k.data = key->data;
    k.len = key->len;

    why = ngx_bloom_add_accept(batch->zone, &k);

    if (why != NULL) {
        ngx_bloom_count(batch->zone, NGX_BLOOM_COUNTER_INVALID, 1);
        batch->err = 0;
        batch->error = why;
        return NGX_DECLINED;
    }

    return bloom_record_put(&batch->maker, &k) == 0 ? NGX_OK : NGX_AGAIN;
}


ngx_int_t
ngx_bloom_add_batch(ngx_bloom_add_batch_t *batch)
{
    uint8_t                *keys, *keys_end;
    uint64_t                puts;
    ngx_int_t               rc;
    ngx_bloom_end_t         end;
    ngx_bloom_zone_t       *zone;
    ngx_bloom_state_t      *state;
    ngx_bloom_control_t    *control;
    ngx_bloom_zone_bits_t   bits;
    ngx_bloom_set_tally_t  tally;

    if (batch->maker.count == 0) {
        return NGX_OK;
    }

    zone = batch->zone;
    state = zone->state;

    keys = batch->buf + BLOOM_RECORD_HEADER;
    keys_end = batch->buf + batch->maker.len;

    if (state == NULL) {
        (void) ngx_bloom_add_bits(zone, keys, keys_end, &batch->tally, &puts);
        ngx_bloom_add_lift(zone, keys, keys_end);
        ngx_bloom_add_keep(zone, keys, keys_end, &batch->tally);
        goto done;
    }

    control = state->control;

    if (batch->generation == 0) {

        /*
         * Set the bits before the lock is taken, but only if the write is
         * likely to succeed: refused keys must not be in the filter.
         */

        if (__atomic_load_n(&control->failed, __ATOMIC_ACQUIRE)
            == NGX_BLOOM_CANNOT_WRITE)
        {
            goto append;
        }

        end = ngx_bloom_state_end(state);

        if (end.tail + batch->maker.len + 8 > end.limit
            && __atomic_load_n(&control->prepared, __ATOMIC_ACQUIRE)
               <= end.limit)
        {
            ngx_bloom_wake();

            if (control->failed != 0) {
                return ngx_bloom_add_refuse(batch);
            }

            return ngx_bloom_add_wait(batch, "the helper process has made no "
                                      "room in the journal for ten seconds; "
                                      "check whether \"nginx: cache manager "
                                      "process\" is running");
        }

        batch->generation = ngx_bloom_add_bits(zone, keys, keys_end,
                                               &batch->tally, &batch->puts);

        ngx_bloom_fault("append");
    }

append:

    if (ngx_bloom_add_lock(batch) != NGX_OK) {
        return ngx_bloom_add_wait(batch, "another process has locked the "
                                  "journal for ten seconds; check the "
                                  "processes that use bloom_state_path");
    }

    rc = ngx_bloom_journal_append(state, &batch->maker, &end);

    if (rc == NGX_OK) {

        if (batch->generation == 0
            || batch->generation != zone->sh->generation)
        {
            (void) ngx_bloom_add_bits(zone, keys, keys_end, &tally, &puts);
            ngx_bloom_add_lift(zone, keys, keys_end);

            if (batch->generation == 0) {
                batch->tally = tally;
            }

            batch->tally.begun = tally.begun;

        } else if (batch->tally.excepted != 0
                   || (ngx_bloom_zone_serving(zone, &bits) != 0
                       && ngx_bloom_zone_puts(&bits) != batch->puts))
        {
            /* the lock is held, so no key is removed any more until the record
             * is in the journal, and none of these keys is excepted */

            ngx_bloom_add_lift(zone, keys, keys_end);
        }

        ngx_bloom_fault("lifted");

        ngx_bloom_add_keep(zone, keys, keys_end, &batch->tally);

        ngx_bloom_journal_publish(state, &end);

        batch->position = 0;
    }

    ngx_bloom_unlock(&state->control->append);

    if (rc == NGX_AGAIN) {
        ngx_bloom_wake();
        return ngx_bloom_add_wait(batch, "the journal is full, and the helper "
                                  "process has made no room for ten seconds; "
                                  "see the error log");
    }

    if (rc == NGX_ERROR) {
        return ngx_bloom_add_refuse(batch);
    }

    ngx_bloom_add_appended(zone, &end);

    if (ngx_bloom_set_keep(zone, &batch->tally) != NGX_OK) {

        /* this process was stopped for long: the record's time is old, and the
         * keys may have expired, in whichever generation */

        batch->generation = UINT64_MAX;
        goto append;
    }

done:

    ngx_bloom_add_count(batch, &batch->tally, batch->maker.count);

    batch->generation = 0;
    batch->waits = 0;

    bloom_record_begin(&batch->maker, batch->buf, NGX_BLOOM_ADD_BATCH_SIZE);

    return NGX_OK;
}


void
ngx_bloom_add_appended(ngx_bloom_zone_t *zone, const ngx_bloom_end_t *end)
{
    ngx_bloom_shutdown_appended(zone, end->tail);

    if (end->tail - end->base > (end->limit - end->base) / 4
        && zone->state->control->prepared <= end->limit)
    {
        ngx_bloom_wake();
    }
}


ngx_int_t
ngx_bloom_add_wait(ngx_bloom_add_batch_t *batch, const char *error)
{
    if (batch->waits == 0) {
        batch->waits = ngx_current_msec ? ngx_current_msec : 1;
    }

    if ((ngx_msec_int_t) (ngx_current_msec - batch->waits)
        < NGX_BLOOM_ADD_PATIENCE)
    {
        ngx_bloom_shutdown_waits(batch->zone, batch->waits);
        return NGX_AGAIN;
    }

    batch->err = 0;
    batch->error = error;

    return NGX_ERROR;
}


ngx_int_t
ngx_bloom_add_refuse(ngx_bloom_add_batch_t *batch)
{
    ngx_bloom_control_t  *control;

    control = batch->zone->state->control;

    batch->err = (ngx_err_t) control->err;
    batch->error = ngx_bloom_state_error(control->failed, batch->err);

    if (batch->error == NULL) {
        batch->error = "the journal could not be written; try again";
    }

    return NGX_ERROR;
}


ngx_int_t
ngx_bloom_add_drained(ngx_bloom_add_batch_t *batch)
{
    if (ngx_bloom_pending_empty(batch->zone->pending)) {
        return NGX_OK;
    }

    if (__atomic_load_n(&batch->zone->state->control->failed, __ATOMIC_ACQUIRE)
        != 0)
    {
        return ngx_bloom_add_refuse(batch);
    }

    ngx_bloom_wake();

    return ngx_bloom_add_wait(batch, "keys of bloom_add have waited for the "
                              "journal for ten seconds; check whether \"nginx: "
                              "cache manager process\" is running");
}


void
ngx_bloom_add_count(ngx_bloom_add_batch_t *batch,
    const ngx_bloom_set_tally_t *tally, uint64_t n)
{
    uint64_t  present;

    present = tally->keys - tally->added;

    batch->added += tally->added;
    batch->already_present += present;
    batch->invalid += n - tally->keys;

    ngx_bloom_count(batch->zone, NGX_BLOOM_COUNTER_ADDED, tally->added);
    ngx_bloom_count(batch->zone, NGX_BLOOM_COUNTER_ALREADY_PRESENT, present);
}


ngx_int_t
ngx_bloom_add_batch_synced(ngx_bloom_add_batch_t *batch)
{
    uint64_t              wanted;
    ngx_int_t             rc;
    ngx_bloom_state_t    *state;
    ngx_bloom_control_t  *control;

    state = batch->zone->state;

    if (state == NULL) {
        batch->error = "the zone is in memory only";
        return NGX_ERROR;
    }

    control = state->control;

    if (batch->position == 0) {

        rc = ngx_bloom_add_drained(batch);

        if (rc != NGX_OK) {
            return rc;
        }

        batch->position = ngx_bloom_state_tail(state);
    }

    if (__atomic_load_n(&control->synced, __ATOMIC_ACQUIRE)
        >= batch->position)
    {
        /* keys that the disk has lost count as synchronised, too */

        if (__atomic_load_n(&control->pending.lost, __ATOMIC_SEQ_CST)
            != batch->lost)
        {
            batch->err = 0;
            batch->error = "the disk has lost keys that were added meanwhile; "
                           "check the disk of bloom_state_path";
            return NGX_ERROR;
        }

        batch->waits = 0;
        return NGX_OK;
    }

    if (__atomic_load_n(&control->failed, __ATOMIC_ACQUIRE)
        == NGX_BLOOM_CANNOT_SYNC)
    {
        return ngx_bloom_add_refuse(batch);
    }

    wanted = __atomic_load_n(&control->wanted, __ATOMIC_RELAXED);

    while (wanted < batch->position
           && !__atomic_compare_exchange_n(&control->wanted, &wanted,
                                           batch->position, 0,
                                           __ATOMIC_SEQ_CST,
                                           __ATOMIC_RELAXED))
    {
        /* void */
    }

    ngx_bloom_wake();

    return ngx_bloom_add_wait(batch, "the helper process has not synchronised "
                              "the journal for ten seconds; check the disk of "
                              "bloom_state_path");
}


ngx_uint_t
ngx_bloom_add_possible(ngx_bloom_zone_t *zone)
{
    return zone->state != NULL || zone->state_error != NULL
           || zone->file.name.len == 0;
}


ngx_uint_t
ngx_bloom_add_unannounced(ngx_bloom_zone_t *zone)
{
    return zone->state == NULL && zone->state_error == NULL && !zone->adds
           && zone->journal && zone->state_path.len != 0;
}


ngx_int_t
ngx_bloom_add_one(ngx_bloom_zone_t *zone, ngx_str_t *key,
    ngx_bloom_add_batch_t *batch)
{
    u_char                 buf[NGX_BLOOM_ADD_ONE_SIZE];
    uint64_t               puts;
    ngx_int_t              rc;
    const char            *why;
    bloom_key_t            canonical;
    ngx_bloom_set_tally_t  tally;

    rc = ngx_bloom_add_batch_init(batch, zone, buf);

    if (rc == NGX_DECLINED) {
        return NGX_DECLINED;
    }

    canonical.data = key->data;
    canonical.len = key->len;

    why = ngx_bloom_add_accept(zone, &canonical);

    if (why != NULL) {
        ngx_bloom_count(zone, NGX_BLOOM_COUNTER_INVALID, 1);
        batch->err = 0;
        batch->error = why;
        return NGX_ABORT;
    }

    bloom_record_begin(&batch->maker, buf, sizeof(buf));

    (void) bloom_record_put(&batch->maker, &canonical);

    /* use the copy in the batch: setting bits overwrites the static buffer */

    canonical.data = buf + batch->maker.len - canonical.len;

    if (rc == NGX_OK) {
        batch->once = 1;
        rc = ngx_bloom_add_batch(batch);
    }

    if (rc != NGX_OK) {

        /* make it pending before its bits are set, so that no load misses it */

        rc = ngx_bloom_pending_put(zone, &canonical);

        (void) ngx_bloom_add_bits(zone, buf + BLOOM_RECORD_HEADER,
                                  buf + batch->maker.len, &tally, &puts);
        ngx_bloom_add_lift(zone, buf + BLOOM_RECORD_HEADER,
                           buf + batch->maker.len);
        ngx_bloom_add_keep(zone, buf + BLOOM_RECORD_HEADER,
                           buf + batch->maker.len, &tally);

        tally.added = batch->generation ? batch->tally.added : tally.added;
        tally.keys = 1;

        ngx_bloom_add_count(batch, &tally, 1);

        ngx_bloom_wake();

        if (rc != NGX_OK) {
            batch->err = 0;
            batch->error = "the journal cannot be written, and there is no "
                           "room for more keys that wait for it; check the "
                           "disk of bloom_state_path";

        } else if (zone->state_error != NULL) {

            /* it waits in memory, for a journal that this nginx never has */

            batch->err = zone->state_err;
            batch->error = zone->state_error;
            rc = NGX_ERROR;
        }
    }

    return rc;
}


const char *
ngx_bloom_add_key(ngx_bloom_zone_t *zone, ngx_str_t *key)
{
    ngx_bloom_add_batch_t  batch;

    if (key->len == 0) {
        return NULL;
    }

    return ngx_bloom_add_one(zone, key, &batch) == NGX_ABORT ? batch.error
                                                             : NULL;
}
