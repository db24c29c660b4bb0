/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares the content handler of the endpoint.
 */

#ifndef _NGX_HTTP_BLOOM_API_H_INCLUDED_
#define _NGX_HTTP_BLOOM_API_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#pragma GCC visibility push(hidden)


/* Handles a request to a location with bloom_api: finds the function that
 * answers it, and calls it if the request is allowed. */
ngx_int_t ngx_http_bloom_api_handler(ngx_http_request_t *r);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_API_H_INCLUDED_ */
