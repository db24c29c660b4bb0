/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header has the types that the files of the HTTP layer share:
 * configurations, rules and a request's context.
 */

#ifndef _NGX_HTTP_BLOOM_H_INCLUDED_
#define _NGX_HTTP_BLOOM_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_bloom_lookup.h"
#include "ngx_bloom_zone.h"
#include "bloom_key.h"


/* Where journals and checkpoints are kept if no bloom_state_path says so. */
#ifndef NGX_BLOOM_STATE_PATH
#define NGX_BLOOM_STATE_PATH  "/var/lib/nginx/bloom"
#endif


extern ngx_module_t  ngx_http_bloom_module;

#pragma GCC visibility push(hidden)


typedef enum {
    NGX_HTTP_BLOOM_PASS = 0,
    NGX_HTTP_BLOOM_REJECT,
    NGX_HTTP_BLOOM_ROUTE
} ngx_http_bloom_action_e;

/*
 * Values of $bloom_status, named in ngx_http_bloom_variables.c.  A rule that
 * does not fire replaces only values that stand before its own here.
 */
typedef enum {
    NGX_HTTP_BLOOM_UNCHECKED = 0,
    NGX_HTTP_BLOOM_PASSED,
    NGX_HTTP_BLOOM_UNAVAILABLE,
    NGX_HTTP_BLOOM_ROUTED,
    NGX_HTTP_BLOOM_INVALID,
    NGX_HTTP_BLOOM_AUDITED,
    NGX_HTTP_BLOOM_REJECTED,
    NGX_HTTP_BLOOM_REJECTED_DRY_RUN,
    NGX_HTTP_BLOOM_ROUTED_DRY_RUN
} ngx_http_bloom_status_e;

#define NGX_HTTP_BLOOM_UNAVAILABLE_PASS    0
#define NGX_HTTP_BLOOM_UNAVAILABLE_REJECT  1


/* A key as the configuration writes it: its value, decoding and zone. */
typedef struct {
    ngx_http_complex_value_t   value;
    ngx_int_t                  index;    /* of the variable that the value is,
                                            alone; or NGX_ERROR */
    bloom_decode_e             decode;
    ngx_bloom_zone_t          *zone;
} ngx_http_bloom_key_t;


/* How a rule's key is checked. */
typedef enum {
    NGX_HTTP_BLOOM_ALONE = 0,
    NGX_HTTP_BLOOM_LIST,                 /* cut into parts */
    NGX_HTTP_BLOOM_PREFETCH              /* taken together with others, see
                                            ngx_http_bloom_prefetch.h */
} ngx_http_bloom_how_e;


typedef struct {
    ngx_http_bloom_action_e    action;
    ngx_uint_t                 fires;    /* on NGX_BLOOM_ABSENT or _PRESENT */
    ngx_http_bloom_key_t       key;
    ngx_http_bloom_how_e       how;
    u_char                     split;    /* the key is a list, cut at this
                                            byte; 0: it is one key */
    ngx_uint_t                 status;   /* of a rejection */
    ngx_http_complex_value_t   to;       /* of a route */
    unsigned                   named:1;  /* "to" is a named location */
    unsigned                   all:1;    /* fires if all parts of a list are
                                            so, not if one is */
    unsigned                   invalid:1;  /* fires on an invalid key */
    unsigned                   empty:1;  /* fires on an empty key */
    unsigned                   plain:1;  /* to evaluate the key's variable has
                                            no effect on others */
    ngx_uint_t                 nprefetch;  /* of a list's first rule: how
                                            many, from it on, are
                                            NGX_HTTP_BLOOM_PREFETCH */

    ngx_str_t                  label;    /* "name=", or FILE:LINE */
    ngx_str_t                  identity; /* by which it is known again */
    ngx_uint_t                 series;   /* of its counters */

    u_char                    *conf_file;
    ngx_uint_t                 conf_line;
} ngx_http_bloom_rule_t;


/* What a rule finds instead of an answer, NGX_BLOOM_ABSENT ..., if its key is
 * empty. */
#define NGX_HTTP_BLOOM_EMPTY  NGX_BLOOM_ANSWERS

/* Counters of a rule: requests by what it found, and these. */
typedef enum {
    NGX_HTTP_BLOOM_COUNT_FIRED = NGX_HTTP_BLOOM_EMPTY + 1,  /* it did what it
                                                               says */
    NGX_HTTP_BLOOM_COUNT_DRY_RUN,                      /* it would have */
    NGX_HTTP_BLOOM_COUNT_AUDITED,                      /* it audited it */
    NGX_HTTP_BLOOM_COUNT_UNAVAILABLE                   /* it rejected an unknown
                                                          key */
} ngx_http_bloom_count_e;


/* A key that is added when a response's header is sent. */
typedef struct {
    ngx_http_bloom_key_t       key;
    ngx_http_complex_value_t  *filter;   /* empty or "0": not; NULL: always */
} ngx_http_bloom_addition_t;


/* bloom_audit: how many requests with absent keys are let through. */
typedef struct {
    ngx_uint_t                 rate;     /* of NGX_HTTP_BLOOM_AUDIT_ALL */
    ngx_flag_t                 learn;    /* wrongly absent keys are added, */
    ngx_uint_t                 interval; /* one in so many microseconds */
    ngx_str_t                  file;     /* where it is configured */
    ngx_uint_t                 line;
} ngx_http_bloom_audit_t;

#define NGX_HTTP_BLOOM_AUDIT_ALL  100000


/* A location with the endpoint. */
typedef struct {
    ngx_str_t                  prefix;   /* of its requests, without "/" at
                                            the end */
    ngx_flag_t                 write;
    ngx_flag_t                 image;    /* it sends images */
} ngx_http_bloom_endpoint_t;


typedef struct {
    ngx_array_t                zones;    /* of ngx_bloom_zone_t * */
    ngx_array_t                rules;    /* of ngx_array_t *, lists of rules,
                                            each once */
    ngx_array_t                routes;   /* of ngx_http_bloom_routes_t */
    ngx_str_t                  state_path;             /* data NULL: default;
                                                          len 0: off */
    ngx_uint_t                 writes;   /* an endpoint takes writes */
    ngx_uint_t                 asks;     /* what the backend answers matters:
                                            feedback or audit somewhere */
} ngx_http_bloom_main_conf_t;


/* Rules that apply somewhere in a server: its named locations must exist. */
typedef struct {
    ngx_array_t               *rules;
    ngx_http_core_srv_conf_t  *server;
} ngx_http_bloom_routes_t;


typedef struct {
    ngx_array_t               *rules;    /* of ngx_http_bloom_rule_t;
                                            NULL: none; inherited whole */
    ngx_array_t               *adds;     /* of ngx_http_bloom_addition_t;
                                            NULL: none; inherited whole */
    ngx_http_bloom_endpoint_t *endpoint; /* NULL: none */
    ngx_array_t               *feedback; /* of ngx_uint_t: statuses that say
                                            that there is no such key; NULL:
                                            nothing is made of them */
    ngx_http_bloom_audit_t    *audit;    /* NULL: none */
    ngx_flag_t                 dry_run;
    ngx_uint_t                 unavailable;
    ngx_uint_t                 log_level;
} ngx_http_bloom_loc_conf_t;


/* What the variable of a bloom_lookup has answered in a request. */
typedef struct ngx_http_bloom_pin_s  ngx_http_bloom_pin_t;

struct ngx_http_bloom_pin_s {
    ngx_http_bloom_key_t      *key;      /* of the directive */
    ngx_str_t                  text;     /* of the key, decoded */
    size_t                     room;     /* for text */
    ngx_uint_t                 answer;
    ngx_http_bloom_pin_t      *next;     /* of another directive */
};


/*
 * What was decided about a request.  It outlives internal redirects, which
 * clear a request's contexts: ngx_http_bloom_ctx_get() finds it among the
 * pool's cleanups, where it is for nothing else.
 */
typedef struct {
    ngx_pool_cleanup_t         mark;

    /* 0 or NULL at first */

    ngx_http_bloom_status_e    status;
    unsigned                   decided:1;  /* nothing is checked any more */
    unsigned                   added:1;  /* what the response was to add */
    ngx_uint_t                 nchecked;
    ngx_uint_t                 suspects; /* rules on "absent" that let it pass,
                                            under bloom_feedback, where others
                                            than with "maybe present" count
                                            twice; over 1: nobody knows whose
                                            key it would be */
    void                      *operation;  /* of a request to the endpoint
                                            that outlasts its handler */
    void                      *audited;  /* see ngx_http_bloom_audit.c; NULL:
                                            the request is not audited */
    ngx_http_bloom_pin_t      *pins;     /* one of each directive */

    /* set with `status`: */

    ngx_str_t                 *zone;
    ngx_str_t                  key;      /* decoded, canonical */

    /* with `suspects`: */

    ngx_bloom_zone_t          *suspect;  /* the zone that has its key, maybe */
    ngx_array_t               *feedback; /* statuses that say it has not */

    /* and with `nchecked`: the lists already checked, as each pass through the
     * phase adds one */

    ngx_array_t               *checked[NGX_HTTP_MAX_URI_CHANGES + 2];
} ngx_http_bloom_ctx_t;


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_H_INCLUDED_ */
