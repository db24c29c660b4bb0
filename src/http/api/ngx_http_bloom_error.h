/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares the errors of the endpoint.  An error has a code, which
 * clients may rely on, and a message for people.
 */

#ifndef _NGX_HTTP_BLOOM_ERROR_H_INCLUDED_
#define _NGX_HTTP_BLOOM_ERROR_H_INCLUDED_

#include "ngx_http_bloom_text.h"

#pragma GCC visibility push(hidden)


/* The errors.  ngx_http_bloom_errors[] has the status and the code of each. */
typedef enum {
    NGX_HTTP_BLOOM_E_NONE = 0,
    NGX_HTTP_BLOOM_E_BAD_QUERY,
    NGX_HTTP_BLOOM_E_BAD_KEY,
    NGX_HTTP_BLOOM_E_BAD_JSON,
    NGX_HTTP_BLOOM_E_BAD_BODY,
    NGX_HTTP_BLOOM_E_READ_ONLY,
    NGX_HTTP_BLOOM_E_NO_IMAGE,
    NGX_HTTP_BLOOM_E_CROSS_SITE,
    NGX_HTTP_BLOOM_E_NOT_FOUND,
    NGX_HTTP_BLOOM_E_UNKNOWN_ZONE,
    NGX_HTTP_BLOOM_E_METHOD,
    NGX_HTTP_BLOOM_E_LOADING,
    NGX_HTTP_BLOOM_E_NO_ADDITIONS,
    NGX_HTTP_BLOOM_E_NO_REMOVALS,
    NGX_HTTP_BLOOM_E_NOT_POSSIBLE,
    NGX_HTTP_BLOOM_E_DAMAGED,
    NGX_HTTP_BLOOM_E_SOURCE,
    NGX_HTTP_BLOOM_E_POSITION,
    NGX_HTTP_BLOOM_E_GENERATION,
    NGX_HTTP_BLOOM_E_TOO_LARGE,
    NGX_HTTP_BLOOM_E_TYPE,
    NGX_HTTP_BLOOM_E_REFUSED,
    NGX_HTTP_BLOOM_E_JOURNAL,
    NGX_HTTP_BLOOM_E_FAILED,
    NGX_HTTP_BLOOM_E_BUSY,
    NGX_HTTP_BLOOM_E_NO_ROOM
} ngx_http_bloom_error_code_e;

#define NGX_HTTP_BLOOM_ERROR_LEN  640

typedef struct {
    ngx_http_bloom_error_code_e  code;   /* NGX_HTTP_BLOOM_E_NONE: no error */
    size_t                      len;
    u_char                      message[NGX_HTTP_BLOOM_ERROR_LEN];
} ngx_http_bloom_error_t;

/* Sets *error; formats its message as ngx_sprintf() does, and cuts it at
 * NGX_HTTP_BLOOM_ERROR_LEN bytes.  Returns NGX_DECLINED. */
ngx_int_t ngx_cdecl ngx_http_bloom_error(ngx_http_bloom_error_t *error,
    ngx_http_bloom_error_code_e code, const char *fmt, ...);

/* Sets *error for a text with text->busy: other responses use all the memory
 * that responses may use. */
void ngx_http_bloom_error_busy(ngx_http_bloom_error_t *error);

/* Writes the member "error" of a response's object. */
void ngx_http_bloom_error_put(ngx_http_bloom_text_t *text,
    ngx_http_bloom_error_t *error);

/* Returns the status for a response with this error. */
ngx_uint_t ngx_http_bloom_error_status(ngx_http_bloom_error_t *error);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_ERROR_H_INCLUDED_ */
