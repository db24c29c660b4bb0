/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares the handler of GET keys, which looks up a key and
 * explains the answer.
 */

#ifndef _NGX_HTTP_BLOOM_LOOKUP_H_INCLUDED_
#define _NGX_HTTP_BLOOM_LOOKUP_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_http_bloom_error.h"
#include "ngx_bloom_explain.h"
#include "ngx_bloom_zone.h"
#include "bloom_json_writer.h"

#pragma GCC visibility push(hidden)


/* The names of answers, by NGX_BLOOM_ABSENT ... */
extern const char  *ngx_http_bloom_lookup_answers[];

ngx_int_t ngx_http_bloom_lookup_get(ngx_http_request_t *r,
    ngx_bloom_zone_t *zone);

/* Reads and decodes the key of "?key=K".  Returns NGX_OK, NGX_DECLINED with
 * *error, or NGX_ERROR if memory is short. */
ngx_int_t ngx_http_bloom_lookup_key(ngx_http_request_t *r, ngx_str_t *key,
    ngx_http_bloom_error_t *error);

/* Writes the members about an answer of a zone (NGX_BLOOM_ABSENT ...), from
 * "answer" to "expressions"; and "expires", as of now, if its keys expire. */
void ngx_http_bloom_lookup_put(bloom_json_writer_t *json,
    ngx_bloom_zone_t *zone, ngx_uint_t answer, ngx_bloom_explain_t *lookup);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_LOOKUP_H_INCLUDED_ */
