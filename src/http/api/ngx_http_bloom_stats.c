/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file fills in the values that the endpoint reports about a zone.
 */

#include "ngx_http_bloom_stats.h"
#include "ngx_bloom_changes.h"
#include "ngx_bloom_layers.h"

#include <math.h>


static void ngx_http_bloom_stats_source(ngx_http_bloom_stats_t *stats,
    ngx_bloom_zone_t *zone);
static void ngx_http_bloom_stats_image(ngx_http_bloom_stats_t *stats);
static void ngx_http_bloom_stats_journal(ngx_http_bloom_stats_t *stats);


/* by ngx_bloom_condition_e; docs/api.md has the comments */
static const char *const  ngx_http_bloom_stats_state_names[] = {

    /* The zone works normally. */
    "serving",

    /* Every key is `unknown`, because no image serves, until an image is
     * loaded. */
    "not_loaded",

    /* Every key is `unknown`, because the image is older than `max_age`, until
     * a newer image is loaded. */
    "stale",

    /* The zone may lack changes of its
     * [source](directives.md#changes-from-a-source): `source.state` says why.
     * Keys that the filter lacks are `unknown` until the source gives a sign of
     * life or, after a gap, until an image at a later position is loaded. */
    "late",

    /* Another instance of the zone has added keys that this one has not applied
     * yet, a process has died while it changed the zone, or removed keys are
     * being restored: this takes some milliseconds. Or keys of `bloom_add`
     * wait for a process that holds the lock of the zone: see
     * `journal.owing_workers`. There are two instances during an upgrade, or
     * after a reload that changes the zone's size, until the old processes have
     * exited. Keys that the filter lacks are `unknown` until this instance has
     * all keys. */
    "behind",

    /* Added keys were lost: the journal or an uploaded image was damaged, or
     * keys of `bloom_add` could not be written to the journal, or a worker
     * that kept such keys has died. Keys that the filter lacks are `unknown`
     * until an image repairs the zone: see [lost
     * keys](operations.md#lost-keys). */
    "damaged",

    NULL
};


/* by ngx_bloom_source_e */
static const char *const  ngx_http_bloom_stats_source_state_names[] = {
    "current",
    "waiting",
    "late",
    "gap",
    NULL
};


/* by ngx_bloom_outcome_e */
static const char *const  ngx_http_bloom_stats_result_names[] = {
    "ok",
    "refused",
    "no_room",
    "failed",
    NULL
};


void
ngx_http_bloom_stats_get(ngx_http_bloom_stats_t *stats,
    ngx_bloom_zone_t *zone, ngx_bloom_info_t *info)
{
    uint64_t  *counter, wrong, right, excepted;

    ngx_memzero(stats, sizeof(ngx_http_bloom_stats_t));

    stats->info = *info;
    stats->zone = zone;
    stats->name = (char *) zone->name.data;
    stats->file = (char *) zone->file.name.data;
    stats->label = (char *) zone->label.data;
    stats->max_age = zone->max_age;

    stats->condition.names = ngx_http_bloom_stats_state_names;
    stats->condition.number = info->condition;

    if (zone->source.len != 0) {
        ngx_http_bloom_stats_source(stats, zone);
    }

    if (info->generation != 0) {
        *ngx_http_bloom_token(stats->token, info) = '\0';

        ngx_http_bloom_stats_image(stats);

    } else {
        ngx_memzero(&stats->info.image, sizeof(stats->info.image));
    }

    stats->ring = (info->expire != 0 && info->generation != 0);
    stats->journal_grows = (info->journal_warning != NULL);

    ngx_http_bloom_stats_journal(stats);

    if (info->loaded.started_at != 0) {
        stats->load_ok = (info->loaded.outcome == NGX_BLOOM_DONE);
        stats->load_result.names = ngx_http_bloom_stats_result_names;
        stats->load_result.number = info->loaded.outcome;
    }

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


static void
ngx_http_bloom_stats_source(ngx_http_bloom_stats_t *stats,
    ngx_bloom_zone_t *zone)
{
    ngx_bloom_info_t  *info;

    info = &stats->info;

    stats->source = (char *) zone->source.data;
    stats->source_state.names = ngx_http_bloom_stats_source_state_names;
    stats->source_state.number = info->source;
    stats->max_lag = zone->max_lag ? zone->max_lag : UINT64_MAX;
    stats->max_body = NGX_BLOOM_CHANGES_MAX;

    (void) bloom_position_write(info->place.position, stats->position);
    (void) ngx_sprintf(stats->digest, "%016xL%Z", info->place.digest.value);
    (void) bloom_position_write(info->place.digest.since, stats->since);
}


/* Fills in the values of the image that serves. */
static void
ngx_http_bloom_stats_image(ngx_http_bloom_stats_t *stats)
{
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

    *ngx_hex_dump(stats->build_id, image->build_id, BLOOM_IMAGE_BUILD_ID_LEN)
        = '\0';

    stats->layout = bloom_geometry_layout_name(g->layout);
    stats->hash = bloom_hasher_name(image->hasher.kind);
    stats->key_form = bloom_form_name(image->key_form);

    (void) ngx_snprintf(stats->labels, sizeof(stats->labels),
                        "build_id=\"%s\",layout=\"%s\",hash=\"%s\","
                        "form=\"%s\",k=\"%uD\",uploaded=\"%s\"%Z",
                        stats->build_id, stats->layout, stats->hash,
                        stats->key_form, g->k,
                        stats->info.uploaded ? "true" : "false");
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

    end = stats->journal_error + sizeof(stats->journal_error) - 1;

    p = ngx_slprintf(stats->journal_error, end, "%s", info->journal_error);

    if (info->journal_err != 0) {
        p = ngx_log_errno(p, end, info->journal_err);
    }

    *p = '\0';
}
