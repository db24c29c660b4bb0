/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file implements bloom_arg: it finds an argument of the query by its
 * exact name.
 */

#include "ngx_http_bloom_arg.h"
#include "ngx_http_bloom_conf.h"
#include "bloom_ascii.h"


static ngx_int_t ngx_http_bloom_arg_escaped(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_bloom_arg_find(ngx_str_t *args, ngx_str_t *name,
    ngx_str_t *value);
static ngx_uint_t ngx_http_bloom_arg_is_same(u_char *a, u_char *a_end,
    u_char *b, u_char *b_end);
static ngx_inline ngx_uint_t ngx_http_bloom_arg_byte(u_char **pos,
    u_char *end);
static ngx_int_t ngx_http_bloom_arg_decode(ngx_pool_t *pool, ngx_str_t *value);
static ngx_int_t ngx_http_bloom_arg_escape(ngx_pool_t *pool, ngx_str_t *value);


u_char  ngx_http_bloom_arg_ambiguous[1];


char *
ngx_http_bloom_arg_conf(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_str_t            *value, *name;
    ngx_uint_t            i;
    ngx_http_variable_t  *var;

    value = cf->args->elts;

    if (value[1].len == 0) {
        return ngx_http_bloom_conf_invalid(cf, "argument name", &value[1],
                                           "a name that is not empty");
    }

    name = ngx_palloc(cf->pool, sizeof(ngx_str_t));
    if (name == NULL) {
        return NGX_CONF_ERROR;
    }

    /* escaped, since names of arguments may be escaped as well */

    *name = value[1];

    if (ngx_http_bloom_arg_escape(cf->pool, name) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    for (i = 2; i < cf->args->nelts; i++) {

        var = ngx_http_bloom_conf_add_variable(cf, &value[i]);
        if (var == NULL) {
            return NGX_CONF_ERROR;
        }

        var->get_handler = (i == 2) ? ngx_http_bloom_arg_variable
                                    : ngx_http_bloom_arg_escaped;
        var->data = (uintptr_t) name;
    }

    return NGX_CONF_OK;
}


ngx_int_t
ngx_http_bloom_arg_variable(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    uintptr_t data)
{
    ngx_str_t *name = (ngx_str_t *) data;

    ngx_int_t  rc;
    ngx_str_t  value;

    rc = ngx_http_bloom_arg_find(&r->args, name, &value);

    if (rc == NGX_DECLINED) {
        value.len = 0;
        value.data = ngx_http_bloom_arg_ambiguous;

    } else if (ngx_http_bloom_arg_decode(r->pool, &value) != NGX_OK) {
        return NGX_ERROR;
    }

    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;
    v->len = value.len;
    v->data = value.data;

    return NGX_OK;
}


/* Evaluates the escaped variable, which is safe in a URL or in a header. */
static ngx_int_t
ngx_http_bloom_arg_escaped(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    uintptr_t data)
{
    ngx_str_t  value;

    if (ngx_http_bloom_arg_variable(r, v, data) != NGX_OK) {
        return NGX_ERROR;
    }

    value.len = v->len;
    value.data = v->data;

    if (ngx_http_bloom_arg_escape(r->pool, &value) != NGX_OK) {
        return NGX_ERROR;
    }

    v->len = value.len;
    v->data = value.data;

    return NGX_OK;
}


/*
 * Finds the argument whose escaped name is `name`.  Returns NGX_OK with the
 * value as the client sent it, or an empty value if there is no such argument;
 * NGX_DECLINED if the argument is ambiguous.
 */
static ngx_int_t
ngx_http_bloom_arg_find(ngx_str_t *args, ngx_str_t *name, ngx_str_t *value)
{
    u_char  *p, *end, *last, *equals;

    ngx_str_null(value);

    p = args->data;
    end = p + args->len;

    for ( /* void */ ; p < end; p = last + 1) {

        last = ngx_strlchr(p, end, '&');

        if (last == NULL) {
            last = end;
        }

        equals = ngx_strlchr(p, last, '=');

        if (equals == NULL) {
            equals = last;
        }

        if (!ngx_http_bloom_arg_is_same(p, equals, name->data,
                                        name->data + name->len))
        {
            continue;
        }

        p = ngx_min(equals + 1, last);

        if (value->data == NULL) {
            value->data = p;
            value->len = last - p;

        } else if (!ngx_http_bloom_arg_is_same(value->data,
                                               value->data + value->len,
                                               p, last))
        {
            return NGX_DECLINED;
        }
    }

    if (value->data == NULL) {
        ngx_str_set(value, "");
    }

    return NGX_OK;
}


/* Returns 1 if two texts are equal once they are decoded. */
static ngx_uint_t
ngx_http_bloom_arg_is_same(u_char *a, u_char *a_end, u_char *b, u_char *b_end)
{
    while (a < a_end && b < b_end) {
        if (ngx_http_bloom_arg_byte(&a, a_end)
            != ngx_http_bloom_arg_byte(&b, b_end))
        {
            return 0;
        }
    }

    return a == a_end && b == b_end;
}


/* Decodes the next byte of a text as bloom_key_decode() does. */
static ngx_inline ngx_uint_t
ngx_http_bloom_arg_byte(u_char **pos, u_char *end)
{
    int      high, low;
    u_char  *p;

    p = *pos;
    *pos = p + 1;

    if (*p == '+') {
        return ' ';
    }

    if (*p == '%' && end - p > 2) {
        high = bloom_hex_digit(p[1]);
        low = bloom_hex_digit(p[2]);

        if (high != -1 && low != -1) {
            *pos = p + 3;
            return (ngx_uint_t) (high << 4 | low);
        }
    }

    return *p;
}


/* Decodes a value.  It is copied only if something in it is escaped. */
static ngx_int_t
ngx_http_bloom_arg_decode(ngx_pool_t *pool, ngx_str_t *value)
{
    size_t   i;
    u_char  *p;

    for (i = 0; i < value->len; i++) {
        if (value->data[i] == '%' || value->data[i] == '+') {
            break;
        }
    }

    if (i == value->len) {
        return NGX_OK;
    }

    p = ngx_pnalloc(pool, value->len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    value->len = bloom_key_decode(p, value->data, value->len,
                                  BLOOM_DECODE_FORM);
    value->data = p;

    return NGX_OK;
}


/* Escapes every byte that is not a letter, a digit, "-", ".", "_" or "~". */
static ngx_int_t
ngx_http_bloom_arg_escape(ngx_pool_t *pool, ngx_str_t *value)
{
    u_char  *p, *c, *end;

    if (value->len == 0) {
        return NGX_OK;
    }

    p = ngx_pnalloc(pool, 3 * value->len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    c = value->data;
    end = c + value->len;

    value->data = p;

    for ( /* void */ ; c < end; c++) {

        if (bloom_is_alpha(*c) || bloom_is_digit(*c) || *c == '-' || *c == '.'
            || *c == '_' || *c == '~')
        {
            *p++ = *c;

        } else {
            p = ngx_sprintf(p, "%%%02Xi", (ngx_int_t) *c);
        }
    }

    value->len = p - value->data;

    return NGX_OK;
}
