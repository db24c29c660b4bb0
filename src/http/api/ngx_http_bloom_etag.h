/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares the ETag of a zone, which names the generation that
 * serves.
 */

#ifndef _NGX_HTTP_BLOOM_ETAG_H_INCLUDED_
#define _NGX_HTTP_BLOOM_ETAG_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_bloom_info.h"
#include "ngx_http_bloom_error.h"

#pragma GCC visibility push(hidden)


/* Adds the ETag to a response, unless no generation serves.  Returns NGX_OK, or
 * NGX_ERROR if memory is short. */
ngx_int_t ngx_http_bloom_etag_add(ngx_http_request_t *r,
    ngx_bloom_info_t *info);

/*
 * Compares a request's If-Match with the ETag of a zone.  Returns NGX_OK if
 * they match or the request has no If-Match; NGX_DECLINED with *error if they
 * differ.
 */
ngx_int_t ngx_http_bloom_etag_match(ngx_http_request_t *r,
    ngx_bloom_zone_t *zone, ngx_http_bloom_error_t *error);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_ETAG_H_INCLUDED_ */
