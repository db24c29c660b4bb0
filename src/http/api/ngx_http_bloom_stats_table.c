/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file has the table of the values that the endpoint reports about a zone.
 *
 * The comment before a value describes its member in docs/api.md, in Markdown.
 * Without a comment, the help of its metric does; a comment that begins with
 * "..." continues the help.  `make docs` writes these descriptions there.
 */

#include "ngx_http_bloom_stats_table.h"

#include <math.h>


static uint64_t ngx_http_bloom_stats_read(ngx_http_bloom_stats_t *stats,
    size_t offset, size_t size);


/* Columns of the table: the type, place and size of a value, and what it
 * needs. */

#define PLACE(value)                                                          \
    offsetof(ngx_http_bloom_stats_t, value),                                  \
    sizeof(((ngx_http_bloom_stats_t *) 0)->value)

#define AT(type, value)  NGX_HTTP_BLOOM_STATS_##type, PLACE(value)

#define NUMBER(value)   AT(NUMBER, value)
#define BOOL(value)     AT(BOOL, value)
#define RATE(value)     AT(RATE, value)
#define TIME(value)     AT(TIME, value)
#define MS(value)       AT(MS, value)
#define SECONDS(value)  AT(SECONDS, value)
#define STRING(value)   AT(STRING, value)
#define TEXT(value)     AT(TEXT, value)
#define STATE(value)    AT(STATE, value)
#define LABELS(value)   AT(LABELS, value)
#define COUNTER(what)   NUMBER(info.counter[what])
#define OBJECT          NGX_HTTP_BLOOM_STATS_OBJECT, 0, 0
#define PARTS           NGX_HTTP_BLOOM_STATS_PARTS, 0, 0

#define IF(value)       PLACE(value)
#define ALWAYS          0, 0
#define MEMBER          NULL, NULL, NULL           /* no metric */


const ngx_http_bloom_stats_field_t  ngx_http_bloom_stats_fields[] = {

    /* Name of the zone. */
    { "name", STRING(name), ALWAYS, MEMBER },

    /* `serving`, or the reason why answers may be `unknown`: see the table
     * below. */
    { "state", STATE(condition), ALWAYS,
      "state", NULL,
      "1 for the state that the zone is in, 0 for every other state." },

    /* Number of lookups by rules and variables: the sum of `absent`, `present`
     * and `unknown`. */
    { "counters.checks", NUMBER(checks), ALWAYS, MEMBER },

    /* Number of lookups with the answer `absent`. */
    { "counters.absent", COUNTER(NGX_BLOOM_COUNTER_ABSENT), ALWAYS,
      "checks_total", "answer=\"absent\"",
      "Number of lookups by rules and variables, by the zone's answer." },

    /* Number of lookups with the answer `present`. */
    { "counters.present", COUNTER(NGX_BLOOM_COUNTER_PRESENT), ALWAYS,
      "checks_total", "answer=\"present\"", NULL },

    /* Number of lookups with the answer `unknown`. */
    { "counters.unknown", COUNTER(NGX_BLOOM_COUNTER_UNKNOWN), ALWAYS,
      "checks_total", "answer=\"unknown\"", NULL },

    /* ... They do not count as checks. */
    { "counters.invalid", COUNTER(NGX_BLOOM_COUNTER_INVALID), ALWAYS,
      "invalid_keys_total", NULL,
      "Number of keys, looked up or to be added or removed, that are invalid "
      "in the image's key form or contain an argument, a cookie or a header "
      "that is ambiguous." },

    /* Number of requests that a rule rejected. */
    { "counters.rejected", COUNTER(NGX_BLOOM_COUNTER_REJECTED), ALWAYS,
      "requests_total", "decision=\"rejected\"",
      "Number of requests that a rule rejected or routed, without those that "
      "access checks refused before their route; dry_run counts the requests "
      "that a rule would have rejected or routed without a dry run." },

    /* Number of requests that a rule sent to another location. A request that
     * the access checks refuse first does not count. */
    { "counters.routed", COUNTER(NGX_BLOOM_COUNTER_ROUTED), ALWAYS,
      "requests_total", "decision=\"routed\"", NULL },

    /* Number of requests that a rule would have rejected or routed without
     * `bloom_dry_run` or `dry_run`. */
    { "counters.dry_run", COUNTER(NGX_BLOOM_COUNTER_DRY_RUN), ALWAYS,
      "requests_total", "decision=\"dry_run\"", NULL },

    /* Number of added keys that changed the filter. */
    { "counters.added", COUNTER(NGX_BLOOM_COUNTER_ADDED), ALWAYS,
      "additions_total", "result=\"added\"",
      "Number of keys that were to be added; added: the key changed the "
      "filter; already_present: the filter already answered present." },

    /* Number of added keys for which the filter already answered `present`. */
    { "counters.already_present", COUNTER(NGX_BLOOM_COUNTER_ALREADY_PRESENT),
      ALWAYS, "additions_total", "result=\"already_present\"", NULL },

    /* Number of removed keys that were present. */
    { "counters.removed_keys", COUNTER(NGX_BLOOM_COUNTER_REMOVED), ALWAYS,
      "removals_total", "result=\"removed\"",
      "Number of keys that were to be removed; removed: the key was present; "
      "absent: the key was absent already; refused: bloom_remove could not "
      "remove the key, which stays present." },

    /* Number of removed keys that were absent before. */
    { "counters.removals_absent", COUNTER(NGX_BLOOM_COUNTER_REMOVED_ABSENT),
      ALWAYS, "removals_total", "result=\"absent\"", NULL },

    /* Number of keys that `bloom_remove` could not remove. */
    { "counters.removals_refused", COUNTER(NGX_BLOOM_COUNTER_NOT_REMOVED),
      ALWAYS, "removals_total", "result=\"refused\"", NULL },

    /* Number of requests whose key a rule found absent. */
    { "feedback.absent", COUNTER(NGX_BLOOM_COUNTER_FEEDBACK_ABSENT), ALWAYS,
      "feedback_requests_total", "result=\"absent\"",
      "Number of requests under bloom_feedback for keys that do not exist; "
      "absent: the filter answered absent; false_positive: the filter "
      "answered present and the backend said that the key does not exist." },

    /* Number of requests that a rule let pass because their key was present,
     * and for which the backend said that the key does not exist; responses
     * from nginx's cache are left out. */
    { "feedback.false_positives", COUNTER(NGX_BLOOM_COUNTER_FALSE_POSITIVE),
      ALWAYS, "feedback_requests_total", "result=\"false_positive\"", NULL },

    /* ... Lists of keys (`split=`) are left out. */
    { "feedback.excepted_rejected",
      COUNTER(NGX_BLOOM_COUNTER_EXCEPTED_REJECTED), ALWAYS,
      "feedback_excepted_rejected_total", NULL,
      "Number of requests under bloom_feedback whose key was absent only "
      "because it is an excepted key; the result absent counts them, too." },

    /* Measured false-positive rate since counting began: the false positives as
     * a share of all requests for keys that do not exist; `null` if there were
     * none. With `except=on` a false positive counts as such once, and its
     * later requests count as absent, so the rate falls. `filter.estimated_fpr`
     * is the rate of the filter as it is now, without excepted keys. */
    { "feedback.measured_fpr", RATE(measured_fpr), ALWAYS, MEMBER },

    /* What `feedback.measured_fpr` would be without excepted keys:
     * (`false_positives` + `excepted_rejected`) / (`absent` +
     * `false_positives`). */
    { "feedback.measured_fpr_without_excepted",
      RATE(measured_fpr_without_excepted), ALWAYS, MEMBER },

    { "feedback.excepted", COUNTER(NGX_BLOOM_COUNTER_FEEDBACK_EXCEPTED), ALWAYS,
      "feedback_excepted_keys_total", NULL,
      "Number of false positives that bloom_feedback made excepted keys." },

    /* Number of false positives that did not become excepted keys in spite of
     * `except=on`: the sum of the next three. */
    { "feedback.not_excepted", NUMBER(not_excepted), ALWAYS, MEMBER },

    /* Number of false positives that were not excepted because nginx was [not
     * sure](directives.md#excepted-keys): the key may have been added, the
     * image began to serve less than `after=` ago, the response was late, or
     * the backend [read the path in another
     * way](directives.md#paths-that-the-backend-reads-in-another-way). */
    { "feedback.not_excepted_doubt", COUNTER(NGX_BLOOM_COUNTER_FEEDBACK_DOUBT),
      ALWAYS, "feedback_not_excepted_keys_total", "reason=\"doubt\"",
      "Number of false positives that bloom_feedback did not except in spite "
      "of except=on, by the reason; doubt: the key or the image may be new, "
      "the response was late, or the backend read another path; full: excepted "
      "keys use their share of removals; rate: rate= was exceeded." },

    /* Number of false positives that were not excepted because the zone has
     * `removals.excepted_limit` excepted keys, or no room. */
    { "feedback.not_excepted_full", COUNTER(NGX_BLOOM_COUNTER_FEEDBACK_FULL),
      ALWAYS, "feedback_not_excepted_keys_total", "reason=\"full\"", NULL },

    /* Number of false positives that were not excepted because `rate=` was
     * exceeded. */
    { "feedback.not_excepted_rate", COUNTER(NGX_BLOOM_COUNTER_FEEDBACK_FAST),
      ALWAYS, "feedback_not_excepted_keys_total", "reason=\"rate\"", NULL },

    /* ... It is the sum of `audit.confirmed`, `audit.wrong_absent`,
     * `audit.unanswered` and the requests in progress. */
    { "audit.audited", COUNTER(NGX_BLOOM_COUNTER_AUDITED), ALWAYS,
      "audited_requests_total", NULL,
      "Number of requests that bloom_audit let through although their key was "
      "absent." },

    /* Number of audited requests whose key does not exist: the filter was
     * right. */
    { "audit.confirmed", COUNTER(NGX_BLOOM_COUNTER_CONFIRMED), ALWAYS,
      "audit_results_total", "result=\"confirmed\"",
      "Number of audited requests, by the backend's answer; confirmed: the "
      "key does not exist; wrong_absent: the key exists, but the filter lacks "
      "it; unanswered: the backend did not say whether the key exists." },

    /* Number of audited requests whose key exists: the filter lacks it. */
    { "audit.wrong_absent", COUNTER(NGX_BLOOM_COUNTER_WRONG_ABSENT), ALWAYS,
      "audit_results_total", "result=\"wrong_absent\"", NULL },

    /* Number of audited requests for which the backend did not say whether the
     * key exists. */
    { "audit.unanswered", COUNTER(NGX_BLOOM_COUNTER_UNANSWERED), ALWAYS,
      "audit_results_total", "result=\"unanswered\"", NULL },

    /* ... It is `null` if there was none. */
    { "audit.last_wrong_absent", TIME(info.wrong_at), IF(info.wrong_at),
      "last_wrong_absent_timestamp_seconds", NULL,
      "Unix time at which bloom_audit last found a wrong absent." },

    { "audit.added", COUNTER(NGX_BLOOM_COUNTER_AUDIT_ADDED), ALWAYS,
      "audit_added_keys_total", NULL,
      "Number of wrongly absent keys that bloom_audit added." },

    /* ... See
     * [paths](directives.md#paths-that-the-backend-reads-in-another-way). */
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

    /* ... It begins at 1 again after a start, and after a reload that changes
     * the zone's size. */
    { "generation", NUMBER(info.generation), ALWAYS,
      "generation", NULL,
      "Number of images that have served since the zone's memory was created; "
      "0 if no image serves." },

    /* [What serves](#requests), for `?serving=`; `null` if no image serves. */
    { "token", TEXT(token), ALWAYS, MEMBER },

    /* Path of `file=`; `null` if the zone starts empty. */
    { "file", STRING(file), ALWAYS, MEMBER },

    /* What people call the zone (`label=`); `null` without `label=`. */
    { "label", STRING(label), ALWAYS, MEMBER },

    /* Properties of the image that serves; `null` if no image serves. */
    { "image", OBJECT, IF(info.generation), MEMBER },

    /* The filter that serves, additions included; `null` if no image serves. */
    { "filter", OBJECT, IF(info.generation), MEMBER },

    /* How keys expire; `null` without `expire=`. Keys expire by a clock of the
     * zone, which nobody can set. All times that the endpoint shows are those
     * that the system's clock has now. */
    { "expire", OBJECT, IF(info.expire), MEMBER },

    /* The zone's [source](directives.md#bloom_source); `null` without
     * `bloom_source`. */
    { "source", OBJECT, IF(source), MEMBER },

    /* Keys that are absent although their bits are set: [removed](#remove)
     * keys, and the [excepted keys](adaptive.md) of `bloom_feedback`. */
    { "removals", OBJECT, ALWAYS, MEMBER },

    /* Sizes of the zone and its parts. */
    { "memory", OBJECT, ALWAYS, MEMBER },

    /* The zone's journal. */
    { "journal", OBJECT, ALWAYS, MEMBER },

    /* Counters, summed over all processes. */
    { "counters", OBJECT, ALWAYS, MEMBER },

    /* Requests under `bloom_feedback`. */
    { "feedback", OBJECT, ALWAYS, MEMBER },

    /* Requests under `bloom_audit`. */
    { "audit", OBJECT, ALWAYS, MEMBER },

    /* Image loads while nginx runs. */
    { "load", OBJECT, ALWAYS, MEMBER },

    /* The helper process, which does the slow work. */
    { "helper", OBJECT, ALWAYS, MEMBER },

    { NULL, LABELS(labels), IF(info.generation),
      "image_info", NULL,
      "Always 1; the labels describe the image that serves." },

    /* Random id of the image. */
    { "image.build_id", TEXT(build_id), ALWAYS, MEMBER },

    /* `true` if the image was uploaded, `false` if it comes from `file=`. */
    { "image.uploaded", BOOL(info.uploaded), ALWAYS, MEMBER },

    { "image.created", TIME(info.image.created), IF(info.image.created),
      "image_created_timestamp_seconds", NULL,
      "Unix time at which the image that serves was built." },

    /* Time up to which the image's keys are complete (`--as-of`). */
    { "image.as_of", TIME(info.image.as_of), IF(info.image.as_of),
      "image_as_of_timestamp_seconds", NULL,
      "Unix time up to which the keys of the image that serves are complete, "
      "if the image states it." },

    { NULL, NUMBER(age), IF(info.generation),
      "image_age_seconds", NULL,
      "Age of the image that serves: the time since its as_of, or since it "
      "was built if it has no as_of." },

    { NULL, NUMBER(max_age), IF(max_age),
      "image_max_age_seconds", NULL,
      "Age (max_age) at which an image becomes stale and every answer "
      "becomes unknown." },

    /* [Layout](sizing.md#layouts) of the image: `blocked`, `classic` or `fuse`,
     * or that of an [imported](interop.md) filter. */
    { "image.layout", STRING(layout), ALWAYS, MEMBER },

    /* Number of cache lines that hold a key's bits; 0 in other layouts than
     * `blocked`. */
    { "image.lines", NUMBER(info.image.geometry.lines), ALWAYS, MEMBER },

    /* `murmur3` or `siphash`. */
    { "image.hash", STRING(hash), ALWAYS, MEMBER },

    /* `raw`, `lower`, `host` or `url`. */
    { "image.form", STRING(key_form), ALWAYS, MEMBER },

    /* Number of bits per key; 3 for `fuse`, the slots of a key. */
    { "image.k", NUMBER(info.image.geometry.k), ALWAYS, MEMBER },

    /* Number of bits of the filter, without layers; if keys expire, of one
     * slice. */
    { "image.bits", NUMBER(info.image.geometry.bits), ALWAYS, MEMBER },

    /* ... Layers do not count. For `fuse`, these are the keys of the image and
     * the room of the first layer. */
    { "image.capacity", NUMBER(info.image.capacity), IF(info.generation),
      "image_capacity", NULL,
      "Number of keys that the image that serves is sized for." },

    { "image.items", NUMBER(info.image.items), IF(info.generation),
      "image_items", NULL,
      "Number of keys that the image that serves was built with." },

    /* `true` if `image.items` is estimated from the bits. */
    { "image.items_estimated", BOOL(items_estimated), ALWAYS, MEMBER },

    /* ... The number is from the time of the load. See
     * [lists](key-forms.md#lists). */
    { "image.excepted", NUMBER(info.image.built), IF(info.generation),
      "image_excepted", NULL,
      "Number of exceptions that the builder of the image that serves chose "
      "(--except)." },

    /* Number of bits that are set; if keys expire, in the live slices. */
    { "filter.bits_set", NUMBER(info.bits_set), ALWAYS, MEMBER },

    /* ... For `fuse`, it is `null`. */
    { "filter.fill_ratio", RATE(fill_ratio), IF(info.generation),
      "fill_ratio", NULL,
      "Share of the filter's bits that are set, from 0 to 1; if keys expire, "
      "of those of the live slices. The layout fuse has none: its base does "
      "not fill." },

    /* ... For `fuse`, it is the exact number of keys in the base and the
     * estimate of its layers. */
    { "filter.estimated_items", NUMBER(estimated_items), IF(info.generation),
      "estimated_items", NULL,
      "Number of keys in the filter, additions included, as estimated from "
      "its bits; if keys expire, a key counts once in each live slice that "
      "has it." },

    /* Number of keys that the filter has room for, with all layers that it can
     * have ([`max_keys=`](directives.md#growth)); `image.capacity` if it does
     * not grow, and for `fuse` without `max_keys=`; if keys expire, the number
     * of additions within a life for which it is made. */
    { "filter.max_items", NUMBER(info.max_items), IF(info.generation),
      "max_items", NULL,
      "Number of keys that the filter has room for, with all layers that it "
      "can have (max_keys); image_capacity if it does not grow; if keys "
      "expire, the number of additions within a life for which it is made." },

    /* ... It is `image.fpr` if the filter does not grow. For `fuse` without
     * `max_keys=`, it is twice that: the base and the layer have it once
     * each. */
    { "filter.promised_fpr", RATE(info.promised_fpr), IF(info.generation),
      "promised_fpr", NULL,
      "False-positive rate that the filter has with max_items keys." },

    { "filter.layers", NUMBER(layers), IF(info.generation),
      "layers", NULL,
      "Number of layers that the filter has grown by." },

    /* List of the filter's parts: the base, then each layer. A filter that has
     * not grown is one part. Each part has its `capacity`, `estimated_items`,
     * `bits`, `k`, `lines` and `fill_ratio`, which mean the same as for the
     * image and the filter. A layer has room for twice as many keys as the part
     * before it. A base of layout `fuse` has a `capacity` of just its keys, and
     * `null` as `fill_ratio`. If keys expire, the parts are the live slices,
     * the oldest first, and each has [further members](#slices). */
    { "filter.parts", PARTS, ALWAYS, MEMBER },

    /* Estimated false-positive rate with `filter.estimated_items` keys. */
    { "filter.estimated_fpr", RATE(estimated_fpr), IF(info.generation),
      "estimated_fpr", NULL,
      "Estimated false-positive rate of the filter: the share of keys that "
      "were never added for which it answers present." },

    { "expire.seconds", SECONDS(info.expire), IF(info.expire),
      "expire_seconds", NULL,
      "Time for which a key lives at least after it was last added (expire)." },

    /* Number of slices of a life: 8, or one for each second of a shorter
     * life. */
    { "expire.slices", NUMBER(info.slices), ALWAYS, MEMBER },

    /* Time after its first key at which a slice is closed, and up to which a
     * key may live longer than `expire.seconds`. */
    { "expire.slice_seconds", SECONDS(info.slice), ALWAYS, MEMBER },

    /* Number of keys with which a slice is closed earlier. */
    { "expire.slice_capacity", NUMBER(info.slice_capacity), ALWAYS, MEMBER },

    { "expire.live", NUMBER(info.live_slices), IF(ring),
      "live_slices", NULL,
      "Number of slices that lookups test, if keys expire." },

    /* ... If it is 0 and the open slice should be closed, the open slice stays
     * open: keys live longer, and the rate rises. */
    { "expire.ready", NUMBER(info.ready_slices), IF(ring),
      "ready_slices", NULL,
      "Number of empty slices that can be opened next, if keys expire." },

    /* ... Keys live longer by as much. */
    { "expire.clock_behind_seconds", NUMBER(info.clock_behind), IF(info.expire),
      "clock_behind_seconds", NULL,
      "Time by which the clock that keys expire by is behind the system's "
      "clock, for example because the machine was off." },

    /* Name of the source. */
    { "source.name", STRING(source), ALWAYS, MEMBER },

    /* Position of the zone in the source. */
    { "source.position", TEXT(position), ALWAYS, MEMBER },

    { NULL, NUMBER(info.place.position.high), IF(source),
      "source_position", NULL,
      "Position of the zone in its source (source); of HIGH-LOW, the number "
      "HIGH, which is a time in ms if the source is a Redis stream." },

    /* [Digest](journal-format.md#the-digest) of the source's changes, 16
     * hexadecimal digits: zones that got the same changes since the same
     * position have the same digest. */
    { "source.digest", TEXT(digest), ALWAYS, MEMBER },

    /* Position after which the digest counts changes: 0, or the last position
     * to which the zone came without changes, by an image that was later than
     * the zone, a gap or a clear. */
    { "source.digest_since", TEXT(since), ALWAYS, MEMBER },

    /* `current`; `waiting`: there was no sign of life since the start, or since
     * a clear has taken the zone back in the source; `late`: the last sign of
     * life is older than `max_lag`; `gap`: changes are missing that the image
     * does not have. */
    { "source.state", STATE(source_state), IF(source),
      "source_state", NULL,
      "1 for the state that the zone's source is in, 0 for every other "
      "state." },

    /* ... It is in milliseconds; `null` if there was no sign of life. */
    { "source.lag_ms", MS(info.lag), IF(source),
      "source_lag_seconds", NULL,
      "Time since the zone last had all changes of its source." },

    /* ... It is in milliseconds; `null` if it is off. */
    { "source.max_lag_ms", MS(max_lag), IF(source),
      "source_max_lag_seconds", NULL,
      "Lag (max_lag) from which on the zone answers unknown instead of "
      "absent." },

    /* The most bytes of changes in the body of [`POST changes`](#changes). */
    { "source.max_body", NUMBER(max_body), ALWAYS, MEMBER },

    { "image.fpr", RATE(info.image.fpr), IF(info.generation),
      "image_fpr", NULL,
      "False-positive rate that the image that serves has once it holds as "
      "many keys as its capacity." },

    { "removals.limit", NUMBER(info.removals), ALWAYS,
      "removed_keys_limit", NULL,
      "Number of removed and excepted keys that the zone has room for "
      "(removals)." },

    /* ... Those that the image itself has count, too. */
    { "removals.count", NUMBER(info.removed), ALWAYS,
      "removed_keys", NULL,
      "Number of removed and excepted keys that take this room." },

    /* ... Those that the image itself has count, too. */
    { "removals.excepted", NUMBER(info.excepted_keys), ALWAYS,
      "excepted_keys", NULL,
      "Number of excepted keys in the filter that serves." },

    /* ... It is half of `removals.limit`. */
    { "removals.excepted_limit", NUMBER(info.excepts), ALWAYS,
      "excepted_keys_limit", NULL,
      "Number of excepted keys from which on the zone excepts no more." },

    { "memory.zone_bytes", NUMBER(info.size), ALWAYS,
      "zone_bytes", NULL,
      "Size of the zone's shared memory." },

    { "memory.bank_bytes", NUMBER(info.bank_size), ALWAYS,
      "bank_bytes", NULL,
      "Size of the largest filter that the zone has room for." },

    { "memory.filter_bytes", NUMBER(filter_bytes), IF(info.generation),
      "filter_bytes", NULL,
      "Size of the filter that serves." },

    /* ... It is updated after each load and then every 10 seconds, or every few
     * minutes for large zones. Responses to `POST reload` and `PUT image` have
     * the value from before the load. */
    { "memory.huge_bytes", NUMBER(info.huge_bytes), ALWAYS,
      "huge_bytes", NULL,
      "Size of the part of the zone's used memory that lies on huge pages." },

    /* `true` if the zone has a journal. */
    { "journal.enabled", BOOL(info.journal), ALWAYS, MEMBER },

    { "journal.bytes", NUMBER(info.journal_bytes), IF(info.journal),
      "journal_bytes", NULL,
      "Size of the journal, from its oldest segment to its end." },

    { "journal.unsynced_bytes", NUMBER(info.unsynced_bytes), IF(info.journal),
      "journal_unsynced_bytes", NULL,
      "Size of the part of the journal that may not be on disk yet." },

    { "journal.replay_bytes", NUMBER(info.replay_bytes), IF(info.journal),
      "journal_replay_bytes", NULL,
      "Size of the journal after the last checkpoint; the next start replays "
      "this part." },

    /* ... Until they are added, keys that the filter lacks are `unknown`. */
    { "journal.owing_workers", NUMBER(info.owing), ALWAYS,
      "journal_owing_workers", NULL,
      "Number of workers with keys of bloom_add that wait for another process, "
      "which holds the lock of the zone." },

    /* ... That generation is `damaged`. Other instances of the zone are
     * `damaged` at once. Keys that a worker kept for [a stopped
     * process](operations.md#a-stopped-process), and could not add, count as
     * one: the zone is `damaged` at once. */
    { "journal.lost_keys", NUMBER(info.lost_keys), ALWAYS,
      "journal_lost_keys", NULL,
      "Number of keys of bloom_add that could not be written to the journal; "
      "they are lost when the next generation serves." },

    /* ... It is `null` while the zone is not damaged. */
    { "journal.lost_at", TIME(info.lost_at), IF(info.lost_at),
      "journal_lost_timestamp_seconds", NULL,
      "Unix time up to which added keys may be lost, while the zone is "
      "damaged; an image with an as_of more than an hour later repairs the "
      "zone." },

    /* What fails when the journal is written or synchronised; `null` if the
     * journal works. */
    { "journal.error", TEXT(journal_error), ALWAYS,
      "journal_error", NULL,
      "1 while the journal cannot be written or synchronised, else 0." },

    /* Why the journal of a zone with `file=` grows, and what to do, once it is
     * ten times as large as the image and has more than 64 MiB; `null` until
     * then. */
    { "journal.warning", STRING(info.journal_warning), ALWAYS, MEMBER },

    { NULL, NUMBER(journal_grows), ALWAYS,
      "journal_grows", NULL,
      "1 while the journal of a zone with file= has more than 64 MiB and is "
      "ten times as large as the image, because images state no as_of or an "
      "old one, else 0." },

    { NULL, BOOL(load_ok), IF(info.loaded.started_at),
      "last_load_success", NULL,
      "1 if the last image load while nginx ran succeeded, 0 if it failed." },

    /* Result of the last load: `ok`, `refused`, `no_room` (in the zone or in
     * memory) or `failed`; `null` if there was no load. */
    { "load.result", STATE(load_result), ALWAYS, MEMBER },

    /* Why the last load failed; `null` if it succeeded. */
    { "load.message", TEXT(info.loaded.message), ALWAYS, MEMBER },

    { "load.started_at", TIME(info.loaded.started_at),
      IF(info.loaded.started_at),
      "last_load_timestamp_seconds", NULL,
      "Unix time at which the last load of an image began." },

    /* ... It is in milliseconds. */
    { "load.duration_ms", MS(info.loaded.duration), IF(info.loaded.started_at),
      "last_load_duration_seconds", NULL,
      "Duration of the last load of an image." },

    /* `true` while a load is in progress. */
    { "load.in_progress", BOOL(info.load_total), ALWAYS, MEMBER },

    { "load.done_bytes", NUMBER(info.load_done), ALWAYS,
      "load_done_bytes", NULL,
      "Number of bytes that the load in progress has read of its image so "
      "far." },

    { "load.size_bytes", NUMBER(info.load_total), ALWAYS,
      "load_size_bytes", NULL,
      "Size of the image that the load in progress reads; 0 if no load is in "
      "progress." },

    /* ... If that was more than some seconds ago, the helper is not running. */
    { "helper.heartbeat", TIME(info.heartbeat), ALWAYS,
      "helper_heartbeat_timestamp_seconds", NULL,
      "Unix time at which the helper process last gave a sign of life." },

    { NULL, NGX_HTTP_BLOOM_STATS_END, 0, 0, ALWAYS, MEMBER }
};


ngx_uint_t
ngx_http_bloom_stats_has(ngx_http_bloom_stats_t *stats,
    const ngx_http_bloom_stats_field_t *field)
{
    if (field->needs_size != 0
        && ngx_http_bloom_stats_read(stats, field->needs, field->needs_size)
           == 0)
    {
        return 0;
    }

    return !(field->type == NGX_HTTP_BLOOM_STATS_RATE
             && isnan(ngx_http_bloom_stats_rate(stats, field)))
           && !(field->type == NGX_HTTP_BLOOM_STATS_MS
                && ngx_http_bloom_stats_number(stats, field) == UINT64_MAX);
}


uint64_t
ngx_http_bloom_stats_number(ngx_http_bloom_stats_t *stats,
    const ngx_http_bloom_stats_field_t *field)
{
    return ngx_http_bloom_stats_read(stats, field->offset, field->size);
}


static uint64_t
ngx_http_bloom_stats_read(ngx_http_bloom_stats_t *stats, size_t offset,
    size_t size)
{
    u_char  *value;

    value = (u_char *) stats + offset;

    return size == sizeof(uint32_t) ? *(uint32_t *) value
                                    : *(uint64_t *) value;
}
