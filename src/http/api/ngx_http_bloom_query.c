/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file reads flags of queries.
 */

#include "ngx_http_bloom_query.h"


static ngx_uint_t
ngx_http_bloom_query_is(ngx_str_t *value, const char *text)
{
    return value->len == ngx_strlen(text)
           && ngx_strncmp(value->data, text, value->len) == 0;
}


ngx_int_t
ngx_http_bloom_query_flag(ngx_http_request_t *r, const char *name,
    ngx_uint_t *flag, ngx_http_bloom_error_t *error)
{
    ngx_str_t  value;

    *flag = 0;

    if (ngx_http_arg(r, (u_char *) name, ngx_strlen(name), &value) != NGX_OK) {
        return NGX_OK;
    }

    *flag = ngx_http_bloom_query_is(&value, "true")
            || ngx_http_bloom_query_is(&value, "1");

    if (*flag
        || ngx_http_bloom_query_is(&value, "false")
        || ngx_http_bloom_query_is(&value, "0"))
    {
        return NGX_OK;
    }

    ngx_http_bloom_error(error, NGX_HTTP_BLOOM_E_BAD_QUERY,
                         "invalid \"%s\" in the query; it must be \"true\" or "
                         "\"false\"", name);

    return NGX_DECLINED;
}
