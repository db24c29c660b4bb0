/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares how a request is routed: a rule decides in the PREACCESS
 * phase, and the route is taken in the PRECONTENT phase, before "try_files".
 * So the access checks of the location that the client asked for come in
 * between.
 */

#ifndef _NGX_HTTP_BLOOM_ROUTE_H_INCLUDED_
#define _NGX_HTTP_BLOOM_ROUTE_H_INCLUDED_

#include "ngx_http_bloom.h"

#pragma GCC visibility push(hidden)


/*
 * Reads where a route leads, the value of "to=" in the current directive:
 * "@name" without variables, or a URI.  Returns NGX_CONF_OK, or an error.
 */
char *ngx_http_bloom_route_conf(ngx_conf_t *cf, ngx_str_t *to,
    ngx_http_bloom_target_t *target);

/*
 * Refuses a route to a named location that the server lacks.  Otherwise the
 * mistake would show only when a request is routed.  Returns NGX_OK, or
 * NGX_ERROR with an error logged.
 */
ngx_int_t ngx_http_bloom_route_check(ngx_conf_t *cf,
    ngx_http_bloom_target_t *target, ngx_http_core_srv_conf_t *server);

/*
 * Plans a route, of a request about which ctx->decision.zone has answered.  The
 * route is dropped if an internal redirect comes first, such as that of an
 * "error_page" after the access checks have refused the request.
 */
void ngx_http_bloom_route_plan(ngx_http_request_t *r, ngx_http_bloom_ctx_t *ctx,
    ngx_http_bloom_target_t *target);

/* Handles the PRECONTENT phase: takes the planned route, if there is one, and
 * counts it.  A request that the access checks refuse does not count. */
ngx_int_t ngx_http_bloom_route_handler(ngx_http_request_t *r);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_ROUTE_H_INCLUDED_ */
