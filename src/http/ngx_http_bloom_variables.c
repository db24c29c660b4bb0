
/*
 * This file has the variables: $bloom_status, $bloom_zone, $bloom_key, and
 * those of bloom_lookup.
 */

#include "ngx_http_bloom_variables.h"
#include "ngx_http_bloom_ctx.h"
#include "ngx_http_bloom_key.h"


static ngx_int_t ngx_http_bloom_variables_decision(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_bloom_variables_lookup(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_bloom_variables_set(ngx_http_variable_value_t *v,
    ngx_str_t *value);


/* by ngx_http_bloom_status_e */
static ngx_str_t  ngx_http_bloom_statuses[] = {
    ngx_null_string,
    ngx_string("PASSED"),
    ngx_string("REJECTED"),
    ngx_string("ROUTED"),
    ngx_string("REJECTED_DRY_RUN"),
    ngx_string("ROUTED_DRY_RUN"),
    ngx_string("UNAVAILABLE"),
    ngx_string("AUDITED")
};


/* by NGX_BLOOM_ABSENT, _PRESENT, _UNKNOWN, _INVALID */
static ngx_str_t  ngx_http_bloom_answers[] = {
    ngx_string("0"),
    ngx_string("1"),
    ngx_null_string,
    ngx_null_string
};


/* what of a decision a variable has */
#define NGX_HTTP_BLOOM_VAR_STATUS  0
#define NGX_HTTP_BLOOM_VAR_ZONE    1
#define NGX_HTTP_BLOOM_VAR_KEY     2


static ngx_http_variable_t  ngx_http_bloom_variables[] = {

    { ngx_string("bloom_status"), NULL, ngx_http_bloom_variables_decision,
      NGX_HTTP_BLOOM_VAR_STATUS, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("bloom_zone"), NULL, ngx_http_bloom_variables_decision,
      NGX_HTTP_BLOOM_VAR_ZONE, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("bloom_key"), NULL, ngx_http_bloom_variables_decision,
      NGX_HTTP_BLOOM_VAR_KEY, NGX_HTTP_VAR_NOCACHEABLE, 0 },

      ngx_http_null_variable
};


ngx_int_t
ngx_http_bloom_variables_add(ngx_conf_t *cf)
{
    ngx_http_variable_t  *var, *v;

    for (v = ngx_http_bloom_variables; v->name.len; v++) {
        var = ngx_http_add_variable(cf, &v->name, v->flags);
        if (var == NULL) {
            return NGX_ERROR;
        }

        var->get_handler = v->get_handler;
        var->data = v->data;
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_bloom_variables_add_lookup(ngx_conf_t *cf, ngx_str_t *name,
    ngx_http_bloom_key_t *key)
{
    ngx_http_variable_t  *var;

    /* not cached: a key may change while a request is processed, and a
     * subrequest has keys of its own but shares what was cached */

    var = ngx_http_add_variable(cf, name, NGX_HTTP_VAR_NOCACHEABLE);
    if (var == NULL) {
        return NGX_ERROR;
    }

    if (var->get_handler != NULL) {

        /* "map", "set" and others let their variables be redefined */

        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "the duplicate \"%V\" variable", name);
        return NGX_ERROR;
    }

    var->get_handler = ngx_http_bloom_variables_lookup;
    var->data = (uintptr_t) key;

    return NGX_OK;
}


static ngx_int_t
ngx_http_bloom_variables_decision(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_http_bloom_ctx_t  *ctx;

    ctx = ngx_http_bloom_ctx_get(r);

    if (ctx == NULL || ctx->status == NGX_HTTP_BLOOM_UNCHECKED) {
        v->not_found = 1;
        return NGX_OK;
    }

    switch (data) {

    case NGX_HTTP_BLOOM_VAR_ZONE:
        return ngx_http_bloom_variables_set(v, ctx->zone);

    case NGX_HTTP_BLOOM_VAR_KEY:
        return ngx_http_bloom_variables_set(v, &ctx->key);

    default: /* NGX_HTTP_BLOOM_VAR_STATUS */
        return ngx_http_bloom_variables_set(v,
                                       &ngx_http_bloom_statuses[ctx->status]);
    }
}


static ngx_int_t
ngx_http_bloom_variables_lookup(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_http_bloom_key_t *key = (ngx_http_bloom_key_t *) data;

    ngx_str_t   text;
    ngx_uint_t  answer;

    answer = NGX_BLOOM_UNKNOWN;

    if (ngx_http_bloom_key_check(r, key, &text, &answer) == NGX_ERROR) {
        return NGX_ERROR;
    }

    return ngx_http_bloom_variables_set(v, &ngx_http_bloom_answers[answer]);
}


static ngx_int_t
ngx_http_bloom_variables_set(ngx_http_variable_value_t *v, ngx_str_t *value)
{
    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;
    v->len = value->len;
    v->data = value->data;

    return NGX_OK;
}
