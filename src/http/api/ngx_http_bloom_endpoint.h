/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares the directive bloom_api, which makes a location an
 * endpoint, and says which zones exist there.
 */

#ifndef _NGX_HTTP_BLOOM_ENDPOINT_H_INCLUDED_
#define _NGX_HTTP_BLOOM_ENDPOINT_H_INCLUDED_

#include "ngx_bloom_info.h"
#include "ngx_http_bloom.h"

#pragma GCC visibility push(hidden)


/* Reads bloom_api.  The caller sets the location's handler. */
char *ngx_http_bloom_endpoint_conf(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/*
 * Finds out which zones exist at which endpoint, at the end of the
 * configuration, and marks those that an endpoint may change.  Returns NGX_OK,
 * or NGX_ERROR if memory is short.
 */
ngx_int_t ngx_http_bloom_endpoint_init(ngx_conf_t *cf,
    ngx_http_bloom_main_conf_t *bmcf);

/* Returns the endpoint of a request to it. */
ngx_http_bloom_endpoint_t *ngx_http_bloom_endpoint_get(ngx_http_request_t *r);

/* Fills in what an endpoint shows of a zone.  A zone that counts together with
 * others has counted nothing where not all of them exist. */
void ngx_http_bloom_endpoint_info(ngx_http_bloom_endpoint_t *endpoint,
    ngx_bloom_zone_t *zone, ngx_bloom_info_t *info);

/* Returns 1 if a zone exists at an endpoint. */
#define ngx_http_bloom_endpoint_has(endpoint, zone)                           \
    ((endpoint)->has[(zone)->number])


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_ENDPOINT_H_INCLUDED_ */
