/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file reads the query of a request by a table of its arguments.
 */

#include "ngx_http_bloom_query.h"
#include "bloom_key.h"


static const ngx_http_bloom_arg_t *ngx_http_bloom_query_find(
    const ngx_http_bloom_arg_t *args, ngx_str_t *name);
static ngx_int_t ngx_http_bloom_query_not_in(const ngx_http_bloom_arg_t *args,
    ngx_str_t *name, const char *what, ngx_http_bloom_error_t *error);
static ngx_int_t ngx_http_bloom_query_value(ngx_http_request_t *r,
    const ngx_http_bloom_arg_t *arg, ngx_str_t *value, u_char *to,
    ngx_http_bloom_error_t *error);
static ngx_int_t ngx_http_bloom_query_parse(const ngx_http_bloom_arg_t *arg,
    ngx_str_t *value, u_char *to);


ngx_int_t
ngx_http_bloom_query_read(ngx_http_request_t *r,
    const ngx_http_bloom_arg_t *args, void *to, ngx_http_bloom_error_t *error)
{
    u_char                      *p, *end, *next, *equals;
    ngx_int_t                    rc;
    uint64_t                     seen;
    ngx_str_t                    name, value;
    const ngx_http_bloom_arg_t  *arg;

    seen = 0;
    end = r->args.data + r->args.len;

    for (p = r->args.data; p < end; p = next + 1) {

        next = ngx_strlchr(p, end, '&');
        next = (next == NULL) ? end : next;

        equals = ngx_strlchr(p, next, '=');

        name.data = p;
        name.len = (equals == NULL ? next : equals) - p;

        value.data = (equals == NULL) ? next : equals + 1;
        value.len = next - value.data;

        if (name.len == 0) {
            continue;
        }

        arg = ngx_http_bloom_query_find(args, &name);

        if (arg == NULL) {
            return ngx_http_bloom_query_not_in(args, &name,
                                               "an unknown argument", error);
        }

        if (seen & ((uint64_t) 1 << (arg - args))) {
            return ngx_http_bloom_query_not_in(args, &name, "more than one",
                                               error);
        }

        rc = ngx_http_bloom_query_value(r, arg, &value, to, error);

        if (rc != NGX_OK) {
            return rc;
        }

        if (value.len != 0) {
            seen |= (uint64_t) 1 << (arg - args);
        }
    }

    for (arg = args; arg->name != NULL; arg++) {

        if (arg->required && !(seen & ((uint64_t) 1 << (arg - args)))) {
            return ngx_http_bloom_error(error, NGX_HTTP_BLOOM_E_BAD_QUERY,
                                        "the query lacks \"%s=\"", arg->name);
        }
    }

    return NGX_OK;
}


static const ngx_http_bloom_arg_t *
ngx_http_bloom_query_find(const ngx_http_bloom_arg_t *args, ngx_str_t *name)
{
    const ngx_http_bloom_arg_t  *arg;

    for (arg = args; arg->name != NULL; arg++) {
        if (ngx_strlen(arg->name) == name->len
            && ngx_strncmp(arg->name, name->data, name->len) == 0)
        {
            return arg;
        }
    }

    return NULL;
}


/* Sets the error: the arguments that the query may have. */
static ngx_int_t
ngx_http_bloom_query_not_in(const ngx_http_bloom_arg_t *args, ngx_str_t *name,
    const char *what, ngx_http_bloom_error_t *error)
{
    u_char      *p, buf[128];
    ngx_uint_t   n;

    p = buf;

    for (n = 0; args[n].name != NULL; n++) {
        p = ngx_slprintf(p, buf + sizeof(buf), "%s\"%s\"",
                         n == 0 ? "" : args[n + 1].name ? ", " : " and ",
                         args[n].name);
    }

    return ngx_http_bloom_error(error, NGX_HTTP_BLOOM_E_BAD_QUERY,
                                "the query has %s \"%V\", and nothing was "
                                "changed; it may have %*s once",
                                what, name, (size_t) (p - buf), buf);
}


/* Decodes the value of an argument and stores it.  Returns what
 * ngx_http_bloom_query_read() returns. */
static ngx_int_t
ngx_http_bloom_query_value(ngx_http_request_t *r,
    const ngx_http_bloom_arg_t *arg, ngx_str_t *value, u_char *to,
    ngx_http_bloom_error_t *error)
{
    u_char     *p;
    ngx_str_t   decoded;

    if (arg->type == NGX_HTTP_BLOOM_ARG_OTHER
        || (arg->required && value->len == 0))
    {
        return NGX_OK;
    }

    p = ngx_pnalloc(r->pool, value->len + 1);
    if (p == NULL) {
        return NGX_ERROR;
    }

    decoded.data = p;
    decoded.len = bloom_key_decode(p, value->data, value->len,
                                   BLOOM_DECODE_FORM);

    return ngx_http_bloom_query_parse(arg, &decoded, to + arg->offset) == NGX_OK
           ? NGX_OK
           : ngx_http_bloom_error(error, NGX_HTTP_BLOOM_E_BAD_QUERY,
                                  "invalid \"%s\" in the query; it must be %s",
                                  arg->name, arg->must);
}


static ngx_int_t
ngx_http_bloom_query_parse(const ngx_http_bloom_arg_t *arg, ngx_str_t *value,
    u_char *to)
{
    ngx_int_t   n;
    ngx_uint_t  i;

    switch (arg->type) {

    case NGX_HTTP_BLOOM_ARG_WORD:

        for (i = 0; i < NGX_HTTP_BLOOM_ARG_WORDS; i++) {
            if (arg->words[i] != NULL
                && ngx_strlen(arg->words[i]) == value->len
                && ngx_strncmp(arg->words[i], value->data, value->len) == 0)
            {
                *(ngx_uint_t *) to = i;
                return NGX_OK;
            }
        }

        return NGX_DECLINED;

    case NGX_HTTP_BLOOM_ARG_NUMBER:
        n = ngx_atoi(value->data, value->len);

        if (n == NGX_ERROR || n < arg->min || n > arg->max) {
            return NGX_DECLINED;
        }

        *(uint64_t *) to = (uint64_t) n;
        return NGX_OK;

    case NGX_HTTP_BLOOM_ARG_POSITION:
        return bloom_position_parse((bloom_position_t *) to, value->data,
                                    value->len) == 0
               ? NGX_OK : NGX_DECLINED;

    default: /* NGX_HTTP_BLOOM_ARG_TEXT */
        *(ngx_str_t *) to = *value;
        return NGX_OK;
    }
}
