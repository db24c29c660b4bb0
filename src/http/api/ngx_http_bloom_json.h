/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares how the state of a zone is written in JSON.
 */

#ifndef _NGX_HTTP_BLOOM_JSON_H_INCLUDED_
#define _NGX_HTTP_BLOOM_JSON_H_INCLUDED_

#include "ngx_bloom_info.h"
#include "ngx_http_bloom_text.h"

#pragma GCC visibility push(hidden)


/* Writes the state of a zone as an object. */
void ngx_http_bloom_json_put_zone(ngx_http_bloom_text_t *text,
    const char *name, ngx_bloom_zone_t *zone, ngx_bloom_info_t *info);

/* Appends the state of a zone where the JSON around it is written by hand. */
void ngx_http_bloom_json_zone(ngx_http_bloom_text_t *text,
    ngx_bloom_zone_t *zone, ngx_bloom_info_t *info);

/* Appends a time, in ms since 1970, as a string in the format of RFC 3339, in
 * UTC; null if it is 0. */
void ngx_http_bloom_json_time(ngx_http_bloom_text_t *text, uint64_t ms);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_JSON_H_INCLUDED_ */
