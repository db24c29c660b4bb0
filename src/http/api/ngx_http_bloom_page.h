/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares how GET / sends the page to browsers.
 */

#ifndef _NGX_HTTP_BLOOM_PAGE_H_INCLUDED_
#define _NGX_HTTP_BLOOM_PAGE_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#pragma GCC visibility push(hidden)


/* Returns 1 if the request's Accept names HTML and not JSON, as that of
 * browsers does. */
ngx_uint_t ngx_http_bloom_page_wanted(ngx_http_request_t *r);

/* Responds with the page. */
ngx_int_t ngx_http_bloom_page_respond(ngx_http_request_t *r);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_PAGE_H_INCLUDED_ */
