/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares the content handler of the endpoint, and the functions
 * that answer GET requests to it.
 */

#ifndef _NGX_HTTP_BLOOM_API_H_INCLUDED_
#define _NGX_HTTP_BLOOM_API_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/* Handles a request to a location with bloom_api: finds the function that
 * answers it, and calls it if the request is allowed. */
ngx_int_t ngx_http_bloom_api_handler(ngx_http_request_t *r);

/*
 * Each answers a request, and returns what a content handler returns; `zone` is
 * NULL if the path names no zone.
 *
 * explain   GET keys: looks up a key in all zones and says what all rules do
 *           about it: "Why is this blocked?"
 * metrics   GET metrics
 * lookup    GET zones/NAME/keys: looks up a key and explains the answer
 * rates     GET zones/NAME/rates
 */
ngx_int_t ngx_http_bloom_explain_get(ngx_http_request_t *r,
    ngx_bloom_zone_t *zone);
ngx_int_t ngx_http_bloom_metrics_get(ngx_http_request_t *r,
    ngx_bloom_zone_t *zone);
ngx_int_t ngx_http_bloom_lookup_get(ngx_http_request_t *r,
    ngx_bloom_zone_t *zone);
ngx_int_t ngx_http_bloom_rates_get(ngx_http_request_t *r,
    ngx_bloom_zone_t *zone);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_API_H_INCLUDED_ */
