/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file evaluates the conditions of directives, and evaluates and decodes
 * their keys.
 */

#include "ngx_http_bloom_key.h"
#include "ngx_http_bloom_ctx.h"


static ngx_uint_t ngx_http_bloom_key_is_read(ngx_http_core_main_conf_t *cmcf,
    ngx_http_variable_t *v);


/*
 * Variables whose evaluation only reads the request; a name that ends in "_" is
 * the beginning of such names.  Variables that a configuration can redefine,
 * such as $args, are not among them.
 */
static ngx_str_t  ngx_http_bloom_key_read[] = {
    ngx_string("arg_"),
    ngx_string("binary_remote_addr"),
    ngx_string("cookie_"),
    ngx_string("document_uri"),
    ngx_string("host"),
    ngx_string("http_"),
    ngx_string("http_host"),
    ngx_string("http_referer"),
    ngx_string("http_user_agent"),
    ngx_string("http_x_forwarded_for"),
    ngx_string("query_string"),
    ngx_string("remote_addr"),
    ngx_string("request_uri"),
    ngx_string("uri"),
    ngx_null_string
};


ngx_uint_t
ngx_http_bloom_key_is_plain(ngx_http_core_main_conf_t *cmcf,
    ngx_http_bloom_key_t *key)
{
    ngx_uint_t           *index;
    ngx_http_variable_t  *v;

    v = cmcf->variables.elts;

    if (key->index != NGX_ERROR) {
        return ngx_http_bloom_key_is_read(cmcf, &v[key->index]);
    }

    index = key->value.flushes;

    for ( /* void */ ; index && *index != (ngx_uint_t) -1; index++) {
        if (!ngx_http_bloom_key_is_read(cmcf, &v[*index])) {
            return 0;
        }
    }

    return 1;
}


static ngx_uint_t
ngx_http_bloom_key_is_read(ngx_http_core_main_conf_t *cmcf,
    ngx_http_variable_t *v)
{
    ngx_str_t            *name;
    ngx_uint_t            i;
    ngx_http_variable_t  *family;

    if (v->get_handler == ngx_http_bloom_value_variable) {
        return 1;
    }

    family = cmcf->prefix_variables.elts;

    for (name = ngx_http_bloom_key_read; name->len; name++) {

        if (v->name.len < name->len
            || ngx_strncmp(v->name.data, name->data, name->len) != 0)
        {
            continue;
        }

        if (name->data[name->len - 1] != '_') {

            if (v->name.len == name->len) {
                return 1;
            }

            continue;
        }

        /* a "map" may define a name of a family, too, with its own handler */

        for (i = 0; i < cmcf->prefix_variables.nelts; i++) {
            if (family[i].name.len == name->len
                && ngx_strncmp(family[i].name.data, name->data, name->len) == 0
                && family[i].get_handler == v->get_handler)
            {
                return 1;
            }
        }
    }

    return 0;
}


ngx_int_t
ngx_http_bloom_key_compose(ngx_http_request_t *r, ngx_http_bloom_key_t *key,
    ngx_str_t *text)
{
    ngx_uint_t  *index;

    if (ngx_http_complex_value(r, &key->value, text) != NGX_OK) {
        return NGX_ERROR;
    }

    index = key->value.flushes;          /* the key's variables */

    for ( /* void */ ; index && *index != (ngx_uint_t) -1; index++) {
        if (ngx_http_bloom_value_is_ambiguous(&r->variables[*index])) {
            return NGX_HTTP_BLOOM_KEY_AMBIGUOUS;
        }
    }

    if (text->len == 0) {
        return NGX_DECLINED;
    }

    return key->decode == BLOOM_DECODE_OFF
           ? NGX_OK : ngx_http_bloom_key_decode(r, key, text);
}


ngx_int_t
ngx_http_bloom_key_missing(const ngx_http_variable_value_t *v, ngx_str_t *text)
{
    ngx_str_set(text, "");

    return (v != NULL && ngx_http_bloom_value_is_ambiguous(v))
           ? NGX_HTTP_BLOOM_KEY_AMBIGUOUS : NGX_DECLINED;
}


ngx_int_t
ngx_http_bloom_key_decode(ngx_http_request_t *r, ngx_http_bloom_key_t *key,
    ngx_str_t *text)
{
    ngx_http_bloom_ctx_t  *ctx;

    /* memory of a request does not change while it has it */

    ctx = ngx_http_bloom_ctx_get(r);

    return ngx_bloom_rule_decode(text, key->decode,
                                     ctx ? &ctx->decoded : NULL, r->pool);
}


ngx_int_t
ngx_http_bloom_key_condition(ngx_http_request_t *r,
    ngx_http_complex_value_t *filter)
{
    ngx_str_t  text;

    if (ngx_http_complex_value(r, filter, &text) != NGX_OK) {
        return NGX_ERROR;
    }

    return text.len == 0 || (text.len == 1 && text.data[0] == '0')
           ? NGX_DECLINED : NGX_OK;
}
