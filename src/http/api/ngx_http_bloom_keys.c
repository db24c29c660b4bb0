/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file adds or removes the keys of a request's body in batches, while they
 * arrive.
 */

#include "ngx_http_bloom_counts.h"
#include "ngx_http_bloom_lookup.h"
#include "ngx_bloom_remove.h"


/* What is done with keys. */
typedef struct {
    const ngx_bloom_change_kind_t  *kind;
    ngx_int_t                 (*run)(ngx_bloom_batch_t *batch);

    ngx_http_bloom_error_code_e  never;  /* the zone never takes such keys */

    /* what a failure means: at the beginning, of a batch, on the disk */

    const char                 *none;
    const char                 *some;
    const char                 *undone;
} ngx_http_bloom_keys_change_t;


typedef struct {
    ngx_http_bloom_operation_t  op;
    const ngx_http_bloom_keys_change_t  *change;

    ngx_bloom_batch_t       batch;
    ngx_http_bloom_counts_t     counts;

    ngx_str_t                   first;   /* the first key, of a removal */
    ngx_uint_t                  wait;    /* the client asked for durable=true */

    unsigned                    full:1;  /* the batch must be run before it
                                            takes another key */
    unsigned                    failed:1;          /* the batch was refused */
    unsigned                    durable:1;
} ngx_http_bloom_keys_t;


static ngx_int_t ngx_http_bloom_keys_begin_query(
    ngx_http_bloom_operation_t *op);
static ngx_int_t ngx_http_bloom_keys_begin(ngx_http_bloom_operation_t *op);
static ngx_int_t ngx_http_bloom_keys_take(ngx_http_bloom_operation_t *op,
    ngx_str_t *key);
static ngx_int_t ngx_http_bloom_keys_flush(ngx_http_bloom_operation_t *op);
static ngx_int_t ngx_http_bloom_keys_run(ngx_http_bloom_operation_t *op);
static void ngx_http_bloom_keys_put(ngx_http_bloom_operation_t *op,
    ngx_http_bloom_text_t *text);
static void ngx_http_bloom_keys_put_present(ngx_http_bloom_keys_t *keys,
    bloom_json_writer_t *json);


enum {
    NGX_HTTP_BLOOM_KEYS_ADD = 0,
    NGX_HTTP_BLOOM_KEYS_REMOVE
};

static const ngx_http_bloom_keys_change_t  ngx_http_bloom_keys_changes[] = {

    { &ngx_bloom_add_kind,
      ngx_bloom_add,
      NGX_HTTP_BLOOM_E_NO_ADDITIONS,
      "no key was added",
      "the keys that are neither added nor already present were refused, so "
      "send them again later",
      "a loss of power may undo the additions of this request" },

    { &ngx_bloom_remove_kind,
      ngx_bloom_remove,
      NGX_HTTP_BLOOM_E_NO_REMOVALS,
      "no key was removed",
      "the keys that are neither removed nor absent were refused, so send them "
      "again later",
      "a loss of power may undo the removals of this request" }
};


static const ngx_http_bloom_arg_t  ngx_http_bloom_keys_args[] = {
    ngx_http_bloom_arg_flag("durable", ngx_http_bloom_keys_t, wait),
    ngx_http_bloom_arg_decode,
    ngx_http_bloom_arg_serving,
    ngx_http_bloom_arg_end
};

static const ngx_http_bloom_arg_t  ngx_http_bloom_keys_args_query[] = {
    ngx_http_bloom_arg_other("key"),
    ngx_http_bloom_arg_flag("durable", ngx_http_bloom_keys_t, wait),
    ngx_http_bloom_arg_serving,
    ngx_http_bloom_arg_end
};

const ngx_http_bloom_kind_t  ngx_http_bloom_post_keys = {
    .size = sizeof(ngx_http_bloom_keys_t),
    .which = NGX_HTTP_BLOOM_KEYS_ADD,
    .args = ngx_http_bloom_keys_args,
    .begin = ngx_http_bloom_keys_begin,
    .take = ngx_http_bloom_keys_take,
    .run = ngx_http_bloom_keys_run,
    .put = ngx_http_bloom_keys_put,
    .partial = 1
};

const ngx_http_bloom_kind_t  ngx_http_bloom_post_remove = {
    .size = sizeof(ngx_http_bloom_keys_t),
    .which = NGX_HTTP_BLOOM_KEYS_REMOVE,
    .args = ngx_http_bloom_keys_args,
    .begin = ngx_http_bloom_keys_begin,
    .take = ngx_http_bloom_keys_take,
    .run = ngx_http_bloom_keys_run,
    .put = ngx_http_bloom_keys_put,
    .partial = 1
};

const ngx_http_bloom_kind_t  ngx_http_bloom_delete_keys = {
    .size = sizeof(ngx_http_bloom_keys_t),
    .which = NGX_HTTP_BLOOM_KEYS_REMOVE,
    .args = ngx_http_bloom_keys_args_query,
    .begin = ngx_http_bloom_keys_begin_query,
    .run = ngx_http_bloom_keys_run,
    .put = ngx_http_bloom_keys_put
};


static ngx_int_t
ngx_http_bloom_keys_begin_query(ngx_http_bloom_operation_t *op)
{
    ngx_int_t            rc;
    ngx_str_t            key;
    ngx_http_request_t  *r;

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
        rc = ngx_http_bloom_keys_begin(op);
    }

    if (rc == NGX_OK) {

        /* the only key is the first; an empty batch has room for any key */

        op->body.lines = 1;

        rc = ngx_http_bloom_keys_take(op, &key);
    }

    return rc;
}


static ngx_int_t
ngx_http_bloom_keys_begin(ngx_http_bloom_operation_t *op)
{
    u_char                 *buf;
    ngx_int_t               rc;
    ngx_http_bloom_keys_t  *keys;

    keys = (ngx_http_bloom_keys_t *) op;

    buf = ngx_palloc(op->request->pool, NGX_BLOOM_BATCH_SIZE);
    if (buf == NULL) {
        return NGX_ERROR;
    }

    keys->change = &ngx_http_bloom_keys_changes[op->kind->which];

    rc = ngx_bloom_batch_begin(&keys->batch, op->zone, keys->change->kind,
                               buf);

    return rc == NGX_OK
           ? NGX_OK
           : ngx_http_bloom_counts_fail(op, &keys->batch,
                                        rc == NGX_DECLINED
                                        ? keys->change->never
                                        : NGX_HTTP_BLOOM_E_JOURNAL,
                                        keys->change->none);
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

        switch (ngx_bloom_batch_key(&keys->batch, key)) {

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

    if (keys->failed) {
        return NGX_ERROR;
    }

    rc = keys->change->run(&keys->batch);

    keys->full = (rc == NGX_AGAIN);

    switch (rc) {

    case NGX_OK:
        return NGX_OK;

    case NGX_AGAIN:
        return ngx_http_bloom_operation_in_queue(op, NGX_BLOOM_QUEUE_ROOM);

    case NGX_DONE:
        keys->failed = 1;
        return ngx_http_bloom_counts_fail(op, &keys->batch,
                                          NGX_HTTP_BLOOM_E_NO_ROOM,
                                          "the keys that are neither removed "
                                          "nor absent were refused");

    default: /* NGX_ERROR */
        keys->failed = 1;
        return ngx_http_bloom_counts_fail(op, &keys->batch,
                                          NGX_HTTP_BLOOM_E_JOURNAL,
                                          keys->change->some);
    }
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

    rc = ngx_bloom_batch_synced(&keys->batch);

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
