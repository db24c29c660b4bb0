/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares the handler of GET /keys, which looks up a key in all
 * zones and says what all rules do about it: "Why is this blocked?"
 */

#ifndef _NGX_HTTP_BLOOM_EXPLAIN_H_INCLUDED_
#define _NGX_HTTP_BLOOM_EXPLAIN_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/* `zone` is NULL: the path names no zone. */
ngx_int_t ngx_http_bloom_explain_get(ngx_http_request_t *r,
    ngx_bloom_zone_t *zone);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_EXPLAIN_H_INCLUDED_ */
