/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The lock is held for one record of NGX_BLOOM_BATCH_KEYS keys at most, and of
 * NGX_BLOOM_BATCH_FULL bytes or one key: for a few tenths of a millisecond.
 */

#include "ngx_bloom_write.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_journal.h"
#include "ngx_bloom_removals.h"
#include "ngx_bloom_shutdown.h"
#include "ngx_bloom_wake.h"
#include "bloom_packed_key.h"


/* How often a batch tries the lock before it returns NGX_AGAIN.  A round takes
 * about 100 ns. */
#define NGX_BLOOM_WRITE_SPINS  500

/* How long a single key waits for each lock, ms; and for how long after such a
 * wait in vain no key waits in this process, ms: otherwise each of its requests
 * would wait for a stopped process. */
#define NGX_BLOOM_WRITE_SINGLE   10
#define NGX_BLOOM_WRITE_STALLED  1000

/* For how long a batch leaves the lock to a single key, ms; and after how long
 * it does not, so that a flood of them does not stop it, ms. */
#define NGX_BLOOM_WRITE_YIELDS   2
#define NGX_BLOOM_WRITE_YIELDED  100

/* After how many ms a batch is refused. */
#define NGX_BLOOM_WRITE_PATIENCE  10000


static uint64_t ngx_bloom_write_now(void);
static ngx_int_t ngx_bloom_write_locked(ngx_bloom_batch_t *batch,
    ngx_bloom_zone_bits_t *bits, ngx_bloom_end_t *end);
static ngx_int_t ngx_bloom_write_record(ngx_bloom_batch_t *batch,
    ngx_bloom_zone_bits_t *bits, ngx_uint_t reserve, ngx_bloom_end_t *end);
static void ngx_bloom_write_appended(ngx_bloom_zone_t *zone,
    const ngx_bloom_end_t *end);
static ngx_int_t ngx_bloom_write_refuse(ngx_bloom_batch_t *batch);
static ngx_int_t ngx_bloom_write_owed(ngx_bloom_batch_t *batch);


ngx_int_t
ngx_bloom_batch_begin(ngx_bloom_batch_t *batch, ngx_bloom_zone_t *zone,
    const ngx_bloom_change_kind_t *kind, u_char *buf)
{
    ngx_memzero(batch, sizeof(ngx_bloom_batch_t));

    batch->zone = zone;
    batch->kind = kind;

    if (buf != NULL) {
        ngx_bloom_batch_record(batch, buf);
    }

    if (kind->source != (zone->source.len != 0)) {
        batch->error = kind->source
                       ? "the zone takes changes from anywhere, by POST keys "
                         "and POST remove; to take them from a source, add a "
                         "\"bloom_source\""
                       : "the zone takes its changes from its source alone; "
                         "send the change there, or remove \"bloom_source\"";
        return NGX_DECLINED;
    }

    if (zone->state == NULL) {

        if (zone->state_error != NULL) {
            batch->err = zone->state_err;
            batch->error = zone->state_error;
            return NGX_ERROR;
        }

        if (!zone->adds && zone->journal && zone->state_path.len != 0) {
            batch->error = "nothing in the configuration adds or removes "
                           "keys of the zone, so it has no journal; write "
                           "\"journal=on\" in its \"bloom_zone\"";
            return NGX_DECLINED;
        }

        if (!ngx_bloom_write_possible(zone)) {
            batch->error = kind->adds
                           ? "the zone has an image file and no journal, so an "
                             "added key would be lost at the next load; remove "
                             "\"journal=off\" or \"bloom_state_path off\""
                           : "the zone has an image file and no journal, so a "
                             "removed key would come back at the next load; "
                             "remove \"journal=off\" or \"bloom_state_path "
                             "off\"";
            return NGX_DECLINED;
        }
    }

    if (zone->sh->generation == 0) {
        batch->error = "the zone is not loaded; load an image";
        return NGX_ERROR;
    }

    if (zone->state != NULL) {
        batch->durable = 1;
        batch->lost = __atomic_load_n(&zone->control->loss.lost,
                                      __ATOMIC_SEQ_CST);
    }

    return NGX_OK;
}


ngx_uint_t
ngx_bloom_write_possible(ngx_bloom_zone_t *zone)
{
    return zone->state != NULL || zone->state_error != NULL
           || zone->file.name.len == 0;
}


void
ngx_bloom_batch_record(ngx_bloom_batch_t *batch, u_char *buf)
{
    batch->buf = buf;

    bloom_record_begin(&batch->maker, buf, NGX_BLOOM_BATCH_SIZE);
    batch->maker.type = batch->kind->type;
}


ngx_int_t
ngx_bloom_batch_key(ngx_bloom_batch_t *batch, ngx_str_t *key)
{
    const char   *why;
    bloom_key_t   k;

    k.data = key->data;
    k.len = key->len;

    why = ngx_bloom_write_convert(batch->zone, batch->kind->adds, &k);

    if (why != NULL) {
        ngx_bloom_count(batch->zone, NGX_BLOOM_COUNTER_INVALID, 1);
        batch->err = 0;
        batch->error = why;
        return NGX_DECLINED;
    }

    return ngx_bloom_batch_put(batch, &k);
}


const char *
ngx_bloom_write_convert(ngx_bloom_zone_t *zone, ngx_uint_t added,
    bloom_key_t *key)
{
    const char             *why;
    ngx_bloom_zone_bits_t   bits;

    if (ngx_bloom_zone_serving(zone, &bits) == 0) {
        bits.form = BLOOM_FORM_RAW;
    }

    /* keys that were added by an earlier version, and that this one would not
     * accept, can be removed */

    why = added ? ngx_bloom_zone_accept(bits.form, key)
                : ngx_bloom_zone_canonical(bits.form, key);

    if (why == NULL && key->len > BLOOM_KEY_MAX) {
        why = BLOOM_KEY_TOO_LONG " in canonical form";
    }

    return why;
}


ngx_int_t
ngx_bloom_batch_put(ngx_bloom_batch_t *batch, const bloom_key_t *key)
{
    if (batch->maker.count == NGX_BLOOM_BATCH_KEYS
        || (batch->maker.count != 0
            && batch->maker.len + bloom_packed_key_size(key->len)
               > NGX_BLOOM_BATCH_FULL))
    {
        return NGX_AGAIN;
    }

    return bloom_record_put(&batch->maker, key) == 0 ? NGX_OK : NGX_AGAIN;
}


/* Returns milliseconds of a clock that all processes share and nobody sets. */
static uint64_t
ngx_bloom_write_now(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}


ngx_int_t
ngx_bloom_write_lock(ngx_bloom_batch_t *batch)
{
    uint64_t           *waiting;
    ngx_uint_t          i, j;
    ngx_bloom_zone_t   *zone;

    zone = batch->zone;
    waiting = &zone->control->waiting;

    if (batch->single) {

        if (ngx_bloom_zone_lock(zone, 0) == NGX_OK) {
            return NGX_OK;
        }

        __atomic_store_n(waiting, ngx_bloom_write_now(), __ATOMIC_RELAXED);

        if (!batch->waits_for_lock
            || (zone->stalled != 0
                && (ngx_msec_int_t) (ngx_current_msec - zone->stalled) < 0))
        {
            return NGX_BUSY;
        }

        ngx_bloom_fault("wait");

        if (ngx_bloom_zone_lock(zone, NGX_BLOOM_WRITE_SINGLE) == NGX_OK) {
            return NGX_OK;
        }

        zone->stalled = ngx_current_msec + NGX_BLOOM_WRITE_STALLED;

        return NGX_BUSY;
    }

    if (ngx_bloom_write_now()
        - __atomic_load_n(waiting, __ATOMIC_RELAXED) < NGX_BLOOM_WRITE_YIELDS
        && (batch->waits == 0
            || ngx_current_msec - batch->waits < NGX_BLOOM_WRITE_YIELDED))
    {
        goto busy;
    }

    for (i = 0; i < NGX_BLOOM_WRITE_SPINS; i++) {

        if (ngx_bloom_zone_lock(zone, 0) == NGX_OK) {
            return NGX_OK;
        }

        for (j = 0; j < 8; j++) {
            ngx_cpu_pause();
        }
    }

busy:

    return ngx_bloom_write_wait(batch, "another process has locked the zone "
                                "for ten seconds; look for a process of nginx "
                                "that is stopped or waits for a disk, and "
                                "resume it or end it");
}


ngx_int_t
ngx_bloom_write(ngx_bloom_batch_t *batch)
{
    ngx_int_t              rc;
    ngx_bloom_end_t        end;
    ngx_bloom_zone_t      *zone;
    ngx_bloom_zone_bits_t  bits;

    zone = batch->zone;

    rc = ngx_bloom_write_lock(batch);

    if (rc != NGX_OK) {
        return rc;
    }

    ngx_bloom_fault("locked");

    /* owed keys are in no record yet (I12) */

    if (!batch->kind->adds && ngx_bloom_zone_owing(zone)) {
        ngx_bloom_zone_unlock(zone);
        return ngx_bloom_write_owed(batch);
    }

    if (ngx_bloom_zone_serving(zone, &bits) != 0) {
        rc = (batch->kind->look != NULL) ? batch->kind->look(batch, &bits)
                                         : NGX_OK;

        if (rc == NGX_OK) {
            rc = ngx_bloom_write_locked(batch, &bits, &end);
        }

    } else if (batch->kind->adds && zone->state != NULL) {
        rc = ngx_bloom_write_locked(batch, NULL, &end);

    } else {
        ngx_bloom_zone_unlock(zone);

        batch->err = 0;
        batch->error = "the zone is not loaded; load an image";
        return NGX_ERROR;
    }

    ngx_bloom_zone_unlock(zone);

    ngx_bloom_fault("unlocked");

    switch (rc) {

    case NGX_OK:

        if (zone->state != NULL) {
            batch->end = end.tail;
            ngx_bloom_write_appended(zone, &end);
        }

        batch->waits = 0;
        batch->position = 0;

        return NGX_OK;

    case NGX_AGAIN:
        ngx_bloom_wake(batch->zone);

        if (__atomic_load_n(&zone->control->failed, __ATOMIC_ACQUIRE) != 0) {
            return ngx_bloom_write_refuse(batch);
        }

        return ngx_bloom_write_wait(batch, "the journal is full, and the "
                                    "zone's helper process has made no room "
                                    "for ten seconds; check whether it runs "
                                    "(\"nginx: cache manager process\", or "
                                    "\"nginx: bloom helper\"), and see the "
                                    "error log");

    case NGX_ERROR:
        return ngx_bloom_write_refuse(batch);

    default: /* NGX_DONE, NGX_DECLINED, NGX_ABORT */
        return rc;
    }
}


/* Writes the record, and once more if its keys could expire too early, because
 * the process was stopped meanwhile: then its time is old.  Returns what
 * ngx_bloom_journal_append() returns. */
static ngx_int_t
ngx_bloom_write_locked(ngx_bloom_batch_t *batch, ngx_bloom_zone_bits_t *bits,
    ngx_bloom_end_t *end)
{
    ngx_int_t   rc;
    ngx_uint_t  reserve;

    reserve = batch->single || batch->kind->reserve;

    do {
        rc = ngx_bloom_write_record(batch, bits, reserve, end);
        reserve = 1;

    } while (rc == NGX_OK && batch->kind->adds && bits != NULL
             && ngx_bloom_set_keep(batch->zone, &batch->tally) != NGX_OK);

    return rc;
}


/* Writes, publishes and applies the record.  Returns what
 * ngx_bloom_journal_append() returns. */
static ngx_int_t
ngx_bloom_write_record(ngx_bloom_batch_t *batch, ngx_bloom_zone_bits_t *bits,
    ngx_uint_t reserve, ngx_bloom_end_t *end)
{
    uint64_t            before;
    ngx_int_t           rc;
    ngx_bloom_zone_t   *zone;
    ngx_bloom_state_t  *state;

    zone = batch->zone;
    state = zone->state;

    if (state == NULL) {
        batch->kind->apply(batch, bits, ngx_bloom_zone_time(zone), 0);
        return NGX_OK;
    }

    before = ngx_bloom_state_tail(state);

    rc = ngx_bloom_journal_append(state, &batch->maker, !reserve, end);

    if (rc != NGX_OK) {
        return rc;
    }

    ngx_bloom_fault("written");

    if (batch->kind->apply == NULL) {
        ngx_bloom_state_require(state, (uint64_t) 1 << state->instance,
                                end->tail);
    }

    ngx_bloom_journal_publish(state, end);

    if (batch->kind->apply == NULL) {
        return NGX_OK;
    }

    batch->kind->apply(batch, bits, end->time, end->tail);

    ngx_bloom_fault("set");

    if (__atomic_load_n(&zone->sh->applied, __ATOMIC_SEQ_CST) == before) {
        __atomic_store_n(&zone->sh->applied, end->tail, __ATOMIC_SEQ_CST);
        ngx_bloom_removals_applied(zone, end->tail, &end->removals);
    }

    ngx_bloom_fault("applied");

    return NGX_OK;
}


/* Does what follows an append that ends at `end`: informs the helper. */
static void
ngx_bloom_write_appended(ngx_bloom_zone_t *zone, const ngx_bloom_end_t *end)
{
    ngx_bloom_shutdown_appended(zone, end->tail);

    if (__atomic_load_n(&zone->control->prepared, __ATOMIC_RELAXED)
        < end->tail + NGX_BLOOM_JOURNAL_RESERVE + NGX_BLOOM_JOURNAL_ROOM)
    {
        ngx_bloom_wake(zone);
    }
}


ngx_int_t
ngx_bloom_write_wait(ngx_bloom_batch_t *batch, const char *error)
{
    if (batch->waits == 0) {
        batch->waits = ngx_current_msec ? ngx_current_msec : 1;
    }

    if ((ngx_msec_int_t) (ngx_current_msec - batch->waits)
        < NGX_BLOOM_WRITE_PATIENCE)
    {
        ngx_bloom_shutdown_waits(batch->zone, batch->waits);
        return NGX_AGAIN;
    }

    batch->err = 0;
    batch->error = error;

    return NGX_ERROR;
}


/* Returns NGX_ERROR, with the journal's last failure as batch->error. */
static ngx_int_t
ngx_bloom_write_refuse(ngx_bloom_batch_t *batch)
{
    ngx_bloom_control_t  *control;

    control = batch->zone->control;

    batch->err = (ngx_err_t) control->err;
    batch->error = ngx_bloom_state_error(control->failed, batch->err);

    if (batch->error == NULL) {
        batch->error = "the journal could not be written; try again";
    }

    return NGX_ERROR;
}


/* Waits, since a process owes keys.  Returns NGX_AGAIN or NGX_ERROR. */
static ngx_int_t
ngx_bloom_write_owed(ngx_bloom_batch_t *batch)
{
    ngx_bloom_wake(batch->zone);

    return ngx_bloom_write_wait(batch, "keys of bloom_add have waited for the "
                                "lock of the zone for ten seconds; look for a "
                                "process of nginx that is stopped or waits "
                                "for a disk, and resume it or end it");
}


ngx_int_t
ngx_bloom_batch_synced(ngx_bloom_batch_t *batch)
{
    uint64_t              wanted;
    ngx_uint_t            first;
    ngx_bloom_state_t    *state;
    ngx_bloom_control_t  *control;

    state = batch->zone->state;
    control = state->control;

    first = (batch->position == 0);

    if (first) {

        if (ngx_bloom_zone_owing(batch->zone)) {
            return ngx_bloom_write_owed(batch);
        }

        batch->position = ngx_bloom_state_tail(state);
    }

    if (__atomic_load_n(&control->synced, __ATOMIC_ACQUIRE)
        >= batch->position)
    {
        /* keys that the disk has lost count as synchronised, too */

        if (__atomic_load_n(&control->loss.lost, __ATOMIC_SEQ_CST)
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
        return ngx_bloom_write_refuse(batch);
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

    /* then the helper makes rounds until the journal is synchronised */

    if (first) {
        ngx_bloom_wake(batch->zone);
    }

    return ngx_bloom_write_wait(batch, "the zone's helper process has not "
                                "synchronised the journal for ten seconds; "
                                "check the disk of bloom_state_path, and "
                                "whether that process runs (\"nginx: cache "
                                "manager process\", or \"nginx: bloom "
                                "helper\")");
}
