/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The endpoint finds out which request it is and calls the function that
 * answers it.
 */

#ifndef _NGX_HTTP_BLOOM_API_H_INCLUDED_
#define _NGX_HTTP_BLOOM_API_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#pragma GCC visibility push(hidden)


/* Handles all requests of a location with bloom_api. */
ngx_int_t ngx_http_bloom_api_handler(ngx_http_request_t *r);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_API_H_INCLUDED_ */
