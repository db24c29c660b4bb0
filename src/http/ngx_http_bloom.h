/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares the types that the files of the HTTP layer share:
 * configurations, rules and the context of a request.
 */

#ifndef _NGX_HTTP_BLOOM_H_INCLUDED_
#define _NGX_HTTP_BLOOM_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_bloom_adapt.h"
#include "ngx_bloom_rule.h"
#include "ngx_bloom_rule_decide.h"
#include "ngx_bloom_rule_pin.h"
#include "ngx_bloom_zone.h"


/* The state directory of a configuration without bloom_state_path. */
#ifndef NGX_BLOOM_STATE_PATH
#define NGX_BLOOM_STATE_PATH  "/var/lib/nginx/bloom"
#endif


extern ngx_module_t  ngx_http_bloom_module;

#pragma GCC visibility push(hidden)


/* The key of a directive: its text, its decoding and the zone it is for. */
typedef struct {
    ngx_http_complex_value_t   value;
    ngx_int_t                  index;    /* of the variable, if the value is a
                                            single one; else NGX_ERROR */
    bloom_decode_e             decode;
    ngx_bloom_zone_t          *zone;
} ngx_http_bloom_key_t;


/* Where a route leads: "to=" of a directive. */
typedef struct {
    ngx_http_complex_value_t   to;
    ngx_uint_t                 named;    /* it is a named location */
    ngx_str_t                  directive;
    u_char                    *conf_file;
    ngx_uint_t                 conf_line;
} ngx_http_bloom_target_t;


/* A rule of an http location. */
typedef struct {
    ngx_bloom_rule_t           common;   /* its zone is that of `key` */
    ngx_http_bloom_key_t       key;
    ngx_uint_t                 status;   /* of a rejection */
    ngx_http_bloom_target_t    target;   /* of a route */
    ngx_http_complex_value_t  *filter;   /* the rule is skipped if this is
                                            empty or "0"; NULL: it never is */
    ngx_uint_t                 plain;    /* the key's variables only read the
                                            request: they have nothing from
                                            "set", "map" and the like */
    ngx_array_t               *places;   /* of ngx_http_bloom_place_t: where
                                            the list applies; in its first rule
                                            alone */
} ngx_http_bloom_rule_t;


/* A bloom_add or bloom_remove directive: keys to add or to remove when a
 * response's header is sent. */
typedef struct {
    ngx_http_bloom_key_t       key;
    ngx_http_complex_value_t  *filter;   /* nothing is done if this is empty or
                                            "0"; NULL: it is always done */
    u_char                     split;    /* the byte that separates the keys of
                                            a list; 0: the value is one key */
    ngx_str_t                  header;   /* the response's header that is the
                                            whole value; len 0: the value is
                                            something else */
    unsigned                   sent:1;   /* the header is $sent_http_...; 0: it
                                            is $upstream_http_... */
    unsigned                   lists:1;  /* the value has a response's header,
                                            which may be a list */
    unsigned                   warned:1; /* this worker has warned of a list
                                            that is one key */
    u_char                    *conf_file;
    ngx_uint_t                 conf_line;
} ngx_http_bloom_change_t;


/* A bloom_lookup directive: a variable with a zone's answer. */
typedef struct {
    ngx_http_bloom_key_t       key;
    ngx_str_t                  name;     /* of the variable, with "$" */
    u_char                    *conf_file;
    ngx_uint_t                 conf_line;
} ngx_http_bloom_asker_t;


/* A bloom_audit directive: which requests with absent keys are let through. */
typedef struct {
    ngx_uint_t                 rate;     /* number of requests let through, of
                                            NGX_HTTP_BLOOM_AUDIT_ALL */
    ngx_str_t                  share;    /* the rate as it was given */
    ngx_flag_t                 add;      /* wrongly absent keys are added */
    ngx_uint_t                 interval; /* least time between two such keys,
                                            microseconds */
    ngx_uint_t                 warned;   /* 1: the rate is high for rules that
                                            are enforced, and the log says so */
    ngx_str_t                  file;     /* of the directive */
    ngx_uint_t                 line;     /* of the directive */
} ngx_http_bloom_audit_t;

#define NGX_HTTP_BLOOM_AUDIT_ALL   100000

/* More than this is a warning where rules are enforced: 10%. */
#define NGX_HTTP_BLOOM_AUDIT_MOST  10000


/* A bloom_feedback directive. */
typedef struct {
    ngx_array_t                statuses; /* of ngx_uint_t: by which the backend
                                            says that a key does not exist */
    ngx_flag_t                 except;   /* false positives become
                                            excepted keys */
    ngx_uint_t                 interval; /* least time between two excepted
                                            keys, microseconds */
    ngx_msec_t                 after;    /* how long the backend may lack an
                                            added key */
} ngx_http_bloom_feedback_t;


/* A location with the endpoint. */
typedef struct {
    ngx_str_t                  prefix;   /* of its requests' paths, without "/"
                                            at the end */
    ngx_uint_t                 write;
    ngx_uint_t                 image;    /* it sends images */
    ngx_array_t               *zones;    /* of ngx_bloom_zone_t *: those that
                                            exist there */
    u_char                    *has;      /* by the number of a zone: 1 if the
                                            zone exists there */
    ngx_uint_t                 all;      /* it has no "zone=": all zones exist
                                            there */
} ngx_http_bloom_endpoint_t;


typedef struct {
    ngx_array_t                zones;    /* of ngx_bloom_zone_t * */
    ngx_array_t                rules;    /* of ngx_array_t *: every list of
                                            rules, each one once */
    ngx_array_t                askers;   /* of ngx_http_bloom_asker_t * */
    ngx_str_t                  state_path;             /* data NULL: default;
                                                          len 0: off */
    ngx_array_t                endpoints;  /* of ngx_http_bloom_endpoint_t * */
    ngx_uint_t                 asks;     /* some location has bloom_feedback or
                                            bloom_audit */
    ngx_uint_t                 routes;   /* some request may be routed */
} ngx_http_bloom_main_conf_t;


typedef struct {
    ngx_array_t               *rules;    /* of ngx_http_bloom_rule_t;
                                            NULL: none; inherited whole */
    ngx_uint_t                 alone;    /* "bloom_rules off": no rules are
                                            inherited, and nobody is warned */
    ngx_array_t               *adds;     /* of ngx_http_bloom_change_t;
                                            NULL: none; inherited whole */
    ngx_array_t               *removes;  /* as `adds` */
    ngx_http_bloom_endpoint_t *endpoint; /* NULL: none */
    ngx_http_bloom_feedback_t *feedback; /* NULL: none */
    ngx_http_bloom_audit_t    *audit;    /* NULL: none */
    ngx_bloom_policy_t         policy;
    ngx_http_bloom_target_t   *unknown_to;  /* of a route */
} ngx_http_bloom_loc_conf_t;


/* A place where a list of rules applies: a server, or a location in it.  The
 * server must have the named locations that the rules route to. */
typedef struct {
    ngx_http_core_srv_conf_t  *server;
    ngx_http_core_loc_conf_t  *location; /* of the server itself: no name */
    ngx_http_bloom_loc_conf_t *conf;
} ngx_http_bloom_place_t;


/*
 * The context of a request: what was decided about it.  An internal redirect
 * clears the list of a request's contexts.  This one is also a cleanup of the
 * request's pool, so ngx_http_bloom_ctx_get() still finds it after a redirect.
 */
typedef struct {
    ngx_pool_cleanup_t         mark;

    /* initially 0 or NULL: */

    unsigned                   decided:1;  /* no more rules are checked */
    unsigned                   changed:1;  /* the keys of bloom_add and
                                            bloom_remove are done */
    unsigned                   ambiguous:1;  /* an ambiguous argument, cookie or
                                            header was read */
    ngx_uint_t                 nchecked; /* lists in `checked` */
    ngx_uint_t                 suspects; /* sum over the rules on "absent" that
                                            let the request pass under
                                            bloom_feedback: 1 for an answer
                                            "present", 2 for any other.  If it
                                            is over 1, a false positive cannot
                                            be traced to one rule */
    void                      *operation;  /* of a request to the endpoint
                                            that outlasts its handler */
    void                      *audited;  /* see ngx_http_bloom_audit.c; NULL:
                                            the request is not audited */
    ngx_bloom_rule_pin_t      *pins;     /* one for each bloom_lookup */
    ngx_http_bloom_target_t   *route;    /* see ngx_http_bloom_route.h; NULL:
                                            none is planned */
    void                      *read_by;  /* the directive that has read the last
                                            argument */
    ngx_bloom_decision_t       decision;
    ngx_bloom_rule_decoded_t   decoded;  /* the last key that was decoded */

    /* valid if `route` or `read_by` is set: */

    ngx_uint_t                 route_changes;
    ngx_str_t                  read_from;  /* the request's arguments */
    ngx_str_t                  read;     /* the last argument */

    /* valid if `suspects` is 1: */

    ngx_bloom_zone_t          *suspect;  /* the zone that answered "present" */
    ngx_http_bloom_feedback_t *feedback; /* which statuses prove it wrong */
    ngx_str_t                  suspect_key; /* canonical; data NULL: it is not
                                            to be excepted */
    ngx_bloom_adapt_mark_t     asked;    /* when the zone was asked */

    /* the lists of rules that have been checked; each pass through the phase
     * adds one */

    ngx_array_t               *checked[NGX_HTTP_MAX_URI_CHANGES + 2];
} ngx_http_bloom_ctx_t;


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_H_INCLUDED_ */
