/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file evaluates the variables about decisions, such as $bloom_status, and
 * those of bloom_lookup.
 */

#include "ngx_http_bloom_variables.h"
#include "ngx_http_bloom_ctx.h"
#include "ngx_http_bloom_key.h"
#include "ngx_bloom_io.h"


static ngx_int_t ngx_http_bloom_variables_decision(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_bloom_variables_set(ngx_http_variable_value_t *v,
    ngx_str_t *value);


ngx_int_t
ngx_http_bloom_variables_add(ngx_conf_t *cf)
{
    ngx_http_variable_t        *var;
    ngx_bloom_rule_variable_t  *v;

    for (v = ngx_bloom_rule_variables; v->name.len; v++) {

        var = ngx_http_add_variable(cf, &v->name, NGX_HTTP_VAR_NOCACHEABLE);
        if (var == NULL) {
            return NGX_ERROR;
        }

        var->get_handler = ngx_http_bloom_variables_decision;
        var->data = v->what;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_bloom_variables_decision(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_str_t             *value;
    ngx_http_bloom_ctx_t  *ctx;

    ctx = ngx_http_bloom_ctx_get(r);

    value = (ctx != NULL) ? ngx_bloom_rule_value(&ctx->decision, data) : NULL;

    if (value == NULL) {
        v->not_found = 1;
        return NGX_OK;
    }

    return ngx_http_bloom_variables_set(v, value);
}


ngx_int_t
ngx_http_bloom_variables_lookup(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_http_bloom_key_t *key = (ngx_http_bloom_key_t *) data;

    ngx_int_t              rc;
    ngx_str_t              text, *value;
    ngx_http_bloom_ctx_t  *ctx;

    ngx_bloom_fault("variable");

    rc = ngx_http_bloom_key_text(r, key, &text);

    if (rc == NGX_ERROR) {
        return NGX_ERROR;
    }

    if (rc == NGX_DECLINED) {
        return ngx_http_bloom_variables_set(v, &text);
    }

    if (rc == NGX_HTTP_BLOOM_KEY_AMBIGUOUS) {
        text.len = 0;                    /* marks it: no valid key is empty */
    }

    /* subrequests share the pins of their main request */

    ctx = ngx_http_bloom_ctx_obtain(r);
    if (ctx == NULL) {
        return NGX_ERROR;
    }

    value = ngx_bloom_rule_pin_value(&ctx->pins, key, key->zone, &text,
                                     r->pool);

    return value != NULL ? ngx_http_bloom_variables_set(v, value) : NGX_ERROR;
}


ngx_uint_t
ngx_http_bloom_variables_only_read(ngx_http_core_main_conf_t *cmcf,
    ngx_http_bloom_key_t *key)
{
    ngx_uint_t           *index;
    ngx_http_variable_t  *v;

    v = cmcf->variables.elts;
    index = key->value.flushes;

    for ( /* void */ ; index && *index != (ngx_uint_t) -1; index++) {

        /* a variable that a configuration defines may be redefined there */

        if ((v[*index].flags & NGX_HTTP_VAR_CHANGEABLE)
            || v[*index].get_handler == ngx_http_bloom_variables_lookup
            || v[*index].get_handler == ngx_http_bloom_variables_decision)
        {
            return 0;
        }
    }

    return 1;
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
