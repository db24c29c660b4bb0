/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares the stats of a zone: all values that the endpoint
 * reports about it, in JSON and as metrics.
 */

#ifndef _NGX_HTTP_BLOOM_STATS_H_INCLUDED_
#define _NGX_HTTP_BLOOM_STATS_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_info.h"
#include "ngx_http_bloom_token.h"

#pragma GCC visibility push(hidden)


typedef struct {
    const char *const           *names;  /* of all states, and NULL; without
                                            them, there is no state */
    ngx_uint_t                   number; /* of the name */
} ngx_http_bloom_stats_state_t;


typedef struct {
    ngx_bloom_info_t             info;

    ngx_bloom_zone_t            *zone;

    /* derived from both; a string that is NULL, and an empty text, are null in
     * JSON */

    const char                  *name;
    const char                  *file;
    const char                  *label;
    u_char                       token[NGX_HTTP_BLOOM_TOKEN_MAX + 1];
    ngx_http_bloom_stats_state_t  condition;

    u_char                       build_id[2 * BLOOM_IMAGE_BUILD_ID_LEN + 1];
    const char                  *layout;
    const char                  *hash;
    const char                  *key_form;
    u_char                       labels[256];          /* of the image */
    ngx_uint_t                   items_estimated;
    uint64_t                     age;                  /* in seconds */
    uint64_t                     max_age;

    const char                  *source;
    ngx_http_bloom_stats_state_t  source_state;
    char                         position[BLOOM_POSITION_TEXT_MAX];
    u_char                       digest[sizeof("0123456789abcdef")];
    char                         since[BLOOM_POSITION_TEXT_MAX];
    uint64_t                     max_lag;              /* ms; UINT64_MAX: off */
    uint64_t                     max_body;

    uint64_t                     filter_bytes;
    uint64_t                     estimated_items;
    double                       estimated_fpr;
    double                       fill_ratio;           /* NaN: none */
    uint64_t                     layers;               /* in use */
    ngx_uint_t                   ring;                 /* of slices serves */

    u_char                       journal_error[512];
    ngx_uint_t                   journal_grows;
    ngx_http_bloom_stats_state_t  load_result;
    ngx_uint_t                   load_ok;

    uint64_t                     checks;
    uint64_t                     not_excepted;          /* for any reason */
    double                       measured_fpr;         /* NaN: none */
    double                       measured_fpr_without_excepted;  /* NaN: none */
} ngx_http_bloom_stats_t;


/* Fills in the stats of a zone. */
void ngx_http_bloom_stats_get(ngx_http_bloom_stats_t *stats,
    ngx_bloom_zone_t *zone, ngx_bloom_info_t *info);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_STATS_H_INCLUDED_ */
