/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The covered keys are a set in memory of this process, which doubles its room
 * when it is full.
 */

#include "ngx_bloom_replay.h"
#include "ngx_bloom_base_file.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_ring.h"
#include "ngx_bloom_set.h"

#include <sys/random.h>


/* A replay is at the end when fewer bytes of the journal than this are left.
 * The switch replays them while it blocks appending. */
#define NGX_BLOOM_REPLAY_REST     (256 * 1024)

/* The room for covered keys at first. */
#define NGX_BLOOM_REPLAY_COVERED  1024

/*
 * The kinds of keys in `covered`.  A lifted key is an exception of the image
 * that an addition has lifted, although the image may cover the addition: if a
 * removal follows, the key becomes an exception again.  A key that waits is to
 * become an exception, and the bank has no room for it yet: records that follow
 * may give room, by adding this key or others again.
 */
#define NGX_BLOOM_REPLAY_IS_COVERED  BLOOM_EXCEPTION_REMOVED
#define NGX_BLOOM_REPLAY_IS_LIFTED   BLOOM_EXCEPTION_FEEDBACK
#define NGX_BLOOM_REPLAY_WAITS       BLOOM_EXCEPTION_BUILT


static ngx_int_t ngx_bloom_replay_open(ngx_bloom_replay_t *replay);
static ngx_int_t ngx_bloom_replay_skip_judging(ngx_bloom_replay_t *replay,
    const bloom_point_t *point, const ngx_bloom_end_t *end);
static void ngx_bloom_replay_begin_place(ngx_bloom_replay_t *replay,
    const bloom_point_t *point);
static ngx_int_t ngx_bloom_replay_next(ngx_bloom_replay_t *replay);
static ngx_int_t ngx_bloom_replay_done(ngx_bloom_replay_t *replay);
static ngx_int_t ngx_bloom_replay_record(ngx_bloom_replay_t *replay,
    const bloom_record_t *record);
static ngx_int_t ngx_bloom_replay_changes(ngx_bloom_replay_t *replay,
    const bloom_record_t *record);
static ngx_uint_t ngx_bloom_replay_reach(ngx_bloom_replay_t *replay,
    const bloom_record_t *record);
static ngx_int_t ngx_bloom_replay_keys(ngx_bloom_replay_t *replay,
    const bloom_record_t *record);
static ngx_int_t ngx_bloom_replay_judge(ngx_bloom_replay_t *replay,
    const bloom_record_t *record);
static ngx_int_t ngx_bloom_replay_add(ngx_bloom_replay_t *replay,
    const bloom_exception_t *exception);
static ngx_int_t ngx_bloom_replay_remove(ngx_bloom_replay_t *replay,
    bloom_exception_t *exception, ngx_uint_t newer);
static void ngx_bloom_replay_restore(ngx_bloom_replay_t *replay,
    const bloom_record_t *record);
static ngx_int_t ngx_bloom_replay_cover(ngx_bloom_replay_t *replay,
    const bloom_exception_t *exception, unsigned kind);
static ngx_int_t ngx_bloom_replay_grow(ngx_bloom_replay_t *replay,
    uint64_t bytes);
static ngx_int_t ngx_bloom_replay_put(ngx_bloom_replay_t *replay,
    const bloom_exception_t *exception);
static void ngx_bloom_replay_set(ngx_bloom_replay_t *replay,
    const bloom_record_t *record);
static ngx_int_t ngx_bloom_replay_settle(ngx_bloom_replay_t *replay);
static void ngx_bloom_replay_forget(ngx_bloom_replay_t *replay);
static ngx_int_t ngx_bloom_replay_fails(ngx_bloom_replay_t *replay,
    ngx_err_t err, const char *error);


void
ngx_bloom_replay_begin(ngx_bloom_replay_t *replay, ngx_bloom_zone_t *zone)
{
    ngx_memzero(replay, sizeof(ngx_bloom_replay_t));

    replay->zone = zone;
    replay->judging = 1;
}


ngx_int_t
ngx_bloom_replay_run(ngx_bloom_replay_t *replay)
{
    ngx_int_t  rc;

    if (replay->zone->state == NULL) {
        return NGX_OK;
    }

    do {
        if (!replay->reading && ngx_bloom_replay_open(replay) != NGX_OK) {
            return NGX_ERROR;
        }

        do {
            rc = ngx_bloom_replay_next(replay);
        } while (rc == NGX_OK);

        if (rc == NGX_DONE) {
            rc = ngx_bloom_replay_done(replay);
        }

    } while (rc == NGX_AGAIN);

    return rc;
}


ngx_int_t
ngx_bloom_replay_rest(ngx_bloom_replay_t *replay)
{
    ngx_int_t        rc;
    ngx_bloom_end_t  end;

    end = ngx_bloom_state_end(replay->zone->state);
    ngx_bloom_reader_extend(&replay->reader, &end);

    for ( ;; ) {
        rc = ngx_bloom_replay_next(replay);

        if (rc != NGX_OK) {
            return (rc == NGX_DONE) ? NGX_OK : NGX_ERROR;
        }

        ngx_bloom_fault("rest");
    }
}


/* Opens the journal for the first replay or, if there is nothing to judge, for
 * the second.  Returns NGX_OK or NGX_ERROR. */
static ngx_int_t
ngx_bloom_replay_open(ngx_bloom_replay_t *replay)
{
    ngx_uint_t           live;
    bloom_base_t         base;
    bloom_point_t       *point;
    ngx_bloom_end_t      end;
    ngx_bloom_state_t   *state;
    ngx_bloom_reader_t  *reader;

    state = replay->zone->state;
    reader = &replay->reader;

    ngx_bloom_base_file_get(state, &base);

    point = replay->point.position != 0 ? &replay->point : &base.from;

    /* an instance that starts alone has not filled the control page yet */

    live = (state->control->end[0].sequence != 0);
    end = ngx_bloom_state_end(state);

    if (replay->judging
        && ngx_bloom_replay_skip_judging(replay, point, live ? &end : NULL)
           != NGX_OK)
    {
        return ngx_bloom_replay_fails(replay, ngx_errno,
                                      "the journal cannot be read");
    }

    if (ngx_bloom_reader_open(reader, state, point, live ? &end : NULL)
        != NGX_OK)
    {
        return ngx_bloom_replay_fails(replay, ngx_errno,
                                      "no memory to read the journal");
    }

    replay->reading = 1;
    replay->hole = 0;

    if (!replay->begun) {
        replay->begun = 1;
        replay->begin = point->position;
    }

    ngx_bloom_replay_begin_place(replay, point);

    ngx_log_debug4(NGX_LOG_DEBUG_CORE, replay->zone->shm_zone->shm.log, 0,
                   "bloom zone \"%V\": load %s \"%V\" from %uL on",
                   &replay->zone->name,
                   replay->judging ? "judges" : "replays", &state->path,
                   point->position);

    return NGX_OK;
}


/*
 * Leaves out the judging if there is nothing to judge.  `end` is NULL if this
 * instance starts alone.  Returns NGX_OK, or NGX_ERROR with errno if the
 * journal cannot be read.
 */
static ngx_int_t
ngx_bloom_replay_skip_judging(ngx_bloom_replay_t *replay,
    const bloom_point_t *point, const ngx_bloom_end_t *end)
{
    bloom_removals_t  removals;

    if (replay->cut == UINT64_MAX) {
        replay->judging = 0;
        replay->judged = UINT64_MAX;
        return NGX_OK;
    }

    if (bloom_exceptions_count(&replay->bits.exceptions) != 0) {
        return NGX_OK;
    }

    if (end != NULL) {
        removals = end->removals;

    } else if (ngx_bloom_journal_removals(replay->zone->state, &removals)
               != NGX_OK)
    {
        return NGX_ERROR;
    }

    /* if nothing was removed, there is nothing to judge */

    if (removals.keys == point->removals.keys) {
        replay->judging = 0;
        replay->judged = (end != NULL) ? end->tail : NGX_BLOOM_TO_THE_END;
    }

    return NGX_OK;
}


/* Begins with the place in the source where the image or the checkpoint is. */
static void
ngx_bloom_replay_begin_place(ngx_bloom_replay_t *replay,
    const bloom_point_t *point)
{
    replay->place = point->place;

    if (replay->place.source != replay->zone->source_id) {
        ngx_memzero(&replay->place, sizeof(bloom_reached_t));
        replay->place.source = replay->zone->source_id;
    }

    /* an image that moves the zone begins another digest */

    if (bloom_position_cmp(replay->place.position, replay->start) != 0) {
        bloom_digest_restart(&replay->place.digest, replay->start);
    }

    replay->place.position = replay->start;
    replay->seen.high = 0;
    replay->seen.low = 0;
}


/* Replays one record.  Returns NGX_OK, NGX_DONE at the end, or NGX_ERROR. */
static ngx_int_t
ngx_bloom_replay_next(ngx_bloom_replay_t *replay)
{
    ngx_int_t        rc;
    bloom_record_t   record;

    rc = ngx_bloom_reader_next(&replay->reader, &record);

    if (rc == NGX_ERROR) {
        return ngx_bloom_replay_fails(replay, replay->reader.err,
                                      (char *) replay->reader.error);
    }

    return (rc == NGX_OK) ? ngx_bloom_replay_record(replay, &record) : rc;
}


static ngx_int_t
ngx_bloom_replay_record(ngx_bloom_replay_t *replay,
    const bloom_record_t *record)
{
    uint64_t  position;

    /* what was before the record is to be forgotten, unless the journal began
     * with it; it may begin with it since, if another instance has settled the
     * clear */

    position = replay->reader.position - record->size;

    if (record->type == BLOOM_RECORD_CLEAR
        && position > replay->begin
        && replay->cut != UINT64_MAX)
    {
        replay->cleared = position;
        return ngx_bloom_replay_fails(replay, 0, "the zone has been cleared "
                                      "meanwhile; try again");
    }

    return record->type == BLOOM_RECORD_CHANGES
           ? ngx_bloom_replay_changes(replay, record)
           : ngx_bloom_replay_keys(replay, record);
}


/* Replays changes of a source. */
static ngx_int_t
ngx_bloom_replay_changes(ngx_bloom_replay_t *replay,
    const bloom_record_t *record)
{
    ngx_int_t          rc;
    ngx_uint_t         i;
    bloom_record_t     part;
    ngx_bloom_zone_t  *zone;

    static const uint32_t  parts[] = { BLOOM_RECORD_REMOVE, BLOOM_RECORD_ADD };

    zone = replay->zone;

    if (ngx_bloom_zone_is_source(zone, record)) {
        if (!ngx_bloom_replay_reach(replay, record)) {
            return NGX_OK;
        }

        replay->newer = (replay->cut != UINT64_MAX);
    }

    for (rc = NGX_OK, i = 0; rc == NGX_OK && i < 2; i++) {
        bloom_record_part(record, parts[i], &part);

        if (part.count != 0) {
            rc = ngx_bloom_replay_keys(replay, &part);
        }
    }

    replay->newer = 0;

    return rc;
}


/*
 * Moves the place in the source by a record of its changes.  Returns 1 if they
 * are to be applied; 0 if the image has them.
 */
static ngx_uint_t
ngx_bloom_replay_reach(ngx_bloom_replay_t *replay,
    const bloom_record_t *record)
{
    bloom_position_t    reached;
    bloom_reached_t   gap, *place;

    place = &replay->place;
    reached = bloom_record_reached(record);

    if (bloom_position_cmp(record->before, record->after) == 0) {

        /* the record of a gap; an image that is later knows better */

        gap = *place;
        gap.gap.high = gap.gap.low = 0;
        ngx_bloom_source_gap(&gap, replay->seen, record->after);
        replay->seen = record->after;

        if (bloom_position_cmp(gap.gap, place->gap) > 0) {
            place->gap = gap.gap;
            place->lost = 1;
        }

        if (bloom_position_cmp(replay->start, gap.gap) < 0) {
            place->position = gap.position;
            place->digest = gap.digest;
        }

        return 0;
    }

    if (bloom_position_cmp(reached, replay->seen) > 0) {
        replay->seen = reached;
    }

    if (bloom_position_cmp(reached, place->position) == 0) {
        place->digest = record->digest;
    }

    if (bloom_position_cmp(record->after, place->position) <= 0) {
        return 0;
    }

    if (bloom_position_cmp(record->before, place->position) > 0) {
        replay->hole = 1;

        if (bloom_position_cmp(place->gap, record->before) < 0) {
            place->gap = record->before;
            place->lost = 1;
        }
    }

    if (bloom_position_cmp(reached, place->position) > 0) {
        place->position = reached;
        place->digest = record->digest;
    }

    return 1;
}


/* Replays a record that adds, removes or restores keys. */
static ngx_int_t
ngx_bloom_replay_keys(ngx_bloom_replay_t *replay, const bloom_record_t *record)
{
    if (replay->judging) {
        return ngx_bloom_replay_judge(replay, record);
    }

    ngx_bloom_replay_set(replay, record);

    if (replay->reader.position <= replay->judged) {
        return NGX_OK;
    }

    /* the covered keys are settled before the first record that was appended
     * after the judging */

    return ngx_bloom_replay_settle(replay) == NGX_OK
           ? ngx_bloom_replay_judge(replay, record) : NGX_ERROR;
}


/* Continues at the journal's end.  Returns NGX_OK; NGX_AGAIN if there is more
 * to replay; or NGX_ERROR. */
static ngx_int_t
ngx_bloom_replay_done(ngx_bloom_replay_t *replay)
{
    ngx_bloom_end_t      end;
    ngx_bloom_reader_t  *reader;

    reader = &replay->reader;

    if (replay->judging) {
        replay->judging = 0;
        replay->judged = reader->limit;

        ngx_bloom_reader_close(reader);
        replay->reading = 0;

        return NGX_AGAIN;
    }

    if (ngx_bloom_replay_settle(replay) != NGX_OK) {
        return NGX_ERROR;
    }

    if (reader->limit == NGX_BLOOM_TO_THE_END) {
        return NGX_OK;
    }

    ngx_bloom_fault("replayed");

    /* records were appended meanwhile */

    end = ngx_bloom_state_end(replay->zone->state);
    ngx_bloom_reader_extend(reader, &end);

    /* an end before that is forged: the load does not wait for another one */

    return reader->limit < reader->position + NGX_BLOOM_REPLAY_REST
           ? NGX_OK : NGX_AGAIN;
}


/*
 * Judges the record that was read last.  Returns NGX_OK, or NGX_ERROR with what
 * has failed.
 */
static ngx_int_t
ngx_bloom_replay_judge(ngx_bloom_replay_t *replay,
    const bloom_record_t *record)
{
    uint64_t           time;
    bloom_record_t     keys;
    bloom_exception_t  exception;

    /* no record is older than one before it */

    time = replay->reader.end.time;

    if (replay->zone->expire != 0 && time < replay->cut) {
        return NGX_OK;                   /* its keys have expired */
    }

    if (record->type != BLOOM_RECORD_REMOVE
        && bloom_exceptions_count(&replay->bits.exceptions) == 0
        && bloom_exceptions_count(&replay->covered) == 0)
    {
        return NGX_OK;
    }

    if (record->type == BLOOM_RECORD_RESTORE) {
        ngx_bloom_replay_restore(replay, record);
        return NGX_OK;
    }

    keys = *record;
    exception.kinds = BLOOM_EXCEPTION_REMOVED;
    exception.time = time;
    exception.position = replay->reader.position;

    while (bloom_record_key(&keys, &exception.key)) {

        if (ngx_bloom_zone_canonical(replay->bits.form, &exception.key) != NULL)
        {
            continue;
        }

        if (record->type == BLOOM_RECORD_REMOVE) {
            if (ngx_bloom_replay_remove(replay, &exception,
                                        replay->newer || replay->truth == 0
                                        || time > replay->truth)
                != NGX_OK)
            {
                return NGX_ERROR;
            }

            continue;
        }

        if (record->type == BLOOM_RECORD_ADD
            && ngx_bloom_replay_add(replay, &exception) != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* Judges an added key.  Returns NGX_OK, or NGX_ERROR with what has failed. */
static ngx_int_t
ngx_bloom_replay_add(ngx_bloom_replay_t *replay,
    const bloom_exception_t *exception)
{
    (void) bloom_exceptions_drop(&replay->covered, exception->key.data,
                                 exception->key.len,
                                 NGX_BLOOM_REPLAY_IS_COVERED, UINT64_MAX);

    /* an image that covers an addition knows better what came after it */

    if (!replay->newer && exception->time < replay->cut) {
        return NGX_OK;
    }

    (void) bloom_exceptions_drop(&replay->covered, exception->key.data,
                                 exception->key.len, NGX_BLOOM_REPLAY_WAITS,
                                 UINT64_MAX);

    if (bloom_exceptions_drop(&replay->bits.exceptions, exception->key.data,
                              exception->key.len, BLOOM_EXCEPTION_KINDS,
                              exception->position)
        && !replay->newer && exception->time <= replay->truth)
    {
        return ngx_bloom_replay_cover(replay, exception,
                                      NGX_BLOOM_REPLAY_IS_LIFTED);
    }

    return NGX_OK;
}


/* Judges a removed key.  Returns NGX_OK, or NGX_ERROR with what has failed. */
static ngx_int_t
ngx_bloom_replay_remove(ngx_bloom_replay_t *replay,
    bloom_exception_t *exception, ngx_uint_t newer)
{
    if (newer) {
        (void) bloom_exceptions_drop(&replay->covered, exception->key.data,
                                     exception->key.len,
                                     BLOOM_EXCEPTION_KINDS, UINT64_MAX);

        return ngx_bloom_replay_put(replay, exception);
    }

    if (bloom_exceptions_drop(&replay->covered, exception->key.data,
                              exception->key.len, NGX_BLOOM_REPLAY_IS_LIFTED,
                              UINT64_MAX))
    {
        return ngx_bloom_replay_put(replay, exception);
    }

    if (ngx_bloom_zone_has(&replay->bits, &exception->key)) {
        return NGX_OK;
    }

    return ngx_bloom_replay_cover(replay, exception,
                                  NGX_BLOOM_REPLAY_IS_COVERED);
}


/*
 * Restores all keys that the journal has removed so far, whatever their times,
 * and, if the restoration is newer than the image, those of the image, which
 * have no position.
 *
 * The journal does not have excepted keys, so all of them are the image's.
 * Those of a checkpoint were excepted before the record.  A saved image is as
 * old as the one that it comes from, and may have keys that were excepted
 * later.
 */
static void
ngx_bloom_replay_restore(ngx_bloom_replay_t *replay,
    const bloom_record_t *record)
{
    ngx_uint_t           newer;
    bloom_exceptions_t  *set;

    set = &replay->bits.exceptions;
    newer = replay->reader.end.time > replay->truth;

    if (record->kinds & BLOOM_EXCEPTION_REMOVED) {
        ngx_bloom_zone_drop_all(&replay->covered,
                                NGX_BLOOM_REPLAY_IS_COVERED
                                | NGX_BLOOM_REPLAY_WAITS, 0, UINT64_MAX);

        ngx_bloom_zone_drop_all(set, BLOOM_EXCEPTION_REMOVED, newer ? 0 : 1,
                                UINT64_MAX);
    }

    if (!(record->kinds & BLOOM_EXCEPTION_FEEDBACK)) {
        return;
    }

    if (replay->point.position != 0) {
        ngx_bloom_zone_drop_all(set, BLOOM_EXCEPTION_FEEDBACK, 0, UINT64_MAX);

    } else if (newer) {
        ngx_bloom_zone_drop_all(set, BLOOM_EXCEPTION_FEEDBACK, 0,
                                record->stamp.time);
    }
}


static ngx_int_t
ngx_bloom_replay_cover(ngx_bloom_replay_t *replay,
    const bloom_exception_t *exception, unsigned kind)
{
    bloom_exception_t  covered;

    covered = *exception;
    covered.kinds = kind;

    while (replay->memory == NULL
           || bloom_exceptions_put(&replay->covered, &covered) == -1)
    {
        if (ngx_bloom_replay_grow(replay, exception->key.len) != NGX_OK) {
            return ngx_bloom_replay_fails(replay, ngx_errno, "no memory to "
                                          "replay the removals of the journal");
        }
    }

    return NGX_OK;
}


/* Doubles the room for covered keys, and at least by `bytes`. */
static ngx_int_t
ngx_bloom_replay_grow(ngx_bloom_replay_t *replay, uint64_t bytes)
{
    size_t               size;
    void                *memory;
    uint64_t             room, cursor;
    uint8_t              secret[BLOOM_HASH_KEY_LEN];
    bloom_exception_t    exception;
    bloom_exceptions_t   set;

    static u_char        buf[BLOOM_KEY_MAX];

    room = ngx_max(2 * replay->room, NGX_BLOOM_REPLAY_COVERED);
    room += bytes / BLOOM_EXCEPTION_KEY_USUAL;

    size = bloom_exceptions_size(room, room * BLOOM_EXCEPTION_KEY_USUAL);

    if (posix_memalign(&memory, 64, size) != 0) {
        return NGX_ERROR;
    }

    ngx_memzero(memory, size);

    if (getrandom(secret, BLOOM_HASH_KEY_LEN, 0) == -1) {
        free(memory);
        return NGX_ERROR;
    }

    bloom_exceptions_attach(&set, memory, room,
                            room * BLOOM_EXCEPTION_KEY_USUAL);
    bloom_exceptions_init(&set, secret);

    cursor = 0;

    while (replay->memory != NULL
           && bloom_exceptions_next(&replay->covered, &cursor, &exception, buf))
    {
        (void) bloom_exceptions_put(&set, &exception);
    }

    free(replay->memory);

    replay->covered = set;
    replay->memory = memory;
    replay->room = room;

    return NGX_OK;
}


/* Makes a key an exception of the bank, or lets it wait.  Returns NGX_OK, or
 * NGX_ERROR if there is no room. */
static ngx_int_t
ngx_bloom_replay_put(ngx_bloom_replay_t *replay,
    const bloom_exception_t *exception)
{
    if (ngx_bloom_zone_except_key(&replay->bits, exception) != -1) {
        return NGX_OK;
    }

    if (replay->judging) {
        return ngx_bloom_replay_cover(replay, exception,
                                      NGX_BLOOM_REPLAY_WAITS);
    }

    replay->full = 1;

    return NGX_ERROR;
}


/*
 * Sets the bits of the keys of a record, unless the image covers it.  A
 * record's age is the time it states; no record is older than one before it.
 */
static void
ngx_bloom_replay_set(ngx_bloom_replay_t *replay, const bloom_record_t *record)
{
    uint64_t               time, now;
    ngx_bloom_set_tally_t  tally;

    if (record->type != BLOOM_RECORD_ADD
        || (!replay->newer && replay->reader.end.time < replay->cut))
    {
        return;
    }

    if (replay->bits.ring != NULL) {

        /* a time that is wrong must not keep a slice for ever; after a reboot
         * the clock may be behind the last records */

        now = ngx_bloom_zone_time(replay->zone) + NGX_BLOOM_CLOCKS_DIFFER;
        time = replay->reader.end.time;

        ngx_bloom_ring_reach(&replay->bits, ngx_min(time, now));
    }

    /* A worker that has stood still since this bank served may set bits, too.
     * Losing them does no harm: the journal has its keys. */

    replay->bits.alone = 1;
    ngx_bloom_set_keys(&replay->bits, record->keys, record->end, &tally);
    replay->bits.alone = 0;

    replay->records++;
    replay->keys += tally.keys;
}


/* Makes the keys that wait exceptions, and the covered keys that are present,
 * when all records that were judged have been set.  Returns NGX_OK or
 * NGX_ERROR. */
static ngx_int_t
ngx_bloom_replay_settle(ngx_bloom_replay_t *replay)
{
    unsigned           kinds;
    uint64_t           cursor;
    bloom_exception_t  exception;

    static u_char      buf[BLOOM_KEY_MAX];

    cursor = 0;

    while (replay->memory != NULL
           && bloom_exceptions_next(&replay->covered, &cursor, &exception, buf))
    {
        kinds = exception.kinds;
        exception.kinds = BLOOM_EXCEPTION_REMOVED;

        if (((kinds & NGX_BLOOM_REPLAY_WAITS)
             || ((kinds & NGX_BLOOM_REPLAY_IS_COVERED)
                 && ngx_bloom_zone_has(&replay->bits, &exception.key)))
            && ngx_bloom_replay_put(replay, &exception) != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    ngx_bloom_replay_forget(replay);

    return NGX_OK;
}


/* Forgets the covered keys. */
static void
ngx_bloom_replay_forget(ngx_bloom_replay_t *replay)
{
    free(replay->memory);

    replay->memory = NULL;
    replay->room = 0;
    ngx_memzero(&replay->covered, sizeof(bloom_exceptions_t));
}


void
ngx_bloom_replay_end(ngx_bloom_replay_t *replay)
{
    ngx_bloom_replay_forget(replay);

    if (replay->reading) {
        ngx_bloom_reader_close(&replay->reader);
        replay->reading = 0;
    }
}


static ngx_int_t
ngx_bloom_replay_fails(ngx_bloom_replay_t *replay, ngx_err_t err,
    const char *error)
{
    replay->err = err;
    ngx_cpystrn(replay->error, (u_char *) error, sizeof(replay->error));

    return NGX_ERROR;
}
