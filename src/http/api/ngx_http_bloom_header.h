/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares how headers are read from a request and added to its
 * response.
 */

#ifndef _NGX_HTTP_BLOOM_HEADER_H_INCLUDED_
#define _NGX_HTTP_BLOOM_HEADER_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#pragma GCC visibility push(hidden)


/* Returns the value of a request's first header with this name, or NULL; `name`
 * is in lower case. */
ngx_str_t *ngx_http_bloom_header_in(ngx_http_request_t *r,
    const char *name);

/* Adds a header to a response.  The name and the value are not copied.  Returns
 * NGX_OK, or NGX_ERROR if memory is short. */
ngx_int_t ngx_http_bloom_header_out(ngx_http_request_t *r, const char *name,
    ngx_str_t *value);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_HEADER_H_INCLUDED_ */
