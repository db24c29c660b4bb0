/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares the stats of a zone: all values that the endpoint
 * reports about it, in JSON and as metrics.
 *
 * A table has one line for each value: its place in JSON, its type, its offset
 * in ngx_http_bloom_stats_t, and its metric.  The members of an object, and the
 * metrics, have the order of the table.
 */

#ifndef _NGX_HTTP_BLOOM_STATS_H_INCLUDED_
#define _NGX_HTTP_BLOOM_STATS_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_info.h"
#include "ngx_http_bloom_token.h"

#pragma GCC visibility push(hidden)


/*
 * The type of a value, and how it is written:
 *
 *               in JSON             as a metric
 *     OBJECT    object or null      -
 *     NUMBER    number              number
 *     BOOL      true or false       1 or 0
 *     RATE      number or null      number
 *     TIME      string or null      seconds; the value is in ms since 1970,
 *                                   0: no time
 *     MS        number of ms,       seconds
 *               or null if it is
 *               UINT64_MAX
 *     SECONDS   number              seconds; the value is in ms
 *     STRING    string or null      1, or 0 if it is null
 *     LABELS    -                   1, with these further labels
 *     PARTS     array of objects    -
 */
typedef enum {
    NGX_HTTP_BLOOM_STATS_OBJECT = 0,
    NGX_HTTP_BLOOM_STATS_NUMBER,
    NGX_HTTP_BLOOM_STATS_BOOL,
    NGX_HTTP_BLOOM_STATS_RATE,
    NGX_HTTP_BLOOM_STATS_TIME,
    NGX_HTTP_BLOOM_STATS_MS,
    NGX_HTTP_BLOOM_STATS_SECONDS,
    NGX_HTTP_BLOOM_STATS_STRING,
    NGX_HTTP_BLOOM_STATS_LABELS,
    NGX_HTTP_BLOOM_STATS_PARTS,          /* of the filter: its base and its
                                            layers, or its live slices */
    NGX_HTTP_BLOOM_STATS_END             /* the end of the table */
} ngx_http_bloom_stats_type_e;


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


#define NGX_HTTP_BLOOM_STATS_STATES  6
#define NGX_HTTP_BLOOM_STATS_SOURCES  4

typedef struct {
    ngx_bloom_info_t             info;
    ngx_uint_t                   has[NGX_HTTP_BLOOM_STATS_NEEDS];

    /* derived from `info`; a string with data NULL is null in JSON */

    ngx_str_t                    name;
    ngx_str_t                    file;
    ngx_str_t                    label;
    ngx_str_t                    state;
    ngx_str_t                    token;
    ngx_uint_t                   in_state[NGX_HTTP_BLOOM_STATS_STATES];

    ngx_str_t                    build_id;
    ngx_str_t                    layout;
    ngx_str_t                    hash;
    ngx_str_t                    key_form;
    ngx_str_t                    labels;               /* of the image */
    ngx_uint_t                   items_estimated;
    uint64_t                     age;                  /* in seconds */
    uint64_t                     max_age;

    ngx_str_t                    source;
    ngx_str_t                    source_state;
    ngx_str_t                    position;             /* in the source */
    ngx_uint_t                   in_source_state[NGX_HTTP_BLOOM_STATS_SOURCES];
    uint64_t                     max_lag;              /* ms */
    uint64_t                     max_body;

    uint64_t                     filter_bytes;
    uint64_t                     estimated_items;
    double                       estimated_fpr;
    double                       fill_ratio;           /* NaN: none */
    uint64_t                     layers;               /* in use */

    ngx_str_t                    journal_error;
    ngx_str_t                    load_result;
    ngx_str_t                    load_message;
    ngx_uint_t                   load_ok;

    uint64_t                     checks;
    uint64_t                     not_excepted;          /* for any reason */
    double                       measured_fpr;         /* NaN: none */
    double                       measured_fpr_without_excepted;  /* NaN: none */

    char                         position_buf[BLOOM_POSITION_TEXT_MAX];
    ngx_str_t                    digest;
    u_char                       token_buf[NGX_HTTP_BLOOM_TOKEN_MAX];
    char                         digest_buf[sizeof("0123456789abcdef")];
    ngx_str_t                    since;
    char                         since_buf[BLOOM_POSITION_TEXT_MAX];
    u_char                       build_buf[2 * BLOOM_IMAGE_BUILD_ID_LEN];
    u_char                       labels_buf[256];
    u_char                       error_buf[512];
} ngx_http_bloom_stats_t;


/* A line of the table. */
typedef struct {
    const char                  *place;  /* in JSON: the names of its objects
                                            and its own, with dots; NULL: it is
                                            not in JSON */
    ngx_http_bloom_stats_type_e  type;
    size_t                       offset;
    size_t                       size;
    ngx_http_bloom_stats_need_e  needs;
    const char                  *metric; /* its name without "nginx_bloom_", or
                                            NULL; one that ends in "_total" is
                                            a counter, any other a gauge */
    const char                  *labels; /* of this sample, or NULL */
    const char                  *help;   /* of the metric; NULL except for its
                                            first sample */
} ngx_http_bloom_stats_field_t;


/* The table; its last field has the type NGX_HTTP_BLOOM_STATS_END. */
extern const ngx_http_bloom_stats_field_t  ngx_http_bloom_stats_fields[];

/* Fills in the stats of a zone. */
void ngx_http_bloom_stats_get(ngx_http_bloom_stats_t *stats,
    ngx_bloom_zone_t *zone, ngx_bloom_info_t *info);

/* Returns a value of type NUMBER, BOOL, TIME, MS or SECONDS. */
uint64_t ngx_http_bloom_stats_number(ngx_http_bloom_stats_t *stats,
    const ngx_http_bloom_stats_field_t *field);

/* Return a value of type RATE, and a pointer to one of type STRING or
 * LABELS. */
#define ngx_http_bloom_stats_rate(stats, field)                               \
    ((double *) ((u_char *) (stats) + (field)->offset))[0]

#define ngx_http_bloom_stats_string(stats, field)                             \
    ((ngx_str_t *) ((u_char *) (stats) + (field)->offset))


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_STATS_H_INCLUDED_ */
