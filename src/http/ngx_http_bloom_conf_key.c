/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file reads the keys of directives, and the parameters that go with keys.
 */

#include "ngx_http_bloom_conf_key.h"


static ngx_int_t ngx_http_bloom_conf_variable(ngx_conf_t *cf, ngx_str_t *text,
    ngx_uint_t *index);


static ngx_conf_enum_t  ngx_http_bloom_conf_key_decodes[] = {
    { ngx_string("uri"), BLOOM_DECODE_URI },
    { ngx_string("form"), BLOOM_DECODE_FORM },
    { ngx_string("off"), BLOOM_DECODE_OFF },
    { ngx_null_string, 0 }
};

static ngx_conf_enum_t  ngx_http_bloom_conf_key_matches[] = {
    { ngx_string("any"), 0 },
    { ngx_string("all"), 1 },
    { ngx_null_string, 0 }
};

static ngx_conf_enum_t  ngx_http_bloom_conf_key_fires[] = {
    { ngx_string("fire"), 1 },
    { ngx_string("pass"), 0 },
    { ngx_null_string, 0 }
};


#define NGX_HTTP_BLOOM_CONF_FIELD(field)                                      \
    offsetof(ngx_http_bloom_conf_params_t, field)

static const ngx_http_bloom_conf_param_t  ngx_http_bloom_conf_key_table[] = {

    { ngx_string("zone="), NGX_HTTP_BLOOM_CONF_KEY|NGX_HTTP_BLOOM_CONF_MUST,
      ngx_http_bloom_conf_read_zone, NGX_HTTP_BLOOM_CONF_FIELD(zone), NULL,
      "the name of a zone" },

    { ngx_string("decode="), NGX_HTTP_BLOOM_CONF_KEY,
      ngx_http_bloom_conf_read_name, NGX_HTTP_BLOOM_CONF_FIELD(decode),
      ngx_http_bloom_conf_key_decodes, NULL },

    { ngx_string("if="), NGX_HTTP_BLOOM_CONF_CHANGE|NGX_HTTP_BLOOM_CONF_RULE,
      ngx_http_bloom_conf_read_filter, NGX_HTTP_BLOOM_CONF_FIELD(filter), NULL,
      "a condition with a variable, such as if=$variable" },

    { ngx_string("status="), NGX_HTTP_BLOOM_CONF_REJECT,
      ngx_http_bloom_conf_read_count, NGX_HTTP_BLOOM_CONF_FIELD(status),
      ngx_http_bloom_conf_range(400, 599, 0), "a code from 400 to 599" },

    { ngx_string("to="), NGX_HTTP_BLOOM_CONF_ROUTE|NGX_HTTP_BLOOM_CONF_MUST,
      ngx_http_bloom_conf_read_text, NGX_HTTP_BLOOM_CONF_FIELD(to), NULL,
      NULL },

    { ngx_string("split="), NGX_HTTP_BLOOM_CONF_CHANGE|NGX_HTTP_BLOOM_CONF_RULE,
      ngx_http_bloom_conf_read_byte, NGX_HTTP_BLOOM_CONF_FIELD(split), NULL,
      "one byte, such as split=," },

    { ngx_string("match="), NGX_HTTP_BLOOM_CONF_RULE,
      ngx_http_bloom_conf_read_name, NGX_HTTP_BLOOM_CONF_FIELD(all),
      ngx_http_bloom_conf_key_matches, NULL },

    { ngx_string("invalid="), NGX_HTTP_BLOOM_CONF_RULE,
      ngx_http_bloom_conf_read_name, NGX_HTTP_BLOOM_CONF_FIELD(invalid),
      ngx_http_bloom_conf_key_fires, NULL },

    { ngx_string("empty="), NGX_HTTP_BLOOM_CONF_RULE,
      ngx_http_bloom_conf_read_name, NGX_HTTP_BLOOM_CONF_FIELD(empty),
      ngx_http_bloom_conf_key_fires, NULL },

    { ngx_string("exact"), NGX_HTTP_BLOOM_CONF_RULE,
      ngx_http_bloom_conf_read_flag, NGX_HTTP_BLOOM_CONF_FIELD(exact), NULL,
      NULL },

    { ngx_string("dry_run"), NGX_HTTP_BLOOM_CONF_RULE,
      ngx_http_bloom_conf_read_flag, NGX_HTTP_BLOOM_CONF_FIELD(dry_run), NULL,
      NULL },

    { ngx_string("name="), NGX_HTTP_BLOOM_CONF_RULE,
      ngx_http_bloom_conf_read_text, NGX_HTTP_BLOOM_CONF_FIELD(name), NULL,
      "a name that is not empty" },

    { ngx_null_string, 0, NULL, 0, NULL, NULL }
};


char *
ngx_http_bloom_conf_key(ngx_conf_t *cf, ngx_str_t *text, ngx_uint_t first,
    ngx_uint_t where, ngx_http_bloom_conf_params_t *params,
    ngx_http_bloom_key_t *key)
{
    if (ngx_http_bloom_conf_params(cf, first, ngx_http_bloom_conf_key_table,
                                   NGX_HTTP_BLOOM_CONF_KEY|where, params, NULL)
        != NGX_CONF_OK
        || ngx_http_bloom_conf_value(cf, text, &key->value) != NGX_CONF_OK)
    {
        return NGX_CONF_ERROR;
    }

    key->zone = params->zone;
    key->decode = params->decode;
    key->index = ngx_http_bloom_conf_variable(cf, text,
                                              key->value.flushes);

    if (key->value.lengths == NULL) {
        ngx_conf_log_error(NGX_LOG_WARN, cf, 0,
                           "the key \"%V\" has no variable, so every request "
                           "has the same key", text);
    }

    return NGX_CONF_OK;
}


/*
 * Returns the index of the variable if the text is a single one ("$name"), or
 * NGX_ERROR.  `index` lists the variables in the text.
 */
static ngx_int_t
ngx_http_bloom_conf_variable(ngx_conf_t *cf, ngx_str_t *text, ngx_uint_t *index)
{
    ngx_http_variable_t        *v;
    ngx_http_core_main_conf_t  *cmcf;

    if (index == NULL) {
        return NGX_ERROR;
    }

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);
    v = cmcf->variables.elts;

    return v[*index].name.len + 1 == text->len ? (ngx_int_t) *index : NGX_ERROR;
}
