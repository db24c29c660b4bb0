/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares how a request's context is created when it is first
 * needed, and found again after an internal redirect.
 */

#ifndef _NGX_HTTP_BLOOM_CTX_H_INCLUDED_
#define _NGX_HTTP_BLOOM_CTX_H_INCLUDED_

#include "ngx_http_bloom.h"

#pragma GCC visibility push(hidden)


/* Returns the context, or NULL if the request has none yet. */
static ngx_inline ngx_http_bloom_ctx_t *ngx_http_bloom_ctx_get(
    ngx_http_request_t *r);

/* Returns the context of the request, and creates it if necessary.  Returns
 * NULL if memory is short. */
static ngx_inline ngx_http_bloom_ctx_t *ngx_http_bloom_ctx_obtain(
    ngx_http_request_t *r);

/* Finds the context after an internal redirect.  Returns NULL if the request
 * has none. */
ngx_http_bloom_ctx_t *ngx_http_bloom_ctx_find(ngx_http_request_t *r);

/*
 * Get and set the operation of a request to the endpoint: the object that a
 * request works on after its handler has returned.  It is in memory of the
 * request's pool.  Setting returns NGX_OK or NGX_ERROR.
 */
#define ngx_http_bloom_ctx_operation(r)  (ngx_http_bloom_ctx_get(r)->operation)

ngx_int_t ngx_http_bloom_ctx_set_operation(ngx_http_request_t *r,
    void *operation);


/* ---- inline, because every check of a key needs them ---- */

/* Does nothing.  A cleanup with this handler is a context. */
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

    ngx_memzero((u_char *) ctx + sizeof(ngx_pool_cleanup_t),
                offsetof(ngx_http_bloom_ctx_t, decision)
                - sizeof(ngx_pool_cleanup_t));

    ctx->decision.status = NGX_BLOOM_STATUS_UNCHECKED;
    ctx->decoded.decode = BLOOM_DECODE_OFF;

    /* not ngx_pool_cleanup_add(), which would allocate twice */

    ctx->mark.handler = ngx_http_bloom_ctx_mark;
    ctx->mark.next = r->pool->cleanup;
    r->pool->cleanup = &ctx->mark;

    ngx_http_set_ctx(r, ctx, ngx_http_bloom_module);

    return ctx;
}


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_CTX_H_INCLUDED_ */
