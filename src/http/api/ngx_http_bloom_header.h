/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Headers of a request are read, and headers of its response are added.
 */

#ifndef _NGX_HTTP_BLOOM_HEADER_H_INCLUDED_
#define _NGX_HTTP_BLOOM_HEADER_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#pragma GCC visibility push(hidden)


/*
 * Returns the value of a request's first header of that name, which is in lower
 * case, or NULL.
 */
ngx_str_t *ngx_http_bloom_header_in(ngx_http_request_t *r,
    const char *name);

/* Adds a header to a response that is about to be sent. */
ngx_int_t ngx_http_bloom_header_out(ngx_http_request_t *r, const char *name,
    ngx_str_t *value);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_HEADER_H_INCLUDED_ */
