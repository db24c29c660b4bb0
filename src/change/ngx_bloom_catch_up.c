/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file reads records from the position that this instance has applied up
 * to the journal's end, and sets their bits in the bank that serves.
 */

#include "ngx_bloom_catch_up.h"
#include "ngx_bloom_removals.h"
#include "ngx_bloom_as_of.h"
#include "ngx_bloom_base_file.h"
#include "ngx_bloom_cleared.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_journal.h"
#include "ngx_bloom_set.h"


/* Bytes of the journal applied in one call.  A zone that gets its journal back
 * may have much to apply, while journals of other zones need the helper. */
#define NGX_BLOOM_CATCH_UP_STEP  (1024 * 1024)

/* Bytes at the end of the journal that are applied while the zone stays locked.
 * Further from the end it is locked for each record: otherwise no end could be
 * reached while workers append without a pause. */
#define NGX_BLOOM_CATCH_UP_LAST  (64 * 1024)


/* What is applied, and to what. */
typedef struct {
    ngx_bloom_zone_t       *zone;
    ngx_bloom_zone_bits_t   bits;
    uint64_t                truth;       /* removals up to this time are older
                                            than the image that serves, and were
                                            judged when it was loaded */
    ngx_uint_t              locked;      /* 1: the lock of the zone is held */
    ngx_bloom_end_t         end;
} ngx_bloom_catch_up_t;


static ngx_int_t ngx_bloom_catch_up_own(ngx_bloom_zone_t *zone);
static ngx_int_t ngx_bloom_catch_up_apply(ngx_bloom_catch_up_t *up);
static ngx_int_t ngx_bloom_catch_up_records(ngx_bloom_catch_up_t *up,
    ngx_bloom_reader_t *reader, bloom_removals_t *applied);
static ngx_uint_t ngx_bloom_catch_up_clears(ngx_bloom_catch_up_t *up,
    ngx_bloom_reader_t *reader, const bloom_record_t *record);
static ngx_int_t ngx_bloom_catch_up_lock(ngx_bloom_catch_up_t *up,
    ngx_bloom_reader_t *reader, const bloom_record_t *record);
static ngx_uint_t ngx_bloom_catch_up_is_last(ngx_bloom_catch_up_t *up,
    const ngx_bloom_reader_t *reader);
static ngx_int_t ngx_bloom_catch_up_change(ngx_bloom_catch_up_t *up,
    const bloom_record_t *record, uint64_t truth, uint64_t position);
static ngx_int_t ngx_bloom_catch_up_changes(ngx_bloom_catch_up_t *up,
    const bloom_record_t *record, uint64_t position);
static ngx_int_t ngx_bloom_catch_up_restore(ngx_bloom_catch_up_t *up,
    const bloom_record_t *record, ngx_uint_t newer, uint64_t position);
static void ngx_bloom_catch_up_applied(ngx_bloom_zone_t *zone,
    uint64_t position, const bloom_removals_t *removals);
static void ngx_cdecl ngx_bloom_catch_up_log(ngx_uint_t level, ngx_err_t err,
    const char *fmt, ...);
static ngx_int_t ngx_bloom_catch_up_lost(ngx_bloom_catch_up_t *up,
    ngx_bloom_reader_t *reader);
static ngx_int_t ngx_bloom_catch_up_unrequire(ngx_bloom_zone_t *zone);


/* When a failure was last logged.  Catching up is tried again at once, but the
 * failure is not logged each time. */
static time_t  ngx_bloom_catch_up_logged;


void
ngx_bloom_catch_up_begin(ngx_bloom_zone_t *zone)
{
    bloom_base_t          base;
    ngx_bloom_state_t    *state;
    ngx_bloom_control_t  *control;

    state = zone->state;
    control = state->control;

    ngx_bloom_base_file_get(state, &base);

    __atomic_store_n(&zone->sh->applied, base.from.position, __ATOMIC_SEQ_CST);
    ngx_bloom_removals_applied(zone, base.from.position, &base.from.removals);

    __atomic_store_n(&control->instance[state->instance].required,
                     ngx_bloom_state_tail(state), __ATOMIC_SEQ_CST);
}


ngx_int_t
ngx_bloom_catch_up(ngx_bloom_zone_t *zone)
{
    ngx_int_t             rc;
    ngx_bloom_shctx_t    *sh;
    ngx_bloom_state_t    *state;
    ngx_bloom_catch_up_t  up;

    sh = zone->sh;
    state = zone->state;

    /*
     * Read the end first: whatever lies before it was required by its appender
     * before it was published.
     */

    up.zone = zone;
    up.locked = 0;
    up.end = ngx_bloom_state_end(state);

    if (up.end.tail <= sh->applied) {

        if (__atomic_load_n(zone->required, __ATOMIC_SEQ_CST) > sh->applied) {
            return ngx_bloom_catch_up_unrequire(zone);
        }

        return NGX_OK;
    }

    /* a filter cannot forget what was cleared: the helper loads another one */

    if (sh->generation != 0 && ngx_bloom_cleared_since(state, sh->applied)) {
        return NGX_AGAIN;
    }

    if (sh->generation == 0) {

        /* the next load will read the whole journal */

        ngx_bloom_catch_up_applied(zone, up.end.tail, &up.end.removals);

    } else if (__atomic_load_n(zone->required, __ATOMIC_SEQ_CST)
               <= sh->applied)
    {
        return ngx_bloom_catch_up_own(zone);

    } else {
        rc = ngx_bloom_catch_up_apply(&up);

        if (up.locked) {
            ngx_bloom_zone_unlock(zone);
        }

        if (rc != NGX_OK) {
            return rc;
        }
    }

    return (__atomic_load_n(zone->required, __ATOMIC_SEQ_CST) > up.end.tail)
           ? ngx_bloom_catch_up_unrequire(zone) : NGX_OK;
}


/*
 * A worker of this instance is applying the last record, or has died: then
 * taking its lock requires the record.  Returns NGX_OK or NGX_AGAIN.
 */
static ngx_int_t
ngx_bloom_catch_up_own(ngx_bloom_zone_t *zone)
{
    ngx_int_t        rc;
    ngx_bloom_end_t  end;

    if (ngx_bloom_zone_lock(zone, NGX_BLOOM_TASK_WAIT) != NGX_OK) {
        return NGX_AGAIN;
    }

    rc = NGX_AGAIN;

    if (__atomic_load_n(zone->required, __ATOMIC_SEQ_CST)
        <= zone->sh->applied)
    {
        end = ngx_bloom_state_end(zone->state);
        ngx_bloom_catch_up_applied(zone, end.tail, &end.removals);
        rc = NGX_OK;
    }

    ngx_bloom_zone_unlock(zone);

    return rc;
}


/*
 * Applies a piece of the journal, which ends at up->end.
 *
 * An addition may be applied late.  A removal must not, after this instance has
 * added the same key again.  So from the first removal on, this instance has to
 * apply everything up to the journal's end before it says "absent", and the
 * last piece is applied while the zone stays locked: if up->locked is 1, the
 * caller unlocks.  up->end.tail becomes what was applied.
 *
 * Returns NGX_OK; NGX_AGAIN if there is more to do; or NGX_ERROR.
 */
static ngx_int_t
ngx_bloom_catch_up_apply(ngx_bloom_catch_up_t *up)
{
    ngx_int_t            rc;
    bloom_point_t        point;
    bloom_removals_t     applied;
    ngx_bloom_zone_t    *zone;
    ngx_bloom_shctx_t   *sh;
    ngx_bloom_state_t   *state;
    ngx_bloom_reader_t   reader;

    zone = up->zone;
    sh = zone->sh;
    state = zone->state;

    ngx_memzero(&point, sizeof(bloom_point_t));

    point.position = sh->applied;
    point.removals = state->control->instance[state->instance].counted;

    if (ngx_bloom_reader_open(&reader, state, &point, &up->end) != NGX_OK) {
        return NGX_ERROR;
    }

    applied = point.removals;

    /* sh->applying is held, so the generation does not change */

    ngx_bloom_zone_bits(zone, sh->generation & 1, &up->bits);

    up->truth = ngx_bloom_as_of_truth(state,
                                      &sh->bank[sh->generation & 1].image);

    rc = ngx_bloom_catch_up_records(up, &reader, &applied);

    if (rc != NGX_ERROR && reader.lost != 0
        && ngx_bloom_catch_up_lost(up, &reader) != NGX_OK)
    {
        ngx_bloom_reader_close(&reader);
        return NGX_AGAIN;
    }

    if (rc == NGX_ERROR) {
        ngx_bloom_catch_up_log(NGX_LOG_ERR, reader.err,
                               "bloom zone \"%V\": %s", &zone->name,
                               reader.error);
    }

    ngx_bloom_reader_close(&reader);

    if (rc == NGX_ERROR) {
        return NGX_ERROR;
    }

    ngx_bloom_catch_up_applied(zone, up->end.tail, &applied);

    return (rc == NGX_AGAIN) ? NGX_AGAIN : NGX_OK;
}


/*
 * Applies the records of the piece, and counts their removals in *applied.
 * Returns NGX_DONE at the end of the piece; NGX_AGAIN if there is more to do,
 * with up->end.tail at what was applied; or NGX_ERROR with the reader's error.
 */
static ngx_int_t
ngx_bloom_catch_up_records(ngx_bloom_catch_up_t *up,
    ngx_bloom_reader_t *reader, bloom_removals_t *applied)
{
    uint64_t           until, before;
    ngx_int_t          rc;
    bloom_record_t     record;
    bloom_removals_t   removals;
    ngx_bloom_zone_t  *zone;

    zone = up->zone;
    until = reader->position + NGX_BLOOM_CATCH_UP_STEP;

    for ( ;; ) {
        before = reader->position;
        rc = ngx_bloom_reader_next(reader, &record);

        if (rc != NGX_OK) {
            return rc;
        }

        if (record.type == BLOOM_RECORD_CLEAR
            && ngx_bloom_catch_up_clears(up, reader, &record))
        {
            up->end.tail = before;
            return NGX_AGAIN;
        }

        removals = reader->end.removals;

        if (before != zone->sh->applied) {

            /* a restoration that follows concerns records of this call, too */

            zone->restoring.cursor = 0;
        }

        if (ngx_bloom_catch_up_lock(up, reader, &record) != NGX_OK
            || ngx_bloom_catch_up_change(up, &record, up->truth,
                                         reader->position)
               != NGX_OK)
        {
            up->end.tail = before;
            return NGX_AGAIN;
        }

        *applied = removals;

        if (!ngx_bloom_catch_up_is_last(up, reader)) {
            ngx_bloom_zone_unlock(zone);
            up->locked = 0;
        }

        if (!up->locked && reader->position >= until
            && reader->position < up->end.tail)
        {
            up->end.tail = reader->position;
            return NGX_AGAIN;
        }
    }
}


/* Tells all processes of the clear record that was read last.  Returns 1 if
 * this instance still has to apply a clear. */
static ngx_uint_t
ngx_bloom_catch_up_clears(ngx_bloom_catch_up_t *up, ngx_bloom_reader_t *reader,
    const bloom_record_t *record)
{
    uint64_t            position;
    ngx_bloom_state_t  *state;

    state = up->zone->state;
    position = reader->position - record->size;

    /* the first record of the journal was settled long ago */

    if (position > ngx_bloom_base_file_begin(state)) {
        ngx_bloom_cleared_found(state, position);
    }

    return ngx_bloom_cleared_since(state, up->zone->sh->applied);
}


/* Locks the zone for the record that was read last, unless it is locked.
 * Returns NGX_OK, or NGX_AGAIN if another process holds the lock. */
static ngx_int_t
ngx_bloom_catch_up_lock(ngx_bloom_catch_up_t *up, ngx_bloom_reader_t *reader,
    const bloom_record_t *record)
{
    ngx_uint_t          last;
    ngx_bloom_state_t  *state;

    if (up->locked) {
        return NGX_OK;
    }

    if (ngx_bloom_zone_lock(up->zone, NGX_BLOOM_TASK_WAIT) != NGX_OK) {
        return NGX_AGAIN;
    }

    up->locked = 1;

    state = up->zone->state;
    last = ngx_bloom_catch_up_is_last(up, reader);

    if (last) {
        up->end = ngx_bloom_state_end(state);
        ngx_bloom_reader_extend(reader, &up->end);
    }

    /* from the first removal on, everything has to be applied */

    if (last || record->type != BLOOM_RECORD_ADD) {
        ngx_bloom_state_require(state, (uint64_t) 1 << state->instance,
                                ngx_bloom_state_tail(state));
    }

    return NGX_OK;
}


/* Returns 1 if little follows the record that was read last. */
static ngx_uint_t
ngx_bloom_catch_up_is_last(ngx_bloom_catch_up_t *up,
    const ngx_bloom_reader_t *reader)
{
    return up->end.tail - reader->position <= NGX_BLOOM_CATCH_UP_LAST;
}


/* Applies one record, which ends at `position`, under the lock of the zone.
 * Returns NGX_OK; NGX_AGAIN if there is more of it to do; or NGX_ERROR. */
static ngx_int_t
ngx_bloom_catch_up_change(ngx_bloom_catch_up_t *up,
    const bloom_record_t *record, uint64_t truth, uint64_t position)
{
    ngx_bloom_set_tally_t  tally;

    switch (record->type) {

    case BLOOM_RECORD_ADD:
        ngx_bloom_set_keys(&up->bits, record->keys, record->end, &tally);

        ngx_bloom_fault("caught");

        if (tally.excepted != 0) {
            ngx_bloom_zone_lift(&up->bits, record->keys, record->end,
                                position);
        }

        return NGX_OK;

    case BLOOM_RECORD_RESTORE:
        return ngx_bloom_catch_up_restore(up, record,
                                          record->stamp.time > truth, position);

    case BLOOM_RECORD_REMOVE:

        if (record->stamp.time > truth
            && ngx_bloom_zone_except(&up->bits, record, position) != NGX_OK)
        {
            /* the room was counted, so memory is damaged */

            ngx_bloom_catch_up_log(NGX_LOG_ALERT, 0,
                                   "bloom zone \"%V\" has no room for a key "
                                   "that was removed, and answers \"unknown\" "
                                   "instead of \"absent\"; load an image",
                                   &up->zone->name);
            return NGX_ERROR;
        }

        return NGX_OK;

    case BLOOM_RECORD_CHANGES:
        return ngx_bloom_catch_up_changes(up, record, position);
    }

    return NGX_OK;
}


/*
 * Applies a piece of a restoration, which ends at `position`.  If it is not
 * newer than the image that serves, the exceptions of the image stay, as in a
 * load.  If this process dies meanwhile, the next helper begins again, which
 * changes nothing: all exceptions from before the record end, and no others.
 * Returns as ngx_bloom_catch_up_change() does.
 */
static ngx_int_t
ngx_bloom_catch_up_restore(ngx_bloom_catch_up_t *up,
    const bloom_record_t *record, ngx_uint_t newer, uint64_t position)
{
    ngx_bloom_zone_t  *zone;

    zone = up->zone;

    if (zone->restoring.position != position) {
        zone->restoring.position = position;
        zone->restoring.cursor = 0;
        zone->restoring.keys = 0;
    }

    return ngx_bloom_zone_restore(&up->bits, record->kinds, newer ? 0 : 1,
                                  position, &zone->restoring.cursor,
                                  &zone->restoring.keys);
}


/* Applies changes of a source.  Those up to the position of the image that
 * serves are in it, and all others are newer. */
static ngx_int_t
ngx_bloom_catch_up_changes(ngx_bloom_catch_up_t *up,
    const bloom_record_t *record, uint64_t position)
{
    uint64_t           truth;
    ngx_int_t          rc;
    bloom_image_t     *image;
    bloom_record_t     part;
    ngx_bloom_zone_t  *zone;

    zone = up->zone;
    truth = up->truth;
    image = &zone->sh->bank[zone->sh->generation & 1].image;

    if (ngx_bloom_zone_is_source(zone, record)) {
        if (bloom_position_cmp(record->after,
                               ngx_bloom_zone_position(zone, image))
            <= 0)
        {
            return NGX_OK;
        }

        truth = 0;
    }

    bloom_record_part(record, BLOOM_RECORD_REMOVE, &part);

    rc = (part.count != 0)
         ? ngx_bloom_catch_up_change(up, &part, truth, position) : NGX_OK;

    bloom_record_part(record, BLOOM_RECORD_ADD, &part);

    return (rc == NGX_OK && part.count != 0)
           ? ngx_bloom_catch_up_change(up, &part, truth, position) : rc;
}


/* Records that this instance has applied the journal up to `position`. */
static void
ngx_bloom_catch_up_applied(ngx_bloom_zone_t *zone, uint64_t position,
    const bloom_removals_t *removals)
{
    __atomic_store_n(&zone->sh->applied, position, __ATOMIC_SEQ_CST);
    ngx_bloom_removals_applied(zone, position, removals);
}


/* Logs a failure unless one was logged in this second. */
static void ngx_cdecl
ngx_bloom_catch_up_log(ngx_uint_t level, ngx_err_t err, const char *fmt, ...)
{
    u_char   text[NGX_MAX_ERROR_STR], *p;
    va_list  args;

    if (ngx_bloom_catch_up_logged == ngx_time()) {
        return;
    }

    ngx_bloom_catch_up_logged = ngx_time();

    va_start(args, fmt);
    p = ngx_vslprintf(text, text + sizeof(text), fmt, args);
    va_end(args);

    ngx_log_error(level, ngx_cycle->log, err, "%*s", (size_t) (p - text),
                  text);
}


/*
 * Records that the filter that serves lacks the keys missing in the journal:
 * lowers `complete` to what its image covers.  Returns NGX_OK, or NGX_AGAIN if
 * another process holds the lock.
 */
static ngx_int_t
ngx_bloom_catch_up_lost(ngx_bloom_catch_up_t *up, ngx_bloom_reader_t *reader)
{
    uint64_t            covered;
    ngx_bloom_zone_t   *zone;
    ngx_bloom_shctx_t  *sh;

    zone = up->zone;
    sh = zone->sh;

    if (!up->locked
        && ngx_bloom_zone_lock(zone, NGX_BLOOM_TASK_WAIT) != NGX_OK)
    {
        return NGX_AGAIN;
    }

    covered = ngx_bloom_as_of_cut(zone->state,
                                  &sh->bank[sh->generation & 1].image);
    covered = ngx_max(covered, 1);

    if (covered < sh->complete) {
        __atomic_store_n(&sh->complete, covered, __ATOMIC_SEQ_CST);
    }

    if (!up->locked) {
        ngx_bloom_zone_unlock(zone);
    }

    ngx_bloom_control_lose(&zone->control->loss, reader->lost);

    ngx_bloom_catch_up_log_lost(zone, reader, covered);

    return NGX_OK;
}


/*
 * Lowers `required` to the journal's end.  If it is higher, a process was about
 * to publish a record; as this function holds the lock `append`, that process
 * has died before it did.  An instance that was left stays so: the helper of
 * the next one may have said so before this helper ended.
 */
static ngx_int_t
ngx_bloom_catch_up_unrequire(ngx_bloom_zone_t *zone)
{
    uint64_t              old, tail, *required;
    ngx_bloom_state_t    *state;
    ngx_bloom_control_t  *control;

    state = zone->state;
    control = state->control;

    if (ngx_bloom_zone_lock(zone, NGX_BLOOM_TASK_WAIT) != NGX_OK) {
        return NGX_AGAIN;
    }

    required = &control->instance[state->instance].required;
    old = __atomic_load_n(required, __ATOMIC_SEQ_CST);
    tail = ngx_bloom_state_tail(state);

    if (old > tail && old != NGX_BLOOM_LEFT) {
        (void) __atomic_compare_exchange_n(required, &old, tail, 0,
                                           __ATOMIC_SEQ_CST,
                                           __ATOMIC_SEQ_CST);
    }

    ngx_bloom_zone_unlock(zone);

    return NGX_OK;
}


void
ngx_bloom_catch_up_log_lost(ngx_bloom_zone_t *zone, ngx_bloom_reader_t *reader,
    uint64_t complete)
{
    uint64_t  lost;
    ngx_tm_t  tm;

    lost = ngx_bloom_zone_lost(zone);

    if (lost == 0 || lost < complete) {
        return;
    }

    /* one life later, the lost keys would have expired */

    if (zone->expire != 0) {
        ngx_log_error(NGX_LOG_ALERT, zone->shm_zone->shm.log, 0,
                      "bloom zone \"%V\" has lost added keys and answers "
                      "\"unknown\" instead of \"absent\" for one life, %uL s; "
                      "to repair it at once, clear it by POST clear and add "
                      "its keys again: %s", &zone->name, zone->expire / 1000,
                      reader->damage[0] ? (char *) reader->damage
                      : "see the error log of that time for the reason");
        return;
    }

    ngx_gmtime((time_t) (lost / 1000), &tm);

    ngx_log_error(NGX_LOG_ALERT, zone->shm_zone->shm.log, 0,
                  "bloom zone \"%V\" has lost added keys and answers "
                  "\"unknown\" instead of \"absent\" until an image built with "
                  "--as-of more than an hour after "
                  "%4d-%02d-%02dT%02d:%02d:%02dZ is loaded: %s",
                  &zone->name, tm.ngx_tm_year, tm.ngx_tm_mon, tm.ngx_tm_mday,
                  tm.ngx_tm_hour, tm.ngx_tm_min, tm.ngx_tm_sec,
                  reader->damage[0] ? (char *) reader->damage
                  : "see the error log of that time for the reason");
}
