/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares the table of the values that the endpoint reports about
 * a zone, in JSON and as metrics.
 *
 * The table has one line for each value: its place in JSON, its type, its
 * offset in ngx_http_bloom_stats_t, and its metric.  The members of an object,
 * and the metrics, have the order of the table.
 */

#ifndef _NGX_HTTP_BLOOM_STATS_TABLE_H_INCLUDED_
#define _NGX_HTTP_BLOOM_STATS_TABLE_H_INCLUDED_

#include "ngx_http_bloom_stats.h"

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
 *     STRING    string or null      -
 *     TEXT      string or null      1, or 0 if it is empty
 *     STATE     string or null      1 for the state, and 0 for every other
 *                                   one, with the label "state"
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
    NGX_HTTP_BLOOM_STATS_TEXT,
    NGX_HTTP_BLOOM_STATS_STATE,
    NGX_HTTP_BLOOM_STATS_LABELS,
    NGX_HTTP_BLOOM_STATS_PARTS,          /* of the filter: its base and its
                                            layers, or its live slices */
    NGX_HTTP_BLOOM_STATS_END             /* the end of the table */
} ngx_http_bloom_stats_type_e;


/* A line of the table. */
typedef struct {
    const char                  *place;  /* in JSON: the names of its objects
                                            and its own, with dots; NULL: it is
                                            not in JSON */
    ngx_http_bloom_stats_type_e  type;
    size_t                       offset;
    size_t                       size;
    size_t                       needs;  /* the place of a number: if it is 0,
                                            the sample is left out, or the
                                            object is null */
    size_t                       needs_size;  /* 0: it needs nothing */
    const char                  *metric; /* its name without "nginx_bloom_", or
                                            NULL; one that ends in "_total" is
                                            a counter, any other a gauge */
    const char                  *labels; /* of this sample, or NULL */
    const char                  *help;   /* of the metric; NULL except for its
                                            first sample */
} ngx_http_bloom_stats_field_t;


/* The table; its last field has the type NGX_HTTP_BLOOM_STATS_END. */
extern const ngx_http_bloom_stats_field_t  ngx_http_bloom_stats_fields[];

/* Returns 1 if what the field needs is there, and it has a value of type RATE
 * or MS if it is of this type. */
ngx_uint_t ngx_http_bloom_stats_has(ngx_http_bloom_stats_t *stats,
    const ngx_http_bloom_stats_field_t *field);

/* Returns a value of type NUMBER, BOOL, TIME, MS or SECONDS. */
uint64_t ngx_http_bloom_stats_number(ngx_http_bloom_stats_t *stats,
    const ngx_http_bloom_stats_field_t *field);

/* Return a value of type RATE, a pointer to one of type STATE, a value of type
 * STRING, and one of TEXT or LABELS. */
#define ngx_http_bloom_stats_rate(stats, field)                               \
    ((double *) ((u_char *) (stats) + (field)->offset))[0]

#define ngx_http_bloom_stats_state(stats, field)                              \
    ((ngx_http_bloom_stats_state_t *) ((u_char *) (stats) + (field)->offset))

#define ngx_http_bloom_stats_string(stats, field)                             \
    ((const char **) ((u_char *) (stats) + (field)->offset))[0]

#define ngx_http_bloom_stats_text(stats, field)                               \
    ((const char *) (stats) + (field)->offset)


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_STATS_TABLE_H_INCLUDED_ */
