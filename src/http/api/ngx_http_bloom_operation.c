/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file runs operations: it reads the body, wakes what had to wait, and
 * responds once.
 */

#include "ngx_http_bloom_operation.h"
#include "ngx_http_bloom_ctx.h"
#include "ngx_http_bloom_response.h"


/* Longer than other connections' turns take, ms. */
#define NGX_HTTP_BLOOM_OPERATION_TURN   1000


static ngx_int_t ngx_http_bloom_operation_refuse(
    ngx_http_bloom_operation_t *op);
static ngx_int_t ngx_http_bloom_operation_take(void *data, ngx_str_t *key);
static void ngx_http_bloom_operation_run(ngx_http_request_t *r);
static void ngx_http_bloom_operation_failed(ngx_http_bloom_operation_t *op);
static ngx_int_t ngx_http_bloom_operation_respond(
    ngx_http_bloom_operation_t *op);
static void ngx_http_bloom_operation_end(void *data);
static void ngx_http_bloom_operation_event(ngx_event_t *ev);
static void ngx_http_bloom_operation_wake(void *data);
static void ngx_http_bloom_operation_stop(ngx_http_bloom_operation_t *op);


ngx_int_t
ngx_http_bloom_operation(ngx_http_request_t *r, ngx_bloom_zone_t *zone,
    const ngx_http_bloom_kind_t *kind)
{
    ngx_http_bloom_operation_t  *op;

    op = ngx_http_bloom_operation_create(r, zone, kind);

    return op != NULL ? ngx_http_bloom_operation_start(op)
                      : NGX_HTTP_INTERNAL_SERVER_ERROR;
}


void *
ngx_http_bloom_operation_create(ngx_http_request_t *r, ngx_bloom_zone_t *zone,
    const ngx_http_bloom_kind_t *kind)
{
    ngx_pool_cleanup_t          *cln;
    ngx_http_bloom_operation_t  *op;

    op = ngx_pcalloc(r->pool, kind->size);
    cln = ngx_pool_cleanup_add(r->pool, 0);

    if (op == NULL || cln == NULL
        || ngx_http_bloom_ctx_set_operation(r, op) != NGX_OK)
    {
        return NULL;
    }

    op->kind = kind;
    op->request = r;
    op->zone = zone;

    op->event.handler = ngx_http_bloom_operation_event;
    op->event.data = r->connection;
    op->event.log = r->connection->log;
    op->waiter.handler = ngx_http_bloom_operation_wake;
    op->waiter.data = op;

    cln->handler = ngx_http_bloom_operation_end;
    cln->data = op;

    return op;
}


ngx_int_t
ngx_http_bloom_operation_start(ngx_http_bloom_operation_t *op)
{
    ngx_int_t                     rc;
    ngx_http_request_t           *r;
    const ngx_http_bloom_kind_t  *kind;

    r = op->request;
    kind = op->kind;

    if ((kind->args != NULL
         && ngx_http_bloom_query_read(r, kind->args, op, &op->error) != NGX_OK)
        || (kind->begin != NULL && kind->begin(op) != NGX_OK)
        || (kind->take != NULL
            && ngx_http_bloom_body_init(&op->body, r, kind->bytes,
                                        ngx_http_bloom_operation_take, op,
                                        &op->error)
               != NGX_OK))
    {
        return ngx_http_bloom_operation_refuse(op);
    }

    if (kind->take != NULL) {
        op->reading = 1;
        return ngx_http_bloom_body_start(&op->body,
                                         ngx_http_bloom_operation_run);
    }

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    if (!r->discard_body) {
        r->read_event_handler = ngx_http_test_reading;

        if (ngx_handle_read_event(r->connection->read, 0) != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }
    }

    r->main->count++;

    ngx_http_bloom_operation_run(r);

    return NGX_DONE;
}


/*
 * Refuses a request before its body arrives.  A body of keys is read and thrown
 * away, so that the connection can be kept; one of bytes may be large.  nginx
 * would send "100 Continue" to a client with Expect, and read all of it.
 */
static ngx_int_t
ngx_http_bloom_operation_refuse(ngx_http_bloom_operation_t *op)
{
    ngx_http_request_t  *r;

    r = op->request;

    ngx_http_bloom_operation_failed(op);

    ngx_http_bloom_operation_end(op);

    if (!op->kind->bytes || r->http_version >= NGX_HTTP_VERSION_20) {
        return ngx_http_bloom_response_refuse(r, &op->error);
    }

    r->keepalive = 0;
    r->lingering_close = 1;

    return ngx_http_bloom_response_error(r, &op->error);
}


static ngx_int_t
ngx_http_bloom_operation_take(void *data, ngx_str_t *key)
{
    ngx_http_bloom_operation_t *op = data;

    return op->kind->take(op, key);
}


/* Reads the body, and then runs the operation until it has to wait or is
 * finished. */
static void
ngx_http_bloom_operation_run(ngx_http_request_t *r)
{
    ngx_int_t                    rc;
    ngx_http_bloom_operation_t  *op;

    op = ngx_http_bloom_ctx_operation(r);

    if (op->reading) {

        r->read_event_handler = ngx_http_bloom_operation_run;

        rc = ngx_http_bloom_body_read(&op->body);

        if (rc == NGX_DONE) {
            (void) ngx_http_bloom_operation_soon(op);
        }

        if (rc == NGX_DONE || rc == NGX_AGAIN) {
            return;
        }

        if (rc == NGX_ERROR) {
            ngx_http_bloom_operation_failed(op);
        }

        /* what was left of the body, if anything, is not read any more, and the
         * operation finishes even if the client has gone */

        op->reading = 0;

        r->read_event_handler = ngx_http_block_reading;

        ngx_http_bloom_operation_stop(op);
    }

    if (op->kind->run != NULL
        && (op->error.code == NGX_HTTP_BLOOM_E_NONE || op->kind->partial))
    {

        rc = op->kind->run(op);

        if (rc == NGX_AGAIN) {
            return;
        }

        if (rc != NGX_OK) {
            ngx_http_bloom_operation_failed(op);
        }
    }

    if (!r->discard_body) {
        r->read_event_handler = ngx_http_block_reading;
    }

    ngx_http_finalize_request(r, ngx_http_bloom_operation_respond(op));
}


/* Makes sure that op->error is set. */
static void
ngx_http_bloom_operation_failed(ngx_http_bloom_operation_t *op)
{
    if (op->error.code == NGX_HTTP_BLOOM_E_NONE) {
        ngx_http_bloom_error(&op->error, NGX_HTTP_BLOOM_E_FAILED,
                             "nginx has no memory for the request; try again "
                             "later");
    }
}


/* Responds.  Returns what ngx_http_finalize_request() takes. */
static ngx_int_t
ngx_http_bloom_operation_respond(ngx_http_bloom_operation_t *op)
{
    ngx_http_request_t     *r;
    ngx_http_bloom_text_t   text;

    r = op->request;

    ngx_http_bloom_operation_end(op);

    if (op->body.gone) {
        return NGX_HTTP_CLIENT_CLOSED_REQUEST;
    }

    if (r->reading_body) {
        r->keepalive = 0;
        r->lingering_close = 1;
    }

    if (op->kind->send != NULL && op->error.code == NGX_HTTP_BLOOM_E_NONE) {
        return op->kind->send(op);
    }

    ngx_http_bloom_text_init(&text, r->pool);

    bloom_json_put_object(&text.json, NULL);

    if (op->error.code != NGX_HTTP_BLOOM_E_NONE) {
        ngx_http_bloom_error_put(&text, &op->error);
    }

    if (op->kind->put != NULL) {
        op->kind->put(op, &text);
    }

    bloom_json_put_end(&text.json);

    return ngx_http_bloom_response_json(r,
                                        ngx_http_bloom_error_status(&op->error),
                                        &text);
}


/* Ends the operation; the request may live on while its client reads the
 * response. */
static void
ngx_http_bloom_operation_end(void *data)
{
    ngx_http_bloom_operation_t *op = data;

    if (op->ended) {
        return;
    }

    op->ended = 1;

    /* nginx ends a request of HTTP/3 whose client is gone without a word */

    if (op->reading || op->body.gone) {
        ngx_log_error(NGX_LOG_INFO, op->request->connection->log, 0,
                      "client went away while it sent a body for bloom zone "
                      "\"%V\"", &op->zone->name);
    }

    ngx_http_bloom_operation_stop(op);

    if (op->kind->end != NULL) {
        op->kind->end(op);
    }
}


ngx_int_t
ngx_http_bloom_operation_after(ngx_http_bloom_operation_t *op, ngx_msec_t ms)
{
    if (!op->event.timer_set) {
        ngx_add_timer(&op->event, ms);
    }

    return NGX_AGAIN;
}


/*
 * Sets a timer besides the posted event, although it never expires: a worker
 * that is shutting down waits for timers, but not for posted events.
 */
ngx_int_t
ngx_http_bloom_operation_soon(ngx_http_bloom_operation_t *op)
{
    ngx_post_event(&op->event, &ngx_posted_next_events);

    return ngx_http_bloom_operation_after(op, NGX_HTTP_BLOOM_OPERATION_TURN);
}


ngx_int_t
ngx_http_bloom_operation_in_queue(ngx_http_bloom_operation_t *op,
    ngx_bloom_queue_e which)
{
    return ngx_bloom_queue_wait(op->zone, which, &op->waiter) == NGX_OK
           ? NGX_AGAIN : NGX_ERROR;
}


static void
ngx_http_bloom_operation_event(ngx_event_t *ev)
{
    ngx_http_bloom_operation_wake((u_char *) ev
                                  - offsetof(ngx_http_bloom_operation_t,
                                             event));
}


static void
ngx_http_bloom_operation_wake(void *data)
{
    ngx_http_bloom_operation_t *op = data;

    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    ngx_http_bloom_operation_stop(op);

    r = op->request;
    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    ngx_http_bloom_operation_run(r);

    ngx_http_run_posted_requests(c);
}


/* Cancels what would wake the operation. */
static void
ngx_http_bloom_operation_stop(ngx_http_bloom_operation_t *op)
{
    if (op->event.timer_set) {
        ngx_del_timer(&op->event);
    }

    if (op->event.posted) {
        ngx_delete_posted_event(&op->event);
    }

    ngx_bloom_queue_leave(&op->waiter);
}
