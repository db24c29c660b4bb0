/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file carries changes from a stream to a zone.
 *
 * Each step reads a moment of the stream, judges whether anything is missing
 * after the zone's position, and sends the entries.  If anything fails, the
 * next step begins with the state of the zone, since nginx may have restarted
 * with an older position.  Sending changes again is harmless: a zone applies
 * those after its position only.
 *
 * A sign of life tells the zone that it is up to date.  It is sent if the zone
 * is at or past an ID that was the stream's last one less than a second ago.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli.h"
#include "follow_send.h"
#include "follow_zone.h"

#define HOUR          3600000            /* ms */
#define WAIT          400                /* ms to wait for an entry */
#define SIGN          0.4                /* seconds between signs of life */
#define FRESH         1.0                /* seconds that a last ID is good */
#define PAUSE_FIRST   0.1                /* seconds before a retry */
#define PAUSE_MAX     30.0
#define PAUSE_SLOW    10.0               /* if an operator has to act */
#define AGAIN_MAX     3                  /* steps without progress */
#define COUNT_FIRST   500
#define ANSWER_BYTES  (8 * 1024 * 1024)  /* that an answer should have */


typedef enum {
    STEP_OK,
    STEP_AGAIN,                          /* at once, with the zone's state */
    STEP_FAILED,
    STEP_REFUSED
} step_t;

struct follow_zone_s {
    follow_settings_t   *settings;
    char                *shown;
    pthread_t            thread;

    pthread_mutex_t      lock;           /* of the view */
    follow_view_t        view;

    follow_node_t        node;
    redis_connection_t   redis;
    follow_log_t         log;
    follow_send_t        send;

    int                  known;          /* 1: the state was asked for */
    follow_state_t       state;

    stream_cursor_t      cursor;
    int                  starting;       /* 1: the cursor is still to be put at
                                            the stream's beginning or end */
    stream_cursor_t      origin;         /* where a zone at 0 began */
    int                  has_origin;

    unsigned             count;          /* of entries to read */
    int                  idle;           /* 1: nothing is left to read */

    bloom_position_t     asked;          /* the last ID, and when it was asked
                                            for; 0: not at all */
    double               asked_at;
    double               signed_at;

    bloom_position_t     target;         /* with --once */
    int                  has_target;

    unsigned             failures;       /* one after the other */
    unsigned             again;          /* steps without progress */
    int                  failing;        /* 1: a failure was logged */
    int                  connected;      /* 1: logged, no failure since */
    int                  waiting;        /* 1: logged that it is a replica */
};


static int
is_zero(bloom_position_t position)
{
    return position.high == 0 && position.low == 0;
}


static void
show(follow_zone_t *zone, follow_phase_t phase)
{
    pthread_mutex_lock(&zone->lock);
    zone->view.phase = phase;
    zone->view.position = zone->state.position;
    pthread_mutex_unlock(&zone->lock);
}


static int
stopped(follow_zone_t *zone)
{
    int  stop;

    pthread_mutex_lock(&zone->settings->lock);
    stop = zone->settings->stop;
    pthread_mutex_unlock(&zone->settings->lock);

    return stop;
}


/* Waits until the command is to stop, but at most some seconds. */
static void
pause_for(follow_zone_t *zone, double seconds)
{
    struct timespec     until;
    follow_settings_t  *settings;

    settings = zone->settings;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t) seconds;
    until.tv_nsec += (long) ((seconds - (double) (time_t) seconds) * 1e9);

    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }

    pthread_mutex_lock(&settings->lock);

    while (!settings->stop
           && pthread_cond_timedwait(&settings->wake, &settings->lock, &until)
              == 0)
    {
        /* woken for nothing */
    }

    pthread_mutex_unlock(&settings->lock);
}


/* Takes what nginx answered. */
static step_t
answered(follow_zone_t *zone, follow_answer_t answer)
{
    if (answer == FOLLOW_NODE_OK) {
        return STEP_OK;
    }

    zone->known = 0;

    if (answer == FOLLOW_NODE_ELSEWHERE && zone->again++ < AGAIN_MAX) {
        return STEP_AGAIN;
    }

    zone->failing = 1;
    zone->connected = 0;
    follow_log(&zone->log, zone->shown, FOLLOW_ERROR, zone->node.event, "%s",
               zone->node.error);

    return answer == FOLLOW_NODE_FAILED || answer == FOLLOW_NODE_ELSEWHERE
           ? STEP_FAILED : STEP_REFUSED;
}


/* Goes on with the zone's state: another follower has moved it, or it has loaded
 * another image. */
static step_t
elsewhere(follow_zone_t *zone)
{
    zone->known = 0;

    if (zone->again++ >= AGAIN_MAX) {
        pause_for(zone, PAUSE_FIRST);
    }

    return STEP_AGAIN;
}


static step_t
redis_failed(follow_zone_t *zone)
{
    zone->failing = 1;
    follow_log(&zone->log, zone->shown, FOLLOW_ERROR, "redis_failed", "%s: %s",
               zone->redis.url.shown, zone->redis.error);
    redis_disconnect(&zone->redis);

    return STEP_FAILED;
}


/* Chooses where a zone begins that has no changes yet. */
static step_t
choose_origin(follow_zone_t *zone)
{
    stream_cursor_t    *cursor;
    follow_settings_t  *settings;

    settings = zone->settings;
    cursor = &zone->cursor;
    memset(cursor, 0, sizeof(*cursor));

    if (settings->from == FOLLOW_FROM_IMAGE) {

        if (zone->state.as_of == 0) {
            zone->failing = 1;
            zone->known = 0;
            follow_log(&zone->log, zone->shown, FOLLOW_ERROR, "no_origin",
                       "the zone has no changes yet, and its image does not "
                       "state when its keys were complete; build it with "
                       "--source %s=POSITION or --as-of, or use --from",
                       settings->source);
            return STEP_REFUSED;
        }

        cursor->complete.high = zone->state.as_of;
        cursor->position.high = zone->state.as_of > HOUR
                                ? zone->state.as_of - HOUR : 0;
        zone->starting = 1;

    } else if (zone->has_origin) {
        *cursor = zone->origin;

    } else {
        cursor->position = settings->from_id;
        zone->starting = 1;
    }

    cursor->anchor = cursor->position;

    return STEP_OK;
}


/* Asks for the state of the zone, and puts the cursor at its position. */
static step_t
learn(follow_zone_t *zone)
{
    step_t  step;
    char    text[BLOOM_POSITION_TEXT_MAX];

    step = answered(zone, follow_node_state(&zone->node, &zone->state));

    if (step != STEP_OK) {
        return step;
    }

    zone->known = 1;
    zone->idle = 0;
    zone->asked_at = 0;
    zone->starting = 0;

    if (zone->send.max_body == 0
        || zone->send.max_body > zone->state.max_body)
    {
        zone->send.max_body = zone->state.max_body;
    }

    if (is_zero(zone->state.position) && !zone->state.gap) {
        step = choose_origin(zone);

    } else if (bloom_position_cmp(zone->state.position, zone->cursor.position)
               != 0)
    {
        memset(&zone->cursor, 0, sizeof(zone->cursor));
        zone->cursor.position = zone->state.position;
    }

    if (step == STEP_OK && !zone->connected) {
        zone->connected = 1;
        bloom_position_write(zone->state.position, text);
        follow_log(NULL, zone->shown, FOLLOW_INFO, "connected",
                   "the zone is at %s", text);
    }

    return step;
}


/* Puts the cursor of a zone without changes where its changes begin. */
static void
start(follow_zone_t *zone, const stream_facts_t *facts)
{
    char                first[BLOOM_POSITION_TEXT_MAX];
    stream_cursor_t    *cursor;
    follow_settings_t  *settings;

    settings = zone->settings;
    cursor = &zone->cursor;
    zone->starting = 0;

    if (settings->from == FOLLOW_FROM_NOW
        || bloom_position_cmp(cursor->position, facts->last) > 0)
    {
        cursor->position = facts->last;
    }

    if (settings->from == FOLLOW_FROM_BEGINNING && facts->exists
        && !facts->counts)
    {
        bloom_position_write(facts->first, first);
        follow_log(NULL, zone->shown, FOLLOW_WARNING, "beginning_unknown",
                   "the server does not count the entries that were added, "
                   "which takes Redis 7 or Valkey, so the first entry that "
                   "remains, %s, is taken for the beginning: if the stream was "
                   "trimmed before, load an image built with --source %s=P",
                   facts->length != 0 ? first : "none yet", settings->source);
    }

    cursor->anchor = cursor->position;
    zone->origin = *cursor;
    zone->has_origin = 1;
    zone->idle = 0;
}


/* Tells the zone that changes are missing up to a position, and goes on from
 * there; unless another follower has moved it meanwhile, since it would go back
 * and need an image again. */
static step_t
post_gap(follow_zone_t *zone, stream_verdict_t verdict,
    bloom_position_t position)
{
    step_t           step;
    char             from[BLOOM_POSITION_TEXT_MAX];
    char             to[BLOOM_POSITION_TEXT_MAX];
    const char      *event, *what;
    follow_state_t   state;

    bloom_position_write(zone->cursor.position, from);

    step = answered(zone, follow_node_state(&zone->node, &state));

    if (step != STEP_OK) {
        return step;
    }

    if (bloom_position_cmp(state.position, zone->state.position) != 0) {
        return elsewhere(zone);
    }

    step = answered(zone, follow_node_gap(&zone->node, position));

    if (step != STEP_OK) {
        return step;
    }

    zone->state.position = position;
    zone->state.gap = 1;

    memset(&zone->cursor, 0, sizeof(zone->cursor));
    zone->cursor.position = position;
    zone->cursor.anchor = position;
    zone->asked_at = 0;

    pthread_mutex_lock(&zone->lock);
    zone->view.gaps = 1;
    zone->view.position = position;
    pthread_mutex_unlock(&zone->lock);

    switch (verdict) {

    case STREAM_TRIMMED:
        event = "gap_trimmed";
        what = "the stream was trimmed before this zone had all entries";
        break;

    case STREAM_DELETED:
        event = "gap_deleted";
        what = "the stream no longer exists";
        break;

    case STREAM_LOST_END:
        event = "gap_lost_end";
        what = "the stream lost its end, as in a failover to a replica that "
               "lacked it";
        break;

    case STREAM_XDEL:
        event = "gap_entry_deleted";
        what = "an entry was deleted before this zone had it";
        break;

    default:
        event = "gap_replaced";
        what = "the stream has no entry at the zone's position and never had "
               "one: it was recreated, a failover lost its end, or the "
               "position of an image is not the ID of an entry";
    }

    bloom_position_write(position, to);

    /* an image whose own position is the gap's closes the gap at once */

    if (follow_node_state(&zone->node, &state) == FOLLOW_NODE_OK && !state.gap)
    {
        follow_log(NULL, zone->shown, FOLLOW_ERROR, event, "%s; the zone was "
                   "at %s and goes on from %s; the image that serves is from "
                   "there, so the zone does not wait for a newer one; load one "
                   "all the same, built with --source %s=P, where P is later "
                   "than %s", what, from, to, zone->settings->source, to);
        return STEP_OK;
    }

    follow_log(NULL, zone->shown, FOLLOW_ERROR, event, "%s; the zone was at "
               "%s, goes on from %s, and answers unknown until you load an "
               "image built with --source %s=P, where P is %s or later", what,
               from, to, zone->settings->source, to);

    return STEP_OK;
}


/* Says why nginx does not take an entry. */
static step_t
entry_refused(follow_zone_t *zone, bloom_position_t id)
{
    char  text[BLOOM_POSITION_TEXT_MAX];

    bloom_position_write(id, text);
    zone->known = 0;
    zone->failing = 1;
    zone->connected = 0;

    follow_log(&zone->log, zone->shown, FOLLOW_ERROR, zone->node.event,
               "the entry %s of the stream: %s", text, zone->node.error);

    return STEP_REFUSED;
}


/* Takes the answer to a request that should have moved the zone to a
 * position. */
static step_t
moved(follow_zone_t *zone, follow_answer_t answer,
    const follow_result_t *result, bloom_position_t position)
{
    step_t  step;

    step = answered(zone, answer);

    if (step != STEP_OK) {
        return step;
    }

    if (bloom_position_cmp(result->position, position) != 0) {
        return elsewhere(zone);
    }

    zone->state.position = position;
    zone->again = 0;

    return STEP_OK;
}


/* Moves the zone to a position without changes, or gives it a sign of life. */
static step_t
move(follow_zone_t *zone, bloom_position_t position)
{
    change_batch_t   none;
    follow_answer_t  answer;
    follow_result_t  result;

    memset(&none, 0, sizeof(none));
    none.position = position;

    answer = follow_node_changes(&zone->node, zone->state.position, &none,
                                 &result);

    return moved(zone, answer, &result, position);
}


/* Sends entries, and an entry that is larger than a request in parts. */
static step_t
send_entries(follow_zone_t *zone, redisReply **entries, size_t n)
{
    step_t            step;
    size_t            i;
    uint64_t          offset;
    change_batch_t   *batch;
    follow_answer_t   answer;
    follow_result_t   result;

    batch = &zone->send.batch;
    offset = 0;

    for (i = 0; i < n; /* void */ ) {

        answer = follow_send(&zone->send, &zone->node, zone->state.position,
                             entries + i, n - i, offset, &result);

        if (answer == FOLLOW_NODE_LARGE || answer == FOLLOW_NODE_UNFIT) {
            return entry_refused(zone, batch->position);
        }

        step = moved(zone, answer, &result, batch->more ? zone->state.position
                                                        : batch->position);

        if (step != STEP_OK) {
            return step;
        }

        follow_send_taken(&zone->send, zone->shown, zone->state.max_body,
                          entries + i, &result);

        pthread_mutex_lock(&zone->lock);
        zone->view.position = zone->state.position;
        zone->view.changes += batch->changes;
        pthread_mutex_unlock(&zone->lock);

        if (batch->more) {

            /* another follower may have sent further parts */

            offset = result.offset;

        } else {
            zone->cursor.position = batch->position;
            zone->cursor.seen += batch->entries;
            i += batch->entries;
            offset = 0;
        }

        if (stopped(zone)) {
            return STEP_AGAIN;
        }
    }

    return STEP_OK;
}


static step_t
give_sign(follow_zone_t *zone, const stream_facts_t *facts, double sent)
{
    step_t  step;
    double  now;

    invalid_keys_say(&zone->send.invalid, zone->shown, 0);

    if (!facts->current) {
        zone->asked_at = 0;
        return STEP_OK;
    }

    now = follow_now();

    if (zone->asked_at == 0 || now - zone->asked_at >= FRESH) {
        zone->asked = facts->last;
        zone->asked_at = sent;
    }

    if (bloom_position_cmp(zone->state.position, zone->asked) < 0
        || now - zone->asked_at >= FRESH || now - zone->signed_at < SIGN)
    {
        return STEP_OK;
    }

    zone->asked_at = 0;
    step = move(zone, zone->state.position);

    if (step == STEP_OK) {
        zone->signed_at = now;
    }

    return step;
}


/* Says once that a replica cannot tell whether anything is missing. */
static void
name_replica(follow_zone_t *zone, const stream_facts_t *facts)
{
    if (!zone->waiting) {
        zone->waiting = 1;
        follow_log(&zone->log, zone->shown, FOLLOW_WARNING, "replica_behind",
                   "%s: the server is a replica %s; waiting for it, or follow "
                   "the primary", zone->redis.url.shown,
                   facts->current ? "that lacks what this zone has already"
                                  : "whose link to its primary is down or "
                                    "silent");
    }
}


static step_t
wait_for_replica(follow_zone_t *zone, const stream_facts_t *facts)
{
    zone->asked_at = 0;
    show(zone, FOLLOW_BEHIND);
    name_replica(zone, facts);
    pause_for(zone, WAIT / 1000.0);

    return STEP_OK;
}


/* Reads a moment of the stream.  An answer that is too long is read again in
 * smaller parts. */
static step_t
read_moment(follow_zone_t *zone, redis_moment_t *moment)
{
    char      text[BLOOM_POSITION_TEXT_MAX];
    uint64_t  count;

    if (zone->redis.context == NULL) {

        zone->cursor.seen_known = 0;

        if (redis_connect(&zone->redis) != 0) {
            return redis_failed(zone);
        }
    }

    if (redis_stream_read(&zone->redis, zone->settings->stream,
                          zone->cursor.position, zone->count,
                          zone->idle ? WAIT : 0, moment)
        != 0)
    {
        if (!zone->redis.too_long) {
            return redis_failed(zone);
        }

        if (zone->count > 1) {
            zone->count = zone->count / 8 + 1 < zone->count
                          ? zone->count / 8 + 1 : 1;
            redis_disconnect(&zone->redis);
            return STEP_AGAIN;
        }

        bloom_position_write(zone->cursor.position, text);
        snprintf(zone->redis.error, sizeof(zone->redis.error), "the entry "
                 "after %s, or the first or last one of the stream, is larger "
                 "than %d MiB; delete it with XDEL", text,
                 REDIS_STREAM_BYTES_MAX / 1024 / 1024);
        return redis_failed(zone);
    }

    if (moment->n != 0) {
        count = ANSWER_BYTES / (moment->bytes / moment->n + 1);
        count = count < 4 * zone->count ? count : 4 * zone->count;
        count = count < REDIS_STREAM_COUNT_MAX ? count : REDIS_STREAM_COUNT_MAX;
        zone->count = count > 1 ? (unsigned) count : 1;
    }

    return STEP_OK;
}


static step_t
one_step(follow_zone_t *zone)
{
    size_t             n;
    step_t             step;
    double             sent;
    unsigned           count;
    redis_moment_t     moment;
    stream_verdict_t   verdict;
    bloom_position_t   missing;

    if (!zone->known) {
        step = learn(zone);

        if (step != STEP_OK) {
            return step;
        }
    }

    sent = follow_now();
    count = zone->count;
    step = read_moment(zone, &moment);

    if (step != STEP_OK) {
        return step;
    }

    if (!zone->has_target) {
        zone->target = moment.facts.last;
        zone->has_target = 1;
    }

    if (zone->starting) {
        start(zone, &moment.facts);
        return STEP_OK;
    }

    verdict = stream_judge(&zone->cursor, &moment.facts, &missing);

    if (verdict == STREAM_WAIT) {
        return wait_for_replica(zone, &moment.facts);
    }

    if (moment.facts.current) {
        zone->waiting = 0;

    } else {
        name_replica(zone, &moment.facts);
    }

    if (verdict != STREAM_GOOD) {
        return post_gap(zone, verdict, missing);
    }

    n = redis_stream_before(&moment, missing);

    if (!is_zero(missing) && n == 0) {
        return moment.facts.current ? post_gap(zone, STREAM_XDEL, missing)
               : wait_for_replica(zone, &moment.facts);
    }

    zone->idle = moment.n < count;

    if (bloom_position_cmp(zone->cursor.position, moment.facts.last) == 0) {
        zone->cursor.seen = moment.facts.added;
        zone->cursor.seen_known = moment.facts.counts;
    }

    step = send_entries(zone, moment.entries, n);

    if (step != STEP_OK) {
        return step;
    }

    /* the zone is to be at the stream's last ID, even if it has no entry */

    if (n == 0
        && bloom_position_cmp(zone->state.position, moment.facts.last) < 0)
    {
        step = move(zone, moment.facts.last);

        if (step != STEP_OK) {
            return step;
        }

        zone->cursor.position = moment.facts.last;
    }

    show(zone, bloom_position_cmp(zone->state.position, moment.facts.last) >= 0
               && moment.facts.current
               ? FOLLOW_CURRENT : FOLLOW_BEHIND);

    return give_sign(zone, &moment.facts, sent);
}


/* Waits after a failure: longer each time, and not as long as others wait. */
static void
back_off(follow_zone_t *zone, step_t step)
{
    double    pause;
    uint32_t  random;

    zone->failures++;
    pause = PAUSE_SLOW;

    if (step == STEP_FAILED) {
        pause = PAUSE_FIRST * (double) (1u << (zone->failures < 10
                                               ? zone->failures - 1 : 9));
        pause = pause < PAUSE_MAX ? pause : PAUSE_MAX;
    }

    cli_random(&random, sizeof(random));
    pause_for(zone, pause * (0.5 + (double) random / (2.0 * UINT32_MAX)));
}


/* Returns 1 if --once has all that it is to have, else 0. */
static int
is_done(const follow_zone_t *zone)
{
    return zone->settings->once && zone->has_target && zone->known
           && !zone->starting && zone->view.phase == FOLLOW_CURRENT
           && bloom_position_cmp(zone->state.position, zone->target) >= 0;
}


static void *
run(void *data)
{
    step_t          step;
    follow_zone_t  *zone = data;

    while (!stopped(zone)) {

        step = one_step(zone);

        if (step == STEP_AGAIN) {
            continue;
        }

        if (step != STEP_OK) {

            if (zone->settings->once && step == STEP_REFUSED) {
                show(zone, FOLLOW_GAVE_UP);
                return NULL;
            }

            show(zone, FOLLOW_FAILING);
            back_off(zone, step);
            continue;
        }

        zone->failures = 0;

        if (zone->failing && zone->view.phase == FOLLOW_CURRENT) {
            zone->failing = 0;
            follow_log(&zone->log, zone->shown, FOLLOW_INFO, "recovered",
                       "the zone is up to date again");
        }

        if (is_done(zone)) {
            show(zone, FOLLOW_DONE);
            return NULL;
        }
    }

    return NULL;
}


follow_zone_t *
follow_zone_start(follow_settings_t *settings, const char *url)
{
    follow_zone_t  *zone;

    zone = cli_alloc(sizeof(*zone));
    memset(zone, 0, sizeof(*zone));

    zone->settings = settings;
    zone->shown = http_url_shown(url);
    zone->count = COUNT_FIRST;
    pthread_mutex_init(&zone->lock, NULL);

    zone->redis.timeout = settings->answer_timeout;
    zone->redis.option = "--answer-timeout";
    redis_stream_limits(&zone->redis);
    (void) redis_url_parse_server(&zone->redis.url, settings->redis);

    follow_node_open(&zone->node, url, settings->source, &settings->http);

    cli_thread(&zone->thread, run, zone);

    return zone;
}


void
follow_zone_view(follow_zone_t *zone, follow_view_t *view)
{
    pthread_mutex_lock(&zone->lock);
    *view = zone->view;
    pthread_mutex_unlock(&zone->lock);
}


const char *
follow_zone_name(const follow_zone_t *zone)
{
    return zone->shown;
}


int
follow_zone_join(follow_zone_t *zone, const struct timespec *until)
{
    if (pthread_timedjoin_np(zone->thread, NULL, until) != 0) {
        return -1;
    }

    invalid_keys_say(&zone->send.invalid, zone->shown, 1);

    redis_disconnect(&zone->redis);
    redis_url_free(&zone->redis.url);
    follow_node_close(&zone->node);
    pthread_mutex_destroy(&zone->lock);
    free(zone->send.batch.body);
    free(zone->shown);
    free(zone);

    return 0;
}
