
/*
 * The HTTP layer's own header: configurations, rules, a request's decision.
 */

#ifndef _NGX_HTTP_BLOOM_H_INCLUDED_
#define _NGX_HTTP_BLOOM_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_bloom_test.h"
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
    NGX_HTTP_BLOOM_UNAVAILABLE
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


typedef struct {
    ngx_http_bloom_action_e    action;
    ngx_uint_t                 fires;    /* on NGX_BLOOM_ABSENT or _PRESENT */
    ngx_http_bloom_key_t       key;
    u_char                     split;    /* the key is a list, cut at this
                                            byte; 0: it is one key */
    ngx_uint_t                 status;   /* of a rejection */
    ngx_http_complex_value_t   to;       /* of a route */
    unsigned                   named:1;  /* "to" is a named location */
    unsigned                   all:1;    /* fires if all parts of a list are
                                            so, not if one is */

    u_char                    *conf_file;
    ngx_uint_t                 conf_line;
} ngx_http_bloom_rule_t;


/* A key that is added when a response's header is sent. */
typedef struct {
    ngx_http_bloom_key_t       key;
    ngx_http_complex_value_t  *filter;   /* empty or "0": not; NULL: always */
} ngx_http_bloom_addition_t;


/* A location with the endpoint. */
typedef struct {
    ngx_str_t                  prefix;   /* of its requests, without "/" at
                                            the end */
    ngx_flag_t                 write;
} ngx_http_bloom_endpoint_t;


typedef struct {
    ngx_array_t                zones;    /* of ngx_bloom_zone_t * */
    ngx_array_t                routes;   /* of ngx_http_bloom_routes_t */
    ngx_str_t                  state_path;             /* data NULL: default;
                                                          len 0: off */
    ngx_uint_t                 writes;   /* an endpoint takes writes */
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
    ngx_flag_t                 dry_run;
    ngx_uint_t                 unavailable;
    ngx_uint_t                 log_level;
} ngx_http_bloom_loc_conf_t;


/*
 * What was decided about a request.  It outlives internal redirects, which
 * clear a request's contexts: ngx_http_bloom_get_ctx() finds it.
 */
typedef struct {
    ngx_http_bloom_status_e    status;
    ngx_str_t                 *zone;
    ngx_str_t                  key;      /* decoded, canonical */
    ngx_uint_t                 decided;  /* nothing is checked any more */
    ngx_uint_t                 added;    /* what the response was to add */
    void                      *work;     /* of a request to the endpoint */

    /* the lists already checked: each pass through the phase adds one */
    ngx_array_t               *checked[NGX_HTTP_MAX_URI_CHANGES + 2];
    ngx_uint_t                 nchecked;
} ngx_http_bloom_ctx_t;


/* ngx_http_bloom_rules.c */

ngx_int_t ngx_http_bloom_rules_handler(ngx_http_request_t *r);
ngx_http_bloom_ctx_t *ngx_http_bloom_get_ctx(ngx_http_request_t *r);
ngx_http_bloom_ctx_t *ngx_http_bloom_create_ctx(ngx_http_request_t *r);

/*
 * Evaluates and decodes a key.  NGX_OK with *text, NGX_DECLINED if the key is
 * empty, NGX_ERROR if memory is short.
 */
ngx_int_t ngx_http_bloom_text(ngx_http_request_t *r,
    ngx_http_bloom_key_t *key, ngx_str_t *text);

/*
 * The same, and asks the key's zone: *answer is one of NGX_BLOOM_..., and is
 * counted.  *text is the canonical key, unless the answer is that it is none.
 */
ngx_int_t ngx_http_bloom_check(ngx_http_request_t *r,
    ngx_http_bloom_key_t *key, ngx_str_t *text, ngx_uint_t *answer);


/* ngx_http_bloom_api.c */

ngx_int_t ngx_http_bloom_api_handler(ngx_http_request_t *r);


/* ngx_http_bloom_variables.c */

ngx_int_t ngx_http_bloom_add_variables(ngx_conf_t *cf);
ngx_int_t ngx_http_bloom_add_lookup(ngx_conf_t *cf, ngx_str_t *name,
    ngx_http_bloom_key_t *key);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_H_INCLUDED_ */
