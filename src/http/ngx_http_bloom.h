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
#include "ngx_bloom_lookup.h"
#include "ngx_bloom_zone.h"
#include "bloom_key.h"


/* The state directory of a configuration without bloom_state_path. */
#ifndef NGX_BLOOM_STATE_PATH
#define NGX_BLOOM_STATE_PATH  "/var/lib/nginx/bloom"
#endif


extern ngx_module_t  ngx_http_bloom_module;

#pragma GCC visibility push(hidden)


/* What a rule does when it fires. */
typedef enum {
    NGX_HTTP_BLOOM_PASS = 0,
    NGX_HTTP_BLOOM_REJECT,
    NGX_HTTP_BLOOM_ROUTE
} ngx_http_bloom_action_e;

/*
 * Values of $bloom_status; ngx_http_bloom_variables.c has their names.  A rule
 * that does not fire may replace a value only by one that stands later here.
 * What a rule on trial would have done replaces neither ROUTED nor what stands
 * later.
 */
typedef enum {
    NGX_HTTP_BLOOM_UNCHECKED = 0,
    NGX_HTTP_BLOOM_PASSED,
    NGX_HTTP_BLOOM_UNKNOWN,
    NGX_HTTP_BLOOM_ROUTED,
    NGX_HTTP_BLOOM_REJECTED_DRY_RUN,
    NGX_HTTP_BLOOM_ROUTED_DRY_RUN,
    NGX_HTTP_BLOOM_INVALID,
    NGX_HTTP_BLOOM_AUDITED,
    NGX_HTTP_BLOOM_REJECTED
} ngx_http_bloom_status_e;

/* What happens to a request if an answer is unknown. */
#define NGX_HTTP_BLOOM_UNKNOWN_PASS    0
#define NGX_HTTP_BLOOM_UNKNOWN_REJECT  1
#define NGX_HTTP_BLOOM_UNKNOWN_ROUTE   2


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


/* A rule: one bloom_pass, bloom_reject or bloom_route directive. */
typedef struct {
    ngx_http_bloom_action_e    action;
    ngx_uint_t                 fires;    /* on NGX_BLOOM_ABSENT or _PRESENT */
    ngx_http_bloom_key_t       key;
    ngx_uint_t                 lookup;   /* NGX_BLOOM_LOOKUP_... */
    u_char                     split;    /* the byte that separates the parts
                                            of the key; 0: it has no parts */
    ngx_uint_t                 status;   /* of a rejection */
    ngx_http_bloom_target_t    target;   /* of a route */
    ngx_http_complex_value_t  *filter;   /* the rule is skipped if this is
                                            empty or "0"; NULL: it never is */
    unsigned                   all:1;    /* the condition must hold for all
                                            parts; 0: for one of them */
    unsigned                   invalid:1;  /* fires on an invalid key */
    unsigned                   empty:1;  /* fires on an empty key */
    unsigned                   dry_run:1;  /* on trial: decides and counts, and
                                            the request goes on */
    unsigned                   plain:1;  /* the key's variables only read the
                                            request: evaluating them has no
                                            side effect, and they have nothing
                                            from "set" or "map" */

    ngx_array_t               *places;   /* of ngx_http_bloom_place_t: where
                                            the list applies; in its first rule
                                            alone */

    ngx_str_t                  label;    /* "name=", or FILE:LINE */
    ngx_str_t                  identity; /* finds its counters after a reload */
    ngx_uint_t                 series;   /* of its counters */

    u_char                    *conf_file;
    ngx_uint_t                 conf_line;
} ngx_http_bloom_rule_t;


/* Stands for the answer (NGX_BLOOM_ABSENT ...) of a rule whose key is empty:
 * its zone is not asked. */
#define NGX_HTTP_BLOOM_EMPTY  NGX_BLOOM_ANSWERS

/*
 * Counters of a rule.  The counters with lower numbers count the rule's
 * requests by answer: NGX_BLOOM_ABSENT ... and NGX_HTTP_BLOOM_EMPTY.
 */
typedef enum {
    NGX_HTTP_BLOOM_COUNT_FIRED = NGX_HTTP_BLOOM_EMPTY + 1,
    NGX_HTTP_BLOOM_COUNT_DRY_RUN,        /* the rule would have fired */
    NGX_HTTP_BLOOM_COUNT_AUDITED,        /* it let the request through, see
                                            bloom_audit */
    NGX_HTTP_BLOOM_COUNT_UNKNOWN     /* it rejected or routed a request
                                            with an unknown key */
} ngx_http_bloom_count_e;


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
    ngx_uint_t                 warned;   /* 1: a zone has no room for excepted
                                            keys, and the log says so */
    ngx_str_t                  file;     /* of the directive */
    ngx_uint_t                 line;     /* of the directive */
} ngx_http_bloom_feedback_t;


/* A location with the endpoint. */
typedef struct {
    ngx_str_t                  prefix;   /* of its requests' paths, without "/"
                                            at the end */
    ngx_flag_t                 write;
    ngx_flag_t                 image;    /* it sends images */
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
    ngx_flag_t                 dry_run;
    ngx_uint_t                 unknown;
    ngx_http_bloom_target_t   *unknown_to;  /* of a route */
    ngx_uint_t                 log_level;
} ngx_http_bloom_loc_conf_t;


/* A place where a list of rules applies: a server, or a location in it.  The
 * server must have the named locations that the rules route to. */
typedef struct {
    ngx_http_core_srv_conf_t  *server;
    ngx_http_core_loc_conf_t  *location; /* of the server itself: no name */
    ngx_http_bloom_loc_conf_t *conf;
} ngx_http_bloom_place_t;


/* The answer that the variable of a bloom_lookup has given in a request. */
typedef struct ngx_http_bloom_pin_s  ngx_http_bloom_pin_t;

struct ngx_http_bloom_pin_s {
    ngx_http_bloom_key_t      *key;      /* of the directive */
    ngx_str_t                  text;     /* of the key, decoded */
    size_t                     room;     /* for text, in bytes */
    ngx_uint_t                 answer;
    ngx_http_bloom_pin_t      *next;     /* belongs to another directive */
};


/* What was made of a text of the request: several rules often ask about it. */
typedef struct {
    ngx_str_t                  from;
    ngx_str_t                  text;
} ngx_http_bloom_made_t;


/*
 * The context of a request: what was decided about it.  An internal redirect
 * clears the list of a request's contexts.  This one is also a cleanup of the
 * request's pool, so ngx_http_bloom_ctx_get() still finds it after a redirect.
 */
typedef struct {
    ngx_pool_cleanup_t         mark;

    /* initially 0 or NULL: */

    ngx_http_bloom_status_e    status;
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
    ngx_http_bloom_pin_t      *pins;     /* one for each bloom_lookup */
    ngx_http_bloom_target_t   *route;    /* see ngx_http_bloom_route.h; NULL:
                                            none is planned */
    void                      *read_by;  /* the directive that has read the last
                                            argument */
    bloom_decode_e             decoded_as;  /* how the last key was decoded */

    /* valid if `route`, `read_by` or `decoded_as` is set: */

    ngx_uint_t                 route_changes;
    ngx_http_bloom_made_t      read;     /* of the request's arguments */
    ngx_http_bloom_made_t      decoded;

    /* valid if `status` is set: */

    ngx_bloom_zone_t          *zone;
    ngx_str_t                  key;      /* decoded, canonical */
    ngx_str_t                  second;   /* the key of a URL's second reading, if
                                            it has one and a rule has fired */
    ngx_str_t                  match;    /* of a rule that fired on "present";
                                            empty: of no such rule */

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
