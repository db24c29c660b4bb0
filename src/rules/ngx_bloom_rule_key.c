/* SPDX-License-Identifier: BSD-2-Clause */

/* This file decodes the text of keys, and writes keys for the log. */

#include "ngx_bloom_rule_key.h"


ngx_int_t
ngx_bloom_rule_key_decode(ngx_str_t *text, bloom_decode_e decode,
    ngx_bloom_rule_decoded_t *last, ngx_pool_t *pool)
{
    u_char     *p;
    ngx_str_t   from;

    if (last != NULL && last->decode == decode
        && last->from.data == text->data && last->from.len == text->len)
    {
        *text = last->text;
        return NGX_OK;
    }

    p = ngx_pnalloc(pool, text->len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    from = *text;

    text->len = bloom_key_decode(p, from.data, from.len, decode);
    text->data = p;

    if (last != NULL) {
        last->decode = decode;
        last->from = from;
        last->text = *text;
    }

    return NGX_OK;
}


u_char *
ngx_bloom_rule_key_log(u_char *p, const ngx_str_t *key)
{
    u_char  c;
    size_t  i, len;

    len = ngx_min(key->len, NGX_BLOOM_RULE_KEY_LOGGED);

    for (i = 0; i < len; i++) {
        c = key->data[i];

        if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\') {
            p = ngx_sprintf(p, "\\x%02Xi", (ngx_int_t) c);

        } else {
            *p++ = c;
        }
    }

    return len < key->len ? ngx_cpymem(p, "...", 3) : p;
}
