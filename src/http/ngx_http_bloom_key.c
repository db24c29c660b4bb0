/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file evaluates the conditions of directives, and evaluates and decodes
 * their keys.
 */

#include "ngx_http_bloom_key.h"
#include "ngx_http_bloom_ctx.h"


ngx_int_t
ngx_http_bloom_key_compose(ngx_http_request_t *r, ngx_http_bloom_key_t *key,
    ngx_str_t *text)
{
    ngx_uint_t  *index;

    if (ngx_http_complex_value(r, &key->value, text) != NGX_OK) {
        return NGX_ERROR;
    }

    index = key->value.flushes;          /* the key's variables */

    for ( /* void */ ; index && *index != (ngx_uint_t) -1; index++) {
        if (ngx_http_bloom_value_is_ambiguous(&r->variables[*index])) {
            return NGX_HTTP_BLOOM_KEY_AMBIGUOUS;
        }
    }

    if (text->len == 0) {
        return NGX_DECLINED;
    }

    return key->decode == BLOOM_DECODE_OFF
           ? NGX_OK : ngx_http_bloom_key_decode(r, key, text);
}


ngx_int_t
ngx_http_bloom_key_missing(const ngx_http_variable_value_t *v, ngx_str_t *text)
{
    ngx_str_set(text, "");

    return (v != NULL && ngx_http_bloom_value_is_ambiguous(v))
           ? NGX_HTTP_BLOOM_KEY_AMBIGUOUS : NGX_DECLINED;
}


ngx_int_t
ngx_http_bloom_key_decode(ngx_http_request_t *r, ngx_http_bloom_key_t *key,
    ngx_str_t *text)
{
    ngx_http_bloom_ctx_t  *ctx;

    /* memory of a request does not change while it has it */

    ctx = ngx_http_bloom_ctx_get(r);

    return ngx_bloom_rule_decode(text, key->decode,
                                     ctx ? &ctx->decoded : NULL, r->pool);
}


ngx_int_t
ngx_http_bloom_key_condition(ngx_http_request_t *r,
    ngx_http_complex_value_t *filter)
{
    ngx_str_t  text;

    if (ngx_http_complex_value(r, filter, &text) != NGX_OK) {
        return NGX_ERROR;
    }

    return text.len == 0 || (text.len == 1 && text.data[0] == '0')
           ? NGX_DECLINED : NGX_OK;
}
