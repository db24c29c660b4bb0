/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file writes the state of a zone in JSON, from the table of stats.
 */

#include "ngx_http_bloom_json.h"
#include "ngx_http_bloom_stats_table.h"

#include "bloom_growth.h"
#include "ngx_bloom_ring.h"

#include <math.h>


static void ngx_http_bloom_json_object(bloom_json_writer_t *json,
    const char *name, ngx_http_bloom_stats_t *stats, const char *object);
static void ngx_http_bloom_json_value(bloom_json_writer_t *json,
    const char *name, ngx_http_bloom_stats_t *stats,
    const ngx_http_bloom_stats_field_t *field);
static void ngx_http_bloom_json_number(bloom_json_writer_t *json,
    const char *name, ngx_http_bloom_stats_type_e type, uint64_t n);
static void ngx_http_bloom_json_parts(bloom_json_writer_t *json,
    ngx_bloom_info_t *info);
static void ngx_http_bloom_json_slices(bloom_json_writer_t *json,
    ngx_bloom_info_t *info);
static void ngx_http_bloom_json_part(bloom_json_writer_t *json,
    const bloom_geometry_t *part, uint64_t capacity, uint64_t bits_set);


void
ngx_http_bloom_json_put_zone(ngx_http_bloom_text_t *text, const char *name,
    ngx_bloom_zone_t *zone, ngx_bloom_info_t *info)
{
    ngx_http_bloom_stats_t  stats;

    ngx_http_bloom_stats_get(&stats, zone, info);

    ngx_http_bloom_json_object(&text->json, name, &stats, "");
}


/* Writes an object with all fields whose place is directly in it; "" is the
 * outermost object. */
static void
ngx_http_bloom_json_object(bloom_json_writer_t *json, const char *name,
    ngx_http_bloom_stats_t *stats, const char *object)
{
    size_t                               len;
    const char                          *member;
    const ngx_http_bloom_stats_field_t  *field;

    len = ngx_strlen(object);

    bloom_json_put_object(json, name);

    for (field = ngx_http_bloom_stats_fields;
         field->type != NGX_HTTP_BLOOM_STATS_END;
         field++)
    {
        member = field->place;

        if (member == NULL) {
            continue;
        }

        if (len != 0) {
            if (ngx_strncmp(member, object, len) != 0 || member[len] != '.') {
                continue;
            }

            member += len + 1;
        }

        if (ngx_strchr(member, '.') == NULL) {
            ngx_http_bloom_json_value(json, member, stats, field);
        }
    }

    bloom_json_put_end(json);
}


static void
ngx_http_bloom_json_value(bloom_json_writer_t *json, const char *name,
    ngx_http_bloom_stats_t *stats, const ngx_http_bloom_stats_field_t *field)
{
    const char                    *text;
    ngx_http_bloom_stats_state_t  *state;

    switch (field->type) {

    case NGX_HTTP_BLOOM_STATS_OBJECT:

        if (ngx_http_bloom_stats_has(stats, field)) {
            ngx_http_bloom_json_object(json, name, stats, field->place);

        } else {
            bloom_json_put_null(json, name);
        }

        break;

    case NGX_HTTP_BLOOM_STATS_RATE:

        bloom_json_put_rate(json, name,
                            ngx_http_bloom_stats_rate(stats, field));
        break;

    case NGX_HTTP_BLOOM_STATS_STRING:

        bloom_json_put_text(json, name,
                            ngx_http_bloom_stats_string(stats, field));
        break;

    case NGX_HTTP_BLOOM_STATS_TEXT:

        text = ngx_http_bloom_stats_text(stats, field);

        bloom_json_put_text(json, name, text[0] != '\0' ? text : NULL);
        break;

    case NGX_HTTP_BLOOM_STATS_STATE:

        state = ngx_http_bloom_stats_state(stats, field);

        bloom_json_put_text(json, name, state->names == NULL
                                        ? NULL : state->names[state->number]);
        break;

    case NGX_HTTP_BLOOM_STATS_PARTS:

        bloom_json_put_array(json, name);

        if (stats->info.expire != 0) {
            ngx_http_bloom_json_slices(json, &stats->info);

        } else {
            ngx_http_bloom_json_parts(json, &stats->info);
        }

        bloom_json_put_end(json);
        break;

    default:

        ngx_http_bloom_json_number(json, name, field->type,
                                   ngx_http_bloom_stats_number(stats, field));
    }
}


static void
ngx_http_bloom_json_number(bloom_json_writer_t *json, const char *name,
    ngx_http_bloom_stats_type_e type, uint64_t n)
{
    switch (type) {

    case NGX_HTTP_BLOOM_STATS_TIME:
        bloom_json_put_time(json, name, n);
        break;

    case NGX_HTTP_BLOOM_STATS_BOOL:
        bloom_json_put_bool(json, name, n != 0);
        break;

    case NGX_HTTP_BLOOM_STATS_SECONDS:
        bloom_json_put_seconds(json, name, n);
        break;

    case NGX_HTTP_BLOOM_STATS_MS:

        if (n == UINT64_MAX) {
            bloom_json_put_null(json, name);
            break;
        }

        /* fall through */

    default: /* NGX_HTTP_BLOOM_STATS_NUMBER */
        bloom_json_put_count(json, name, n);
    }
}


/* Writes the parts of the filter that serves. */
static void
ngx_http_bloom_json_parts(bloom_json_writer_t *json, ngx_bloom_info_t *info)
{
    uint32_t          i;
    bloom_geometry_t  part, *g;

    g = &info->image.geometry;

    for (i = 0; i <= g->layers; i++) {

        /* the links of an imported filter are one part here */

        part = (g->layers == 0) ? *g : bloom_geometry_part(g, i);

        ngx_http_bloom_json_part(json, &part,
                                 bloom_growth_room(g, info->image.capacity, i),
                                 info->part_bits_set[i]);
        bloom_json_put_end(json);
    }
}


/* Writes the live slices, the oldest first. */
static void
ngx_http_bloom_json_slices(bloom_json_writer_t *json, ngx_bloom_info_t *info)
{
    uint32_t          slice[BLOOM_PARTS_MAX];
    uint64_t          closed;
    ngx_uint_t        i, n, open;
    bloom_geometry_t  part;

    part = bloom_geometry_part(&info->image.geometry, 0);
    n = ngx_bloom_info_slices(info, slice);

    for (i = 0; i < n; i++) {
        open = (ngx_bloom_ring_open(info->ring.turn) == slice[i]);
        closed = open ? 0 : info->ring.closed[slice[i]];

        ngx_http_bloom_json_part(json, &part, info->slice_capacity,
                                 info->part_bits_set[slice[i]]);
        bloom_json_put_bool(json, "open", open);
        bloom_json_put_time(json, "opened_at", info->ring.opened[slice[i]]);
        bloom_json_put_time(json, "closed_at", closed);
        bloom_json_put_time(json, "expires_at",
                            closed != 0 ? closed + info->expire : 0);
        bloom_json_put_end(json);
    }
}


/* Writes a part, and leaves its object open. */
static void
ngx_http_bloom_json_part(bloom_json_writer_t *json,
    const bloom_geometry_t *part, uint64_t capacity, uint64_t bits_set)
{
    bloom_json_put_object(json, NULL);
    bloom_json_put_count(json, "capacity", capacity);
    bloom_json_put_count(json, "estimated_items",
                         bloom_geometry_items(part, bits_set));
    bloom_json_put_count(json, "bits", part->bits);
    bloom_json_put_count(json, "k", part->k);
    bloom_json_put_count(json, "lines", part->lines);
    bloom_json_put_rate(json, "fill_ratio",
                        part->layout == BLOOM_LAYOUT_FUSE
                        ? NAN : (double) bits_set / (double) part->bits);
}
