
/*
 * This file creates a request's context and finds it again.
 */

#include "ngx_http_bloom_ctx.h"


static void ngx_http_bloom_ctx_mark(void *data);


ngx_http_bloom_ctx_t *
ngx_http_bloom_ctx_create(ngx_http_request_t *r)
{
    ngx_http_bloom_ctx_t  *ctx;

    ctx = ngx_palloc(r->pool, sizeof(ngx_http_bloom_ctx_t));
    if (ctx == NULL) {
        return NULL;
    }

    ngx_memzero(&ctx->status, offsetof(ngx_http_bloom_ctx_t, zone)
                              - offsetof(ngx_http_bloom_ctx_t, status));

    /* not ngx_pool_cleanup_add(), which would allocate twice */

    ctx->mark.handler = ngx_http_bloom_ctx_mark;
    ctx->mark.next = r->pool->cleanup;
    r->pool->cleanup = &ctx->mark;

    ngx_http_set_ctx(r, ctx, ngx_http_bloom_module);

    return ctx;
}


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


/* Does nothing: its address marks the cleanup that is a context. */
static void
ngx_http_bloom_ctx_mark(void *data)
{
}
