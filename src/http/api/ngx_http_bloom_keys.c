/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file adds or removes the keys of a request's body in batches, while they
 * arrive.
 */

#include "ngx_http_bloom_keys.h"
#include "ngx_http_bloom_counts.h"
#include "ngx_http_bloom_lookup.h"
#include "ngx_http_bloom_query.h"
#include "ngx_bloom_remove.h"


/* How many batches' buffers a process keeps for its next requests. */
#define NGX_HTTP_BLOOM_KEYS_BUFFERS  4


/* What is done with keys. */
typedef struct {
    ngx_int_t                 (*init)(ngx_bloom_add_batch_t *batch,
                                      ngx_bloom_zone_t *zone, u_char *buf);
    ngx_int_t                 (*put)(ngx_bloom_add_batch_t *batch,
                                     ngx_str_t *key);
    ngx_int_t                 (*run)(ngx_bloom_add_batch_t *batch);

    ngx_http_bloom_error_code_e  never;  /* the zone never takes such keys */

    /* what a failure means: at the beginning, of a batch, on the disk */

    const char                 *none;
    const char                 *some;
    const char                 *undone;
} ngx_http_bloom_keys_change_t;


typedef struct {
    ngx_http_bloom_operation_t  op;
    const ngx_http_bloom_keys_change_t  *change;

    ngx_bloom_add_batch_t       batch;
    ngx_http_bloom_counts_t     counts;

    u_char                     *buf;     /* of the batch; NULL: it is not
                                            initialised */
    ngx_str_t                   first;   /* the first key, of a removal */
    ngx_uint_t                  wait;    /* the client asked for durable=true */

    unsigned                    full:1;  /* the batch must be run before it
                                            takes another key */
    unsigned                    failed:1;          /* the batch was refused */
    unsigned                    durable:1;
} ngx_http_bloom_keys_t;


static ngx_int_t ngx_http_bloom_keys_begin_body(
    ngx_http_bloom_operation_t *op);
static ngx_int_t ngx_http_bloom_keys_begin_query(
    ngx_http_bloom_operation_t *op);
static ngx_int_t ngx_http_bloom_keys_begin(ngx_http_bloom_keys_t *keys);
static ngx_int_t ngx_http_bloom_keys_take(ngx_http_bloom_operation_t *op,
    ngx_str_t *key);
static ngx_int_t ngx_http_bloom_keys_flush(ngx_http_bloom_operation_t *op);
static ngx_int_t ngx_http_bloom_keys_run(ngx_http_bloom_operation_t *op);
static ngx_int_t ngx_http_bloom_keys_batch(ngx_http_bloom_keys_t *keys);
static void ngx_http_bloom_keys_put(ngx_http_bloom_operation_t *op,
    ngx_http_bloom_text_t *text);
static void ngx_http_bloom_keys_put_present(ngx_http_bloom_keys_t *keys,
    bloom_json_writer_t *json);
static void ngx_http_bloom_keys_end(ngx_http_bloom_operation_t *op);
static u_char *ngx_http_bloom_keys_get_buffer(ngx_log_t *log);
static void ngx_http_bloom_keys_put_buffer(u_char *buf);


enum {
    NGX_HTTP_BLOOM_KEYS_ADD = 0,
    NGX_HTTP_BLOOM_KEYS_REMOVE
};

static const ngx_http_bloom_keys_change_t  ngx_http_bloom_keys_changes[] = {

    { ngx_bloom_add_batch_init,
      ngx_bloom_add_batch_put,
      ngx_bloom_add_batch,
      NGX_HTTP_BLOOM_E_NO_ADDITIONS,
      "no key was added",
      "the keys that are neither added nor already present were refused, so "
      "send them again later",
      "a loss of power may undo the additions of this request" },

    { ngx_bloom_remove_batch_init,
      ngx_bloom_remove_batch_put,
      ngx_bloom_remove_batch,
      NGX_HTTP_BLOOM_E_NO_REMOVALS,
      "no key was removed",
      "the keys that are neither removed nor absent were refused, so send them "
      "again later",
      "a loss of power may undo the removals of this request" }
};


const ngx_http_bloom_kind_t  ngx_http_bloom_post_keys = {
    .size = sizeof(ngx_http_bloom_keys_t),
    .which = NGX_HTTP_BLOOM_KEYS_ADD,
    .begin = ngx_http_bloom_keys_begin_body,
    .take = ngx_http_bloom_keys_take,
    .pause = ngx_http_bloom_keys_flush,
    .run = ngx_http_bloom_keys_run,
    .put = ngx_http_bloom_keys_put,
    .end = ngx_http_bloom_keys_end,
    .partial = 1
};

const ngx_http_bloom_kind_t  ngx_http_bloom_post_remove = {
    .size = sizeof(ngx_http_bloom_keys_t),
    .which = NGX_HTTP_BLOOM_KEYS_REMOVE,
    .begin = ngx_http_bloom_keys_begin_body,
    .take = ngx_http_bloom_keys_take,
    .pause = ngx_http_bloom_keys_flush,
    .run = ngx_http_bloom_keys_run,
    .put = ngx_http_bloom_keys_put,
    .end = ngx_http_bloom_keys_end,
    .partial = 1
};

const ngx_http_bloom_kind_t  ngx_http_bloom_delete_keys = {
    .size = sizeof(ngx_http_bloom_keys_t),
    .which = NGX_HTTP_BLOOM_KEYS_REMOVE,
    .begin = ngx_http_bloom_keys_begin_query,
    .run = ngx_http_bloom_keys_run,
    .put = ngx_http_bloom_keys_put,
    .end = ngx_http_bloom_keys_end
};


static u_char     *ngx_http_bloom_keys_buffer[NGX_HTTP_BLOOM_KEYS_BUFFERS];
static ngx_uint_t  ngx_http_bloom_keys_nbuffers;


static ngx_int_t
ngx_http_bloom_keys_begin_body(ngx_http_bloom_operation_t *op)
{
    ngx_str_t  key;

    if (ngx_http_arg(op->request, (u_char *) "key", sizeof("key") - 1, &key)
        == NGX_OK)
    {
        return ngx_http_bloom_error(&op->error, NGX_HTTP_BLOOM_E_BAD_QUERY,
                                    "a POST request takes keys from its body, "
                                    "not from \"key=\" in the query; %s",
                                    ngx_http_bloom_keys_changes
                                        [op->kind->which].none);
    }

    return ngx_http_bloom_keys_begin((ngx_http_bloom_keys_t *) op);
}


static ngx_int_t
ngx_http_bloom_keys_begin_query(ngx_http_bloom_operation_t *op)
{
    ngx_int_t            rc;
    ngx_str_t            key;
    ngx_http_request_t  *r;

    static const char  *const args[] = { "key", "durable", "serving", NULL };

    r = op->request;

    if (r->headers_in.content_length_n > 0 || r->headers_in.chunked) {
        return ngx_http_bloom_error(&op->error, NGX_HTTP_BLOOM_E_BAD_BODY,
                                    "a DELETE request must have no body, "
                                    "because proxies drop it; name one key as "
                                    "\"?key=K\", or send keys in the body of "
                                    "POST zones/%V/remove", &op->zone->name);
    }

    rc = ngx_http_bloom_lookup_key(r, &key, &op->error);

    if (rc == NGX_OK) {
        rc = ngx_http_bloom_query_only(r, args, &op->error);
    }

    if (rc == NGX_OK) {
        rc = ngx_http_bloom_keys_begin((ngx_http_bloom_keys_t *) op);
    }

    if (rc == NGX_OK) {

        /* the only key is the first; an empty batch has room for any key */

        op->body.lines = 1;

        rc = ngx_http_bloom_keys_take(op, &key);
    }

    return rc;
}


static ngx_int_t
ngx_http_bloom_keys_begin(ngx_http_bloom_keys_t *keys)
{
    u_char                      *buf;
    ngx_int_t                    rc;
    ngx_http_bloom_operation_t  *op;

    op = &keys->op;

    rc = ngx_http_bloom_query_flag(op->request, "durable", &keys->wait,
                                   &op->error);
    if (rc != NGX_OK) {
        return rc;
    }

    buf = ngx_http_bloom_keys_get_buffer(op->request->connection->log);
    if (buf == NULL) {
        return NGX_ERROR;
    }

    keys->change = &ngx_http_bloom_keys_changes[op->kind->which];

    rc = keys->change->init(&keys->batch, op->zone, buf);

    if (rc != NGX_OK) {
        ngx_http_bloom_keys_put_buffer(buf);

        return ngx_http_bloom_counts_fail(op, &keys->batch,
                                          rc == NGX_DECLINED
                                          ? keys->change->never
                                          : NGX_HTTP_BLOOM_E_JOURNAL,
                                          keys->change->none);
    }

    keys->buf = buf;

    return NGX_OK;
}


static ngx_int_t
ngx_http_bloom_keys_take(ngx_http_bloom_operation_t *op, ngx_str_t *key)
{
    ngx_int_t               rc;
    ngx_http_bloom_keys_t  *keys;

    keys = (ngx_http_bloom_keys_t *) op;

    if (keys->first.data == NULL
        && op->kind->which == NGX_HTTP_BLOOM_KEYS_REMOVE)
    {
        /* if it is the only one, the response says by which expressions it is
         * still present */

        keys->first.data = ngx_pnalloc(op->request->pool, key->len);

        if (keys->first.data == NULL) {
            return NGX_ERROR;
        }

        ngx_memcpy(keys->first.data, key->data, key->len);
        keys->first.len = key->len;
    }

    for ( ;; ) {

        if (keys->full) {
            rc = ngx_http_bloom_keys_flush(op);

            if (rc != NGX_OK) {
                return rc;
            }
        }

        switch (keys->change->put(&keys->batch, key)) {

        case NGX_OK:
            keys->counts.received++;
            return NGX_OK;

        case NGX_DECLINED:
            keys->counts.received++;
            ngx_http_bloom_counts_skip(&keys->counts, op, &keys->batch);
            return NGX_OK;

        default: /* NGX_AGAIN */
            keys->full = 1;
        }
    }
}


/* Adds or removes the keys in the batch. */
static ngx_int_t
ngx_http_bloom_keys_flush(ngx_http_bloom_operation_t *op)
{
    ngx_int_t               rc;
    ngx_http_bloom_keys_t  *keys;

    keys = (ngx_http_bloom_keys_t *) op;

    rc = ngx_http_bloom_keys_batch(keys);

    return rc == NGX_AGAIN
           ? ngx_http_bloom_operation_in_queue(op, NGX_BLOOM_QUEUE_ROOM) : rc;
}


static ngx_int_t
ngx_http_bloom_keys_batch(ngx_http_bloom_keys_t *keys)
{
    ngx_int_t  rc;

    if (keys->failed) {
        return NGX_ERROR;
    }

    rc = keys->change->run(&keys->batch);

    keys->full = (rc == NGX_AGAIN);

    if (rc == NGX_OK || rc == NGX_AGAIN) {
        return rc;
    }

    keys->failed = 1;

    return rc == NGX_DONE
           ? ngx_http_bloom_counts_fail(&keys->op, &keys->batch,
                                        NGX_HTTP_BLOOM_E_NO_ROOM,
                                        "the keys that are neither removed nor "
                                        "absent were refused")
           : ngx_http_bloom_counts_fail(&keys->op, &keys->batch,
                                        NGX_HTTP_BLOOM_E_JOURNAL,
                                        keys->change->some);
}


/* Finishes the last batch, also if the body is wrong, and waits for the disk if
 * the client asked for it. */
static ngx_int_t
ngx_http_bloom_keys_run(ngx_http_bloom_operation_t *op)
{
    ngx_int_t               rc;
    ngx_http_bloom_keys_t  *keys;

    keys = (ngx_http_bloom_keys_t *) op;

    rc = ngx_http_bloom_keys_flush(op);

    if (rc != NGX_OK || !keys->wait || !keys->batch.durable || op->body.gone) {
        return rc;
    }

    rc = ngx_bloom_add_batch_synced(&keys->batch);

    if (rc == NGX_AGAIN) {
        return ngx_http_bloom_operation_in_queue(op, NGX_BLOOM_QUEUE_SYNC);
    }

    keys->durable = (rc == NGX_OK);

    return (rc == NGX_OK || op->error.code != NGX_HTTP_BLOOM_E_NONE)
           ? rc
           : ngx_http_bloom_counts_fail(op, &keys->batch,
                                        NGX_HTTP_BLOOM_E_JOURNAL,
                                        keys->change->undone);
}


static void
ngx_http_bloom_keys_put(ngx_http_bloom_operation_t *op,
    ngx_http_bloom_text_t *text)
{
    bloom_json_writer_t    *json;
    ngx_http_bloom_keys_t  *keys;

    keys = (ngx_http_bloom_keys_t *) op;
    json = &text->json;

    ngx_http_bloom_counts_put(&keys->counts, op, &keys->batch,
                              op->kind->which == NGX_HTTP_BLOOM_KEYS_ADD,
                              op->kind->which == NGX_HTTP_BLOOM_KEYS_REMOVE,
                              json);

    if (keys->first.data != NULL && keys->counts.received == 1
        && keys->counts.invalid == 0)
    {
        ngx_http_bloom_keys_put_present(keys, json);
    }

    bloom_json_put_bool(json, "durable", keys->durable);
}


/* Appends the expressions by which the removed key is present all the same. */
static void
ngx_http_bloom_keys_put_present(ngx_http_bloom_keys_t *keys,
    bloom_json_writer_t *json)
{
    unsigned             i;
    bloom_key_t         *key;
    ngx_bloom_explain_t  lookup;

    (void) ngx_bloom_explain(keys->op.zone, &keys->first, &lookup,
                             keys->op.request->pool);

    bloom_json_put_array(json, "still_present");

    for (i = 0; i < lookup.keys.n; i++) {

        if ((lookup.matches >> i) & 1) {
            key = &lookup.keys.expression[i];
            bloom_json_put_bytes(json, NULL, key->data, key->len);
        }
    }

    bloom_json_put_end(json);
}


/* If the client gets no response, the log says what was done with its keys. */
static void
ngx_http_bloom_keys_end(ngx_http_bloom_operation_t *op)
{
    ngx_http_bloom_keys_t  *keys;
    ngx_bloom_add_batch_t  *batch;

    keys = (ngx_http_bloom_keys_t *) op;
    batch = &keys->batch;

    if (keys->buf == NULL) {
        return;
    }

    if (!op->answered) {
        (void) ngx_http_bloom_keys_batch(keys);

        ngx_log_error(NGX_LOG_INFO, op->request->connection->log, 0,
                      "client went away while it sent keys for bloom zone "
                      "\"%V\": %uL received, %uL %s, %uL %s, %uL invalid",
                      &op->zone->name, keys->counts.received,
                      batch->added + batch->removed,
                      op->kind->which == NGX_HTTP_BLOOM_KEYS_ADD
                      ? "added" : "removed",
                      batch->already_present + batch->absent,
                      op->kind->which == NGX_HTTP_BLOOM_KEYS_ADD
                      ? "already present" : "absent already",
                      keys->counts.invalid);
    }

    ngx_http_bloom_keys_put_buffer(keys->buf);
}


/* Returns a buffer for a batch, preferably one that was used before: it is
 * large, and a single key needs little of it. */
static u_char *
ngx_http_bloom_keys_get_buffer(ngx_log_t *log)
{
    if (ngx_http_bloom_keys_nbuffers != 0) {
        return ngx_http_bloom_keys_buffer[--ngx_http_bloom_keys_nbuffers];
    }

    return ngx_alloc(NGX_BLOOM_ADD_BATCH_SIZE, log);
}


static void
ngx_http_bloom_keys_put_buffer(u_char *buf)
{
    if (ngx_http_bloom_keys_nbuffers < NGX_HTTP_BLOOM_KEYS_BUFFERS) {
        ngx_http_bloom_keys_buffer[ngx_http_bloom_keys_nbuffers++] = buf;
        return;
    }

    ngx_free(buf);
}
