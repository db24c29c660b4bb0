/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file implements bloom_add and bloom_remove: it adds and removes the keys
 * of a response before the client sees the response and can ask for them.
 */

#include "ngx_http_bloom_change.h"
#include "ngx_http_bloom_ctx.h"
#include "ngx_http_bloom_debug.h"
#include "ngx_http_bloom_key.h"
#include "ngx_bloom_add.h"
#include "ngx_bloom_remove.h"


/* What a directive does with its key. */
typedef struct {
    const char    *directive;
    const char    *does;                 /* for the debug log */
    const char    *undone;               /* for the error log */
    const char  *(*change)(ngx_bloom_zone_t *zone, ngx_str_t *key);
} ngx_http_bloom_change_kind_t;


static ngx_int_t ngx_http_bloom_change_list(ngx_http_request_t *r,
    ngx_array_t *changes, const ngx_http_bloom_change_kind_t *kind);
static ngx_int_t ngx_http_bloom_change_one(ngx_http_request_t *r,
    ngx_http_bloom_change_t *change,
    const ngx_http_bloom_change_kind_t *kind);


static const ngx_http_bloom_change_kind_t  ngx_http_bloom_change_add = {
    "bloom_add", "add to", "added to", ngx_bloom_add_key
};

static const ngx_http_bloom_change_kind_t  ngx_http_bloom_change_remove = {
    "bloom_remove", "remove from", "removed from", ngx_bloom_remove_key
};


ngx_int_t
ngx_http_bloom_change_zones(ngx_http_request_t *r)
{
    ngx_http_bloom_ctx_t       *ctx;
    ngx_http_bloom_loc_conf_t  *blcf;

    blcf = ngx_http_get_module_loc_conf(r, ngx_http_bloom_module);

    ctx = ngx_http_bloom_ctx_obtain(r);
    if (ctx == NULL) {
        return NGX_ERROR;
    }

    /* a later filter may replace the response by an error page, whose header
     * comes here again */

    if (ctx->changed) {
        return NGX_OK;
    }

    ctx->changed = 1;

    /* in this order, a key that is both removed and added is present */

    if (ngx_http_bloom_change_list(r, blcf->removes,
                                   &ngx_http_bloom_change_remove)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_bloom_change_list(r, blcf->adds,
                                      &ngx_http_bloom_change_add);
}


/* Changes zones by the keys of the directives in `changes`, which may be
 * NULL. */
static ngx_int_t
ngx_http_bloom_change_list(ngx_http_request_t *r, ngx_array_t *changes,
    const ngx_http_bloom_change_kind_t *kind)
{
    ngx_uint_t                i;
    ngx_http_bloom_change_t  *change;

    if (changes == NULL) {
        return NGX_OK;
    }

    change = changes->elts;

    for (i = 0; i < changes->nelts; i++) {
        if (ngx_http_bloom_change_one(r, &change[i], kind) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_bloom_change_one(ngx_http_request_t *r,
    ngx_http_bloom_change_t *change, const ngx_http_bloom_change_kind_t *kind)
{
    ngx_int_t          rc;
    ngx_str_t          text;
    const char        *why;
    ngx_bloom_zone_t  *zone;

    zone = change->key.zone;

    if (change->filter != NULL) {

        if (ngx_http_complex_value(r, change->filter, &text) != NGX_OK) {
            return NGX_ERROR;
        }

        if (text.len == 0 || (text.len == 1 && text.data[0] == '0')) {
            return NGX_OK;
        }
    }

    rc = ngx_http_bloom_key_text(r, &change->key, &text);

    if (rc == NGX_HTTP_BLOOM_KEY_AMBIGUOUS) {
        (void) ngx_http_bloom_key_count_ambiguous(&change->key);

        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "a key was not %s bloom zone \"%V\": the argument, "
                      "cookie or header that it comes from is ambiguous in "
                      "the request; let \"%s\" take the key from the "
                      "backend's response",
                      kind->undone, &zone->name, kind->directive);
        return NGX_OK;
    }

    if (rc != NGX_OK) {
        return rc == NGX_DECLINED ? NGX_OK : rc;
    }

    ngx_http_bloom_debug_change(r, kind->does, zone, &text);

    why = kind->change(zone, &text);

    if (why != NULL) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "a key of %uz bytes was not %s bloom zone \"%V\": it %s",
                      text.len, kind->undone, &zone->name, why);
    }

    return NGX_OK;
}
