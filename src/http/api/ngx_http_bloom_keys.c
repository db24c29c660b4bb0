/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file adds the keys of a request's body in batches, while they arrive.
 */

#include "ngx_http_bloom_keys.h"
#include "ngx_http_bloom_body.h"
#include "ngx_http_bloom_ctx.h"
#include "ngx_http_bloom_query.h"
#include "ngx_http_bloom_response.h"
#include "ngx_http_bloom_resume.h"
#include "ngx_bloom_add.h"


/* How long the keys in a batch wait for more keys, ms. */
#define NGX_HTTP_BLOOM_KEYS_IDLE     10

/* How many batches' buffers a process keeps for its next requests. */
#define NGX_HTTP_BLOOM_KEYS_BUFFERS  4


typedef enum {
    NGX_HTTP_BLOOM_KEYS_READ = 0,             /* reads the body */
    NGX_HTTP_BLOOM_KEYS_FLUSH,                /* adds the rest of the batch */
    NGX_HTTP_BLOOM_KEYS_SYNC,                 /* waits for the disk */
    NGX_HTTP_BLOOM_KEYS_RESPOND
} ngx_http_bloom_keys_stage_e;

typedef struct {
    ngx_http_bloom_body_t       body;
    ngx_bloom_add_batch_t           batch;
    ngx_http_bloom_resume_t     resume;
    ngx_http_bloom_resume_t     idle;     /* adds keys while the client sends
                                             nothing */
    ngx_http_bloom_error_t      error;   /* of the response */
    ngx_http_request_t         *request;

    u_char                     *buf;     /* of the batch */
    uint64_t                    received;
    uint64_t                    invalid; /* of those received */
    uint64_t                    number;  /* of the first invalid key */
    const char                 *why;     /* what is wrong with that key */
    ngx_http_bloom_keys_stage_e  stage;

    unsigned                    full:1;  /* the batch must be added before it
                                            takes another key */
    unsigned                    wait:1;  /* the client asked for durable=true */
    unsigned                    durable:1;
    unsigned                    answered:1;
} ngx_http_bloom_keys_t;


static void ngx_http_bloom_keys_run(ngx_http_request_t *r);
static void ngx_http_bloom_keys_idle(ngx_http_request_t *r);
static ngx_int_t ngx_http_bloom_keys_step(ngx_http_bloom_keys_t *adding);
static ngx_int_t ngx_http_bloom_keys_read(ngx_http_bloom_keys_t *adding);
static ngx_int_t ngx_http_bloom_keys_flush(ngx_http_bloom_keys_t *adding);
static ngx_int_t ngx_http_bloom_keys_sync(ngx_http_bloom_keys_t *adding);
static ngx_int_t ngx_http_bloom_keys_take(void *data, ngx_str_t *key);
static void ngx_http_bloom_keys_skip(ngx_http_bloom_keys_t *adding);
static ngx_int_t ngx_http_bloom_keys_batch(ngx_http_bloom_keys_t *adding);
static void ngx_http_bloom_keys_error(ngx_http_bloom_keys_t *adding,
    ngx_http_bloom_error_code_e code, const char *meaning);
static ngx_int_t ngx_http_bloom_keys_respond(ngx_http_request_t *r,
    ngx_http_bloom_keys_t *adding);
static void ngx_http_bloom_keys_cleanup(void *data);
static u_char *ngx_http_bloom_keys_get_buffer(ngx_log_t *log);
static void ngx_http_bloom_keys_put_buffer(u_char *buf);


static u_char     *ngx_http_bloom_keys_buffer[NGX_HTTP_BLOOM_KEYS_BUFFERS];
static ngx_uint_t  ngx_http_bloom_keys_nbuffers;


ngx_int_t
ngx_http_bloom_keys_post(ngx_http_request_t *r, ngx_bloom_zone_t *zone)
{
    ngx_int_t               rc;
    ngx_uint_t              durable;
    ngx_pool_cleanup_t     *cln;
    ngx_http_bloom_keys_t  *adding;
    ngx_http_bloom_error_t  error;

    if (ngx_http_bloom_query_flag(r, "durable", &durable, &error) != NGX_OK) {
        return ngx_http_bloom_response_refuse_error(r, &error);
    }

    adding = ngx_pcalloc(r->pool, sizeof(ngx_http_bloom_keys_t));
    if (adding == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    adding->request = r;
    adding->wait = durable;

    rc = ngx_http_bloom_body_init(&adding->body, r,
                                  ngx_http_bloom_keys_take, adding);

    if (rc == NGX_DECLINED) {
        return ngx_http_bloom_response_refuse_error(r, &adding->body.error);
    }

    cln = ngx_pool_cleanup_add(r->pool, 0);

    if (rc != NGX_OK || cln == NULL
        || ngx_http_bloom_ctx_set_operation(r, adding) != NGX_OK
        || ngx_http_bloom_resume_init(&adding->resume, r,
                                      ngx_http_bloom_keys_run)
           != NGX_OK
        || ngx_http_bloom_resume_init(&adding->idle, r,
                                      ngx_http_bloom_keys_idle)
           != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    adding->buf = ngx_http_bloom_keys_get_buffer(r->connection->log);
    if (adding->buf == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rc = ngx_bloom_add_batch_init(&adding->batch, zone, adding->buf);

    if (rc != NGX_OK) {
        ngx_http_bloom_keys_put_buffer(adding->buf);

        ngx_http_bloom_keys_error(adding,
                                  rc == NGX_DECLINED
                                  ? NGX_HTTP_BLOOM_E_NO_ADDITIONS
                                  : NGX_HTTP_BLOOM_E_JOURNAL,
                                  "no key was added");

        return ngx_http_bloom_response_refuse_error(r, &adding->error);
    }

    cln->handler = ngx_http_bloom_keys_cleanup;
    cln->data = adding;

    return ngx_http_bloom_body_start(&adding->body,
                                     ngx_http_bloom_keys_run);
}


/* Runs the stages until one has to wait, or the request is finished. */
static void
ngx_http_bloom_keys_run(ngx_http_request_t *r)
{
    ngx_http_bloom_keys_t  *adding;

    adding = ngx_http_bloom_ctx_operation(r);

    /* data that arrives in another stage waits until the body is read again */

    r->read_event_handler = (adding->stage == NGX_HTTP_BLOOM_KEYS_READ)
                            ? ngx_http_bloom_keys_run
                            : ngx_http_block_reading;

    while (adding->stage != NGX_HTTP_BLOOM_KEYS_RESPOND) {
        if (ngx_http_bloom_keys_step(adding) == NGX_AGAIN) {
            return;
        }
    }

    ngx_http_finalize_request(r, ngx_http_bloom_keys_respond(r, adding));
}


/* Adds the keys that a slow client has sent so far. */
static void
ngx_http_bloom_keys_idle(ngx_http_request_t *r)
{
    ngx_http_bloom_keys_t  *adding;

    adding = ngx_http_bloom_ctx_operation(r);

    if (adding->stage != NGX_HTTP_BLOOM_KEYS_READ) {
        return;
    }

    switch (ngx_http_bloom_keys_batch(adding)) {

    case NGX_OK:
        return;

    case NGX_AGAIN:
        ngx_http_bloom_resume_in_queue(&adding->idle, adding->batch.zone,
                                       NGX_BLOOM_QUEUE_ROOM);
        return;

    default: /* NGX_ERROR */
        adding->stage = NGX_HTTP_BLOOM_KEYS_RESPOND;
        ngx_http_bloom_keys_run(r);
    }
}


/* Runs the current stage.  Returns NGX_OK at its end, or NGX_AGAIN if the
 * request has to wait. */
static ngx_int_t
ngx_http_bloom_keys_step(ngx_http_bloom_keys_t *adding)
{
    switch (adding->stage) {

    case NGX_HTTP_BLOOM_KEYS_READ:
        return ngx_http_bloom_keys_read(adding);

    case NGX_HTTP_BLOOM_KEYS_FLUSH:
        return ngx_http_bloom_keys_flush(adding);

    default: /* NGX_HTTP_BLOOM_KEYS_SYNC */
        return ngx_http_bloom_keys_sync(adding);
    }
}


static ngx_int_t
ngx_http_bloom_keys_read(ngx_http_bloom_keys_t *adding)
{
    switch (ngx_http_bloom_body_read(&adding->body)) {

    case NGX_AGAIN:
        ngx_http_bloom_resume_after(&adding->idle, NGX_HTTP_BLOOM_KEYS_IDLE);
        return NGX_AGAIN;

    case NGX_BUSY:
        ngx_http_bloom_resume_in_queue(&adding->resume, adding->batch.zone,
                                       NGX_BLOOM_QUEUE_ROOM);
        return NGX_AGAIN;

    case NGX_DONE:
        ngx_http_bloom_resume_soon(&adding->resume);
        return NGX_AGAIN;

    case NGX_ABORT:
        adding->stage = NGX_HTTP_BLOOM_KEYS_RESPOND;
        break;

    case NGX_ERROR:
        adding->error = adding->body.error;
        adding->stage = NGX_HTTP_BLOOM_KEYS_FLUSH;
        break;

    default: /* NGX_OK */
        adding->stage = NGX_HTTP_BLOOM_KEYS_FLUSH;
    }

    adding->request->read_event_handler = ngx_http_block_reading;

    return NGX_OK;
}


static ngx_int_t
ngx_http_bloom_keys_flush(ngx_http_bloom_keys_t *adding)
{
    switch (ngx_http_bloom_keys_batch(adding)) {

    case NGX_AGAIN:
        ngx_http_bloom_resume_in_queue(&adding->resume, adding->batch.zone,
                                       NGX_BLOOM_QUEUE_ROOM);
        return NGX_AGAIN;

    case NGX_OK:
        if (adding->wait && adding->batch.durable && !adding->body.gone) {
            adding->stage = NGX_HTTP_BLOOM_KEYS_SYNC;
            return NGX_OK;
        }

        /* fall through */

    default: /* NGX_ERROR */
        adding->stage = NGX_HTTP_BLOOM_KEYS_RESPOND;
        return NGX_OK;
    }
}


static ngx_int_t
ngx_http_bloom_keys_sync(ngx_http_bloom_keys_t *adding)
{
    switch (ngx_bloom_add_batch_synced(&adding->batch)) {

    case NGX_OK:
        adding->durable = 1;
        break;

    case NGX_AGAIN:
        ngx_http_bloom_resume_in_queue(&adding->resume, adding->batch.zone,
                                       NGX_BLOOM_QUEUE_SYNC);
        return NGX_AGAIN;

    default: /* NGX_ERROR */
        if (adding->error.code == NGX_HTTP_BLOOM_E_NONE) {
            ngx_http_bloom_keys_error(adding, NGX_HTTP_BLOOM_E_JOURNAL,
                                      "a loss of power may undo the additions "
                                      "of this request");
        }
    }

    adding->stage = NGX_HTTP_BLOOM_KEYS_RESPOND;

    return NGX_OK;
}


/* Takes a key of the body. */
static ngx_int_t
ngx_http_bloom_keys_take(void *data, ngx_str_t *key)
{
    ngx_http_bloom_keys_t *adding = data;

    ngx_int_t  rc;

    if (key->len == 0) {
        return NGX_OK;
    }

    for ( ;; ) {

        if (adding->full) {
            rc = ngx_http_bloom_keys_batch(adding);

            if (rc != NGX_OK) {
                return rc;
            }
        }

        switch (ngx_bloom_add_batch_put(&adding->batch, key)) {

        case NGX_OK:
            adding->received++;
            return NGX_OK;

        case NGX_DECLINED:
            adding->received++;
            ngx_http_bloom_keys_skip(adding);
            return NGX_OK;

        default: /* NGX_AGAIN */
            adding->full = 1;
        }
    }
}


/*
 * Counts an invalid key, which is left out: a feed of a million lines has some
 * that are not URLs.  The response says how many there are and names the first.
 */
static void
ngx_http_bloom_keys_skip(ngx_http_bloom_keys_t *adding)
{
    if (adding->invalid++ == 0) {
        adding->number = ngx_http_bloom_body_number(&adding->body);
        adding->why = adding->batch.error;
    }

    ngx_bloom_count(adding->batch.zone, NGX_BLOOM_COUNTER_INVALID, 1);
}


/* Adds the keys in the batch. */
static ngx_int_t
ngx_http_bloom_keys_batch(ngx_http_bloom_keys_t *adding)
{
    uint64_t                added, present;
    ngx_int_t               rc;
    ngx_bloom_add_batch_t  *batch;

    batch = &adding->batch;

    added = batch->added;
    present = batch->already_present;

    rc = ngx_bloom_add_batch(batch);

    ngx_bloom_count(batch->zone, NGX_BLOOM_COUNTER_ADDED, batch->added - added);
    ngx_bloom_count(batch->zone, NGX_BLOOM_COUNTER_ALREADY_PRESENT,
                    batch->already_present - present);

    adding->full = (rc == NGX_AGAIN);

    if (rc == NGX_ERROR) {
        ngx_http_bloom_keys_error(adding, NGX_HTTP_BLOOM_E_JOURNAL,
                                  "the keys that are neither added nor "
                                  "already present were refused, so send "
                                  "them again later");
    }

    return rc;
}


/* Sets the error: what a failure of the batch means, and the zone's reason. */
static void
ngx_http_bloom_keys_error(ngx_http_bloom_keys_t *adding,
    ngx_http_bloom_error_code_e code, const char *meaning)
{
    u_char                  buf[NGX_MAX_ERROR_STR], *p;
    ngx_bloom_add_batch_t  *batch;

    batch = &adding->batch;

    p = buf;

    if (batch->err != 0) {
        p = ngx_log_errno(p, buf + sizeof(buf), batch->err);
    }

    ngx_http_bloom_error(&adding->error, code, "zone \"%V\": %s: %s%*s",
                         &batch->zone->name, meaning, batch->error,
                         (size_t) (p - buf), buf);
}


/* Responds.  Returns what ngx_http_finalize_request() takes. */
static ngx_int_t
ngx_http_bloom_keys_respond(ngx_http_request_t *r,
    ngx_http_bloom_keys_t *adding)
{
    ngx_uint_t             status;
    ngx_http_bloom_text_t  text;

    ngx_http_bloom_resume_stop(&adding->resume);
    ngx_http_bloom_resume_stop(&adding->idle);

    if (adding->body.gone) {

        /* ngx_http_bloom_keys_cleanup() logs it */

        return NGX_HTTP_CLIENT_CLOSED_REQUEST;
    }

    adding->answered = 1;

    ngx_http_bloom_text_init(&text, r->pool);

    ngx_http_bloom_text_printf(&text, "{");

    if (adding->error.code != NGX_HTTP_BLOOM_E_NONE) {
        ngx_http_bloom_error_put(&text, &adding->error);
        ngx_http_bloom_text_printf(&text, ",");
    }

    ngx_http_bloom_text_printf(&text, "\"received\":%uL,\"added\":%uL,"
                               "\"already_present\":%uL,\"invalid\":%uL,",
                               adding->received, adding->batch.added,
                               adding->batch.already_present, adding->invalid);

    if (adding->invalid != 0) {
        ngx_http_bloom_text_printf(&text,
                                   "\"first_invalid\":{\"number\":%uL,"
                                   "\"reason\":\"%s\"},", adding->number,
                                   adding->why);
    }

    ngx_http_bloom_text_printf(&text, "\"durable\":%s}",
                               adding->durable ? "true" : "false");

    status = ngx_http_bloom_error_status(&adding->error);

    return ngx_http_bloom_response_json(r, status, &text);
}


/* Ends the request.  If the client got no response, the log says which keys
 * were added. */
static void
ngx_http_bloom_keys_cleanup(void *data)
{
    ngx_http_bloom_keys_t *adding = data;

    if (!adding->answered) {
        (void) ngx_http_bloom_keys_batch(adding);

        ngx_log_error(NGX_LOG_INFO, adding->request->connection->log, 0,
                      "client went away while it sent keys for bloom zone "
                      "\"%V\": %uL received, %uL of them added, "
                      "%uL already present, %uL invalid",
                      &adding->batch.zone->name, adding->received,
                      adding->batch.added, adding->batch.already_present,
                      adding->invalid);
    }

    ngx_http_bloom_keys_put_buffer(adding->buf);
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
