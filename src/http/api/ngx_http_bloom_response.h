/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares how responses of the endpoint are sent.  Each function
 * returns what a content handler returns and ngx_http_finalize_request() takes.
 */

#ifndef _NGX_HTTP_BLOOM_RESPONSE_H_INCLUDED_
#define _NGX_HTTP_BLOOM_RESPONSE_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_http_bloom_error.h"
#include "ngx_http_bloom_text.h"

#pragma GCC visibility push(hidden)


/* Responds with JSON; appends a newline to it. */
ngx_int_t ngx_http_bloom_response_json(ngx_http_request_t *r, ngx_uint_t status,
    ngx_http_bloom_text_t *text);

/* Responds with text of the given type. */
ngx_int_t ngx_http_bloom_response_text(ngx_http_request_t *r, ngx_uint_t status,
    ngx_str_t *type, ngx_http_bloom_text_t *text);

/* Responds with an error. */
ngx_int_t ngx_http_bloom_response_error(ngx_http_request_t *r,
    ngx_http_bloom_error_t *error);

/* Responds with an error to a request whose body has not been read. */
ngx_int_t ngx_http_bloom_response_refuse(ngx_http_request_t *r,
    ngx_http_bloom_error_t *error);

/*
 * Sends a header with this status, and a buffer as the whole body.  The caller
 * has set the content type.
 */
ngx_int_t ngx_http_bloom_response_send(ngx_http_request_t *r, ngx_uint_t status,
    ngx_buf_t *b);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_RESPONSE_H_INCLUDED_ */
