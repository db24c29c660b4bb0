/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file lists the removed keys of a zone, or the excepted keys, a part in
 * each response.  A part ends with the cursor at which the next one begins:
 *
 *     GENERATION-CURSOR
 *
 * Another generation has another set of exceptions, so a list that was begun in
 * one generation cannot be continued in the next.
 */

#include "ngx_http_bloom_removed.h"
#include "ngx_http_bloom_json.h"
#include "ngx_http_bloom_response.h"
#include "ngx_http_bloom_turns.h"
#include "ngx_bloom_adapt.h"
#include "ngx_bloom_remove.h"


/* How many keys a response has: without "limit=", and at most. */
#define NGX_HTTP_BLOOM_REMOVED_LIMIT  1000
#define NGX_HTTP_BLOOM_REMOVED_MAX    10000

/* How many keys a step lists, which takes about 20 us unless keys are longer
 * than NGX_HTTP_BLOOM_REMOVED_BYTES in all. */
#define NGX_HTTP_BLOOM_REMOVED_STEP   16
#define NGX_HTTP_BLOOM_REMOVED_BYTES  4096


typedef struct {
    ngx_bloom_zone_t           *zone;
    unsigned                    kind;    /* of the exceptions that are listed */
    uint64_t                    generation;
    uint64_t                    cursor;
    ngx_uint_t                  left;    /* keys that this response may have */
    ngx_uint_t                  listed;
    ngx_uint_t                  changed; /* another generation serves */
} ngx_http_bloom_removed_t;


static ngx_int_t ngx_http_bloom_removed_query(ngx_http_request_t *r,
    ngx_http_bloom_removed_t *list, ngx_http_bloom_error_t *error);
static ngx_int_t ngx_http_bloom_removed_step(ngx_http_request_t *r,
    ngx_http_bloom_turns_t *turns);
static void ngx_http_bloom_removed_put(ngx_http_bloom_turns_t *turns,
    ngx_http_bloom_removed_t *list, ngx_array_t *keys);
static ngx_int_t ngx_http_bloom_removed_done(ngx_http_request_t *r,
    ngx_http_bloom_turns_t *turns);


ngx_int_t
ngx_http_bloom_removed_get(ngx_http_request_t *r, ngx_bloom_zone_t *zone)
{
    uint64_t                   count, limit;
    ngx_bloom_info_t           info;
    ngx_http_bloom_error_t     error;
    ngx_http_bloom_turns_t    *turns;
    ngx_http_bloom_removed_t  *list;

    list = ngx_pcalloc(r->pool, sizeof(ngx_http_bloom_removed_t));
    if (list == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_bloom_info_get(zone, &info);

    list->zone = zone;
    list->generation = info.generation;

    if (ngx_http_bloom_removed_query(r, list, &error) != NGX_OK) {
        return ngx_http_bloom_response_refuse_error(r, &error);
    }

    turns = ngx_http_bloom_turns_create(r, ngx_http_bloom_removed_step,
                                        ngx_http_bloom_removed_done);
    if (turns == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    turns->data = list;

    count = list->kind == BLOOM_EXCEPTION_FEEDBACK
            ? ngx_bloom_adapt_count(zone, &limit)
            : ngx_bloom_removed_count(zone, &limit);

    ngx_http_bloom_text_printf(&turns->text, "{\"generation\":%uL,"
                               "\"count\":%uL,\"limit\":%uL,\"keys\":[",
                               info.generation, count, limit);

    return ngx_http_bloom_turns_run(r, turns);
}


/* Reads "kind=", "limit=" and "from=".  Returns NGX_OK, or NGX_DECLINED with
 * *error. */
static ngx_int_t
ngx_http_bloom_removed_query(ngx_http_request_t *r,
    ngx_http_bloom_removed_t *list, ngx_http_bloom_error_t *error)
{
    u_char     *dash;
    off_t       generation, cursor;
    ngx_int_t   n;
    ngx_str_t   value;

    list->kind = BLOOM_EXCEPTION_REMOVED;
    list->left = NGX_HTTP_BLOOM_REMOVED_LIMIT;

    if (ngx_http_arg(r, (u_char *) "kind", sizeof("kind") - 1, &value)
        == NGX_OK)
    {
        if (value.len == 8 && ngx_strncmp(value.data, "excepted", 8) == 0) {
            list->kind = BLOOM_EXCEPTION_FEEDBACK;

        } else if (value.len != 7
                   || ngx_strncmp(value.data, "removed", 7) != 0)
        {
            ngx_http_bloom_error(error, NGX_HTTP_BLOOM_E_BAD_QUERY,
                                 "invalid \"kind\" in the query; it must be "
                                 "\"removed\" or \"excepted\"");
            return NGX_DECLINED;
        }
    }

    if (ngx_http_arg(r, (u_char *) "limit", sizeof("limit") - 1, &value)
        == NGX_OK)
    {
        n = ngx_atoi(value.data, value.len);

        if (n < 1 || n > NGX_HTTP_BLOOM_REMOVED_MAX) {
            ngx_http_bloom_error(error, NGX_HTTP_BLOOM_E_BAD_QUERY,
                                 "invalid \"limit\" in the query; it must be "
                                 "a number from 1 to %d",
                                 NGX_HTTP_BLOOM_REMOVED_MAX);
            return NGX_DECLINED;
        }

        list->left = (ngx_uint_t) n;
    }

    if (ngx_http_arg(r, (u_char *) "from", sizeof("from") - 1, &value)
        != NGX_OK)
    {
        return NGX_OK;
    }

    dash = ngx_strlchr(value.data, value.data + value.len, '-');

    if (dash == NULL) {
        generation = NGX_ERROR;
        cursor = NGX_ERROR;

    } else {
        generation = ngx_atoof(value.data, dash - value.data);
        cursor = ngx_atoof(dash + 1, value.data + value.len - dash - 1);
    }

    if (generation == NGX_ERROR || cursor == NGX_ERROR) {
        ngx_http_bloom_error(error, NGX_HTTP_BLOOM_E_BAD_QUERY,
                             "invalid \"from\" in the query; it must be the "
                             "\"next\" of an earlier response");
        return NGX_DECLINED;
    }

    if ((uint64_t) generation != list->generation) {
        ngx_http_bloom_error(error, NGX_HTTP_BLOOM_E_GENERATION,
                             "\"from\" belongs to generation %O of zone "
                             "\"%V\", but generation %uL serves; list the keys "
                             "again without \"from\"", generation,
                             &list->zone->name, list->generation);
        return NGX_DECLINED;
    }

    list->cursor = (uint64_t) cursor;

    return NGX_OK;
}


static ngx_int_t
ngx_http_bloom_removed_step(ngx_http_request_t *r,
    ngx_http_bloom_turns_t *turns)
{
    ngx_int_t                  rc;
    ngx_pool_t                *pool;
    ngx_bloom_removed_t        removed;
    ngx_http_bloom_removed_t  *list;

    list = turns->data;

    pool = ngx_create_pool(NGX_HTTP_BLOOM_REMOVED_BYTES, r->connection->log);
    if (pool == NULL) {
        turns->text.failed = 1;
        return NGX_OK;
    }

    rc = ngx_bloom_removed_list(list->zone, list->kind, list->cursor,
                                ngx_min(list->left,
                                        NGX_HTTP_BLOOM_REMOVED_STEP),
                                &removed, pool);

    if (rc != NGX_OK) {
        turns->text.failed = 1;

    } else if (removed.generation != list->generation) {
        list->changed = 1;

    } else {
        ngx_http_bloom_removed_put(turns, list, &removed.keys);

        list->cursor = removed.cursor;

        rc = (list->cursor != 0 && list->left != 0) ? NGX_AGAIN : NGX_OK;
    }

    ngx_destroy_pool(pool);

    return rc == NGX_AGAIN ? NGX_AGAIN : NGX_OK;
}


/* Appends keys with the times at which they became exceptions. */
static void
ngx_http_bloom_removed_put(ngx_http_bloom_turns_t *turns,
    ngx_http_bloom_removed_t *list, ngx_array_t *keys)
{
    size_t              bytes;
    int64_t             shift;
    ngx_uint_t          i;
    bloom_exception_t  *exception;

    exception = keys->elts;
    bytes = 0;
    shift = ngx_bloom_zone_shift(list->zone);

    for (i = 0; i < keys->nelts; i++) {

        ngx_http_bloom_text_printf(&turns->text, "%s{\"key\":",
                                   list->listed++ == 0 ? "" : ",");
        ngx_http_bloom_text_quote(&turns->text,
                                  (u_char *) exception[i].key.data,
                                  exception[i].key.len);
        ngx_http_bloom_text_printf(&turns->text, ",\"time\":");
        ngx_http_bloom_json_time(&turns->text,
                                 ngx_bloom_zone_wall(exception[i].time,
                                                     shift));
        ngx_http_bloom_text_printf(&turns->text, "}");

        bytes += exception[i].key.len;
    }

    list->left -= ngx_min(list->left, keys->nelts);
    turns->left -= (ngx_int_t) (bytes / NGX_HTTP_BLOOM_REMOVED_BYTES);
}


static ngx_int_t
ngx_http_bloom_removed_done(ngx_http_request_t *r,
    ngx_http_bloom_turns_t *turns)
{
    ngx_http_bloom_removed_t  *list;

    list = turns->data;

    if (list->changed) {
        return ngx_http_bloom_response_refuse(r, NGX_HTTP_BLOOM_E_GENERATION,
                                              "zone \"%V\" began to serve "
                                              "another generation while its "
                                              "keys were listed; list them "
                                              "again without \"from\"",
                                              &list->zone->name);
    }

    if (list->cursor != 0) {
        ngx_http_bloom_text_printf(&turns->text, "],\"next\":\"%uL-%uL\"}",
                                   list->generation, list->cursor);

    } else {
        ngx_http_bloom_text_printf(&turns->text, "],\"next\":null}");
    }

    return ngx_http_bloom_response_json(r, NGX_HTTP_OK, &turns->text);
}
