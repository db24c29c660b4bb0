/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions read the query of a request.
 */

#ifndef _NGX_HTTP_BLOOM_QUERY_H_INCLUDED_
#define _NGX_HTTP_BLOOM_QUERY_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_http_bloom_error.h"

#pragma GCC visibility push(hidden)


/*
 * Reads a flag such as "?force=true" into *flag: 1 for "true" and "1", 0 for
 * "false" and "0" and if the query does not have it.  Returns NGX_OK; or
 * NGX_DECLINED with an error for any other value.
 */
ngx_int_t ngx_http_bloom_query_flag(ngx_http_request_t *r, const char *name,
    ngx_uint_t *flag, ngx_http_bloom_error_t *error);

/*
 * Reads an argument that is one of two words: *choice becomes 1 or 2, or 0 if
 * the query does not have it.  Returns NGX_OK; or NGX_DECLINED with an error
 * for any other value.
 */
ngx_int_t ngx_http_bloom_query_choice(ngx_http_request_t *r, const char *name,
    const char *first, const char *second, ngx_uint_t *choice,
    ngx_http_bloom_error_t *error);

/*
 * Checks that the query has no arguments but `names`, some and NULL, and none of
 * them twice: an argument that is ignored may be a misspelled one that
 * limits what the request does.  Returns NGX_OK; or NGX_DECLINED with an error.
 */
ngx_int_t ngx_http_bloom_query_only(ngx_http_request_t *r,
    const char *const *names, ngx_http_bloom_error_t *error);

/*
 * Decodes the argument `name` into *value, in memory of the request.  Returns
 * NGX_OK; NGX_DECLINED with an error if the query does not have it, or if it is
 * empty; NGX_ERROR if memory is short.
 */
ngx_int_t ngx_http_bloom_query_value(ngx_http_request_t *r, const char *name,
    ngx_str_t *value, ngx_http_bloom_error_t *error);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_QUERY_H_INCLUDED_ */
