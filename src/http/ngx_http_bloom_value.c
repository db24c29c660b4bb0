/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file implements bloom_arg, bloom_cookie and bloom_header: it finds the
 * value that a client sends under a name.
 */

#include "ngx_http_bloom_value.h"
#include "ngx_http_bloom_conf.h"
#include "ngx_http_bloom_ctx.h"
#include "bloom_ascii.h"


/*
 * Finds the value of a name.  Returns NGX_OK with the value as the client sent
 * it, or an empty value if the request has no such name; NGX_DECLINED if the
 * value is ambiguous.
 */
typedef ngx_int_t (*ngx_http_bloom_value_find_pt)(ngx_http_request_t *r,
    ngx_str_t *name, ngx_str_t *value);


typedef struct {
    char                          *what;
    char                          *want;
    ngx_http_bloom_value_find_pt   find;
    ngx_uint_t                     encoded;
} ngx_http_bloom_value_source_t;


typedef struct {
    ngx_str_t                       name;   /* an argument's is escaped */
    ngx_http_bloom_value_source_t  *source;
} ngx_http_bloom_value_t;


static ngx_uint_t ngx_http_bloom_value_is_name(ngx_str_t *name,
    ngx_uint_t source);
static ngx_int_t ngx_http_bloom_value_read(ngx_http_request_t *r,
    ngx_http_bloom_value_t *named, ngx_str_t *value);
static ngx_int_t ngx_http_bloom_value_mark(ngx_http_request_t *r);
static ngx_int_t ngx_http_bloom_value_escaped(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_bloom_value_arg(ngx_http_request_t *r,
    ngx_str_t *name, ngx_str_t *value);
static ngx_int_t ngx_http_bloom_value_cookie(ngx_http_request_t *r,
    ngx_str_t *name, ngx_str_t *value);
static ngx_int_t ngx_http_bloom_value_cookie_pair(u_char *p, u_char *last,
    ngx_str_t *name, ngx_str_t *value);
static ngx_uint_t ngx_http_bloom_value_cookie_is_hidden(u_char *p,
    u_char *last, ngx_str_t *name);
static ngx_int_t ngx_http_bloom_value_header(ngx_http_request_t *r,
    ngx_str_t *name, ngx_str_t *value);
static void ngx_http_bloom_value_trim(u_char **p, u_char **last);
static ngx_int_t ngx_http_bloom_value_take(u_char *p, u_char *last,
    ngx_str_t *value);
static ngx_uint_t ngx_http_bloom_value_is_token(u_char c);
static ngx_uint_t ngx_http_bloom_value_is_same(u_char *a, u_char *a_end,
    u_char *b, u_char *b_end);
static ngx_inline ngx_uint_t ngx_http_bloom_value_byte(u_char **pos,
    u_char *end);
static ngx_int_t ngx_http_bloom_value_decode(ngx_pool_t *pool,
    ngx_str_t *value);
static ngx_int_t ngx_http_bloom_value_escape(ngx_pool_t *pool,
    ngx_str_t *value);


u_char  ngx_http_bloom_value_ambiguous[1];


static ngx_http_bloom_value_source_t  ngx_http_bloom_value_sources[] = {

    { "argument name", "a name that is not empty",
      ngx_http_bloom_value_arg, 1 },

    { "cookie name", "letters, digits and other characters that a cookie's "
                     "name may have, without \"=\"",
      ngx_http_bloom_value_cookie, 0 },

    { "header name", "letters, digits and \"-\", without \":\", and not "
                     "\"Host\": the host of a request is in \"$host\"",
      ngx_http_bloom_value_header, 0 }
};


char *
ngx_http_bloom_value_conf(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_str_t                      *value;
    ngx_uint_t                      i;
    ngx_http_variable_t            *var;
    ngx_http_bloom_value_t         *named;
    ngx_http_bloom_value_source_t  *source;

    value = cf->args->elts;
    source = &ngx_http_bloom_value_sources[cmd->offset];

    if (!ngx_http_bloom_value_is_name(&value[1], cmd->offset)) {
        return ngx_http_bloom_conf_invalid(cf, source->what, &value[1],
                                           source->want);
    }

    named = ngx_palloc(cf->pool, sizeof(ngx_http_bloom_value_t));
    if (named == NULL) {
        return NGX_CONF_ERROR;
    }

    named->name = value[1];
    named->source = source;

    /* escaped, since names of arguments may be escaped as well */

    if (source->encoded
        && ngx_http_bloom_value_escape(cf->pool, &named->name) != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    for (i = 2; i < cf->args->nelts; i++) {

        var = ngx_http_bloom_conf_add_variable(cf, &value[i]);
        if (var == NULL) {
            return NGX_CONF_ERROR;
        }

        var->get_handler = (i == 2) ? ngx_http_bloom_value_variable
                                    : ngx_http_bloom_value_escaped;
        var->data = (uintptr_t) named;
    }

    return NGX_CONF_OK;
}


static ngx_uint_t
ngx_http_bloom_value_is_name(ngx_str_t *name, ngx_uint_t source)
{
    size_t  i;

    if (name->len == 0) {
        return 0;
    }

    if (source == NGX_HTTP_BLOOM_VALUE_ARG) {
        return 1;
    }

    for (i = 0; i < name->len; i++) {
        if (!ngx_http_bloom_value_is_token(name->data[i])) {
            return 0;
        }
    }

    /* in a request for a whole URL, nginx ignores the header Host */

    return source == NGX_HTTP_BLOOM_VALUE_COOKIE
           || name->len != 4
           || ngx_strncasecmp(name->data, (u_char *) "host", 4) != 0;
}


ngx_int_t
ngx_http_bloom_value_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_http_bloom_value_t *named = (ngx_http_bloom_value_t *) data;

    ngx_str_t              value;
    ngx_http_bloom_ctx_t  *ctx;

    ctx = named->source->encoded ? ngx_http_bloom_ctx_get(r) : NULL;

    if (ctx != NULL && ctx->read_by == named
        && ctx->read_from.data == r->args.data
        && ctx->read_from.len == r->args.len)
    {
        value = ctx->read;

    } else {

        if (ngx_http_bloom_value_read(r, named, &value) != NGX_OK) {
            return NGX_ERROR;
        }

        if (ctx != NULL) {
            ctx->read_by = named;
            ctx->read_from = r->args;
            ctx->read = value;
        }
    }

    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;
    v->len = value.len;
    v->data = value.data;

    return NGX_OK;
}


static ngx_int_t
ngx_http_bloom_value_read(ngx_http_request_t *r, ngx_http_bloom_value_t *named,
    ngx_str_t *value)
{
    ngx_int_t  rc;

    ngx_str_null(value);

    rc = named->source->find(r, &named->name, value);

    if (rc == NGX_DECLINED) {
        value->len = 0;
        value->data = ngx_http_bloom_value_ambiguous;

        return ngx_http_bloom_value_mark(r);
    }

    if (value->data == NULL) {
        ngx_str_set(value, "");
        return NGX_OK;
    }

    return named->source->encoded ? ngx_http_bloom_value_decode(r->pool, value)
                                  : NGX_OK;
}


/* Marks a request with an ambiguous value: a rule whose key is empty may have
 * its key from the value by way of "set" or "map". */
static ngx_int_t
ngx_http_bloom_value_mark(ngx_http_request_t *r)
{
    ngx_http_bloom_ctx_t  *ctx;

    if (r != r->main) {
        return NGX_OK;                  /* rules run in the main request only */
    }

    ctx = ngx_http_bloom_ctx_obtain(r);
    if (ctx == NULL) {
        return NGX_ERROR;
    }

    ctx->ambiguous = 1;

    return NGX_OK;
}


/* Evaluates the escaped variable, which is safe in a URL or in a header. */
static ngx_int_t
ngx_http_bloom_value_escaped(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_str_t  value;

    if (ngx_http_bloom_value_variable(r, v, data) != NGX_OK) {
        return NGX_ERROR;
    }

    value.len = v->len;
    value.data = v->data;

    if (ngx_http_bloom_value_escape(r->pool, &value) != NGX_OK) {
        return NGX_ERROR;
    }

    v->len = value.len;
    v->data = value.data;

    return NGX_OK;
}


/* Finds the argument whose escaped name is `name`. */
static ngx_int_t
ngx_http_bloom_value_arg(ngx_http_request_t *r, ngx_str_t *name,
    ngx_str_t *value)
{
    u_char  *p, *end, *last, *equals;

    p = r->args.data;
    end = p + r->args.len;

    for ( /* void */ ; p < end; p = last + 1) {

        last = memchr(p, '&', end - p);

        if (last == NULL) {
            last = end;
        }

        equals = memchr(p, '=', last - p);

        if (equals == NULL) {
            equals = last;
        }

        if (!ngx_http_bloom_value_is_same(p, equals, name->data,
                                          name->data + name->len))
        {
            continue;
        }

        p = ngx_min(equals + 1, last);

        if (value->data == NULL) {
            value->data = p;
            value->len = last - p;

        } else if (!ngx_http_bloom_value_is_same(value->data,
                                                 value->data + value->len,
                                                 p, last))
        {
            return NGX_DECLINED;
        }
    }

    return NGX_OK;
}


/*
 * Finds a cookie in all headers of the request.  HTTP/2 and HTTP/3 may send
 * each cookie in a field of its own, which nginx joins by "; ".
 */
static ngx_int_t
ngx_http_bloom_value_cookie(ngx_http_request_t *r, ngx_str_t *name,
    ngx_str_t *value)
{
    u_char           *p, *end, *last;
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    static ngx_str_t  cookie = ngx_string("cookie");

    i = 0;
    part = &r->headers_in.headers.part;

    for ( ;; ) {
        h = ngx_http_bloom_value_next_header(&part, &i, &cookie);

        if (h == NULL) {
            return NGX_OK;
        }

        end = h->value.data + h->value.len;

        for (p = h->value.data; p < end; p = last + 1) {

            last = ngx_strlchr(p, end, ';');

            if (last == NULL) {
                last = end;
            }

            if (ngx_http_bloom_value_cookie_pair(p, last, name, value)
                != NGX_OK)
            {
                return NGX_DECLINED;
            }
        }
    }
}


/* Takes the value of one cookie if it has the name. */
static ngx_int_t
ngx_http_bloom_value_cookie_pair(u_char *p, u_char *last, ngx_str_t *name,
    ngx_str_t *value)
{
    u_char  *c, *equals;

    equals = ngx_strlchr(p, last, '=');

    if (equals == NULL) {
        equals = last;
    }

    c = equals;
    ngx_http_bloom_value_trim(&p, &c);

    if ((size_t) (c - p) != name->len
        || ngx_strncmp(p, name->data, name->len) != 0)
    {
        return ngx_http_bloom_value_cookie_is_hidden(p, last, name)
               ? NGX_DECLINED : NGX_OK;
    }

    p = ngx_min(equals + 1, last);
    ngx_http_bloom_value_trim(&p, &last);

    if (last - p > 1 && p[0] == '"' && last[-1] == '"') {
        p++;
        last--;
    }

    for (c = p; c < last; c++) {
        if (*c <= ' ' || *c >= 0x7f || *c == '"' || *c == ',' || *c == '\\') {
            return NGX_DECLINED;
        }
    }

    return ngx_http_bloom_value_take(p, last, value);
}


/*
 * Returns 1 if some backends find the cookie in a text that has another one:
 * some split at a comma or at a blank as well, and some trim other bytes than
 * spaces and tabs.
 */
static ngx_uint_t
ngx_http_bloom_value_cookie_is_hidden(u_char *p, u_char *last, ngx_str_t *name)
{
    u_char      *c;
    ngx_uint_t   begins;

    begins = 1;

    for ( /* void */ ; p < last; p++) {

        if (*p <= ' ' || *p >= 0x7f || *p == ',') {
            begins = 1;
            continue;
        }

        if (begins
            && (size_t) (last - p) > name->len
            && ngx_strncmp(p, name->data, name->len) == 0)
        {
            c = p + name->len;

            while (c < last && (*c <= ' ' || *c >= 0x7f)) {
                c++;
            }

            if (c < last && *c == '=') {
                return 1;
            }
        }

        begins = 0;
    }

    return 0;
}


static ngx_int_t
ngx_http_bloom_value_header(ngx_http_request_t *r, ngx_str_t *name,
    ngx_str_t *value)
{
    u_char           *c, *p, *last;
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    i = 0;
    part = &r->headers_in.headers.part;

    for ( ;; ) {
        h = ngx_http_bloom_value_next_header(&part, &i, name);

        if (h == NULL) {
            return NGX_OK;
        }

        p = h->value.data;
        last = p + h->value.len;
        ngx_http_bloom_value_trim(&p, &last);

        for (c = p; c < last; c++) {
            if ((*c < ' ' && *c != '\t') || *c == 0x7f) {
                return NGX_DECLINED;
            }
        }

        if (ngx_http_bloom_value_take(p, last, value) != NGX_OK) {
            return NGX_DECLINED;
        }
    }
}


ngx_table_elt_t *
ngx_http_bloom_value_next_header(ngx_list_part_t **part, ngx_uint_t *i,
    ngx_str_t *name)
{
    u_char            a, b;
    size_t            n;
    ngx_table_elt_t  *h;

    for ( ;; ) {

        if (*i == (*part)->nelts) {
            *part = (*part)->next;
            *i = 0;

            if (*part == NULL) {
                return NULL;
            }

            continue;
        }

        h = (ngx_table_elt_t *) (*part)->elts + (*i)++;

        if (h->hash == 0 || h->key.len != name->len) {
            continue;
        }

        for (n = 0; n < name->len; n++) {
            a = bloom_lower(h->key.data[n]);
            b = bloom_lower(name->data[n]);

            if (a != b && !((a == '-' && b == '_') || (a == '_' && b == '-'))) {
                break;
            }
        }

        if (n == name->len) {
            return h;
        }
    }
}


/* Leaves out the spaces and tabs around a text. */
static void
ngx_http_bloom_value_trim(u_char **p, u_char **last)
{
    while (*p < *last && (**p == ' ' || **p == '\t')) {
        (*p)++;
    }

    while (*p < *last && ((*last)[-1] == ' ' || (*last)[-1] == '\t')) {
        (*last)--;
    }
}


/* Takes a value.  Returns NGX_DECLINED if another one was taken before. */
static ngx_int_t
ngx_http_bloom_value_take(u_char *p, u_char *last, ngx_str_t *value)
{
    size_t  len;

    len = last - p;

    if (value->data == NULL) {
        value->data = (len != 0) ? p : (u_char *) "";
        value->len = len;
        return NGX_OK;
    }

    return value->len == len && ngx_memcmp(value->data, p, len) == 0
           ? NGX_OK : NGX_DECLINED;
}


/* Returns 1 if a name of a cookie or of a header may have the byte. */
static ngx_uint_t
ngx_http_bloom_value_is_token(u_char c)
{
    return bloom_is_alpha(c) || bloom_is_digit(c)
           || (c != '\0' && ngx_strchr("!#$%&'*+-.^_`|~", c) != NULL);
}


/* Returns 1 if two texts are equal once they are decoded. */
static ngx_uint_t
ngx_http_bloom_value_is_same(u_char *a, u_char *a_end, u_char *b, u_char *b_end)
{
    while (a < a_end && b < b_end) {
        if (ngx_http_bloom_value_byte(&a, a_end)
            != ngx_http_bloom_value_byte(&b, b_end))
        {
            return 0;
        }
    }

    return a == a_end && b == b_end;
}


/* Decodes the next byte of a text as bloom_key_decode() does. */
static ngx_inline ngx_uint_t
ngx_http_bloom_value_byte(u_char **pos, u_char *end)
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
ngx_http_bloom_value_decode(ngx_pool_t *pool, ngx_str_t *value)
{
    if (memchr(value->data, '%', value->len) == NULL
        && memchr(value->data, '+', value->len) == NULL)
    {
        return NGX_OK;
    }

    return ngx_bloom_rule_decode(value, BLOOM_DECODE_FORM, NULL, pool);
}


/* Escapes every byte that is not a letter, a digit, "-", ".", "_" or "~". */
static ngx_int_t
ngx_http_bloom_value_escape(ngx_pool_t *pool, ngx_str_t *value)
{
    u_char     *p;
    uintptr_t   escaped;

    escaped = ngx_escape_uri(NULL, value->data, value->len,
                             NGX_ESCAPE_URI_COMPONENT);

    if (escaped == 0) {
        return NGX_OK;
    }

    p = ngx_pnalloc(pool, value->len + 2 * escaped);
    if (p == NULL) {
        return NGX_ERROR;
    }

    (void) ngx_escape_uri(p, value->data, value->len, NGX_ESCAPE_URI_COMPONENT);

    value->data = p;
    value->len += 2 * escaped;

    return NGX_OK;
}
