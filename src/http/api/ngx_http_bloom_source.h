/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions take what the source of a zone sends: changes, signs of life
 * and gaps.
 */

#ifndef _NGX_HTTP_BLOOM_SOURCE_H_INCLUDED_
#define _NGX_HTTP_BLOOM_SOURCE_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/* Handle POST zones/NAME/changes and POST zones/NAME/gap.  They return what a
 * content handler returns. */
ngx_int_t ngx_http_bloom_source_post_changes(ngx_http_request_t *r,
    ngx_bloom_zone_t *zone);
ngx_int_t ngx_http_bloom_source_post_gap(ngx_http_request_t *r,
    ngx_bloom_zone_t *zone);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_SOURCE_H_INCLUDED_ */
