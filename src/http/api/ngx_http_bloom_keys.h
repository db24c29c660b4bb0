/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares the handlers that change keys: POST keys adds the keys
 * in the body, POST remove removes them, and DELETE keys removes one key.
 */

#ifndef _NGX_HTTP_BLOOM_KEYS_H_INCLUDED_
#define _NGX_HTTP_BLOOM_KEYS_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


ngx_int_t ngx_http_bloom_keys_post(ngx_http_request_t *r,
    ngx_bloom_zone_t *zone);
ngx_int_t ngx_http_bloom_keys_post_remove(ngx_http_request_t *r,
    ngx_bloom_zone_t *zone);
ngx_int_t ngx_http_bloom_keys_delete(ngx_http_request_t *r,
    ngx_bloom_zone_t *zone);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_KEYS_H_INCLUDED_ */
