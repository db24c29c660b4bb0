/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file has the table of the values that the endpoint reports about a zone,
 * and fills them in.
 */

#include "ngx_http_bloom_stats.h"
#include "ngx_bloom_changes.h"
#include "ngx_bloom_layers.h"

#include <math.h>


static ngx_str_t ngx_http_bloom_stats_text(const char *text);
static void ngx_http_bloom_stats_source(ngx_http_bloom_stats_t *stats,
    ngx_bloom_zone_t *zone);
static void ngx_http_bloom_stats_image(ngx_http_bloom_stats_t *stats);
static void ngx_http_bloom_stats_journal(ngx_http_bloom_stats_t *stats);
static void ngx_http_bloom_stats_load(ngx_http_bloom_stats_t *stats);


/* Columns of the table: the type, place and size of a value, and what it
 * needs. */

#define AT(type, value)                                                       \
    NGX_HTTP_BLOOM_STATS_##type, offsetof(ngx_http_bloom_stats_t, value),     \
    sizeof(((ngx_http_bloom_stats_t *) 0)->value)

#define NUMBER(value)   AT(NUMBER, value)
#define BOOL(value)     AT(BOOL, value)
#define RATE(value)     AT(RATE, value)
#define TIME(value)     AT(TIME, value)
#define MS(value)       AT(MS, value)
#define SECONDS(value)  AT(SECONDS, value)
#define STRING(value)   AT(STRING, value)
#define LABELS(value)   AT(LABELS, value)
#define COUNTER(what)   NUMBER(info.counter[what])
#define OBJECT          NGX_HTTP_BLOOM_STATS_OBJECT, 0, 0
#define PARTS           NGX_HTTP_BLOOM_STATS_PARTS, 0, 0

#define IF(need)        NGX_HTTP_BLOOM_STATS_##need
#define ALWAYS          IF(ALWAYS)
#define MEMBER          NULL, NULL, NULL           /* no metric */


const ngx_http_bloom_stats_field_t  ngx_http_bloom_stats_fields[] = {

    { "name", STRING(name), ALWAYS, MEMBER },
    { "state", STRING(state), ALWAYS, MEMBER },

    { "counters.checks", NUMBER(checks), ALWAYS, MEMBER },
    { "counters.absent", COUNTER(NGX_BLOOM_COUNTER_ABSENT), ALWAYS,
      "checks_total", "answer=\"absent\"",
      "Number of lookups by rules and variables, by the zone's answer." },
    { "counters.present", COUNTER(NGX_BLOOM_COUNTER_PRESENT), ALWAYS,
      "checks_total", "answer=\"present\"", NULL },
    { "counters.unknown", COUNTER(NGX_BLOOM_COUNTER_UNKNOWN), ALWAYS,
      "checks_total", "answer=\"unknown\"", NULL },
    { "counters.invalid", COUNTER(NGX_BLOOM_COUNTER_INVALID), ALWAYS,
      "invalid_keys_total", NULL,
      "Number of keys, looked up or to be added or removed, that are invalid "
      "in the image's key form or contain a query argument that has several "
      "different values." },
    { "counters.rejected", COUNTER(NGX_BLOOM_COUNTER_REJECTED), ALWAYS,
      "requests_total", "decision=\"rejected\"",
      "Number of requests that a rule rejected or routed, without those that "
      "access checks refused before their route; dry_run counts the requests "
      "that a rule would have rejected or routed without a dry run." },
    { "counters.routed", COUNTER(NGX_BLOOM_COUNTER_ROUTED), ALWAYS,
      "requests_total", "decision=\"routed\"", NULL },
    { "counters.dry_run", COUNTER(NGX_BLOOM_COUNTER_DRY_RUN), ALWAYS,
      "requests_total", "decision=\"dry_run\"", NULL },
    { "counters.added", COUNTER(NGX_BLOOM_COUNTER_ADDED), ALWAYS,
      "additions_total", "result=\"added\"",
      "Number of keys that were to be added; added: the key changed the "
      "filter; already_present: the filter already answered present." },
    { "counters.already_present", COUNTER(NGX_BLOOM_COUNTER_ALREADY_PRESENT),
      ALWAYS, "additions_total", "result=\"already_present\"", NULL },
    { "counters.removed_keys", COUNTER(NGX_BLOOM_COUNTER_REMOVED), ALWAYS,
      "removals_total", "result=\"removed\"",
      "Number of keys that were to be removed; removed: the key was present; "
      "absent: the key was absent already; refused: bloom_remove could not "
      "remove the key, which stays present." },
    { "counters.removals_absent", COUNTER(NGX_BLOOM_COUNTER_REMOVED_ABSENT),
      ALWAYS, "removals_total", "result=\"absent\"", NULL },
    { "counters.removals_refused", COUNTER(NGX_BLOOM_COUNTER_NOT_REMOVED),
      ALWAYS, "removals_total", "result=\"refused\"", NULL },

    { "feedback.absent", COUNTER(NGX_BLOOM_COUNTER_FEEDBACK_ABSENT), ALWAYS,
      "feedback_requests_total", "result=\"absent\"",
      "Number of requests under bloom_feedback for keys that do not exist; "
      "absent: the filter answered absent; false_positive: the filter "
      "answered present and the backend said that the key does not exist." },
    { "feedback.false_positives", COUNTER(NGX_BLOOM_COUNTER_FALSE_POSITIVE),
      ALWAYS, "feedback_requests_total", "result=\"false_positive\"", NULL },
    { "feedback.excepted_rejected",
      COUNTER(NGX_BLOOM_COUNTER_EXCEPTED_REJECTED), ALWAYS,
      "feedback_excepted_rejected_total", NULL,
      "Number of requests under bloom_feedback whose key was absent only "
      "because it is an excepted key; the result absent counts them, too." },
    { "feedback.measured_fpr", RATE(measured_fpr), ALWAYS, MEMBER },
    { "feedback.measured_fpr_without_excepted",
      RATE(measured_fpr_without_excepted), ALWAYS, MEMBER },
    { "feedback.excepted", COUNTER(NGX_BLOOM_COUNTER_FEEDBACK_EXCEPTED), ALWAYS,
      "feedback_excepted_keys_total", NULL,
      "Number of false positives that bloom_feedback made excepted keys." },
    { "feedback.not_excepted", NUMBER(not_excepted), ALWAYS, MEMBER },
    { "feedback.not_excepted_doubt", COUNTER(NGX_BLOOM_COUNTER_FEEDBACK_DOUBT),
      ALWAYS, "feedback_not_excepted_keys_total", "reason=\"doubt\"",
      "Number of false positives that bloom_feedback did not except in spite "
      "of except=on, by the reason; doubt: the key or the image may be new, "
      "the response was late, or the backend read another path; full: excepted "
      "keys use their share of removals; rate: rate= was exceeded." },
    { "feedback.not_excepted_full", COUNTER(NGX_BLOOM_COUNTER_FEEDBACK_FULL),
      ALWAYS, "feedback_not_excepted_keys_total", "reason=\"full\"", NULL },
    { "feedback.not_excepted_rate", COUNTER(NGX_BLOOM_COUNTER_FEEDBACK_FAST),
      ALWAYS, "feedback_not_excepted_keys_total", "reason=\"rate\"", NULL },

    { "audit.audited", COUNTER(NGX_BLOOM_COUNTER_AUDITED), ALWAYS,
      "audited_requests_total", NULL,
      "Number of requests that bloom_audit let through although their key was "
      "absent." },
    { "audit.confirmed", COUNTER(NGX_BLOOM_COUNTER_CONFIRMED), ALWAYS,
      "audit_results_total", "result=\"confirmed\"",
      "Number of audited requests, by the backend's answer; confirmed: the "
      "key does not exist; wrong_absent: the key exists, but the filter lacks "
      "it; unanswered: the backend did not say whether the key exists." },
    { "audit.wrong_absent", COUNTER(NGX_BLOOM_COUNTER_WRONG_ABSENT), ALWAYS,
      "audit_results_total", "result=\"wrong_absent\"", NULL },
    { "audit.unanswered", COUNTER(NGX_BLOOM_COUNTER_UNANSWERED), ALWAYS,
      "audit_results_total", "result=\"unanswered\"", NULL },
    { "audit.last_wrong_absent", TIME(info.wrong_at), IF(WRONG),
      "last_wrong_absent_timestamp_seconds", NULL,
      "Unix time at which bloom_audit last found a wrong absent." },
    { "audit.added", COUNTER(NGX_BLOOM_COUNTER_AUDIT_ADDED), ALWAYS,
      "audit_added_keys_total", NULL,
      "Number of wrongly absent keys that bloom_audit added." },
    { "audit.not_added", COUNTER(NGX_BLOOM_COUNTER_AUDIT_NOT_ADDED), ALWAYS,
      "audit_not_added_keys_total", NULL,
      "Number of wrongly absent keys that bloom_audit did not add in spite of "
      "add=on: the zone is over-full or takes no additions, rate= was "
      "exceeded, or the backend read another path." },

    { NULL, COUNTER(NGX_BLOOM_COUNTER_LOAD_OK), ALWAYS,
      "loads_total", "result=\"ok\"",
      "Number of image loads while nginx runs, by result." },
    { NULL, COUNTER(NGX_BLOOM_COUNTER_LOAD_REFUSED), ALWAYS,
      "loads_total", "result=\"refused\"", NULL },
    { NULL, COUNTER(NGX_BLOOM_COUNTER_LOAD_NO_ROOM), ALWAYS,
      "loads_total", "result=\"no_room\"", NULL },
    { NULL, COUNTER(NGX_BLOOM_COUNTER_LOAD_FAILED), ALWAYS,
      "loads_total", "result=\"failed\"", NULL },
    { NULL, MS(info.counter[NGX_BLOOM_COUNTER_LOAD_MS]), ALWAYS,
      "load_seconds_total", NULL,
      "Total duration of the image loads while nginx runs." },

    { NULL, BOOL(in_state[NGX_BLOOM_SERVING]), ALWAYS,
      "state", "state=\"serving\"",
      "1 for the state that the zone is in, 0 for every other state." },
    { NULL, BOOL(in_state[NGX_BLOOM_NOT_LOADED]), ALWAYS,
      "state", "state=\"not_loaded\"", NULL },
    { NULL, BOOL(in_state[NGX_BLOOM_STALE]), ALWAYS,
      "state", "state=\"stale\"", NULL },
    { NULL, BOOL(in_state[NGX_BLOOM_LATE]), ALWAYS,
      "state", "state=\"late\"", NULL },
    { NULL, BOOL(in_state[NGX_BLOOM_BEHIND]), ALWAYS,
      "state", "state=\"behind\"", NULL },
    { NULL, BOOL(in_state[NGX_BLOOM_DAMAGED]), ALWAYS,
      "state", "state=\"damaged\"", NULL },
    { "generation", NUMBER(info.generation), ALWAYS,
      "generation", NULL,
      "Number of images that have served since the zone's memory was created; "
      "0 if no image serves." },
    { "token", STRING(token), ALWAYS, MEMBER },
    { "file", STRING(file), ALWAYS, MEMBER },
    { "label", STRING(label), ALWAYS, MEMBER },

    { "image", OBJECT, IF(SERVING), MEMBER },
    { "filter", OBJECT, IF(SERVING), MEMBER },
    { "expire", OBJECT, IF(EXPIRES), MEMBER },
    { "source", OBJECT, IF(SOURCE), MEMBER },
    { "removals", OBJECT, ALWAYS, MEMBER },
    { "memory", OBJECT, ALWAYS, MEMBER },
    { "journal", OBJECT, ALWAYS, MEMBER },
    { "counters", OBJECT, ALWAYS, MEMBER },
    { "feedback", OBJECT, ALWAYS, MEMBER },
    { "audit", OBJECT, ALWAYS, MEMBER },
    { "load", OBJECT, ALWAYS, MEMBER },
    { "helper", OBJECT, ALWAYS, MEMBER },

    { NULL, LABELS(labels), IF(SERVING),
      "image_info", NULL,
      "Always 1; the labels describe the image that serves." },
    { "image.build_id", STRING(build_id), ALWAYS, MEMBER },
    { "image.uploaded", BOOL(info.uploaded), ALWAYS, MEMBER },
    { "image.created", TIME(info.image.created), IF(CREATED),
      "image_created_timestamp_seconds", NULL,
      "Unix time at which the image that serves was built." },
    { "image.as_of", TIME(info.image.as_of), IF(AS_OF),
      "image_as_of_timestamp_seconds", NULL,
      "Unix time up to which the keys of the image that serves are complete, "
      "if the image states it." },
    { NULL, NUMBER(age), IF(SERVING),
      "image_age_seconds", NULL,
      "Age of the image that serves: the time since its as_of, or since it "
      "was built if it has no as_of." },
    { NULL, NUMBER(max_age), IF(MAX_AGE),
      "image_max_age_seconds", NULL,
      "Age (max_age) at which an image becomes stale and every answer "
      "becomes unknown." },
    { "image.layout", STRING(layout), ALWAYS, MEMBER },
    { "image.lines", NUMBER(info.image.geometry.lines), ALWAYS, MEMBER },
    { "image.hash", STRING(hash), ALWAYS, MEMBER },
    { "image.form", STRING(key_form), ALWAYS, MEMBER },
    { "image.k", NUMBER(info.image.geometry.k), ALWAYS, MEMBER },
    { "image.bits", NUMBER(info.image.geometry.bits), ALWAYS, MEMBER },
    { "image.capacity", NUMBER(info.image.capacity), IF(SERVING),
      "image_capacity", NULL,
      "Number of keys that the image that serves is sized for." },
    { "image.items", NUMBER(info.image.items), IF(SERVING),
      "image_items", NULL,
      "Number of keys that the image that serves was built with." },
    { "image.items_estimated", BOOL(items_estimated), ALWAYS, MEMBER },
    { "image.excepted", NUMBER(info.excepted), IF(SERVING),
      "image_excepted", NULL,
      "Number of exceptions that the builder of the image that serves chose "
      "(--except)." },

    { "filter.bits_set", NUMBER(info.bits_set), ALWAYS, MEMBER },
    { "filter.fill_ratio", RATE(fill_ratio), IF(FILLS),
      "fill_ratio", NULL,
      "Share of the filter's bits that are set, from 0 to 1; if keys expire, "
      "of those of the live slices. The layout fuse has none: its base does "
      "not fill." },
    { "filter.estimated_items", NUMBER(estimated_items), IF(SERVING),
      "estimated_items", NULL,
      "Number of keys in the filter, additions included, as estimated from "
      "its bits; if keys expire, a key counts once in each live slice that "
      "has it." },
    { "filter.max_items", NUMBER(info.max_items), IF(SERVING),
      "max_items", NULL,
      "Number of keys that the filter has room for, with all layers that it "
      "can have (max_keys); image_capacity if it does not grow; if keys "
      "expire, the number of additions within a life for which it is made." },
    { "filter.promised_fpr", RATE(info.promised_fpr), IF(SERVING),
      "promised_fpr", NULL,
      "False-positive rate that the filter has with max_items keys." },
    { "filter.layers", NUMBER(layers), IF(SERVING),
      "layers", NULL,
      "Number of layers that the filter has grown by." },
    { "filter.parts", PARTS, ALWAYS, MEMBER },
    { "filter.estimated_fpr", RATE(estimated_fpr), IF(SERVING),
      "estimated_fpr", NULL,
      "Estimated false-positive rate of the filter: the share of keys that "
      "were never added for which it answers present." },
    { "expire.seconds", SECONDS(info.expire), IF(EXPIRES),
      "expire_seconds", NULL,
      "Time for which a key lives at least after it was last added (expire)." },
    { "expire.slices", NUMBER(info.slices), ALWAYS, MEMBER },
    { "expire.slice_seconds", SECONDS(info.slice), ALWAYS, MEMBER },
    { "expire.slice_capacity", NUMBER(info.slice_capacity), ALWAYS, MEMBER },
    { "expire.live", NUMBER(info.live_slices), IF(RING),
      "live_slices", NULL,
      "Number of slices that lookups test, if keys expire." },
    { "expire.ready", NUMBER(info.ready_slices), IF(RING),
      "ready_slices", NULL,
      "Number of empty slices that can be opened next, if keys expire." },
    { "expire.clock_behind_seconds", NUMBER(info.clock_behind), IF(EXPIRES),
      "clock_behind_seconds", NULL,
      "Time by which the clock that keys expire by is behind the system's "
      "clock, for example because the machine was off." },

    { "source.name", STRING(source), ALWAYS, MEMBER },
    { "source.position", STRING(position), ALWAYS, MEMBER },
    { NULL, NUMBER(info.place.position.high), IF(SOURCE),
      "source_position", NULL,
      "Position of the zone in its source (source); of HIGH-LOW, the number "
      "HIGH, which is a time in ms if the source is a Redis stream." },
    { "source.digest", STRING(digest), ALWAYS, MEMBER },
    { "source.digest_since", STRING(since), ALWAYS, MEMBER },
    { "source.state", STRING(source_state), ALWAYS, MEMBER },
    { NULL, BOOL(in_source_state[NGX_BLOOM_SOURCE_CURRENT]), IF(SOURCE),
      "source_state", "state=\"current\"",
      "1 for the state that the zone's source is in, 0 for every other "
      "state." },
    { NULL, BOOL(in_source_state[NGX_BLOOM_SOURCE_WAITING]), IF(SOURCE),
      "source_state", "state=\"waiting\"", NULL },
    { NULL, BOOL(in_source_state[NGX_BLOOM_SOURCE_LATE]), IF(SOURCE),
      "source_state", "state=\"late\"", NULL },
    { NULL, BOOL(in_source_state[NGX_BLOOM_SOURCE_GAP]), IF(SOURCE),
      "source_state", "state=\"gap\"", NULL },
    { "source.lag_ms", MS(info.lag), IF(SEEN),
      "source_lag_seconds", NULL,
      "Time since the zone last had all changes of its source." },
    { "source.max_lag_ms", MS(max_lag), IF(MAX_LAG),
      "source_max_lag_seconds", NULL,
      "Lag (max_lag) from which on the zone answers unknown instead of "
      "absent." },
    { "source.max_body", NUMBER(max_body), ALWAYS, MEMBER },

    { "image.fpr", RATE(info.image.fpr), IF(SERVING),
      "image_fpr", NULL,
      "False-positive rate that the image that serves has once it holds as "
      "many keys as its capacity." },

    { "removals.limit", NUMBER(info.removals), ALWAYS,
      "removed_keys_limit", NULL,
      "Number of removed and excepted keys that the zone has room for "
      "(removals)." },
    { "removals.count", NUMBER(info.removed), ALWAYS,
      "removed_keys", NULL,
      "Number of removed and excepted keys that take this room." },
    { "removals.excepted", NUMBER(info.excepted_keys), ALWAYS,
      "excepted_keys", NULL,
      "Number of excepted keys in the filter that serves." },
    { "removals.excepted_limit", NUMBER(info.excepts), ALWAYS,
      "excepted_keys_limit", NULL,
      "Number of excepted keys from which on the zone excepts no more." },

    { "memory.zone_bytes", NUMBER(info.size), ALWAYS,
      "zone_bytes", NULL,
      "Size of the zone's shared memory." },
    { "memory.bank_bytes", NUMBER(info.bank_size), ALWAYS,
      "bank_bytes", NULL,
      "Size of the largest filter that the zone has room for." },
    { "memory.filter_bytes", NUMBER(filter_bytes), IF(SERVING),
      "filter_bytes", NULL,
      "Size of the filter that serves." },
    { "memory.huge_bytes", NUMBER(info.huge_bytes), ALWAYS,
      "huge_bytes", NULL,
      "Size of the part of the zone's used memory that lies on huge pages." },

    { "journal.enabled", BOOL(info.journal), ALWAYS, MEMBER },
    { "journal.bytes", NUMBER(info.journal_bytes), IF(JOURNAL),
      "journal_bytes", NULL,
      "Size of the journal, from its oldest segment to its end." },
    { "journal.unsynced_bytes", NUMBER(info.unsynced_bytes), IF(JOURNAL),
      "journal_unsynced_bytes", NULL,
      "Size of the part of the journal that may not be on disk yet." },
    { "journal.replay_bytes", NUMBER(info.replay_bytes), IF(JOURNAL),
      "journal_replay_bytes", NULL,
      "Size of the journal after the last checkpoint; the next start replays "
      "this part." },
    { "journal.pending_keys", NUMBER(info.pending), ALWAYS,
      "journal_pending_keys", NULL,
      "Number of keys of bloom_add that wait until the disk accepts them." },
    { "journal.lost_keys", NUMBER(info.lost_keys), ALWAYS,
      "journal_lost_keys", NULL,
      "Number of keys of bloom_add that found no room to wait for the disk; "
      "they are lost when the next generation serves." },
    { "journal.lost_at", TIME(info.lost_at), IF(DAMAGED),
      "journal_lost_timestamp_seconds", NULL,
      "Unix time up to which added keys may be lost, while the zone is "
      "damaged; an image with an as_of more than an hour later repairs the "
      "zone." },
    { "journal.error", STRING(journal_error), ALWAYS,
      "journal_error", NULL,
      "1 while the journal cannot be written or synchronised, else 0." },

    { NULL, BOOL(load_ok), IF(LOADED),
      "last_load_success", NULL,
      "1 if the last image load while nginx ran succeeded, 0 if it failed." },
    { "load.result", STRING(load_result), ALWAYS, MEMBER },
    { "load.message", STRING(load_message), ALWAYS, MEMBER },
    { "load.started_at", TIME(info.loaded.started_at), IF(LOADED),
      "last_load_timestamp_seconds", NULL,
      "Unix time at which the last load of an image began." },
    { "load.duration_ms", MS(info.loaded.duration), IF(LOADED),
      "last_load_duration_seconds", NULL,
      "Duration of the last load of an image." },
    { "load.in_progress", BOOL(info.load_total), ALWAYS, MEMBER },
    { "load.done_bytes", NUMBER(info.load_done), ALWAYS,
      "load_done_bytes", NULL,
      "Number of bytes that the load in progress has read of its image so "
      "far." },
    { "load.size_bytes", NUMBER(info.load_total), ALWAYS,
      "load_size_bytes", NULL,
      "Size of the image that the load in progress reads; 0 if no load is in "
      "progress." },

    { "helper.heartbeat", TIME(info.heartbeat), ALWAYS,
      "helper_heartbeat_timestamp_seconds", NULL,
      "Unix time at which the helper process last gave a sign of life." },

    { NULL, NGX_HTTP_BLOOM_STATS_END, 0, 0, ALWAYS, MEMBER }
};


/* by ngx_bloom_condition_e */
static const char  *ngx_http_bloom_stats_states[] = {
    "serving",
    "not_loaded",
    "stale",
    "late",
    "behind",
    "damaged"
};


/* by ngx_bloom_source_e */
static const char  *ngx_http_bloom_stats_sources[] = {
    "current",
    "waiting",
    "late",
    "gap"
};


/* by ngx_bloom_outcome_e */
static const char  *ngx_http_bloom_stats_results[] = {
    "ok",
    "refused",
    "no_room",
    "failed"
};


void
ngx_http_bloom_stats_get(ngx_http_bloom_stats_t *stats,
    ngx_bloom_zone_t *zone, ngx_bloom_info_t *info)
{
    uint64_t  *counter, wrong, right, excepted;

    ngx_memzero(stats, sizeof(ngx_http_bloom_stats_t));

    stats->info = *info;
    stats->name = zone->name;
    stats->label = zone->label;
    stats->max_age = zone->max_age;

    if (zone->file.name.len != 0) {
        stats->file = zone->file.name;
    }

    stats->state =
        ngx_http_bloom_stats_text(ngx_http_bloom_stats_states[info->condition]);
    stats->in_state[info->condition] = 1;

    stats->has[NGX_HTTP_BLOOM_STATS_ALWAYS] = 1;
    stats->has[NGX_HTTP_BLOOM_STATS_MAX_AGE] = (zone->max_age != 0);
    stats->has[NGX_HTTP_BLOOM_STATS_JOURNAL] = info->journal;
    stats->has[NGX_HTTP_BLOOM_STATS_WRONG] = (info->wrong_at != 0);
    stats->has[NGX_HTTP_BLOOM_STATS_EXPIRES] = (info->expire != 0);
    stats->has[NGX_HTTP_BLOOM_STATS_RING] = (info->expire != 0
                                             && info->generation != 0);

    if (zone->source.len != 0) {
        ngx_http_bloom_stats_source(stats, zone);
    }

    if (info->generation != 0) {
        stats->token.data = stats->token_buf;
        stats->token.len = ngx_http_bloom_token(stats->token_buf, info)
                           - stats->token_buf;

        ngx_http_bloom_stats_image(stats);
    }

    ngx_http_bloom_stats_journal(stats);
    ngx_http_bloom_stats_load(stats);

    counter = info->counter;

    stats->checks = counter[NGX_BLOOM_COUNTER_ABSENT]
                    + counter[NGX_BLOOM_COUNTER_PRESENT]
                    + counter[NGX_BLOOM_COUNTER_UNKNOWN];

    /* NaN without such requests: 0 / 0 */

    wrong = counter[NGX_BLOOM_COUNTER_FALSE_POSITIVE];
    right = counter[NGX_BLOOM_COUNTER_FEEDBACK_ABSENT];
    excepted = counter[NGX_BLOOM_COUNTER_EXCEPTED_REJECTED];

    stats->not_excepted = counter[NGX_BLOOM_COUNTER_FEEDBACK_DOUBT]
                         + counter[NGX_BLOOM_COUNTER_FEEDBACK_FULL]
                         + counter[NGX_BLOOM_COUNTER_FEEDBACK_FAST];

    stats->measured_fpr = (double) wrong / (double) (wrong + right);
    stats->measured_fpr_without_excepted = (double) (wrong + excepted)
                                           / (double) (wrong + right);
}


/* Returns a text as a string; its data is NULL if `text` is NULL. */
static ngx_str_t
ngx_http_bloom_stats_text(const char *text)
{
    ngx_str_t  value;

    value.data = (u_char *) text;
    value.len = text ? ngx_strlen(text) : 0;

    return value;
}


static void
ngx_http_bloom_stats_source(ngx_http_bloom_stats_t *stats,
    ngx_bloom_zone_t *zone)
{
    ngx_bloom_info_t  *info;

    info = &stats->info;

    stats->source = zone->source;
    stats->source_state =
        ngx_http_bloom_stats_text(ngx_http_bloom_stats_sources[info->source]);
    stats->in_source_state[info->source] = 1;
    stats->max_lag = zone->max_lag ? zone->max_lag : UINT64_MAX;
    stats->max_body = NGX_BLOOM_CHANGES_MAX;

    stats->position.data = (u_char *) stats->position_buf;
    stats->position.len = bloom_position_write(info->place.position,
                                               stats->position_buf);
    stats->digest.data = (u_char *) stats->digest_buf;
    stats->digest.len = ngx_sprintf(stats->digest.data, "%016xL",
                                    info->place.digest.value)
                        - stats->digest.data;
    stats->since.data = (u_char *) stats->since_buf;
    stats->since.len = bloom_position_write(info->place.digest.since,
                                            stats->since_buf);

    stats->has[NGX_HTTP_BLOOM_STATS_SOURCE] = 1;
    stats->has[NGX_HTTP_BLOOM_STATS_SEEN] = (info->lag != UINT64_MAX);
    stats->has[NGX_HTTP_BLOOM_STATS_MAX_LAG] = (zone->max_lag != 0);
}


/* Fills in the values of the image that serves. */
static void
ngx_http_bloom_stats_image(ngx_http_bloom_stats_t *stats)
{
    u_char            *p;
    double             bits;
    uint64_t           now, since;
    bloom_image_t     *image;
    bloom_geometry_t  *g;

    image = &stats->info.image;
    g = &image->geometry;

    stats->layers = g->layers;
    stats->filter_bytes = bloom_geometry_bytes(g);
    stats->estimated_items =
        ngx_bloom_layers_items(image, stats->info.part_bits_set);
    stats->estimated_fpr =
        ngx_bloom_layers_fpr(image, stats->info.part_bits_set);

    bits = g->layers == 0 ? (double) g->bits
                          : 8 * (double) stats->filter_bytes;

    stats->fill_ratio = (g->layout == BLOOM_LAYOUT_FUSE) ? NAN
                        : (double) stats->info.bits_set
                          / (bits
                             * (double) ngx_max(stats->info.live_slices, 1));

    stats->items_estimated = (image->flags & BLOOM_IMAGE_ESTIMATED) != 0;

    now = (uint64_t) ngx_time() * 1000;
    since = image->as_of ? image->as_of : image->created;

    stats->age = (now - ngx_min(now, since)) / 1000;

    p = ngx_hex_dump(stats->build_buf, image->build_id,
                     BLOOM_IMAGE_BUILD_ID_LEN);

    stats->build_id.data = stats->build_buf;
    stats->build_id.len = p - stats->build_buf;

    stats->layout =
        ngx_http_bloom_stats_text(bloom_geometry_layout_name(g->layout));
    stats->hash =
        ngx_http_bloom_stats_text(bloom_hasher_name(image->hasher.kind));
    stats->key_form =
        ngx_http_bloom_stats_text(bloom_form_name(image->key_form));

    p = ngx_snprintf(stats->labels_buf, sizeof(stats->labels_buf),
                     "build_id=\"%V\",layout=\"%V\",hash=\"%V\","
                     "form=\"%V\",k=\"%uD\",uploaded=\"%s\"",
                     &stats->build_id, &stats->layout, &stats->hash,
                     &stats->key_form, g->k,
                     stats->info.uploaded ? "true" : "false");

    stats->labels.data = stats->labels_buf;
    stats->labels.len = p - stats->labels_buf;

    stats->has[NGX_HTTP_BLOOM_STATS_SERVING] = 1;
    stats->has[NGX_HTTP_BLOOM_STATS_FILLS] = (g->layout != BLOOM_LAYOUT_FUSE);
    stats->has[NGX_HTTP_BLOOM_STATS_CREATED] = (image->created != 0);
    stats->has[NGX_HTTP_BLOOM_STATS_AS_OF] = (image->as_of != 0);
    stats->has[NGX_HTTP_BLOOM_STATS_DAMAGED] = (stats->info.lost_at != 0);
}


static void
ngx_http_bloom_stats_journal(ngx_http_bloom_stats_t *stats)
{
    u_char            *p, *end;
    ngx_bloom_info_t  *info;

    info = &stats->info;

    if (info->journal_error == NULL) {
        return;
    }

    end = stats->error_buf + sizeof(stats->error_buf);

    p = ngx_slprintf(stats->error_buf, end, "%s", info->journal_error);

    if (info->journal_err != 0) {
        p = ngx_log_errno(p, end, info->journal_err);
    }

    stats->journal_error.data = stats->error_buf;
    stats->journal_error.len = p - stats->error_buf;
}


static void
ngx_http_bloom_stats_load(ngx_http_bloom_stats_t *stats)
{
    ngx_bloom_result_t  *loaded;

    loaded = &stats->info.loaded;

    if (loaded->started_at != 0) {
        stats->has[NGX_HTTP_BLOOM_STATS_LOADED] = 1;
        stats->load_ok = (loaded->outcome == NGX_BLOOM_DONE);
        stats->load_result = ngx_http_bloom_stats_text(
                             ngx_http_bloom_stats_results[loaded->outcome]);
    }

    if (loaded->message[0] != '\0') {
        stats->load_message =
            ngx_http_bloom_stats_text((char *) loaded->message);
    }
}


uint64_t
ngx_http_bloom_stats_number(ngx_http_bloom_stats_t *stats,
    const ngx_http_bloom_stats_field_t *field)
{
    u_char  *value;

    value = (u_char *) stats + field->offset;

    return field->size == sizeof(uint32_t) ? *(uint32_t *) value
                                           : *(uint64_t *) value;
}
