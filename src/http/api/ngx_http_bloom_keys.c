/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file adds or removes the keys of a request's body in batches, while they
 * arrive.
 */

#include "ngx_http_bloom_keys.h"
#include "ngx_http_bloom_body.h"
#include "ngx_http_bloom_ctx.h"
#include "ngx_http_bloom_lookup.h"
#include "ngx_http_bloom_query.h"
#include "ngx_http_bloom_response.h"
#include "ngx_http_bloom_resume.h"
#include "ngx_bloom_add.h"
#include "ngx_bloom_remove.h"


/* How long the keys in a batch wait for more keys, ms. */
#define NGX_HTTP_BLOOM_KEYS_IDLE     10

/* How many batches' buffers a process keeps for its next requests. */
#define NGX_HTTP_BLOOM_KEYS_BUFFERS  4


/* The results that a batch counts, and their number. */
#define NGX_HTTP_BLOOM_KEYS_RESULTS  2

typedef struct {
    const char                 *name;    /* in the response */
    const char                 *text;    /* in the log */
    size_t                      offset;  /* of its number in a batch */
    ngx_bloom_counter_e         counter;
} ngx_http_bloom_keys_result_t;


/* What is done with keys. */
typedef struct {
    ngx_int_t                 (*init)(ngx_bloom_add_batch_t *batch,
                                      ngx_bloom_zone_t *zone, u_char *buf);
    ngx_int_t                 (*put)(ngx_bloom_add_batch_t *batch,
                                     ngx_str_t *key);
    ngx_int_t                 (*run)(ngx_bloom_add_batch_t *batch);

    ngx_http_bloom_keys_result_t  result[NGX_HTTP_BLOOM_KEYS_RESULTS];

    ngx_http_bloom_error_code_e  never;  /* the zone never takes such keys */

    /* what a failure means: at the beginning, of a batch, on the disk */

    const char                 *none;
    const char                 *some;
    const char                 *undone;

    ngx_uint_t                  removes; /* keys are removed, not added */
} ngx_http_bloom_keys_kind_t;


typedef enum {
    NGX_HTTP_BLOOM_KEYS_READ = 0,             /* reads the body */
    NGX_HTTP_BLOOM_KEYS_FLUSH,                /* finishes the last batch */
    NGX_HTTP_BLOOM_KEYS_SYNC,                 /* waits for the disk */
    NGX_HTTP_BLOOM_KEYS_RESPOND
} ngx_http_bloom_keys_stage_e;

typedef struct {
    const ngx_http_bloom_keys_kind_t  *kind;

    ngx_http_bloom_body_t       body;
    ngx_bloom_add_batch_t       batch;
    ngx_http_bloom_resume_t     resume;
    ngx_http_bloom_resume_t     idle;    /* runs the batch while the client
                                            sends nothing */
    ngx_http_bloom_error_t      error;   /* of the response */
    ngx_http_request_t         *request;

    u_char                     *buf;     /* of the batch */
    ngx_str_t                   first;   /* the first key, of a removal */
    uint64_t                    received;
    uint64_t                    invalid; /* of those received */
    uint64_t                    number;  /* of the first invalid key */
    const char                 *why;     /* what is wrong with that key */
    ngx_http_bloom_keys_stage_e  stage;

    unsigned                    full:1;  /* the batch must be run before it
                                            takes another key */
    unsigned                    wait:1;  /* the client asked for durable=true */
    unsigned                    durable:1;
    unsigned                    answered:1;
} ngx_http_bloom_keys_t;


static ngx_http_bloom_keys_t *ngx_http_bloom_keys_begin(ngx_http_request_t *r,
    ngx_bloom_zone_t *zone, const ngx_http_bloom_keys_kind_t *kind,
    ngx_int_t *rc);
static ngx_int_t ngx_http_bloom_keys_receive(ngx_http_request_t *r,
    ngx_bloom_zone_t *zone, const ngx_http_bloom_keys_kind_t *kind);
static void ngx_http_bloom_keys_run(ngx_http_request_t *r);
static void ngx_http_bloom_keys_idle(ngx_http_request_t *r);
static ngx_int_t ngx_http_bloom_keys_step(ngx_http_bloom_keys_t *keys);
static ngx_int_t ngx_http_bloom_keys_read(ngx_http_bloom_keys_t *keys);
static ngx_int_t ngx_http_bloom_keys_flush(ngx_http_bloom_keys_t *keys);
static ngx_int_t ngx_http_bloom_keys_sync(ngx_http_bloom_keys_t *keys);
static ngx_int_t ngx_http_bloom_keys_take(void *data, ngx_str_t *key);
static ngx_int_t ngx_http_bloom_keys_remember(ngx_http_bloom_keys_t *keys,
    ngx_str_t *key);
static void ngx_http_bloom_keys_skip(ngx_http_bloom_keys_t *keys);
static ngx_int_t ngx_http_bloom_keys_batch(ngx_http_bloom_keys_t *keys);
static void ngx_http_bloom_keys_error(ngx_http_bloom_keys_t *keys,
    ngx_http_bloom_error_code_e code, const char *meaning);
static uint64_t ngx_http_bloom_keys_result(ngx_http_bloom_keys_t *keys,
    ngx_uint_t i);
static ngx_int_t ngx_http_bloom_keys_respond(ngx_http_request_t *r,
    ngx_http_bloom_keys_t *keys);
static void ngx_http_bloom_keys_put_present(ngx_http_bloom_text_t *text,
    ngx_http_bloom_keys_t *keys);
static void ngx_http_bloom_keys_cleanup(void *data);
static u_char *ngx_http_bloom_keys_get_buffer(ngx_log_t *log);
static void ngx_http_bloom_keys_put_buffer(u_char *buf);


static const ngx_http_bloom_keys_kind_t  ngx_http_bloom_keys_add = {
    ngx_bloom_add_batch_init,
    ngx_bloom_add_batch_put,
    ngx_bloom_add_batch,

    { { "added", "added", offsetof(ngx_bloom_add_batch_t, added),
        NGX_BLOOM_COUNTER_ADDED },
      { "already_present", "already present",
        offsetof(ngx_bloom_add_batch_t, already_present),
        NGX_BLOOM_COUNTER_ALREADY_PRESENT } },

    NGX_HTTP_BLOOM_E_NO_ADDITIONS,
    "no key was added",
    "the keys that are neither added nor already present were refused, so send "
    "them again later",
    "a loss of power may undo the additions of this request",
    0
};

static const ngx_http_bloom_keys_kind_t  ngx_http_bloom_keys_remove = {
    ngx_bloom_remove_batch_init,
    ngx_bloom_remove_batch_put,
    ngx_bloom_remove_batch,

    { { "removed", "removed", offsetof(ngx_bloom_add_batch_t, removed),
        NGX_BLOOM_COUNTER_REMOVED },
      { "absent", "absent already", offsetof(ngx_bloom_add_batch_t, absent),
        NGX_BLOOM_COUNTER_REMOVED_ABSENT } },

    NGX_HTTP_BLOOM_E_NO_REMOVALS,
    "no key was removed",
    "the keys that are neither removed nor absent were refused, so send them "
    "again later",
    "a loss of power may undo the removals of this request",
    1
};


static u_char     *ngx_http_bloom_keys_buffer[NGX_HTTP_BLOOM_KEYS_BUFFERS];
static ngx_uint_t  ngx_http_bloom_keys_nbuffers;


ngx_int_t
ngx_http_bloom_keys_post(ngx_http_request_t *r, ngx_bloom_zone_t *zone)
{
    return ngx_http_bloom_keys_receive(r, zone, &ngx_http_bloom_keys_add);
}


ngx_int_t
ngx_http_bloom_keys_post_remove(ngx_http_request_t *r, ngx_bloom_zone_t *zone)
{
    return ngx_http_bloom_keys_receive(r, zone, &ngx_http_bloom_keys_remove);
}


/* Takes keys from the body. */
static ngx_int_t
ngx_http_bloom_keys_receive(ngx_http_request_t *r, ngx_bloom_zone_t *zone,
    const ngx_http_bloom_keys_kind_t *kind)
{
    ngx_int_t               rc;
    ngx_http_bloom_keys_t  *keys;

    keys = ngx_http_bloom_keys_begin(r, zone, kind, &rc);

    if (keys == NULL) {
        return rc;
    }

    return ngx_http_bloom_body_start(&keys->body, ngx_http_bloom_keys_run);
}


ngx_int_t
ngx_http_bloom_keys_delete(ngx_http_request_t *r, ngx_bloom_zone_t *zone)
{
    ngx_int_t               rc;
    ngx_str_t               key;
    ngx_http_bloom_keys_t  *keys;
    ngx_http_bloom_error_t  error;

    static const char  *const args[] = { "key", "durable", "serving", NULL };

    if (r->headers_in.content_length_n > 0 || r->headers_in.chunked) {
        return ngx_http_bloom_response_refuse(r, NGX_HTTP_BLOOM_E_BAD_BODY,
                                              "a DELETE request must have no "
                                              "body, because proxies drop it; "
                                              "name one key as \"?key=K\", or "
                                              "send keys in the body of POST "
                                              "zones/%V/remove", &zone->name);
    }

    rc = ngx_http_bloom_lookup_key(r, &key, &error);

    if (rc == NGX_OK) {
        rc = ngx_http_bloom_query_only(r, args, &error);
    }

    if (rc != NGX_OK) {
        return rc == NGX_DECLINED
               ? ngx_http_bloom_response_refuse_error(r, &error)
               : NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    keys = ngx_http_bloom_keys_begin(r, zone, &ngx_http_bloom_keys_remove, &rc);

    if (keys == NULL) {
        return rc;
    }

    /* an empty batch has room for any key */

    if (ngx_http_bloom_keys_take(keys, &key) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    keys->number = keys->invalid;
    keys->stage = NGX_HTTP_BLOOM_KEYS_FLUSH;

    r->main->count++;

    ngx_http_bloom_keys_run(r);

    return NGX_DONE;
}


/* Prepares to take keys.  Returns NULL if they are refused; *rc then becomes
 * what the content handler returns. */
static ngx_http_bloom_keys_t *
ngx_http_bloom_keys_begin(ngx_http_request_t *r, ngx_bloom_zone_t *zone,
    const ngx_http_bloom_keys_kind_t *kind, ngx_int_t *rc)
{
    ngx_int_t               ready;
    ngx_str_t               key;
    ngx_uint_t              durable;
    ngx_pool_cleanup_t     *cln;
    ngx_http_bloom_keys_t  *keys;
    ngx_http_bloom_error_t  error;

    *rc = NGX_HTTP_INTERNAL_SERVER_ERROR;

    if (ngx_http_bloom_query_flag(r, "durable", &durable, &error) != NGX_OK) {
        *rc = ngx_http_bloom_response_refuse_error(r, &error);
        return NULL;
    }

    if (r->method == NGX_HTTP_POST
        && ngx_http_arg(r, (u_char *) "key", sizeof("key") - 1, &key)
           == NGX_OK)
    {
        *rc = ngx_http_bloom_response_refuse(r, NGX_HTTP_BLOOM_E_BAD_QUERY,
                                             "a POST request takes keys from "
                                             "its body, not from \"key=\" in "
                                             "the query; %s", kind->none);
        return NULL;
    }

    keys = ngx_pcalloc(r->pool, sizeof(ngx_http_bloom_keys_t));
    if (keys == NULL) {
        return NULL;
    }

    keys->request = r;
    keys->kind = kind;
    keys->wait = durable;

    if (r->method == NGX_HTTP_POST) {

        ready = ngx_http_bloom_body_init(&keys->body, r,
                                         ngx_http_bloom_keys_take, keys);

        if (ready == NGX_DECLINED) {
            *rc = ngx_http_bloom_response_refuse_error(r, &keys->body.error);
        }

        if (ready != NGX_OK) {
            return NULL;
        }
    }

    cln = ngx_pool_cleanup_add(r->pool, 0);

    if (cln == NULL
        || ngx_http_bloom_ctx_set_operation(r, keys) != NGX_OK
        || ngx_http_bloom_resume_init(&keys->resume, r,
                                      ngx_http_bloom_keys_run)
           != NGX_OK
        || ngx_http_bloom_resume_init(&keys->idle, r,
                                      ngx_http_bloom_keys_idle)
           != NGX_OK)
    {
        return NULL;
    }

    keys->buf = ngx_http_bloom_keys_get_buffer(r->connection->log);
    if (keys->buf == NULL) {
        return NULL;
    }

    ready = kind->init(&keys->batch, zone, keys->buf);

    if (ready != NGX_OK) {
        ngx_http_bloom_keys_put_buffer(keys->buf);

        ngx_http_bloom_keys_error(keys,
                                  ready == NGX_DECLINED
                                  ? kind->never : NGX_HTTP_BLOOM_E_JOURNAL,
                                  kind->none);

        *rc = ngx_http_bloom_response_refuse_error(r, &keys->error);
        return NULL;
    }

    cln->handler = ngx_http_bloom_keys_cleanup;
    cln->data = keys;

    return keys;
}


/* Runs the stages until one has to wait, or the request is finished. */
static void
ngx_http_bloom_keys_run(ngx_http_request_t *r)
{
    ngx_http_bloom_keys_t  *keys;

    keys = ngx_http_bloom_ctx_operation(r);

    /* data that arrives in another stage waits until the body is read again */

    r->read_event_handler = (keys->stage == NGX_HTTP_BLOOM_KEYS_READ)
                            ? ngx_http_bloom_keys_run
                            : ngx_http_block_reading;

    while (keys->stage != NGX_HTTP_BLOOM_KEYS_RESPOND) {
        if (ngx_http_bloom_keys_step(keys) == NGX_AGAIN) {
            return;
        }
    }

    ngx_http_finalize_request(r, ngx_http_bloom_keys_respond(r, keys));
}


/* Runs the batch with the keys that a slow client has sent so far. */
static void
ngx_http_bloom_keys_idle(ngx_http_request_t *r)
{
    ngx_http_bloom_keys_t  *keys;

    keys = ngx_http_bloom_ctx_operation(r);

    if (keys->stage != NGX_HTTP_BLOOM_KEYS_READ) {
        return;
    }

    switch (ngx_http_bloom_keys_batch(keys)) {

    case NGX_OK:
        return;

    case NGX_AGAIN:
        ngx_http_bloom_resume_in_queue(&keys->idle, keys->batch.zone,
                                       NGX_BLOOM_QUEUE_ROOM);
        return;

    default: /* NGX_ERROR */
        keys->stage = NGX_HTTP_BLOOM_KEYS_RESPOND;
        ngx_http_bloom_keys_run(r);
    }
}


/* Runs the current stage.  Returns NGX_OK at its end, or NGX_AGAIN if the
 * request has to wait. */
static ngx_int_t
ngx_http_bloom_keys_step(ngx_http_bloom_keys_t *keys)
{
    switch (keys->stage) {

    case NGX_HTTP_BLOOM_KEYS_READ:
        return ngx_http_bloom_keys_read(keys);

    case NGX_HTTP_BLOOM_KEYS_FLUSH:
        return ngx_http_bloom_keys_flush(keys);

    default: /* NGX_HTTP_BLOOM_KEYS_SYNC */
        return ngx_http_bloom_keys_sync(keys);
    }
}


static ngx_int_t
ngx_http_bloom_keys_read(ngx_http_bloom_keys_t *keys)
{
    switch (ngx_http_bloom_body_read(&keys->body)) {

    case NGX_AGAIN:
        ngx_http_bloom_resume_after(&keys->idle, NGX_HTTP_BLOOM_KEYS_IDLE);
        return NGX_AGAIN;

    case NGX_BUSY:
        ngx_http_bloom_resume_in_queue(&keys->resume, keys->batch.zone,
                                       NGX_BLOOM_QUEUE_ROOM);
        return NGX_AGAIN;

    case NGX_DONE:
        ngx_http_bloom_resume_soon(&keys->resume);
        return NGX_AGAIN;

    case NGX_ABORT:
        keys->stage = NGX_HTTP_BLOOM_KEYS_RESPOND;
        break;

    case NGX_ERROR:
        keys->error = keys->body.error;
        keys->stage = NGX_HTTP_BLOOM_KEYS_FLUSH;
        break;

    default: /* NGX_OK */
        keys->stage = NGX_HTTP_BLOOM_KEYS_FLUSH;
    }

    keys->request->read_event_handler = ngx_http_block_reading;

    return NGX_OK;
}


static ngx_int_t
ngx_http_bloom_keys_flush(ngx_http_bloom_keys_t *keys)
{
    switch (ngx_http_bloom_keys_batch(keys)) {

    case NGX_AGAIN:
        ngx_http_bloom_resume_in_queue(&keys->resume, keys->batch.zone,
                                       NGX_BLOOM_QUEUE_ROOM);
        return NGX_AGAIN;

    case NGX_OK:
        if (keys->wait && keys->batch.durable && !keys->body.gone) {
            keys->stage = NGX_HTTP_BLOOM_KEYS_SYNC;
            return NGX_OK;
        }

        /* fall through */

    default: /* NGX_ERROR */
        keys->stage = NGX_HTTP_BLOOM_KEYS_RESPOND;
        return NGX_OK;
    }
}


static ngx_int_t
ngx_http_bloom_keys_sync(ngx_http_bloom_keys_t *keys)
{
    switch (ngx_bloom_add_batch_synced(&keys->batch)) {

    case NGX_OK:
        keys->durable = 1;
        break;

    case NGX_AGAIN:
        ngx_http_bloom_resume_in_queue(&keys->resume, keys->batch.zone,
                                       NGX_BLOOM_QUEUE_SYNC);
        return NGX_AGAIN;

    default: /* NGX_ERROR */
        if (keys->error.code == NGX_HTTP_BLOOM_E_NONE) {
            ngx_http_bloom_keys_error(keys, NGX_HTTP_BLOOM_E_JOURNAL,
                                      keys->kind->undone);
        }
    }

    keys->stage = NGX_HTTP_BLOOM_KEYS_RESPOND;

    return NGX_OK;
}


/* Takes a key of the body. */
static ngx_int_t
ngx_http_bloom_keys_take(void *data, ngx_str_t *key)
{
    ngx_http_bloom_keys_t *keys = data;

    ngx_int_t  rc;

    if (keys->kind->removes && keys->first.data == NULL
        && ngx_http_bloom_keys_remember(keys, key) != NGX_OK)
    {
        return NGX_ERROR;
    }

    for ( ;; ) {

        if (keys->full) {
            rc = ngx_http_bloom_keys_batch(keys);

            if (rc != NGX_OK) {
                return rc;
            }
        }

        switch (keys->kind->put(&keys->batch, key)) {

        case NGX_OK:
            keys->received++;
            return NGX_OK;

        case NGX_DECLINED:
            keys->received++;
            ngx_http_bloom_keys_skip(keys);
            return NGX_OK;

        default: /* NGX_AGAIN */
            keys->full = 1;
        }
    }
}


/* Keeps the first key of a removal.  If it is the only one, the response says
 * by which expressions it is still present. */
static ngx_int_t
ngx_http_bloom_keys_remember(ngx_http_bloom_keys_t *keys, ngx_str_t *key)
{
    keys->first.data = ngx_pnalloc(keys->request->pool, key->len);

    if (keys->first.data == NULL) {
        ngx_http_bloom_error(&keys->error, NGX_HTTP_BLOOM_E_FAILED,
                             "nginx has no memory for the key; try again "
                             "later");
        return NGX_ERROR;
    }

    ngx_memcpy(keys->first.data, key->data, key->len);
    keys->first.len = key->len;

    return NGX_OK;
}


/*
 * Counts an invalid key, which is left out: a feed of a million lines has some
 * that are not URLs.  The response says how many there are and names the first.
 */
static void
ngx_http_bloom_keys_skip(ngx_http_bloom_keys_t *keys)
{
    if (keys->invalid++ == 0) {
        keys->number = ngx_http_bloom_body_number(&keys->body);
        keys->why = keys->batch.error;
    }

    ngx_bloom_count(keys->batch.zone, NGX_BLOOM_COUNTER_INVALID, 1);
}


/* Adds or removes the keys in the batch. */
static ngx_int_t
ngx_http_bloom_keys_batch(ngx_http_bloom_keys_t *keys)
{
    uint64_t                before[NGX_HTTP_BLOOM_KEYS_RESULTS];
    ngx_int_t               rc;
    ngx_uint_t              i;
    ngx_bloom_add_batch_t  *batch;

    batch = &keys->batch;

    for (i = 0; i < NGX_HTTP_BLOOM_KEYS_RESULTS; i++) {
        before[i] = ngx_http_bloom_keys_result(keys, i);
    }

    rc = keys->kind->run(batch);

    for (i = 0; i < NGX_HTTP_BLOOM_KEYS_RESULTS; i++) {
        ngx_bloom_count(batch->zone, keys->kind->result[i].counter,
                        ngx_http_bloom_keys_result(keys, i) - before[i]);
    }

    keys->full = (rc == NGX_AGAIN);

    switch (rc) {

    case NGX_DONE:
        ngx_http_bloom_keys_error(keys, NGX_HTTP_BLOOM_E_NO_ROOM,
                                  "the keys that are neither removed "
                                  "nor absent were refused");
        return NGX_ERROR;

    case NGX_ERROR:
        ngx_http_bloom_keys_error(keys, NGX_HTTP_BLOOM_E_JOURNAL,
                                  keys->kind->some);
        return NGX_ERROR;

    default: /* NGX_OK, NGX_AGAIN */
        return rc;
    }
}


/* Returns how many keys so far have had a result. */
static uint64_t
ngx_http_bloom_keys_result(ngx_http_bloom_keys_t *keys, ngx_uint_t i)
{
    return *(uint64_t *) ((u_char *) &keys->batch
                          + keys->kind->result[i].offset);
}


/* Sets the error: what a failure of the batch means, and the zone's reason. */
static void
ngx_http_bloom_keys_error(ngx_http_bloom_keys_t *keys,
    ngx_http_bloom_error_code_e code, const char *meaning)
{
    u_char                  buf[NGX_MAX_ERROR_STR], *p;
    ngx_bloom_add_batch_t  *batch;

    batch = &keys->batch;

    p = buf;

    if (batch->err != 0) {
        p = ngx_log_errno(p, buf + sizeof(buf), batch->err);
    }

    ngx_http_bloom_error(&keys->error, code, "zone \"%V\": %s: %s%*s",
                         &batch->zone->name, meaning, batch->error,
                         (size_t) (p - buf), buf);
}


/* Responds.  Returns what ngx_http_finalize_request() takes. */
static ngx_int_t
ngx_http_bloom_keys_respond(ngx_http_request_t *r,
    ngx_http_bloom_keys_t *keys)
{
    ngx_uint_t             i, status;
    ngx_http_bloom_text_t  text;

    ngx_http_bloom_resume_stop(&keys->resume);
    ngx_http_bloom_resume_stop(&keys->idle);

    if (keys->body.gone) {

        /* ngx_http_bloom_keys_cleanup() logs it */

        return NGX_HTTP_CLIENT_CLOSED_REQUEST;
    }

    keys->answered = 1;

    ngx_http_bloom_text_init(&text, r->pool);

    ngx_http_bloom_text_printf(&text, "{");

    if (keys->error.code != NGX_HTTP_BLOOM_E_NONE) {
        ngx_http_bloom_error_put(&text, &keys->error);
        ngx_http_bloom_text_printf(&text, ",");
    }

    ngx_http_bloom_text_printf(&text, "\"received\":%uL,", keys->received);

    for (i = 0; i < NGX_HTTP_BLOOM_KEYS_RESULTS; i++) {
        ngx_http_bloom_text_printf(&text, "\"%s\":%uL,",
                                   keys->kind->result[i].name,
                                   ngx_http_bloom_keys_result(keys, i));
    }

    ngx_http_bloom_text_printf(&text, "\"invalid\":%uL,", keys->invalid);

    if (keys->error.code != NGX_HTTP_BLOOM_E_NONE) {
        ngx_http_bloom_text_printf(&text, "\"refused\":%uL,",
                                   keys->received - keys->invalid
                                   - ngx_http_bloom_keys_result(keys, 0)
                                   - ngx_http_bloom_keys_result(keys, 1));
    }

    if (keys->invalid != 0) {
        ngx_http_bloom_text_printf(&text,
                                   "\"first_invalid\":{\"number\":%uL,"
                                   "\"reason\":\"%s\"},", keys->number,
                                   keys->why);
    }

    if (keys->kind->removes && keys->received == 1 && keys->invalid == 0) {
        ngx_http_bloom_keys_put_present(&text, keys);
    }

    ngx_http_bloom_text_printf(&text, "\"durable\":%s}",
                               keys->durable ? "true" : "false");

    status = ngx_http_bloom_error_status(&keys->error);

    return ngx_http_bloom_response_json(r, status, &text);
}


/* Appends the expressions by which the removed key is present all the same. */
static void
ngx_http_bloom_keys_put_present(ngx_http_bloom_text_t *text,
    ngx_http_bloom_keys_t *keys)
{
    unsigned             i;
    const char          *before;
    bloom_key_t         *key;
    ngx_bloom_explain_t  lookup;

    (void) ngx_bloom_explain(keys->batch.zone, &keys->first, &lookup,
                             keys->request->pool);

    ngx_http_bloom_text_printf(text, "\"still_present\":[");

    before = "";

    for (i = 0; i < lookup.keys.n; i++) {

        if (((lookup.matches >> i) & 1) == 0) {
            continue;
        }

        key = &lookup.keys.expression[i];

        ngx_http_bloom_text_printf(text, before);
        ngx_http_bloom_text_quote(text, (u_char *) key->data, key->len);

        before = ",";
    }

    ngx_http_bloom_text_printf(text, "],");
}


/* Ends the request.  If the client got no response, the log says what was done
 * with its keys. */
static void
ngx_http_bloom_keys_cleanup(void *data)
{
    ngx_http_bloom_keys_t *keys = data;

    if (!keys->answered) {
        (void) ngx_http_bloom_keys_batch(keys);

        ngx_log_error(NGX_LOG_INFO, keys->request->connection->log, 0,
                      "client went away while it sent keys for bloom zone "
                      "\"%V\": %uL received, %uL of them %s, %uL %s, "
                      "%uL invalid", &keys->batch.zone->name, keys->received,
                      ngx_http_bloom_keys_result(keys, 0),
                      keys->kind->result[0].text,
                      ngx_http_bloom_keys_result(keys, 1),
                      keys->kind->result[1].text, keys->invalid);
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
