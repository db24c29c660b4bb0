/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares the page, which `make dashboard` builds from dashboard/
 * into ngx_http_bloom_page_html.c.
 */

#ifndef _NGX_HTTP_BLOOM_PAGE_HTML_H_INCLUDED_
#define _NGX_HTTP_BLOOM_PAGE_HTML_H_INCLUDED_

#include <stddef.h>

#pragma GCC visibility push(hidden)


extern const char    ngx_http_bloom_page_html[];
extern const size_t  ngx_http_bloom_page_size;         /* in bytes */
extern const char    ngx_http_bloom_page_csp[];        /* its Content-Security-
                                                          Policy */
extern const char    ngx_http_bloom_page_etag[];


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_PAGE_HTML_H_INCLUDED_ */
