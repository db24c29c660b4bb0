/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file implements bloom_add: it adds the keys of a response before the
 * client sees the response and can ask for them.
 */

#include "ngx_http_bloom_add.h"
#include "ngx_http_bloom_ctx.h"
#include "ngx_http_bloom_debug.h"
#include "ngx_http_bloom_key.h"
#include "ngx_bloom_add.h"


static ngx_int_t ngx_http_bloom_add_one(ngx_http_request_t *r,
    ngx_http_bloom_addition_t *addition);


ngx_int_t
ngx_http_bloom_add_keys(ngx_http_request_t *r)
{
    ngx_uint_t                  i;
    ngx_http_bloom_ctx_t       *ctx;
    ngx_http_bloom_addition_t  *addition;
    ngx_http_bloom_loc_conf_t  *blcf;

    blcf = ngx_http_get_module_loc_conf(r, ngx_http_bloom_module);

    ctx = ngx_http_bloom_ctx_obtain(r);
    if (ctx == NULL) {
        return NGX_ERROR;
    }

    /* a later filter may replace the response by an error page, whose header
     * comes here again */

    if (ctx->added) {
        return NGX_OK;
    }

    ctx->added = 1;

    addition = blcf->adds->elts;

    for (i = 0; i < blcf->adds->nelts; i++) {
        if (ngx_http_bloom_add_one(r, &addition[i]) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_bloom_add_one(ngx_http_request_t *r,
    ngx_http_bloom_addition_t *addition)
{
    ngx_int_t    rc;
    ngx_str_t    text;
    const char  *why;

    if (addition->filter != NULL) {

        if (ngx_http_complex_value(r, addition->filter, &text) != NGX_OK) {
            return NGX_ERROR;
        }

        if (text.len == 0 || (text.len == 1 && text.data[0] == '0')) {
            return NGX_OK;
        }
    }

    rc = ngx_http_bloom_key_text(r, &addition->key, &text);

    if (rc == NGX_HTTP_BLOOM_KEY_AMBIGUOUS) {
        (void) ngx_http_bloom_key_count_ambiguous(&addition->key);

        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "a key was not added to bloom zone \"%V\": the request "
                      "has the argument of its \"bloom_arg\" several times "
                      "with different values; let \"bloom_add\" take the key "
                      "from the backend's response",
                      &addition->key.zone->name);
        return NGX_OK;
    }

    if (rc != NGX_OK) {
        return rc == NGX_DECLINED ? NGX_OK : rc;
    }

    ngx_http_bloom_debug_add(r, addition->key.zone, &text);

    why = ngx_bloom_add_key(addition->key.zone, &text);

    if (why != NULL) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "a key of %uz bytes was not added to bloom zone \"%V\": "
                      "it %s", text.len, &addition->key.zone->name, why);
    }

    return NGX_OK;
}
