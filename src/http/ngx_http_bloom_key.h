/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares how the condition and the key of a directive are
 * evaluated, and how the key is decoded and looked up.
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
 * Evaluates and decodes a key, looks it up in its zone and counts the answer.
 * Returns
 *
 *     NGX_OK          *answer is NGX_BLOOM_ABSENT, _PRESENT, _UNKNOWN or, for
 *                     an invalid or ambiguous key, _INVALID; *text is the
 *                     canonical key, unless the key is invalid
 *     NGX_DECLINED    the key is empty
 *     NGX_ERROR       memory is short
 */
static ngx_inline ngx_int_t ngx_http_bloom_key_check(ngx_http_request_t *r,
    ngx_http_bloom_key_t *key, ngx_str_t *text, ngx_uint_t *answer);

/* Does what ngx_http_bloom_key_check() does, but looks the key up in the given
 * way (NGX_BLOOM_LOOKUP_...). */
ngx_int_t ngx_http_bloom_key_check_as(ngx_http_request_t *r,
    ngx_http_bloom_key_t *key, ngx_uint_t how, ngx_str_t *text,
    ngx_uint_t *answer);

/*
 * Returns 1 if all variables of a key only read the request, so that the key
 * has nothing from "set", "map" and the like.  Call it when all variables of the
 * configuration are known.
 */
ngx_uint_t ngx_http_bloom_key_is_plain(ngx_http_core_main_conf_t *cmcf,
    ngx_http_bloom_key_t *key);

/*
 * Evaluates the condition of "if=".  Returns
 *
 *     NGX_OK          the condition holds
 *     NGX_DECLINED    the condition is empty or "0"
 *     NGX_ERROR       memory is short
 */
ngx_int_t ngx_http_bloom_key_condition(ngx_http_request_t *r,
    ngx_http_complex_value_t *filter);

/*
 * Writes a key for the log: up to NGX_HTTP_BLOOM_KEY_LOG_LEN bytes.  Keys come
 * from clients, so each byte that is not printable ASCII, and each quote and
 * backslash, becomes \xHH, and of a long key only the first
 * NGX_HTTP_BLOOM_KEY_LOGGED bytes are written.  Returns the end of the text.
 */
#define NGX_HTTP_BLOOM_KEY_LOGGED  256
#define NGX_HTTP_BLOOM_KEY_LOG_LEN  (NGX_HTTP_BLOOM_KEY_LOGGED * 4 + 3)

u_char *ngx_http_bloom_key_log(u_char *p, ngx_str_t *key);


/* ---- inline, because every check of a key needs them ---- */

/* Evaluates and decodes a key that is not a single variable; returns as
 * ngx_http_bloom_key_text() does. */
ngx_int_t ngx_http_bloom_key_compose(ngx_http_request_t *r,
    ngx_http_bloom_key_t *key, ngx_str_t *text);

/* Returns what ngx_http_bloom_key_text() returns if the key's only variable
 * has no value. */
ngx_int_t ngx_http_bloom_key_missing(const ngx_http_variable_value_t *v,
    ngx_str_t *text);

/* Counts an ambiguous key.  Returns NGX_BLOOM_INVALID. */
ngx_uint_t ngx_http_bloom_key_count_ambiguous(ngx_http_bloom_key_t *key);

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


/* Counts the answer of a lookup; `rc` is what ngx_http_bloom_key_text() has
 * returned.  Returns as ngx_http_bloom_key_check() does. */
static ngx_inline ngx_int_t
ngx_http_bloom_key_checked(ngx_http_bloom_key_t *key, ngx_int_t rc,
    ngx_uint_t *answer)
{
    if (rc == NGX_OK) {
        ngx_bloom_count(key->zone, (ngx_bloom_counter_e) *answer, 1);

    } else if (rc == NGX_HTTP_BLOOM_KEY_AMBIGUOUS) {
        *answer = ngx_http_bloom_key_count_ambiguous(key);
        rc = NGX_OK;
    }

    return rc;
}


static ngx_inline ngx_int_t
ngx_http_bloom_key_check(ngx_http_request_t *r, ngx_http_bloom_key_t *key,
    ngx_str_t *text, ngx_uint_t *answer)
{
    ngx_int_t  rc;

    rc = ngx_http_bloom_key_text(r, key, text);

    if (rc == NGX_OK) {
        *answer = ngx_bloom_lookup(key->zone, text, r->pool);
    }

    return ngx_http_bloom_key_checked(key, rc, answer);
}


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_KEY_H_INCLUDED_ */
