/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The stats are what the endpoint tells of a zone, in JSON and as metrics.
 *
 * One table has all of it: a line is a value's place in JSON, its type, where
 * it is in ngx_http_bloom_stats_t, and its metric.  Members of an object, and
 * metrics, follow one another as they do in the table.
 */

#ifndef _NGX_HTTP_BLOOM_STATS_H_INCLUDED_
#define _NGX_HTTP_BLOOM_STATS_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_info.h"

#pragma GCC visibility push(hidden)


/* How a value is written. */
typedef enum {                           /* in JSON, as a metric: */
    NGX_HTTP_BLOOM_STATS_OBJECT = 0,     /* an object or null, - */
    NGX_HTTP_BLOOM_STATS_NUMBER,         /* a number, the same */
    NGX_HTTP_BLOOM_STATS_BOOL,           /* true or false, 1 or 0 */
    NGX_HTTP_BLOOM_STATS_RATE,           /* a number or null, the number */
    NGX_HTTP_BLOOM_STATS_TIME,           /* a string or null, seconds; the value
                                            is in ms since 1970, 0: none */
    NGX_HTTP_BLOOM_STATS_MS,             /* ms, seconds */
    NGX_HTTP_BLOOM_STATS_STRING,         /* a string or null, 1 or 0 */
    NGX_HTTP_BLOOM_STATS_LABELS,         /* -, further labels and 1 */
    NGX_HTTP_BLOOM_STATS_END
} ngx_http_bloom_stats_type_e;


/* What a zone may lack.  A sample that needs it is left out then, and an object
 * is null. */
typedef enum {
    NGX_HTTP_BLOOM_STATS_ALWAYS = 0,
    NGX_HTTP_BLOOM_STATS_SERVING,        /* an image serves, */
    NGX_HTTP_BLOOM_STATS_CREATED,        /* says when it was built, */
    NGX_HTTP_BLOOM_STATS_AS_OF,          /* up to when it is complete */
    NGX_HTTP_BLOOM_STATS_DAMAGED,        /* added keys may be lost */
    NGX_HTTP_BLOOM_STATS_WRONG,          /* an audit found a wrong absent */
    NGX_HTTP_BLOOM_STATS_MAX_AGE,
    NGX_HTTP_BLOOM_STATS_JOURNAL,
    NGX_HTTP_BLOOM_STATS_LOADED,         /* there was a load */
    NGX_HTTP_BLOOM_STATS_NEEDS
} ngx_http_bloom_stats_need_e;


#define NGX_HTTP_BLOOM_STATS_STATES  5

typedef struct {
    ngx_bloom_info_t             info;
    ngx_uint_t                   has[NGX_HTTP_BLOOM_STATS_NEEDS];

    /* what follows from that; a string without data is null */

    ngx_str_t                    name;
    ngx_str_t                    file;
    ngx_str_t                    state;
    ngx_uint_t                   in_state[NGX_HTTP_BLOOM_STATS_STATES];

    ngx_str_t                    build_id;
    ngx_str_t                    layout;
    ngx_str_t                    hash;
    ngx_str_t                    key_form;
    ngx_str_t                    labels;               /* of the image */
    ngx_uint_t                   items_estimated;
    uint64_t                     age;                  /* in seconds */
    uint64_t                     max_age;

    uint64_t                     filter_bytes;
    uint64_t                     estimated_items;
    double                       estimated_fpr;
    double                       fill_ratio;

    ngx_str_t                    hugepages_wanted;
    ngx_str_t                    hugepages_kind;
    ngx_str_t                    journal_error;
    ngx_str_t                    load_result;
    ngx_str_t                    load_message;
    ngx_uint_t                   load_ok;

    uint64_t                     checks;
    double                       measured_fpr;         /* NaN: none */

    u_char                       build_buf[2 * BLOOM_IMAGE_BUILD_ID_LEN];
    u_char                       labels_buf[256];
    u_char                       error_buf[512];
} ngx_http_bloom_stats_t;


typedef struct {
    const char                  *place;  /* behind the objects that it is in,
                                            with dots; NULL: not in JSON */
    ngx_http_bloom_stats_type_e  type;
    size_t                       offset;
    size_t                       size;
    ngx_http_bloom_stats_need_e  needs;
    const char                  *metric; /* behind "nginx_bloom_", and a counter
                                            if it ends in "_total", or NULL */
    const char                  *labels; /* of this sample, or NULL */
    const char                  *help;   /* of the metric's first sample */
} ngx_http_bloom_stats_field_t;


/* The table, up to a field of type NGX_HTTP_BLOOM_STATS_END. */
extern const ngx_http_bloom_stats_field_t  ngx_http_bloom_stats_fields[];

/* Fills in all that there is to know of a zone. */
void ngx_http_bloom_stats_get(ngx_http_bloom_stats_t *stats,
    ngx_bloom_zone_t *zone, ngx_bloom_info_t *info);

/* Returns a value that is a number of whatever size. */
uint64_t ngx_http_bloom_stats_number(ngx_http_bloom_stats_t *stats,
    const ngx_http_bloom_stats_field_t *field);

/* A value of another type. */
#define ngx_http_bloom_stats_rate(stats, field)                               \
    ((double *) ((u_char *) (stats) + (field)->offset))[0]

#define ngx_http_bloom_stats_string(stats, field)                             \
    ((ngx_str_t *) ((u_char *) (stats) + (field)->offset))


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_STATS_H_INCLUDED_ */
