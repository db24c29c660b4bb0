/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file writes the state of a zone in JSON, from the table of stats.
 */

#include "ngx_http_bloom_json.h"
#include "ngx_http_bloom_stats.h"

#include "bloom_growth.h"
#include "ngx_bloom_ring.h"

#include <math.h>


static void ngx_http_bloom_json_object(ngx_http_bloom_text_t *text,
    ngx_http_bloom_stats_t *stats, const char *object);
static void ngx_http_bloom_json_parts(ngx_http_bloom_text_t *text,
    ngx_bloom_info_t *info);
static void ngx_http_bloom_json_slices(ngx_http_bloom_text_t *text,
    ngx_bloom_info_t *info);
static void ngx_http_bloom_json_part(ngx_http_bloom_text_t *text,
    const bloom_geometry_t *part, uint64_t capacity, uint64_t bits_set);
static void ngx_http_bloom_json_value(ngx_http_bloom_text_t *text,
    ngx_http_bloom_stats_t *stats, const ngx_http_bloom_stats_field_t *field);


void
ngx_http_bloom_json_zone(ngx_http_bloom_text_t *text, ngx_bloom_zone_t *zone,
    ngx_bloom_info_t *info)
{
    ngx_http_bloom_stats_t  stats;

    ngx_http_bloom_stats_get(&stats, zone, info);

    ngx_http_bloom_json_object(text, &stats, "");
}


/* Writes an object with all fields whose place is directly in it; "" is the
 * outermost object. */
static void
ngx_http_bloom_json_object(ngx_http_bloom_text_t *text,
    ngx_http_bloom_stats_t *stats, const char *object)
{
    size_t                               len;
    const char                          *name, *before;
    const ngx_http_bloom_stats_field_t  *field;

    len = ngx_strlen(object);
    before = "{";

    for (field = ngx_http_bloom_stats_fields;
         field->type != NGX_HTTP_BLOOM_STATS_END;
         field++)
    {
        name = field->place;

        if (name == NULL) {
            continue;
        }

        if (len != 0) {
            if (ngx_strncmp(name, object, len) != 0 || name[len] != '.') {
                continue;
            }

            name += len + 1;
        }

        if (ngx_strchr(name, '.') != NULL) {
            continue;
        }

        ngx_http_bloom_text_printf(text, "%s\"%s\":", before, name);
        ngx_http_bloom_json_value(text, stats, field);
        before = ",";
    }

    ngx_http_bloom_text_printf(text, "}");
}


static void
ngx_http_bloom_json_value(ngx_http_bloom_text_t *text,
    ngx_http_bloom_stats_t *stats, const ngx_http_bloom_stats_field_t *field)
{
    double      rate;
    uint64_t    n;
    ngx_str_t  *string;

    switch (field->type) {

    case NGX_HTTP_BLOOM_STATS_OBJECT:

        if (stats->has[field->needs]) {
            ngx_http_bloom_json_object(text, stats, field->place);
            return;
        }

        break;

    case NGX_HTTP_BLOOM_STATS_RATE:

        rate = ngx_http_bloom_stats_rate(stats, field);

        if (!isnan(rate)) {
            ngx_http_bloom_text_rate(text, rate);
            return;
        }

        break;

    case NGX_HTTP_BLOOM_STATS_TIME:

        ngx_http_bloom_json_time(text,
                                 ngx_http_bloom_stats_number(stats, field));
        return;

    case NGX_HTTP_BLOOM_STATS_STRING:

        string = ngx_http_bloom_stats_string(stats, field);

        if (string->data != NULL) {
            ngx_http_bloom_text_quote(text, string->data, string->len);
            return;
        }

        break;

    case NGX_HTTP_BLOOM_STATS_BOOL:

        n = ngx_http_bloom_stats_number(stats, field);

        ngx_http_bloom_text_printf(text, n ? "true" : "false");
        return;

    case NGX_HTTP_BLOOM_STATS_SECONDS:

        n = ngx_http_bloom_stats_number(stats, field);

        ngx_http_bloom_text_printf(text, n % 1000 == 0 ? "%uL" : "%uL.%03uL",
                                   n / 1000, n % 1000);
        return;

    case NGX_HTTP_BLOOM_STATS_PARTS:

        ngx_http_bloom_text_printf(text, "[");

        if (stats->info.expire != 0) {
            ngx_http_bloom_json_slices(text, &stats->info);

        } else {
            ngx_http_bloom_json_parts(text, &stats->info);
        }

        ngx_http_bloom_text_printf(text, "]");
        return;

    case NGX_HTTP_BLOOM_STATS_MS:

        if (ngx_http_bloom_stats_number(stats, field) == UINT64_MAX) {
            break;
        }

        /* fall through */

    default: /* NGX_HTTP_BLOOM_STATS_NUMBER */

        n = ngx_http_bloom_stats_number(stats, field);

        ngx_http_bloom_text_printf(text, "%uL", n);
        return;
    }

    ngx_http_bloom_text_printf(text, "null");
}


/* Writes the parts of the filter that serves. */
static void
ngx_http_bloom_json_parts(ngx_http_bloom_text_t *text, ngx_bloom_info_t *info)
{
    uint32_t          i;
    bloom_geometry_t  part;

    for (i = 0; i <= info->image.geometry.layers; i++) {
        part = bloom_geometry_part(&info->image.geometry, i);

        /* the links of an imported filter are one part here */

        if (info->image.geometry.layers == 0) {
            part = info->image.geometry;
        }

        ngx_http_bloom_text_printf(text, i == 0 ? "" : ",");
        ngx_http_bloom_json_part(text, &part,
                                 bloom_growth_room(&info->image.geometry,
                                                   info->image.capacity, i),
                                 info->part_bits_set[i]);
        ngx_http_bloom_text_printf(text, "}");
    }
}


/* Writes the live slices, the oldest first. */
static void
ngx_http_bloom_json_slices(ngx_http_bloom_text_t *text, ngx_bloom_info_t *info)
{
    uint32_t           slice[BLOOM_PARTS_MAX];
    uint64_t           closed;
    ngx_uint_t         i, n, open;
    bloom_geometry_t   part;

    part = bloom_geometry_part(&info->image.geometry, 0);
    n = ngx_bloom_info_slices(info, slice);

    for (i = 0; i < n; i++) {
        open = (ngx_bloom_ring_open(info->ring.turn) == slice[i]);
        closed = open ? 0 : info->ring.closed[slice[i]];

        ngx_http_bloom_text_printf(text, i == 0 ? "" : ",");
        ngx_http_bloom_json_part(text, &part, info->slice_capacity,
                                 info->part_bits_set[slice[i]]);
        ngx_http_bloom_text_printf(text, ",\"open\":%s,\"opened_at\":",
                                   open ? "true" : "false");
        ngx_http_bloom_json_time(text, info->ring.opened[slice[i]]);
        ngx_http_bloom_text_printf(text, ",\"closed_at\":");
        ngx_http_bloom_json_time(text, closed);
        ngx_http_bloom_text_printf(text, ",\"expires_at\":");
        ngx_http_bloom_json_time(text,
                                 closed != 0 ? closed + info->expire : 0);
        ngx_http_bloom_text_printf(text, "}");
    }
}


/* Writes a part without the brace at its end. */
static void
ngx_http_bloom_json_part(ngx_http_bloom_text_t *text,
    const bloom_geometry_t *part, uint64_t capacity, uint64_t bits_set)
{
    ngx_http_bloom_text_printf(text, "{\"capacity\":%uL,"
                               "\"estimated_items\":%uL,\"bits\":%uL,"
                               "\"k\":%uD,\"lines\":%uD,"
                               "\"fill_ratio\":",
                               capacity, bloom_geometry_items(part, bits_set),
                               part->bits, part->k, part->lines);

    if (part->layout == BLOOM_LAYOUT_FUSE) {
        ngx_http_bloom_text_printf(text, "null");
        return;
    }

    ngx_http_bloom_text_rate(text, (double) bits_set / (double) part->bits);
}


void
ngx_http_bloom_json_time(ngx_http_bloom_text_t *text, uint64_t ms)
{
    ngx_tm_t  tm;

    if (ms == 0) {
        ngx_http_bloom_text_printf(text, "null");
        return;
    }

    ngx_gmtime((time_t) (ms / 1000), &tm);

    ngx_http_bloom_text_printf(text,
                               "\"%4d-%02d-%02dT%02d:%02d:%02d.%03uLZ\"",
                               tm.ngx_tm_year, tm.ngx_tm_mon, tm.ngx_tm_mday,
                               tm.ngx_tm_hour, tm.ngx_tm_min, tm.ngx_tm_sec,
                               ms % 1000);
}
