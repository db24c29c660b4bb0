/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file carries changes from a stream to a zone.
 *
 * Each step reads the stream, judges whether anything is missing after the
 * zone's position, and sends the entries.  If anything fails at nginx, the next
 * step asks for the state of the zone, since nginx may have restarted with an
 * older position.  Sending changes again is harmless: a zone applies those
 * after its position only.
 *
 *          the zone has no changes yet
 *      ASK ---------------------------> PLACE
 *      ^ | the zone has a position        | the cursor is where they begin
 *      | v                                v
 *      +-+------------------------------ READ <-----+
 *      | nginx failed, or the zone is     |         | there are entries
 *      | at another position              v         |
 *      +-------------------------------- IDLE ------+
 *
 * A sign of life tells the zone that it is up to date.  It is sent if the zone
 * is at or past an entry that was the stream's last one less than a second ago.
 * The position of a zone is that of an entry, so that the stream shows later
 * whether it still has what follows.
 */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli.h"
#include "follow_gap.h"
#include "follow_send.h"
#include "follow_zone.h"
#include "stream_reader.h"

#define WAIT          400                /* ms to wait for an entry */
#define SIGN          0.4                /* seconds between signs of life */
#define FRESH         1.0                /* seconds that a last ID is good */
#define PAUSE_FIRST   0.1                /* seconds before a retry */
#define PAUSE_MAX     30.0
#define PAUSE_SLOW    10.0               /* if an operator has to act */
#define AGAIN_MAX     3                  /* steps without progress */


typedef enum {
    STEP_OK,
    STEP_AGAIN,                          /* at once, with the zone's state */
    STEP_FAILED,
    STEP_REFUSED
} step_t;

typedef enum {
    ASK,                                 /* the zone for its state */
    PLACE,                               /* the cursor where changes begin */
    READ,
    IDLE                                 /* nothing is left to read: wait for an
                                            entry */
} zone_state_t;

/* What the log says about the zone. */
typedef enum {
    REPORT_NEW,                          /* nothing yet */
    REPORT_LOST,                         /* nginx failed */
    REPORT_FAILING,                      /* something failed, and the zone has
                                            not been up to date since */
    REPORT_WELL
} report_t;

struct follow_zone_s {
    follow_settings_t   *settings;
    char                *shown;
    pthread_t            thread;

    pthread_mutex_t      lock;           /* of the view */
    follow_view_t        view;

    follow_node_t        node;
    stream_reader_t      reader;
    follow_log_t         log;
    follow_send_t        send;

    zone_state_t         does;
    follow_state_t       state;          /* unless it does ASK */

    stream_cursor_t      cursor;
    stream_cursor_t      origin;         /* where a zone at 0 began */
    int                  has_origin;

    bloom_position_t     asked;          /* the last entry, and when it was
                                            asked for; 0: not at all */
    double               asked_at;
    double               signed_at;

    bloom_position_t     target;         /* with --once */
    int                  has_target;

    unsigned             failures;       /* one after the other */
    unsigned             again;          /* steps without progress */
    report_t             report;
    int                  waiting;        /* 1: logged that it is a replica */
};


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

    zone->does = ASK;

    if (answer == FOLLOW_NODE_ELSEWHERE && zone->again++ < AGAIN_MAX) {
        return STEP_AGAIN;
    }

    zone->report = REPORT_LOST;
    follow_log(&zone->log, zone->shown, FOLLOW_ERROR, zone->node.event, "%s",
               zone->node.error);

    return answer == FOLLOW_NODE_FAILED || answer == FOLLOW_NODE_ELSEWHERE
           ? STEP_FAILED : STEP_REFUSED;
}


static step_t
again(follow_zone_t *zone)
{
    if (zone->again++ >= AGAIN_MAX) {
        pause_for(zone, PAUSE_FIRST);
    }

    return STEP_AGAIN;
}


/* Goes on with the zone's state: another follower has moved the zone, or the
 * zone has loaded another image. */
static step_t
elsewhere(follow_zone_t *zone)
{
    zone->does = ASK;

    return again(zone);
}


/* Notes that something but nginx has failed. */
static void
fails(follow_zone_t *zone)
{
    if (zone->report != REPORT_LOST) {
        zone->report = REPORT_FAILING;
    }
}


static step_t
redis_failed(follow_zone_t *zone)
{
    fails(zone);
    follow_log(&zone->log, zone->shown, FOLLOW_ERROR, "redis_failed", "%s: %s",
               zone->reader.redis.url.shown, zone->reader.redis.error);

    return STEP_FAILED;
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

    zone->asked_at = 0;
    zone->does = bloom_position_is_zero(zone->state.position)
                 && !zone->state.gap ? PLACE : READ;

    if (zone->send.max_body == 0
        || zone->send.max_body > zone->state.max_body)
    {
        zone->send.max_body = zone->state.max_body;
    }

    if (bloom_position_cmp(zone->state.position, zone->cursor.position) != 0) {
        memset(&zone->cursor, 0, sizeof(zone->cursor));
        zone->cursor.position = zone->state.position;
    }

    if (zone->report == REPORT_NEW || zone->report == REPORT_LOST) {
        zone->report = zone->report == REPORT_NEW ? REPORT_WELL
                                                  : REPORT_FAILING;
        bloom_position_write(zone->state.position, text);
        follow_log(NULL, zone->shown, FOLLOW_INFO, "connected",
                   "the zone is at %s", text);
    }

    return STEP_OK;
}


/* Says that nobody knows where a zone begins. */
static step_t
no_origin(follow_zone_t *zone, const char *why)
{
    fails(zone);
    zone->does = ASK;
    follow_log(&zone->log, zone->shown, FOLLOW_ERROR, "no_origin", "the zone "
               "has no changes yet, and %s; build the image with --source "
               "%s=POSITION, or use --from", why, zone->settings->source);

    return STEP_REFUSED;
}


/* Says that a stream may have been trimmed although it has its first entry. */
static void
name_beginning(follow_zone_t *zone, const stream_facts_t *facts)
{
    char  first[BLOOM_POSITION_TEXT_MAX];

    bloom_position_write(facts->first, first);
    follow_log(NULL, zone->shown, FOLLOW_WARNING, "beginning_unknown",
               "the server does not count the entries that were added, which "
               "takes Redis 7 or Valkey, so the first entry that remains, %s, "
               "is taken for the beginning: if the stream was trimmed before, "
               "load an image built with --source %s=P",
               facts->length != 0 ? first : "none yet",
               zone->settings->source);
}


/* Puts the cursor of a zone without changes where its changes begin: an image
 * may be another one now, but the other origins stay what they were. */
static step_t
start(follow_zone_t *zone, const stream_facts_t *facts)
{
    char             why[512];
    follow_origin_t  origin;

    origin = zone->settings->origin;

    if (origin.from == FOLLOW_FROM_IMAGE && zone->state.empty) {
        origin.from = FOLLOW_FROM_BEGINNING;
    }

    if (origin.from == FOLLOW_FROM_IMAGE || !zone->has_origin) {

        switch (follow_origin_find(&origin, zone->state.as_of, &zone->reader,
                                   &zone->origin, why, sizeof(why)))
        {
        case FOLLOW_ORIGIN_OK:
            break;

        case FOLLOW_ORIGIN_UNKNOWN:
            return no_origin(zone, why);

        default:
            return redis_failed(zone);
        }

        zone->has_origin = 1;

        if (origin.from == FOLLOW_FROM_BEGINNING && facts->exists
            && !facts->counts)
        {
            name_beginning(zone, facts);
        }
    }

    zone->cursor = zone->origin;
    zone->does = READ;

    return STEP_OK;
}


/* Waits for a stream that does not exist, as its name or the database may be
 * wrong. */
static step_t
no_stream(follow_zone_t *zone)
{
    const redis_url_t  *url;

    url = &zone->reader.redis.url;

    fails(zone);
    zone->asked_at = 0;
    follow_log(&zone->log, zone->shown, FOLLOW_WARNING, "no_stream", "%s: "
               "database %u has no key \"%s\"; check --stream and the database "
               "in the URL%s", url->shown, url->db, zone->settings->stream,
               bloom_position_is_zero(zone->state.position)
               ? "; if nothing was added to the stream yet, use --empty"
               : "; or Redis has lost the stream, as this zone has entries of "
                 "it: then add new entries, and load an image built after the "
                 "first of them");

    if (zone->settings->once) {
        return STEP_REFUSED;
    }

    show(zone, FOLLOW_FAILING);
    pause_for(zone, WAIT / 1000.0);

    return STEP_OK;
}


/* Tells the zone that changes may be missing up to a position, and goes on from
 * there; unless another follower has moved it meanwhile, since it would go back
 * and need an image again. */
static step_t
post_gap(follow_zone_t *zone, const stream_judgment_t *judgment)
{
    int               closed;
    step_t            step;
    follow_state_t    state;
    bloom_position_t  position, from;

    position = judgment->missing;
    from = zone->cursor.position;

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

    /* an image whose own position is the gap's closes the gap at once */

    closed = follow_node_state(&zone->node, &state) == FOLLOW_NODE_OK
             && !state.gap;

    follow_gap_say(zone->shown, zone->settings->source, judgment, from, closed);

    return STEP_OK;
}


/* Says why nginx does not take an entry. */
static step_t
entry_refused(follow_zone_t *zone, bloom_position_t id)
{
    char  text[BLOOM_POSITION_TEXT_MAX];

    bloom_position_write(id, text);
    zone->does = ASK;
    zone->report = REPORT_LOST;

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
        zone->view.invalid = zone->send.counts.invalid;
        pthread_mutex_unlock(&zone->lock);

        if (batch->more) {

            /* another follower may have sent further parts */

            offset = result.offset;

        } else {
            stream_advance(&zone->cursor, &zone->reader.moment.facts,
                           batch->position, batch->entries);
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

    now = cli_now();

    if (zone->asked_at == 0 || now - zone->asked_at >= FRESH) {
        zone->asked = facts->end;
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
                   "the primary", zone->reader.redis.url.shown,
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


static step_t
read_moment(follow_zone_t *zone)
{
    switch (stream_reader_read(&zone->reader, zone->settings->stream,
                               zone->cursor.position,
                               zone->does == IDLE ? WAIT : 0))
    {
    case STREAM_READ:
        return STEP_OK;

    case STREAM_READ_AGAIN:
        return again(zone);

    default:
        return redis_failed(zone);
    }
}


/* Sends what was read of the stream, up to what is missing. */
static step_t
carry(follow_zone_t *zone, stream_judgment_t *judgment)
{
    size_t           n;
    redis_moment_t  *moment;

    moment = &zone->reader.moment;

    if (moment->facts.current) {
        zone->waiting = 0;

    } else {
        name_replica(zone, &moment->facts);
    }

    n = redis_stream_before(moment, judgment->missing);

    if (n == 0 && !bloom_position_is_zero(judgment->missing)) {

        if (!moment->facts.current) {
            return wait_for_replica(zone, &moment->facts);
        }

        judgment->verdict = STREAM_XDEL;

        return post_gap(zone, judgment);
    }

    stream_note(&zone->cursor, &moment->facts);

    if (n != 0) {
        return send_entries(zone, moment->entries, n);
    }

    /* the zone stores where it begins, for the next start of the command */

    return bloom_position_cmp(zone->state.position, zone->cursor.position) < 0
           ? move(zone, zone->cursor.position) : STEP_OK;
}


static step_t
one_step(follow_zone_t *zone)
{
    step_t             step;
    double             sent;
    unsigned           count;
    stream_facts_t    *facts;
    stream_judgment_t  judgment;

    if (zone->does == ASK) {
        step = learn(zone);

        if (step != STEP_OK) {
            return step;
        }
    }

    sent = cli_now();
    facts = &zone->reader.moment.facts;
    count = zone->reader.count;
    step = read_moment(zone);

    if (step != STEP_OK) {
        return step;
    }

    if (!facts->exists
        && (!zone->settings->empty
            || !bloom_position_is_zero(zone->state.position)))
    {
        return facts->current ? no_stream(zone)
                              : wait_for_replica(zone, facts);
    }

    if (!zone->has_target) {
        zone->target = facts->end;
        zone->has_target = 1;
    }

    if (zone->does == PLACE) {
        return start(zone, facts);
    }

    judgment = stream_judge(&zone->cursor, facts);

    if (judgment.verdict == STREAM_WAIT) {
        return wait_for_replica(zone, facts);
    }

    if (judgment.verdict != STREAM_GOOD) {
        return post_gap(zone, &judgment);
    }

    zone->does = zone->reader.moment.n < count ? IDLE : READ;
    step = carry(zone, &judgment);

    if (step != STEP_OK) {
        return step;
    }

    show(zone, bloom_position_cmp(zone->state.position, facts->end) >= 0
               && facts->current
               ? FOLLOW_CURRENT : FOLLOW_BEHIND);

    return give_sign(zone, facts, sent);
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
    return zone->settings->once && zone->has_target
           && (zone->does == READ || zone->does == IDLE)
           && zone->view.phase == FOLLOW_CURRENT
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

        if (zone->report == REPORT_FAILING
            && zone->view.phase == FOLLOW_CURRENT && !zone->state.gap)
        {
            zone->report = REPORT_WELL;
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
    zone->shown = url_shown(url);
    pthread_mutex_init(&zone->lock, NULL);

    stream_reader_open(&zone->reader, settings->redis,
                       settings->answer_timeout, &settings->http.tls);
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

    follow_send_end(&zone->send, zone->shown);

    stream_reader_close(&zone->reader);
    follow_node_close(&zone->node);
    pthread_mutex_destroy(&zone->lock);
    free(zone->shown);
    free(zone);

    return 0;
}
