/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file is the header filter: before the client sees a response, it removes
 * the keys of bloom_remove, adds those of bloom_add, and counts the backend's
 * status for bloom_feedback and bloom_audit.
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
static ngx_uint_t ngx_http_bloom_filter_status(ngx_http_request_t *r,
    ngx_uint_t *cached);
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
    ngx_uint_t                   status, cached;
    ngx_http_bloom_ctx_t        *ctx;
    ngx_http_bloom_loc_conf_t   *blcf;
    ngx_http_bloom_main_conf_t  *bmcf;

    if (r != r->main) {
        return ngx_http_next_header_filter(r);
    }

    bmcf = ngx_http_get_module_main_conf(r, ngx_http_bloom_module);

    if (bmcf->asks) {
        ctx = ngx_http_bloom_ctx_get(r);

        if (ctx != NULL && (ctx->suspects != 0 || ctx->audited != NULL)) {
            status = ngx_http_bloom_filter_status(r, &cached);

            ngx_http_bloom_feedback_response(r, ctx, status, cached);

            if (!cached) {
                ngx_http_bloom_audit_response(r, ctx, status);
            }
        }
    }

    blcf = ngx_http_get_module_loc_conf(r, ngx_http_bloom_module);

    if ((blcf->adds != NULL || blcf->removes != NULL)
        && ngx_http_bloom_change_zones(r) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_next_header_filter(r);
}


/*
 * Returns the status that the backend itself sent, or 0 without one.  Sets
 * *cached if it is that of a cached response.  The status of the response is
 * not enough: it may be that of an nginx error page.  Returns 0 also
 *
 *     after an internal redirect to another backend, as by error_page: nobody
 *         knows which of them speaks about the key;
 *     with X-Accel-Redirect: the backend often has not looked for the file.
 */
static ngx_uint_t
ngx_http_bloom_filter_status(ngx_http_request_t *r, ngx_uint_t *cached)
{
    ngx_uint_t                  i;
    ngx_http_upstream_t        *u;
    ngx_http_upstream_state_t  *state;

    *cached = 0;

#if (NGX_HTTP_CACHE)
    if (r->cached) {
        *cached = 1;
        return r->headers_out.status;
    }
#endif

    if (r->upstream_states == NULL || r->upstream_states->nelts == 0) {

#if (NGX_HTTP_CACHE)
        if (r->cache != NULL) {

            /* if proxy_intercept_errors replaced a cached response, only its
             * status is left */

            *cached = 1;
            return r->cache->error;
        }
#endif
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
