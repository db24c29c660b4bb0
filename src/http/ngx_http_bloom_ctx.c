/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file finds the context of a request after an internal redirect.
 */

#include "ngx_http_bloom_ctx.h"


ngx_http_bloom_ctx_t *
ngx_http_bloom_ctx_find(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t    *cln;
    ngx_http_bloom_ctx_t  *ctx;

    for (cln = r->pool->cleanup; cln; cln = cln->next) {

        if (cln->handler == ngx_http_bloom_ctx_mark) {
            ctx = (ngx_http_bloom_ctx_t *) cln;
            ngx_http_set_ctx(r, ctx, ngx_http_bloom_module);

            return ctx;
        }
    }

    return NULL;
}


ngx_int_t
ngx_http_bloom_ctx_set_operation(ngx_http_request_t *r, void *operation)
{
    ngx_http_bloom_ctx_t  *ctx;

    ctx = ngx_http_bloom_ctx_obtain(r);
    if (ctx == NULL) {
        return NGX_ERROR;
    }

    ctx->operation = operation;

    return NGX_OK;
}


void
ngx_http_bloom_ctx_mark(void *data)
{
}
