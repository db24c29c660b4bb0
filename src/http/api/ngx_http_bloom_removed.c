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

#include "ngx_http_bloom_response.h"
#include "ngx_http_bloom_turns.h"
#include "ngx_bloom_adapt.h"
#include "ngx_bloom_info.h"
#include "ngx_bloom_remove.h"


/* How many keys a response has: without "limit=", and at most. */
#define NGX_HTTP_BLOOM_REMOVED_LIMIT  1000
#define NGX_HTTP_BLOOM_REMOVED_MAX    10000

/* A step lists so many keys, which takes about 20 us unless they are longer
 * than NGX_HTTP_BLOOM_REMOVED_BYTES in all. */
#define NGX_HTTP_BLOOM_REMOVED_STEP   16
#define NGX_HTTP_BLOOM_REMOVED_BYTES  4096


typedef struct {
    ngx_http_bloom_turns_t      turns;
    ngx_uint_t                  excepted;  /* keys are listed, not removed */
    bloom_position_t            next;    /* generation and cursor */
    uint64_t                    left;    /* keys that this response may have */
} ngx_http_bloom_removed_t;


static ngx_int_t ngx_http_bloom_removed_begin(ngx_http_bloom_operation_t *op);
static ngx_int_t ngx_http_bloom_removed_step(ngx_http_request_t *r,
    ngx_http_bloom_turns_t *turns);
static size_t ngx_http_bloom_removed_put(ngx_http_bloom_removed_t *list,
    ngx_array_t *keys);
static ngx_int_t ngx_http_bloom_removed_done(ngx_http_request_t *r,
    ngx_http_bloom_turns_t *turns);


static const ngx_http_bloom_arg_t  ngx_http_bloom_removed_args[] = {
    { "kind", NGX_HTTP_BLOOM_ARG_WORD,
      offsetof(ngx_http_bloom_removed_t, excepted),
      "\"removed\" or \"excepted\"", { "removed", "excepted" }, 0, 0, 0 },
    { "limit", NGX_HTTP_BLOOM_ARG_NUMBER,
      offsetof(ngx_http_bloom_removed_t, left),
      "a number from 1 to 10000", { NULL }, 1, NGX_HTTP_BLOOM_REMOVED_MAX, 0 },
    { "from", NGX_HTTP_BLOOM_ARG_POSITION,
      offsetof(ngx_http_bloom_removed_t, next),
      "the \"next\" of an earlier response", { NULL }, 0, 0, 0 },
    ngx_http_bloom_arg_serving,
    ngx_http_bloom_arg_end
};

const ngx_http_bloom_kind_t  ngx_http_bloom_get_removed = {
    .size = sizeof(ngx_http_bloom_removed_t),
    .args = ngx_http_bloom_removed_args,
    .begin = ngx_http_bloom_removed_begin,
    .run = ngx_http_bloom_turns_turn,
    .send = ngx_http_bloom_turns_send
};


static ngx_int_t
ngx_http_bloom_removed_begin(ngx_http_bloom_operation_t *op)
{
    uint64_t                   count, limit;
    ngx_bloom_info_t           info;
    bloom_json_writer_t       *json;
    ngx_http_bloom_removed_t  *list;

    list = (ngx_http_bloom_removed_t *) op;

    ngx_bloom_info_get(op->zone, &info);

    if (list->left == 0) {
        list->left = NGX_HTTP_BLOOM_REMOVED_LIMIT;
    }

    if (list->next.high == 0) {
        list->next.high = info.generation;
    }

    if (list->next.high != info.generation) {
        return ngx_http_bloom_error(&op->error, NGX_HTTP_BLOOM_E_GENERATION,
                                    "\"from\" belongs to generation %uL of "
                                    "zone \"%V\", but generation %uL serves; "
                                    "list the keys again without \"from\"",
                                    list->next.high, &op->zone->name,
                                    info.generation);
    }

    count = list->excepted ? ngx_bloom_adapt_count(op->zone, &limit)
                           : ngx_bloom_removed_count(op->zone, &limit);

    ngx_http_bloom_turns_init(&list->turns, ngx_http_bloom_removed_step,
                              ngx_http_bloom_removed_done);

    json = &list->turns.text.json;

    bloom_json_put_object(json, NULL);
    bloom_json_put_count(json, "generation", info.generation);
    bloom_json_put_count(json, "count", count);
    bloom_json_put_count(json, "limit", limit);
    bloom_json_put_array(json, "keys");

    return NGX_OK;
}


/* Lists some keys. */
static ngx_int_t
ngx_http_bloom_removed_step(ngx_http_request_t *r,
    ngx_http_bloom_turns_t *turns)
{
    ngx_int_t                    rc;
    ngx_pool_t                  *pool;
    ngx_bloom_removed_t          removed;
    ngx_http_bloom_removed_t    *list;
    ngx_http_bloom_operation_t  *op;

    list = (ngx_http_bloom_removed_t *) turns;
    op = &turns->op;

    pool = ngx_create_pool(NGX_HTTP_BLOOM_REMOVED_BYTES, r->connection->log);
    if (pool == NULL) {
        return NGX_ERROR;
    }

    rc = ngx_bloom_removed_list(op->zone, list->excepted
                                          ? BLOOM_EXCEPTION_FEEDBACK
                                          : BLOOM_EXCEPTION_REMOVED,
                                list->next.low,
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
        turns->left -= ngx_http_bloom_removed_put(list, &removed.keys)
                       / NGX_HTTP_BLOOM_REMOVED_BYTES;

        list->left -= ngx_min(list->left, removed.keys.nelts);
        list->next.low = removed.cursor;

        rc = (removed.cursor != 0 && list->left != 0) ? NGX_AGAIN : NGX_OK;
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
    json = &list->turns.text.json;
    bytes = 0;
    shift = ngx_bloom_zone_shift(list->turns.op.zone);

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
ngx_http_bloom_removed_done(ngx_http_request_t *r,
    ngx_http_bloom_turns_t *turns)
{
    char                       next[BLOOM_POSITION_TEXT_MAX];
    bloom_json_writer_t       *json;
    ngx_http_bloom_removed_t  *list;

    list = (ngx_http_bloom_removed_t *) turns;
    json = &turns->text.json;

    bloom_json_put_end(json);

    if (list->next.low != 0) {
        (void) bloom_position_write(list->next, next);
        bloom_json_put_text(json, "next", next);

    } else {
        bloom_json_put_null(json, "next");
    }

    bloom_json_put_end(json);

    return ngx_http_bloom_response_json(r, NGX_HTTP_OK, &turns->text);
}
