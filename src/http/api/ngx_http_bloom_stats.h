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


/* The condition for a value.  If a zone does not meet it, the sample is left
 * out, or the object is null. */
typedef enum {
    NGX_HTTP_BLOOM_STATS_ALWAYS = 0,     /* nothing */
    NGX_HTTP_BLOOM_STATS_SERVING,        /* an image serves */
    NGX_HTTP_BLOOM_STATS_FILLS,          /* and its bits are set as keys are
                                            added: its layout is not fuse */
    NGX_HTTP_BLOOM_STATS_CREATED,        /* the image says when it was built */
    NGX_HTTP_BLOOM_STATS_AS_OF,          /* the image has an as_of */
    NGX_HTTP_BLOOM_STATS_DAMAGED,        /* added keys may be lost */
    NGX_HTTP_BLOOM_STATS_WRONG,          /* an audit found a wrong absent */
    NGX_HTTP_BLOOM_STATS_MAX_AGE,        /* the zone has "max_age=" */
    NGX_HTTP_BLOOM_STATS_JOURNAL,        /* the zone has a journal */
    NGX_HTTP_BLOOM_STATS_EXPIRES,        /* the zone has "expire=" */
    NGX_HTTP_BLOOM_STATS_RING,           /* and serves */
    NGX_HTTP_BLOOM_STATS_SOURCE,         /* the zone has a source */
    NGX_HTTP_BLOOM_STATS_SEEN,           /* and has had a sign of life */
    NGX_HTTP_BLOOM_STATS_MAX_LAG,        /* and "max_lag=" is not off */
    NGX_HTTP_BLOOM_STATS_LOADED,         /* the helper has loaded an image, or
                                            tried to */
    NGX_HTTP_BLOOM_STATS_NEEDS
} ngx_http_bloom_stats_need_e;


typedef struct {
    const char *const           *names;  /* of all states, and NULL; without
                                            them, there is no state */
    ngx_uint_t                   number; /* of the name */
} ngx_http_bloom_stats_state_t;


typedef struct {
    ngx_bloom_info_t             info;
    ngx_uint_t                   has[NGX_HTTP_BLOOM_STATS_NEEDS];

    /* derived from `info`; a string with data NULL, and an empty text, are null
     * in JSON */

    ngx_str_t                    name;
    ngx_str_t                    file;
    ngx_str_t                    label;
    ngx_str_t                    state;
    u_char                       token[NGX_HTTP_BLOOM_TOKEN_MAX + 1];
    ngx_http_bloom_stats_state_t  condition;

    u_char                       build_id[2 * BLOOM_IMAGE_BUILD_ID_LEN + 1];
    ngx_str_t                    layout;
    ngx_str_t                    hash;
    ngx_str_t                    key_form;
    u_char                       labels[256];          /* of the image */
    ngx_uint_t                   items_estimated;
    uint64_t                     age;                  /* in seconds */
    uint64_t                     max_age;

    ngx_str_t                    source;
    ngx_http_bloom_stats_state_t  source_state;
    char                         position[BLOOM_POSITION_TEXT_MAX];
    u_char                       digest[sizeof("0123456789abcdef")];
    char                         since[BLOOM_POSITION_TEXT_MAX];
    uint64_t                     max_lag;              /* ms */
    uint64_t                     max_body;

    uint64_t                     filter_bytes;
    uint64_t                     estimated_items;
    double                       estimated_fpr;
    double                       fill_ratio;           /* NaN: none */
    uint64_t                     layers;               /* in use */

    u_char                       journal_error[512];
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
