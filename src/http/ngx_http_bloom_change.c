/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file implements bloom_add and bloom_remove: it adds and removes the keys
 * of a response before the client sees the response and can ask for them.
 */

#include "ngx_http_bloom_change.h"
#include "ngx_http_bloom_ctx.h"
#include "ngx_http_bloom_key.h"
#include "ngx_bloom_add_key.h"
#include "ngx_bloom_parts.h"
#include "ngx_bloom_remove.h"


/* What a directive does with its keys. */
typedef struct {
    const char    *directive;
    const char    *undone;               /* for the error log */
    const char  *(*change)(ngx_bloom_zone_t *zone, ngx_str_t *key);
} ngx_http_bloom_change_kind_t;


static ngx_int_t ngx_http_bloom_change_list(ngx_http_request_t *r,
    ngx_array_t *changes, const ngx_http_bloom_change_kind_t *kind);
static ngx_int_t ngx_http_bloom_change_one(ngx_http_request_t *r,
    ngx_http_bloom_change_t *change,
    const ngx_http_bloom_change_kind_t *kind);
static ngx_int_t ngx_http_bloom_change_lines(ngx_http_request_t *r,
    ngx_http_bloom_change_t *change,
    const ngx_http_bloom_change_kind_t *kind);
static void ngx_http_bloom_change_value(ngx_http_request_t *r,
    ngx_http_bloom_change_t *change, const ngx_http_bloom_change_kind_t *kind,
    ngx_str_t *value);
static void ngx_http_bloom_change_warn(ngx_http_request_t *r,
    ngx_http_bloom_change_t *change, const ngx_http_bloom_change_kind_t *kind,
    ngx_str_t *value);


static const ngx_http_bloom_change_kind_t  ngx_http_bloom_change_add = {
    "bloom_add", "added to", ngx_bloom_add_key
};

static const ngx_http_bloom_change_kind_t  ngx_http_bloom_change_remove = {
    "bloom_remove", "removed from", ngx_bloom_remove_key
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
    ngx_int_t  rc;
    ngx_str_t  text;

    if (change->filter != NULL) {
        rc = ngx_http_bloom_key_condition(r, change->filter);

        if (rc != NGX_OK) {
            return rc == NGX_DECLINED ? NGX_OK : rc;
        }
    }

    rc = ngx_http_bloom_change_lines(r, change, kind);

    if (rc != NGX_DECLINED) {
        return rc;
    }

    rc = ngx_http_bloom_key_text(r, &change->key, &text);

    if (rc == NGX_HTTP_BLOOM_KEY_AMBIGUOUS) {
        (void) ngx_bloom_rule_invalid(change->key.zone);

        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "a key was not %s bloom zone \"%V\": the argument, "
                      "cookie or header that it comes from is ambiguous in "
                      "the request; let \"%s\" take the key from the "
                      "backend's response", kind->undone,
                      &change->key.zone->name, kind->directive);
        return NGX_OK;
    }

    if (rc == NGX_OK) {
        ngx_http_bloom_change_value(r, change, kind, &text);
    }

    return rc == NGX_DECLINED ? NGX_OK : rc;
}


/*
 * Changes a zone by each line of a header that the response repeats.  nginx's
 * variable would be the first line before version 1.23, and all lines as one
 * value later.  Returns NGX_OK; NGX_DECLINED if the header is not repeated, or
 * if the directive's value is not a header; NGX_ERROR if memory is short.
 */
static ngx_int_t
ngx_http_bloom_change_lines(ngx_http_request_t *r,
    ngx_http_bloom_change_t *change, const ngx_http_bloom_change_kind_t *kind)
{
    ngx_str_t         text;
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h, *next;

    if (change->header.len == 0 || (!change->sent && r->upstream == NULL)) {
        return NGX_DECLINED;
    }

    i = 0;
    part = change->sent ? &r->headers_out.headers.part
                        : &r->upstream->headers_in.headers.part;

    h = ngx_http_bloom_value_next_header(&part, &i, &change->header);

    if (h == NULL) {
        return NGX_DECLINED;
    }

    next = ngx_http_bloom_value_next_header(&part, &i, &change->header);

    if (next == NULL) {
        return NGX_DECLINED;
    }

    for ( ;; ) {
        text = h->value;

        if (text.len != 0) {

            if (change->key.decode != BLOOM_DECODE_OFF
                && ngx_http_bloom_key_decode(r, &change->key, &text) != NGX_OK)
            {
                return NGX_ERROR;
            }

            ngx_http_bloom_change_value(r, change, kind, &text);
        }

        if (next == NULL) {
            return NGX_OK;
        }

        h = next;
        next = ngx_http_bloom_value_next_header(&part, &i, &change->header);
    }
}


/* Changes a zone by a value that is not empty: a key, or with "split=" a list
 * of keys. */
static void
ngx_http_bloom_change_value(ngx_http_request_t *r,
    ngx_http_bloom_change_t *change, const ngx_http_bloom_change_kind_t *kind,
    ngx_str_t *value)
{
    u_char            *pos, *end;
    size_t             len;
    ngx_str_t          key;
    ngx_uint_t         n;
    const char        *why, *because;
    ngx_bloom_zone_t  *zone;

    zone = change->key.zone;

    pos = value->data;
    end = pos + value->len;

    if (change->split == '\0') {
        ngx_http_bloom_change_warn(r, change, kind, value);
        key = *value;
        pos = end;

    } else if (!ngx_bloom_parts_cut(&key, 1, &pos, end, change->split)) {
        return;
    }

    n = 0;
    len = 0;
    because = NULL;

    do {
        why = kind->change(zone, &key);

        if (why != NULL && n++ == 0) {
            len = key.len;
            because = why;
        }

    } while (ngx_bloom_parts_cut(&key, 1, &pos, end, change->split));

    if (n == 1) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "a key of %uz bytes was not %s bloom zone \"%V\": it %s",
                      len, kind->undone, &zone->name, because);

    } else if (n > 1) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "%ui keys of a list were not %s bloom zone \"%V\": the "
                      "first has %uz bytes and %s", n, kind->undone,
                      &zone->name, len, because);
    }
}


/* Warns, once in each worker, of a response's header that seems to be a list
 * and becomes one key. */
static void
ngx_http_bloom_change_warn(ngx_http_request_t *r,
    ngx_http_bloom_change_t *change, const ngx_http_bloom_change_kind_t *kind,
    ngx_str_t *value)
{
    u_char  *p, buf[NGX_BLOOM_RULE_LOG_LEN];

    if (!change->lists
        || change->warned
        || memchr(value->data, ',', value->len) == NULL)
    {
        return;
    }

    change->warned = 1;

    p = ngx_bloom_rule_log_key(buf, value);

    ngx_log_error(NGX_LOG_WARN, r->connection->log, 0,
                  "\"%*s\" is one key for \"%s\" in %s:%ui, of bloom zone "
                  "\"%V\": if it is a list, add \"split=,\"; if its commas "
                  "belong to the key, a \"split=\" with a byte that no key "
                  "has silences this warning", (size_t) (p - buf), buf,
                  kind->directive, change->conf_file, change->conf_line,
                  &change->key.zone->name);
}
