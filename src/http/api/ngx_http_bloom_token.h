/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares the token of a zone, which names what serves: a
 * generation of one memory of the zone.  No other memory has the same token, on
 * no node and after no restart.
 */

#ifndef _NGX_HTTP_BLOOM_TOKEN_H_INCLUDED_
#define _NGX_HTTP_BLOOM_TOKEN_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_bloom_info.h"
#include "ngx_http_bloom_error.h"

#pragma GCC visibility push(hidden)


/* The room for a token, "GENERATION-INSTANCE": up to 20 and 16 digits. */
#define NGX_HTTP_BLOOM_TOKEN_MAX  (NGX_INT64_LEN + 1 + 16)

/* Writes the token of a zone in which a generation serves.  Returns its end. */
u_char *ngx_http_bloom_token(u_char *p, ngx_bloom_info_t *info);

/*
 * Compares "serving=" of a request's query with the token of a zone.  Returns
 * NGX_OK if they are equal or the query has no "serving="; NGX_DECLINED with
 * *error if they differ, or if the request has If-Match.
 */
ngx_int_t ngx_http_bloom_token_match(ngx_http_request_t *r,
    ngx_bloom_zone_t *zone, ngx_http_bloom_error_t *error);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_TOKEN_H_INCLUDED_ */
