/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A request's context is made when it is first needed and found again after an
 * internal redirect.
 */

#ifndef _NGX_HTTP_BLOOM_CTX_H_INCLUDED_
#define _NGX_HTTP_BLOOM_CTX_H_INCLUDED_

#include "ngx_http_bloom.h"

#pragma GCC visibility push(hidden)


/* Returns the context, or NULL if nothing has been decided yet. */
static ngx_inline ngx_http_bloom_ctx_t *ngx_http_bloom_ctx_get(
    ngx_http_request_t *r);

/* Returns the context, created if there is none, or NULL if memory is short. */
static ngx_inline ngx_http_bloom_ctx_t *ngx_http_bloom_ctx_obtain(
    ngx_http_request_t *r);

/* Finds a context that an internal redirect has cleared, or returns NULL. */
ngx_http_bloom_ctx_t *ngx_http_bloom_ctx_find(ngx_http_request_t *r);

/*
 * A request to the endpoint that outlasts its handler keeps what it works on
 * here, in memory of the request's pool.
 */
#define ngx_http_bloom_ctx_operation(r)  (ngx_http_bloom_ctx_get(r)->operation)

ngx_int_t ngx_http_bloom_ctx_set_operation(ngx_http_request_t *r,
    void *operation);


/* ---- inline, as every check goes through it ---- */

/* Does nothing: its address marks the cleanup that is a context. */
void ngx_http_bloom_ctx_mark(void *data);


static ngx_inline ngx_http_bloom_ctx_t *
ngx_http_bloom_ctx_get(ngx_http_request_t *r)
{
    ngx_http_bloom_ctx_t  *ctx;

    r = r->main;

    ctx = ngx_http_get_module_ctx(r, ngx_http_bloom_module);

    if (ctx == NULL && (r->internal || r->filter_finalize)) {

        /* the context was cleared by an internal redirect */

        ctx = ngx_http_bloom_ctx_find(r);
    }

    return ctx;
}


static ngx_inline ngx_http_bloom_ctx_t *
ngx_http_bloom_ctx_obtain(ngx_http_request_t *r)
{
    ngx_http_bloom_ctx_t  *ctx;

    ctx = ngx_http_bloom_ctx_get(r);

    if (ctx != NULL) {
        return ctx;
    }

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


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_CTX_H_INCLUDED_ */
