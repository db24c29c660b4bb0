/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file is the header filter: before the client sees a response, it removes
 * the keys of bloom_remove, adds those of bloom_add, and counts the backend's
 * status for bloom_feedback and bloom_audit.  It does nothing about a response
 * from a cache, which says what was true when it was stored.
 *
 * The filter is a module of its own, because nginx initializes modules with
 * filters last.  Were it part of the main module, nginx would install its own
 * header filter later, and this one would be lost.
 */

#include "ngx_http_bloom_audit.h"
#include "ngx_http_bloom_change.h"
#include "ngx_http_bloom_ctx.h"
#include "ngx_http_bloom_feedback.h"


static ngx_int_t ngx_http_bloom_filter_header(ngx_http_request_t *r);
static ngx_uint_t ngx_http_bloom_filter_is_cached(ngx_http_request_t *r);
static ngx_uint_t ngx_http_bloom_filter_status(ngx_http_request_t *r);
static ngx_int_t ngx_http_bloom_filter_init(ngx_conf_t *cf);


static ngx_http_module_t  ngx_http_bloom_filter_module_ctx = {
    NULL,                                  /* preconfiguration */
    ngx_http_bloom_filter_init,            /* postconfiguration */

    NULL,                                  /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    NULL,                                  /* create location configuration */
    NULL                                   /* merge location configuration */
};


ngx_module_t  ngx_http_bloom_filter_module = {
    NGX_MODULE_V1,
    &ngx_http_bloom_filter_module_ctx,     /* module context */
    NULL,                                  /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    NULL,                                  /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    NULL,                                  /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static ngx_http_output_header_filter_pt  ngx_http_next_header_filter;


static ngx_int_t
ngx_http_bloom_filter_header(ngx_http_request_t *r)
{
    ngx_uint_t                   status, changes;
    ngx_http_bloom_ctx_t        *ctx;
    ngx_http_bloom_loc_conf_t   *blcf;
    ngx_http_bloom_main_conf_t  *bmcf;

    bmcf = ngx_http_get_module_main_conf(r, ngx_http_bloom_module);
    blcf = ngx_http_get_module_loc_conf(r, ngx_http_bloom_module);

    changes = (blcf->adds != NULL || blcf->removes != NULL);

    if (r != r->main
        || (!bmcf->asks && !changes)
        || ngx_http_bloom_filter_is_cached(r))
    {
        return ngx_http_next_header_filter(r);
    }

    if (bmcf->asks) {
        ctx = ngx_http_bloom_ctx_get(r);

        if (ctx != NULL && (ctx->suspects != 0 || ctx->audited != NULL)) {
            status = ngx_http_bloom_filter_status(r);

            ngx_http_bloom_feedback_response(r, ctx, status);
            ngx_http_bloom_audit_response(r, ctx, status);
        }
    }

    if (changes && ngx_http_bloom_change_zones(r) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_next_header_filter(r);
}


/*
 * Returns 1 if the last upstream of the request was answered from a cache of
 * nginx.  r->cached does not tell: it stays set after an internal redirect to
 * an upstream without a cache, and is not set for an error that was cached
 * alone.
 */
static ngx_uint_t
ngx_http_bloom_filter_is_cached(ngx_http_request_t *r)
{
#if (NGX_HTTP_CACHE)

    if (r->upstream == NULL) {
        return 0;
    }

    switch (r->upstream->cache_status) {

    case NGX_HTTP_CACHE_HIT:
    case NGX_HTTP_CACHE_STALE:
    case NGX_HTTP_CACHE_UPDATING:
    case NGX_HTTP_CACHE_REVALIDATED:
        ngx_log_debug0(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                       "bloom ignores a response from the cache");
        return 1;
    }

#endif

    return 0;
}


/*
 * Returns the status that the backend itself sent, or 0 without one.  The
 * status of the response is not enough: it may be that of an nginx error page.
 * Returns 0 also
 *
 *     after an internal redirect to another backend, as by error_page: nobody
 *         knows which of them speaks about the key;
 *     with X-Accel-Redirect: the backend often has not looked for the file.
 */
static ngx_uint_t
ngx_http_bloom_filter_status(ngx_http_request_t *r)
{
    ngx_uint_t                  i;
    ngx_http_upstream_t        *u;
    ngx_http_upstream_state_t  *state;

    if (r->upstream_states == NULL || r->upstream_states->nelts == 0) {
        return 0;
    }

    u = r->upstream;

    if (u != NULL && u->headers_in.x_accel_redirect != NULL
        && !(u->conf->ignore_headers & NGX_HTTP_UPSTREAM_IGN_XA_REDIRECT))
    {
        return 0;
    }

    state = r->upstream_states->elts;

    for (i = 0; i < r->upstream_states->nelts; i++) {
        if (state[i].peer == NULL) {
            return 0;
        }
    }

    state += r->upstream_states->nelts - 1;

    /* a backend that sent no header has a status by nginx: 502 or 504 */

    return state->header_time == (ngx_msec_t) -1 ? 0 : state->status;
}


static ngx_int_t
ngx_http_bloom_filter_init(ngx_conf_t *cf)
{
    ngx_http_next_header_filter = ngx_http_top_header_filter;
    ngx_http_top_header_filter = ngx_http_bloom_filter_header;

    return NGX_OK;
}
