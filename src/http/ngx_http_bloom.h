
/*
 * The HTTP layer's own header: configurations, rules, a request's decision.
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
extern ngx_module_t  ngx_http_bloom_filter_module;

#pragma GCC visibility push(hidden)


typedef enum {
    NGX_HTTP_BLOOM_PASS = 0,
    NGX_HTTP_BLOOM_REJECT,
    NGX_HTTP_BLOOM_ROUTE
} ngx_http_bloom_action_e;

/* Values of $bloom_status, named in ngx_http_bloom_variables.c. */
typedef enum {
    NGX_HTTP_BLOOM_UNCHECKED = 0,
    NGX_HTTP_BLOOM_PASSED,
    NGX_HTTP_BLOOM_REJECTED,
    NGX_HTTP_BLOOM_ROUTED,
    NGX_HTTP_BLOOM_REJECTED_DRY_RUN,
    NGX_HTTP_BLOOM_ROUTED_DRY_RUN,
    NGX_HTTP_BLOOM_UNAVAILABLE,
    NGX_HTTP_BLOOM_AUDITED
} ngx_http_bloom_status_e;

#define NGX_HTTP_BLOOM_UNAVAILABLE_PASS    0
#define NGX_HTTP_BLOOM_UNAVAILABLE_REJECT  1


/* A key as the configuration writes it: whence, how decoded, in which zone. */
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
    NGX_HTTP_BLOOM_AHEAD                 /* taken together with others, see
                                            ngx_http_bloom_prefetch.c */
} ngx_http_bloom_how_e;

#define NGX_HTTP_BLOOM_AHEAD_MAX  8


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
    unsigned                   plain:1;  /* to evaluate the key's variable has
                                            no effect on others */
    ngx_uint_t                 nahead;   /* of a list's first rule: how many,
                                            from it on, are NGX_HTTP_BLOOM_AHEAD
                                            */

    ngx_str_t                  label;    /* "name=", or FILE:LINE */
    ngx_str_t                  identity; /* by which it is known again */
    ngx_uint_t                 series;   /* of its counters */

    u_char                    *conf_file;
    ngx_uint_t                 conf_line;
} ngx_http_bloom_rule_t;


/* Counters of a rule: requests, by the answer first, as NGX_BLOOM_ABSENT ... */
typedef enum {
    NGX_HTTP_BLOOM_COUNT_FIRED = NGX_BLOOM_ANSWERS,    /* it did what it says */
    NGX_HTTP_BLOOM_COUNT_DRY_RUN,                      /* it would have */
    NGX_HTTP_BLOOM_COUNT_AUDITED,                      /* likewise */
    NGX_HTTP_BLOOM_COUNT_UNAVAILABLE                   /* rejected, as the zone
                                                          could not tell */
} ngx_http_bloom_count_e;


/* A key that is added when a response's header is sent. */
typedef struct {
    ngx_http_bloom_key_t       key;
    ngx_http_complex_value_t  *filter;   /* empty or "0": not; NULL: always */
} ngx_http_bloom_addition_t;


/* bloom_audit: how many requests with absent keys are let through. */
typedef struct {
    ngx_uint_t                 rate;     /* of NGX_HTTP_BLOOM_AUDIT_ALL; 0: off */
    ngx_flag_t                 learn;    /* wrongly absent keys are added */
    ngx_str_t                  file;     /* where it is configured */
    ngx_uint_t                 line;
} ngx_http_bloom_audit_t;

#define NGX_HTTP_BLOOM_AUDIT_ALL  100000


/* A location with the endpoint. */
typedef struct {
    ngx_str_t                  prefix;   /* of its requests, without "/" at
                                            the end */
    ngx_flag_t                 write;
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
                                            likewise */
    ngx_http_bloom_endpoint_t *endpoint; /* NULL: none */
    ngx_array_t               *feedback; /* of ngx_uint_t: statuses that say
                                            that there is no such key; NULL:
                                            nothing is made of them */
    ngx_http_bloom_audit_t    *audit;    /* NULL: none */
    ngx_flag_t                 dry_run;
    ngx_uint_t                 unavailable;
    ngx_uint_t                 log_level;
} ngx_http_bloom_loc_conf_t;


/*
 * What was decided about a request.  It outlives internal redirects, which
 * clear a request's contexts: ngx_http_bloom_get_ctx() finds it among the
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
    void                      *work;     /* of a request to the endpoint */
    void                      *audited;  /* see ngx_http_bloom_audit.c; NULL:
                                            it is not */

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


/* ngx_http_bloom_rules.c */

ngx_int_t ngx_http_bloom_rules_handler(ngx_http_request_t *r);
ngx_http_bloom_ctx_t *ngx_http_bloom_create_ctx(ngx_http_request_t *r);

/* NULL: nothing has been decided yet. */
static ngx_inline ngx_http_bloom_ctx_t *ngx_http_bloom_get_ctx(
    ngx_http_request_t *r);

/*
 * Evaluates and decodes a key.  NGX_OK with *text, NGX_DECLINED if the key is
 * empty, NGX_ERROR if memory is short.
 */
static ngx_inline ngx_int_t ngx_http_bloom_text(ngx_http_request_t *r,
    ngx_http_bloom_key_t *key, ngx_str_t *text);

/*
 * The same, and asks the key's zone: *answer is one of NGX_BLOOM_..., and is
 * counted.  *text is the canonical key, unless the answer is that it is none.
 */
static ngx_inline ngx_int_t ngx_http_bloom_check(ngx_http_request_t *r,
    ngx_http_bloom_key_t *key, ngx_str_t *text, ngx_uint_t *answer);


/* ngx_http_bloom_prefetch.c */

/* Which rules of each list are NGX_HTTP_BLOOM_AHEAD: once all variables of a
 * configuration are known. */
void ngx_http_bloom_plan_ahead(ngx_http_core_main_conf_t *cmcf,
    ngx_http_bloom_main_conf_t *bmcf);

/*
 * ngx_http_bloom_check() of a list's i-th rule, of those that are
 * NGX_HTTP_BLOOM_AHEAD, which are checked one after the other from 0 on; but
 * returns the answer instead of NGX_OK.
 */
ngx_int_t ngx_http_bloom_check_ahead(ngx_http_request_t *r,
    ngx_http_bloom_rule_t *rule, ngx_uint_t i, ngx_str_t *text);


/*
 * A key for the log: keys come from clients, and what is not printable ASCII
 * is written as \xHH.  Returns the end; more than so much of it is not shown.
 */
#define NGX_HTTP_BLOOM_LOGGED_KEY  256
#define NGX_HTTP_BLOOM_LOGGED_LEN  (NGX_HTTP_BLOOM_LOGGED_KEY * 4 + 3)

u_char *ngx_http_bloom_log_key(u_char *p, ngx_str_t *key);


/*
 * What is taken from a response's header: see ngx_http_bloom_filter.c.
 * `status` is the backend's, or that of nginx's cache; 0: none.
 */

/* ngx_http_bloom_add.c */

ngx_int_t ngx_http_bloom_add_keys(ngx_http_request_t *r);

/* ngx_http_bloom_feedback.c */

char *ngx_http_bloom_feedback_conf(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
/* What a rule under bloom_feedback has answered. */
void ngx_http_bloom_feedback_note(ngx_http_bloom_ctx_t *ctx,
    ngx_array_t *statuses, ngx_http_bloom_rule_t *rule, ngx_uint_t answer);

ngx_uint_t ngx_http_bloom_says_none(ngx_array_t *statuses, ngx_uint_t status);
void ngx_http_bloom_feedback(ngx_http_bloom_ctx_t *ctx, ngx_uint_t status);

/* ngx_http_bloom_audit.c */

char *ngx_http_bloom_audit_conf(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
void ngx_http_bloom_audit_merge(ngx_conf_t *cf,
    ngx_http_bloom_loc_conf_t *prev, ngx_http_bloom_loc_conf_t *conf);

/* Whether a request that is about to be rejected is to be let through. */
ngx_uint_t ngx_http_bloom_audit_takes(ngx_http_request_t *r,
    ngx_http_bloom_loc_conf_t *blcf, ngx_http_bloom_ctx_t *ctx,
    ngx_http_bloom_rule_t *rule, ngx_str_t *key);
void ngx_http_bloom_audit(ngx_http_request_t *r, ngx_http_bloom_ctx_t *ctx,
    ngx_uint_t status);


/* ngx_http_bloom_api.c */

ngx_int_t ngx_http_bloom_api_handler(ngx_http_request_t *r);


/* ngx_http_bloom_variables.c */

ngx_int_t ngx_http_bloom_add_variables(ngx_conf_t *cf);
ngx_int_t ngx_http_bloom_add_lookup(ngx_conf_t *cf, ngx_str_t *name,
    ngx_http_bloom_key_t *key);


/* ---- inline, as every check goes through it ---- */

ngx_http_bloom_ctx_t *ngx_http_bloom_find_ctx(ngx_http_request_t *r);
ngx_int_t ngx_http_bloom_compose(ngx_http_request_t *r,
    ngx_http_bloom_key_t *key, ngx_str_t *text);
ngx_int_t ngx_http_bloom_decode(ngx_http_request_t *r,
    ngx_http_bloom_key_t *key, ngx_str_t *text);


static ngx_inline ngx_http_bloom_ctx_t *
ngx_http_bloom_get_ctx(ngx_http_request_t *r)
{
    ngx_http_bloom_ctx_t  *ctx;

    r = r->main;

    ctx = ngx_http_get_module_ctx(r, ngx_http_bloom_module);

    if (ctx == NULL && (r->internal || r->filter_finalize)) {

        /* the context was cleared by an internal redirect */

        ctx = ngx_http_bloom_find_ctx(r);
    }

    return ctx;
}


static ngx_inline ngx_int_t
ngx_http_bloom_text(ngx_http_request_t *r, ngx_http_bloom_key_t *key,
    ngx_str_t *text)
{
    ngx_http_variable_value_t  *v;

    if (key->index == NGX_ERROR) {
        return ngx_http_bloom_compose(r, key, text);
    }

    /* nothing to put together, and so nothing to copy */

    v = ngx_http_get_flushed_variable(r, key->index);

    if (v == NULL || v->not_found || v->len == 0) {
        return NGX_DECLINED;
    }

    text->data = v->data;
    text->len = v->len;

    return key->decode == BLOOM_DECODE_OFF
           ? NGX_OK : ngx_http_bloom_decode(r, key, text);
}


static ngx_inline ngx_int_t
ngx_http_bloom_check(ngx_http_request_t *r, ngx_http_bloom_key_t *key,
    ngx_str_t *text, ngx_uint_t *answer)
{
    ngx_int_t  rc;

    rc = ngx_http_bloom_text(r, key, text);

    if (rc == NGX_OK) {
        *answer = ngx_bloom_lookup(key->zone, text, r->pool);

        ngx_bloom_count(key->zone, (ngx_bloom_counter_e) *answer, 1);
    }

    return rc;
}


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_H_INCLUDED_ */
