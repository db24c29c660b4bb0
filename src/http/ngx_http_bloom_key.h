/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares how the condition and the key of a directive are
 * evaluated, and how the key is decoded.
 */

#ifndef _NGX_HTTP_BLOOM_KEY_H_INCLUDED_
#define _NGX_HTTP_BLOOM_KEY_H_INCLUDED_

#include "ngx_http_bloom.h"
#include "ngx_http_bloom_value.h"

#pragma GCC visibility push(hidden)


/*
 * Evaluates and decodes a key.  Returns
 *
 *     NGX_OK                          *text is the key
 *     NGX_DECLINED                    the key is empty
 *     NGX_HTTP_BLOOM_KEY_AMBIGUOUS    the key is invalid, since it contains an
 *                                     ambiguous argument; *text is the key
 *                                     without that argument
 *     NGX_ERROR                       memory is short
 */
#define NGX_HTTP_BLOOM_KEY_AMBIGUOUS  NGX_ABORT

static ngx_inline ngx_int_t ngx_http_bloom_key_text(ngx_http_request_t *r,
    ngx_http_bloom_key_t *key, ngx_str_t *text);

/*
 * Evaluates the condition of "if=".  Returns
 *
 *     NGX_OK          the condition holds
 *     NGX_DECLINED    the condition is empty or "0"
 *     NGX_ERROR       memory is short
 */
ngx_int_t ngx_http_bloom_key_condition(ngx_http_request_t *r,
    ngx_http_complex_value_t *filter);


/* ---- inline, because every check of a key needs them ---- */

/* Evaluates and decodes a key that is not a single variable; returns as
 * ngx_http_bloom_key_text() does. */
ngx_int_t ngx_http_bloom_key_compose(ngx_http_request_t *r,
    ngx_http_bloom_key_t *key, ngx_str_t *text);

/* Returns what ngx_http_bloom_key_text() returns if the key's only variable
 * has no value. */
ngx_int_t ngx_http_bloom_key_missing(const ngx_http_variable_value_t *v,
    ngx_str_t *text);

/* Decodes an evaluated key into memory of the request's pool. */
ngx_int_t ngx_http_bloom_key_decode(ngx_http_request_t *r,
    ngx_http_bloom_key_t *key, ngx_str_t *text);


static ngx_inline ngx_int_t
ngx_http_bloom_key_text(ngx_http_request_t *r, ngx_http_bloom_key_t *key,
    ngx_str_t *text)
{
    ngx_http_variable_value_t  *v;

    if (key->index == NGX_ERROR) {
        return ngx_http_bloom_key_compose(r, key, text);
    }

    /* the key is a single variable: nothing is copied */

    v = ngx_http_get_flushed_variable(r, key->index);

    if (v == NULL || v->not_found || v->len == 0) {
        return ngx_http_bloom_key_missing(v, text);
    }

    text->data = v->data;
    text->len = v->len;

    return key->decode == BLOOM_DECODE_OFF
           ? NGX_OK : ngx_http_bloom_key_decode(r, key, text);
}


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_KEY_H_INCLUDED_ */
