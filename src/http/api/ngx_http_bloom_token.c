/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file writes a zone's token, and compares it with that of a request.
 */

#include "ngx_http_bloom_token.h"


u_char *
ngx_http_bloom_token(u_char *p, ngx_bloom_info_t *info)
{
    return ngx_sprintf(p, "%uL-%016xL", info->generation, info->instance);
}


ngx_int_t
ngx_http_bloom_token_match(ngx_http_request_t *r, ngx_bloom_zone_t *zone,
    ngx_http_bloom_error_t *error)
{
    size_t             len;
    u_char             token[NGX_HTTP_BLOOM_TOKEN_MAX];
    ngx_str_t          value;
    ngx_bloom_info_t   info;

    if (r->headers_in.if_match != NULL
        && !(r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD)))
    {
        /* a client relies on it, but these resources have no ETag */

        ngx_http_bloom_error(error, NGX_HTTP_BLOOM_E_GENERATION,
                             "nothing was changed, since \"If-Match\" never "
                             "matches; write \"?serving=TOKEN\" instead, with "
                             "\"token\" of the zone's state");
        return NGX_DECLINED;
    }

    if (ngx_http_arg(r, (u_char *) "serving", sizeof("serving") - 1, &value)
        != NGX_OK)
    {
        return NGX_OK;
    }

    ngx_bloom_info_get(zone, &info);

    if (info.generation == 0) {
        ngx_http_bloom_error(error, NGX_HTTP_BLOOM_E_GENERATION,
                             "no image of zone \"%V\" serves, so \"serving=\" "
                             "cannot name it, and nothing was changed; load an "
                             "image without \"serving=\"", &zone->name);
        return NGX_DECLINED;
    }

    len = ngx_http_bloom_token(token, &info) - token;

    if (value.len == len && ngx_strncmp(value.data, token, len) == 0) {
        return NGX_OK;
    }

    ngx_http_bloom_error(error, NGX_HTTP_BLOOM_E_GENERATION,
                         "zone \"%V\" serves generation \"%*s\", not "
                         "\"%V\" of \"serving=\"; nothing was changed: look at "
                         "the zone's state and try again",
                         &zone->name, len, token, &value);

    return NGX_DECLINED;
}
