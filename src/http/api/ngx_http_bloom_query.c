/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file checks queries and reads their flags.
 */

#include "ngx_http_bloom_query.h"
#include "bloom_key.h"


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


ngx_int_t
ngx_http_bloom_query_choice(ngx_http_request_t *r, const char *name,
    const char *first, const char *second, ngx_uint_t *choice,
    ngx_http_bloom_error_t *error)
{
    ngx_str_t  value;

    *choice = 0;

    if (ngx_http_arg(r, (u_char *) name, ngx_strlen(name), &value) != NGX_OK) {
        return NGX_OK;
    }

    *choice = ngx_http_bloom_query_is(&value, first) ? 1
              : ngx_http_bloom_query_is(&value, second) ? 2 : 0;

    if (*choice != 0) {
        return NGX_OK;
    }

    return ngx_http_bloom_error(error, NGX_HTTP_BLOOM_E_BAD_QUERY,
                                "invalid \"%s\" in the query; it must be "
                                "\"%s\" or \"%s\"", name, first, second);
}


ngx_int_t
ngx_http_bloom_query_only(ngx_http_request_t *r, const char *const *names,
    ngx_http_bloom_error_t *error)
{
    u_char      *p, *end, *next, buf[128];
    ngx_str_t    name;
    ngx_uint_t   i, n, seen;

    seen = 0;
    end = r->args.data + r->args.len;

    for (p = r->args.data; p < end; p = next + 1) {

        next = ngx_strlchr(p, end, '&');
        next = (next == NULL) ? end : next;

        name.data = p;
        p = ngx_strlchr(p, next, '=');
        name.len = (p == NULL ? next : p) - name.data;

        if (name.len == 0) {
            continue;
        }

        for (i = 0; names[i] != NULL; i++) {
            if (ngx_http_bloom_query_is(&name, names[i])) {
                break;
            }
        }

        if (names[i] == NULL || (seen & (1 << i))) {
            p = buf;

            for (n = 0; names[n] != NULL; n++) {
                p = ngx_slprintf(p, buf + sizeof(buf), "%s\"%s\"",
                                 n == 0 ? "" : names[n + 1] ? ", " : " and ",
                                 names[n]);
            }

            ngx_http_bloom_error(error, NGX_HTTP_BLOOM_E_BAD_QUERY,
                                 "the query has %s \"%V\", and nothing was "
                                 "changed; it may have %*s once",
                                 names[i] == NULL
                                 ? "an unknown argument" : "more than one",
                                 &name, (size_t) (p - buf), buf);
            return NGX_DECLINED;
        }

        seen |= 1 << i;
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_bloom_query_value(ngx_http_request_t *r, const char *name,
    ngx_str_t *value, ngx_http_bloom_error_t *error)
{
    u_char  *p;

    if (ngx_http_arg(r, (u_char *) name, ngx_strlen(name), value) != NGX_OK
        || value->len == 0)
    {
        ngx_http_bloom_error(error, NGX_HTTP_BLOOM_E_BAD_QUERY,
                             "the query lacks \"%s=\"", name);
        return NGX_DECLINED;
    }

    p = ngx_pnalloc(r->pool, value->len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    value->len = bloom_key_decode(p, value->data, value->len,
                                  BLOOM_DECODE_FORM);
    value->data = p;

    return NGX_OK;
}
