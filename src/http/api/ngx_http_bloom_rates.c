/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file returns the estimated false-positive rate by the number of keys,
 * from 0 to 1.5 times the filter's capacity, or 1.5 times the keys that the
 * filter has if these are more.  If keys expire, these are the rates with keys
 * that fill one slice after the other.
 */

#include "ngx_http_bloom_rates.h"
#include "ngx_bloom_info.h"
#include "ngx_bloom_layers.h"
#include "ngx_http_bloom_response.h"

#include <math.h>


#define NGX_HTTP_BLOOM_RATES_POINTS  60


static double ngx_http_bloom_rates_at(ngx_bloom_info_t *info, uint64_t items);


ngx_int_t
ngx_http_bloom_rates_get(ngx_http_request_t *r, ngx_bloom_zone_t *zone)
{
    uint64_t                most, items;
    ngx_uint_t              i;
    ngx_bloom_info_t        info;
    ngx_http_bloom_text_t   text;

    ngx_bloom_info_get(zone, &info);

    ngx_http_bloom_text_init(&text, r->pool);

    bloom_json_put_object(&text.json, NULL);
    bloom_json_put_array(&text.json, "rates");

    if (info.generation != 0) {
        most = ngx_bloom_layers_items(&info.image, info.part_bits_set);
        most = ngx_max(most, info.max_items);
        most += most / 2;

        for (i = 0; i <= NGX_HTTP_BLOOM_RATES_POINTS; i++) {
            items = (uint64_t) ((double) most * i
                                / NGX_HTTP_BLOOM_RATES_POINTS);

            bloom_json_put_array(&text.json, NULL);
            bloom_json_put_count(&text.json, NULL, items);
            bloom_json_put_rate(&text.json, NULL,
                                ngx_http_bloom_rates_at(&info, items));
            bloom_json_put_end(&text.json);
        }
    }

    bloom_json_put_end(&text.json);
    bloom_json_put_end(&text.json);

    return ngx_http_bloom_response_json(r, NGX_HTTP_OK, &text);
}


static double
ngx_http_bloom_rates_at(ngx_bloom_info_t *info, uint64_t items)
{
    uint64_t          full, most;
    bloom_geometry_t  slice;

    if (info->expire == 0 || info->slice_capacity == 0) {
        return bloom_image_fpr(&info->planned, items);
    }

    /* the slices that may be closed because they are full, and the open one */

    most = info->image.geometry.slices;
    most -= ngx_min(most, info->slices + 1);
    full = ngx_min(items / info->slice_capacity, most);
    slice = bloom_geometry_part(&info->image.geometry, 0);

    return 1 - pow(1 - bloom_geometry_fpr(&slice, info->slice_capacity),
                   (double) full)
               * (1 - bloom_geometry_fpr(&slice, items
                                                 - full
                                                   * info->slice_capacity));
}
