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
#include "ngx_http_bloom_query.h"
#include "ngx_http_bloom_response.h"
#include "ngx_bloom_adapt.h"
#include "ngx_bloom_info.h"
#include "ngx_bloom_remove.h"


/* How many keys a response has: without "limit=", and at most. */
#define NGX_HTTP_BLOOM_REMOVED_LIMIT  1000
#define NGX_HTTP_BLOOM_REMOVED_MAX    10000

/* A turn has so many steps, each of so many keys, which takes about 20 us
 * unless keys are longer than NGX_HTTP_BLOOM_REMOVED_BYTES in all. */
#define NGX_HTTP_BLOOM_REMOVED_TURN   32
#define NGX_HTTP_BLOOM_REMOVED_STEP   16
#define NGX_HTTP_BLOOM_REMOVED_BYTES  4096


typedef struct {
    ngx_http_bloom_operation_t  op;
    ngx_http_bloom_text_t       text;
    unsigned                    kind;    /* of the exceptions that are listed */
    bloom_position_t            next;    /* generation and cursor */
    ngx_uint_t                  left;    /* keys that this response may have */
} ngx_http_bloom_removed_t;


static ngx_int_t ngx_http_bloom_removed_begin(ngx_http_bloom_operation_t *op);
static ngx_int_t ngx_http_bloom_removed_query(ngx_http_bloom_removed_t *list,
    uint64_t generation);
static ngx_int_t ngx_http_bloom_removed_run(ngx_http_bloom_operation_t *op);
static ngx_int_t ngx_http_bloom_removed_step(ngx_http_bloom_removed_t *list,
    ngx_int_t *steps);
static size_t ngx_http_bloom_removed_put(ngx_http_bloom_removed_t *list,
    ngx_array_t *keys);
static ngx_int_t ngx_http_bloom_removed_send(ngx_http_bloom_operation_t *op);


const ngx_http_bloom_kind_t  ngx_http_bloom_get_removed = {
    .size = sizeof(ngx_http_bloom_removed_t),
    .begin = ngx_http_bloom_removed_begin,
    .run = ngx_http_bloom_removed_run,
    .send = ngx_http_bloom_removed_send,
    .leaves = 1
};


static ngx_int_t
ngx_http_bloom_removed_begin(ngx_http_bloom_operation_t *op)
{
    uint64_t                   count, limit;
    ngx_int_t                  rc;
    ngx_bloom_info_t           info;
    bloom_json_writer_t       *json;
    ngx_http_bloom_removed_t  *list;

    list = (ngx_http_bloom_removed_t *) op;

    ngx_bloom_info_get(op->zone, &info);

    rc = ngx_http_bloom_removed_query(list, info.generation);

    if (rc != NGX_OK) {
        return rc;
    }

    count = list->kind == BLOOM_EXCEPTION_FEEDBACK
            ? ngx_bloom_adapt_count(op->zone, &limit)
            : ngx_bloom_removed_count(op->zone, &limit);

    ngx_http_bloom_text_init(&list->text, op->request->pool);

    json = &list->text.json;

    bloom_json_put_object(json, NULL);
    bloom_json_put_count(json, "generation", info.generation);
    bloom_json_put_count(json, "count", count);
    bloom_json_put_count(json, "limit", limit);
    bloom_json_put_array(json, "keys");

    return NGX_OK;
}


/* Reads "kind=", "limit=" and "from=".  Returns NGX_OK, or NGX_DECLINED with
 * the error. */
static ngx_int_t
ngx_http_bloom_removed_query(ngx_http_bloom_removed_t *list,
    uint64_t generation)
{
    ngx_int_t                n, rc;
    ngx_str_t                value;
    ngx_uint_t               kind;
    ngx_http_request_t      *r;
    ngx_http_bloom_error_t  *error;

    r = list->op.request;
    error = &list->op.error;

    rc = ngx_http_bloom_query_choice(r, "kind", "removed", "excepted", &kind,
                                     error);
    if (rc != NGX_OK) {
        return rc;
    }

    list->kind = (kind == 2) ? BLOOM_EXCEPTION_FEEDBACK
                             : BLOOM_EXCEPTION_REMOVED;
    list->left = NGX_HTTP_BLOOM_REMOVED_LIMIT;
    list->next.high = generation;

    if (ngx_http_arg(r, (u_char *) "limit", sizeof("limit") - 1, &value)
        == NGX_OK)
    {
        n = ngx_atoi(value.data, value.len);

        if (n < 1 || n > NGX_HTTP_BLOOM_REMOVED_MAX) {
            return ngx_http_bloom_error(error, NGX_HTTP_BLOOM_E_BAD_QUERY,
                                        "invalid \"limit\" in the query; it "
                                        "must be a number from 1 to %d",
                                        NGX_HTTP_BLOOM_REMOVED_MAX);
        }

        list->left = (ngx_uint_t) n;
    }

    if (ngx_http_arg(r, (u_char *) "from", sizeof("from") - 1, &value)
        != NGX_OK)
    {
        return NGX_OK;
    }

    if (bloom_position_parse(&list->next, value.data, value.len) != 0
        || ngx_strlchr(value.data, value.data + value.len, '-') == NULL)
    {
        return ngx_http_bloom_error(error, NGX_HTTP_BLOOM_E_BAD_QUERY,
                                    "invalid \"from\" in the query; it must be "
                                    "the \"next\" of an earlier response");
    }

    if (list->next.high != generation) {
        return ngx_http_bloom_error(error, NGX_HTTP_BLOOM_E_GENERATION,
                                    "\"from\" belongs to generation %uL of "
                                    "zone \"%V\", but generation %uL serves; "
                                    "list the keys again without \"from\"",
                                    list->next.high, &list->op.zone->name,
                                    generation);
    }

    return NGX_OK;
}


/* Lists keys until the response has enough, or the turn is over. */
static ngx_int_t
ngx_http_bloom_removed_run(ngx_http_bloom_operation_t *op)
{
    ngx_int_t  rc, steps;

    for (steps = NGX_HTTP_BLOOM_REMOVED_TURN; steps > 0; steps--) {

        rc = ngx_http_bloom_removed_step((ngx_http_bloom_removed_t *) op,
                                         &steps);
        if (rc != NGX_AGAIN) {
            return rc;
        }
    }

    return ngx_http_bloom_operation_soon(op);
}


/* Lists some keys.  Returns NGX_AGAIN if there are more. */
static ngx_int_t
ngx_http_bloom_removed_step(ngx_http_bloom_removed_t *list, ngx_int_t *steps)
{
    ngx_int_t                    rc;
    ngx_pool_t                  *pool;
    ngx_bloom_removed_t          removed;
    ngx_http_bloom_operation_t  *op;

    op = &list->op;

    pool = ngx_create_pool(NGX_HTTP_BLOOM_REMOVED_BYTES,
                           op->request->connection->log);
    if (pool == NULL) {
        return NGX_ERROR;
    }

    rc = ngx_bloom_removed_list(op->zone, list->kind, list->next.low,
                                ngx_min(list->left,
                                        NGX_HTTP_BLOOM_REMOVED_STEP),
                                &removed, pool);

    if (rc == NGX_OK && removed.generation != list->next.high) {
        rc = ngx_http_bloom_error(&op->error, NGX_HTTP_BLOOM_E_GENERATION,
                                  "zone \"%V\" began to serve another "
                                  "generation while its keys were listed; list "
                                  "them again without \"from\"",
                                  &op->zone->name);
    }

    if (rc == NGX_OK) {
        *steps -= ngx_http_bloom_removed_put(list, &removed.keys)
                  / NGX_HTTP_BLOOM_REMOVED_BYTES;

        list->left -= ngx_min(list->left, removed.keys.nelts);
        list->next.low = removed.cursor;

        rc = (removed.cursor != 0 && list->left != 0 && !list->text.failed)
             ? NGX_AGAIN : NGX_OK;
    }

    ngx_destroy_pool(pool);

    return rc;
}


/* Appends keys with the times at which they became exceptions.  Returns the
 * bytes of the keys. */
static size_t
ngx_http_bloom_removed_put(ngx_http_bloom_removed_t *list, ngx_array_t *keys)
{
    size_t                bytes;
    int64_t               shift;
    ngx_uint_t            i;
    bloom_exception_t    *exception;
    bloom_json_writer_t  *json;

    exception = keys->elts;
    json = &list->text.json;
    bytes = 0;
    shift = ngx_bloom_zone_shift(list->op.zone);

    for (i = 0; i < keys->nelts; i++) {

        bloom_json_put_object(json, NULL);
        bloom_json_put_bytes(json, "key", exception[i].key.data,
                             exception[i].key.len);
        bloom_json_put_time(json, "time",
                            ngx_bloom_zone_wall(exception[i].time, shift));
        bloom_json_put_end(json);

        bytes += exception[i].key.len;
    }

    return bytes;
}


static ngx_int_t
ngx_http_bloom_removed_send(ngx_http_bloom_operation_t *op)
{
    char                       next[BLOOM_POSITION_TEXT_MAX];
    bloom_json_writer_t       *json;
    ngx_http_bloom_removed_t  *list;

    list = (ngx_http_bloom_removed_t *) op;
    json = &list->text.json;

    bloom_json_put_end(json);

    if (list->next.low != 0) {
        (void) bloom_position_write(list->next, next);
        bloom_json_put_text(json, "next", next);

    } else {
        bloom_json_put_null(json, "next");
    }

    bloom_json_put_end(json);

    return ngx_http_bloom_response_json(op->request, NGX_HTTP_OK, &list->text);
}
