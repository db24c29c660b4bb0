/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file evaluates the variables about decisions, such as $bloom_status, and
 * those of bloom_lookup.
 */

#include "ngx_http_bloom_variables.h"
#include "ngx_http_bloom_ctx.h"
#include "ngx_http_bloom_debug.h"
#include "ngx_http_bloom_key.h"
#include "ngx_bloom_io.h"


static ngx_int_t ngx_http_bloom_variables_decision(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_http_bloom_pin_t *ngx_http_bloom_variables_pin(ngx_http_request_t *r,
    ngx_http_bloom_key_t *key);
static ngx_int_t ngx_http_bloom_variables_pin_text(ngx_http_request_t *r,
    ngx_http_bloom_pin_t *pin, ngx_str_t *text);
static ngx_int_t ngx_http_bloom_variables_set(ngx_http_variable_value_t *v,
    ngx_str_t *value);


/* by ngx_http_bloom_status_e */
static ngx_str_t  ngx_http_bloom_statuses[] = {
    ngx_null_string,
    ngx_string("PASSED"),
    ngx_string("UNKNOWN"),
    ngx_string("ROUTED"),
    ngx_string("REJECTED_DRY_RUN"),
    ngx_string("ROUTED_DRY_RUN"),
    ngx_string("INVALID"),
    ngx_string("AUDITED"),
    ngx_string("REJECTED")
};


/* by NGX_BLOOM_ABSENT, _PRESENT, _UNKNOWN, _INVALID */
static ngx_str_t  ngx_http_bloom_answers[] = {
    ngx_string("0"),
    ngx_string("1"),
    ngx_null_string,
    ngx_null_string
};


/* the part of a decision that a variable returns */
#define NGX_HTTP_BLOOM_VAR_STATUS  0
#define NGX_HTTP_BLOOM_VAR_ZONE    1
#define NGX_HTTP_BLOOM_VAR_LABEL   2
#define NGX_HTTP_BLOOM_VAR_KEY     3
#define NGX_HTTP_BLOOM_VAR_SECOND  4
#define NGX_HTTP_BLOOM_VAR_MATCH   5


static ngx_http_variable_t  ngx_http_bloom_variables[] = {

    { ngx_string("bloom_status"), NULL, ngx_http_bloom_variables_decision,
      NGX_HTTP_BLOOM_VAR_STATUS, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("bloom_zone"), NULL, ngx_http_bloom_variables_decision,
      NGX_HTTP_BLOOM_VAR_ZONE, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("bloom_label"), NULL, ngx_http_bloom_variables_decision,
      NGX_HTTP_BLOOM_VAR_LABEL, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("bloom_key"), NULL, ngx_http_bloom_variables_decision,
      NGX_HTTP_BLOOM_VAR_KEY, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("bloom_second_key"), NULL, ngx_http_bloom_variables_decision,
      NGX_HTTP_BLOOM_VAR_SECOND, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("bloom_match"), NULL, ngx_http_bloom_variables_decision,
      NGX_HTTP_BLOOM_VAR_MATCH, NGX_HTTP_VAR_NOCACHEABLE, 0 },

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
        return ngx_http_bloom_variables_set(v, &ctx->zone->name);

    case NGX_HTTP_BLOOM_VAR_LABEL:
        return ngx_http_bloom_variables_set(v, ctx->zone->label.len != 0
                                               ? &ctx->zone->label
                                               : &ctx->zone->name);

    case NGX_HTTP_BLOOM_VAR_KEY:
        return ngx_http_bloom_variables_set(v, &ctx->key);

    case NGX_HTTP_BLOOM_VAR_SECOND:
        return ngx_http_bloom_variables_set(v, &ctx->second);

    case NGX_HTTP_BLOOM_VAR_MATCH:
        return ngx_http_bloom_variables_set(v, &ctx->match);

    default: /* NGX_HTTP_BLOOM_VAR_STATUS */
        return ngx_http_bloom_variables_set(v,
                                       &ngx_http_bloom_statuses[ctx->status]);
    }
}


ngx_int_t
ngx_http_bloom_variables_lookup(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_http_bloom_key_t *key = (ngx_http_bloom_key_t *) data;

    ngx_int_t              rc;
    ngx_str_t              text;
    ngx_http_bloom_pin_t  *pin;

    ngx_bloom_fault("variable");

    rc = ngx_http_bloom_key_text(r, key, &text);

    if (rc == NGX_ERROR) {
        return NGX_ERROR;
    }

    if (rc == NGX_DECLINED) {
        return ngx_http_bloom_variables_set(v,
                                  &ngx_http_bloom_answers[NGX_BLOOM_UNKNOWN]);
    }

    if (rc == NGX_HTTP_BLOOM_KEY_AMBIGUOUS) {
        text.len = 0;                    /* marks it: no valid key is empty */
    }

    pin = ngx_http_bloom_variables_pin(r, key);
    if (pin == NULL) {
        return NGX_ERROR;
    }

    if (pin->text.data == NULL
        || pin->text.len != text.len
        || ngx_memcmp(pin->text.data, text.data, text.len) != 0)
    {
        if (ngx_http_bloom_variables_pin_text(r, pin, &text) != NGX_OK) {
            return NGX_ERROR;
        }

        pin->answer = (text.len != 0)
                      ? ngx_bloom_lookup(key->zone, &text, r->pool)
                      : NGX_BLOOM_INVALID;

        ngx_bloom_count(key->zone, (ngx_bloom_counter_e) pin->answer, 1);
        ngx_http_bloom_debug_lookup(r, key->zone, &text, pin->answer);
    }

    return ngx_http_bloom_variables_set(v,
                                        &ngx_http_bloom_answers[pin->answer]);
}


/*
 * Returns the pin of a directive, which it creates without a text if there is
 * none; NULL if memory is short.  Subrequests share the pins of their main
 * request.
 */
static ngx_http_bloom_pin_t *
ngx_http_bloom_variables_pin(ngx_http_request_t *r, ngx_http_bloom_key_t *key)
{
    ngx_http_bloom_ctx_t  *ctx;
    ngx_http_bloom_pin_t  *pin;

    ctx = ngx_http_bloom_ctx_obtain(r);
    if (ctx == NULL) {
        return NULL;
    }

    for (pin = ctx->pins; pin != NULL; pin = pin->next) {
        if (pin->key == key) {
            return pin;
        }
    }

    pin = ngx_pcalloc(r->pool, sizeof(ngx_http_bloom_pin_t));
    if (pin == NULL) {
        return NULL;
    }

    pin->key = key;
    pin->next = ctx->pins;
    ctx->pins = pin;

    return pin;
}


/*
 * Copies a key into a pin, since the memory that the key's variable refers to
 * may change.  Allocates twice the need, so that a request with many keys does
 * not allocate for each.
 */
static ngx_int_t
ngx_http_bloom_variables_pin_text(ngx_http_request_t *r,
    ngx_http_bloom_pin_t *pin, ngx_str_t *text)
{
    if (pin->text.data == NULL || text->len > pin->room) {
        pin->room = 2 * text->len;

        pin->text.data = ngx_pnalloc(r->pool, pin->room);
        if (pin->text.data == NULL) {
            return NGX_ERROR;
        }
    }

    ngx_memcpy(pin->text.data, text->data, text->len);
    pin->text.len = text->len;

    return NGX_OK;
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
