/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares operations: what a request to the endpoint does when it
 * cannot finish at once, because its body is still arriving, it waits for the
 * journal, for the disk or for the helper, or its response is long.
 *
 *     begin()   take() and pause() ...   run() ...   put() or send()   end()
 *
 * Nothing here blocks the worker.  An operation that has to wait is woken by a
 * timer, by a queue of its zone, or after other connections had their turn.
 */

#ifndef _NGX_HTTP_BLOOM_OPERATION_H_INCLUDED_
#define _NGX_HTTP_BLOOM_OPERATION_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_http_bloom_body.h"
#include "ngx_http_bloom_error.h"
#include "ngx_bloom_queue.h"

#pragma GCC visibility push(hidden)


typedef struct ngx_http_bloom_operation_s  ngx_http_bloom_operation_t;

/*
 * A kind of operation.  The functions that return a value return
 *
 *     NGX_OK       done
 *     NGX_AGAIN    not yet: the function has called one of those below that
 *                  wake the operation, and is then called again
 *     others       it has failed, for the reason in op->error; if that is not
 *                  set, memory is short
 */
typedef struct {
    size_t                      size;    /* of its struct, whose first member is
                                            the ngx_http_bloom_operation_t */
    ngx_uint_t                  which;   /* for the functions, if several kinds
                                            share them */

    /* checks the request before its body is read; does not wait.  NULL: there
     * is nothing to check */
    ngx_int_t                 (*begin)(ngx_http_bloom_operation_t *op);

    /* takes a key of the body or, with `bytes`, some bytes of it; NULL: the
     * request has no body */
    ngx_int_t                 (*take)(ngx_http_bloom_operation_t *op,
                                      ngx_str_t *key);

    /* works on the keys taken so far, because the client has sent no more for
     * NGX_HTTP_BLOOM_OPERATION_PAUSE; NULL: they wait for the others */
    ngx_int_t                 (*pause)(ngx_http_bloom_operation_t *op);

    /* does the rest when the body is complete */
    ngx_int_t                 (*run)(ngx_http_bloom_operation_t *op);

    /* appends members to the response's object, which has op->error already;
     * NULL: there are no others */
    void                      (*put)(ngx_http_bloom_operation_t *op,
                                     ngx_http_bloom_text_t *text);

    /* sends a response of another kind if nothing has failed, and returns what
     * ngx_http_finalize_request() takes; NULL: every response is an object */
    ngx_int_t                 (*send)(ngx_http_bloom_operation_t *op);

    /* frees what is not in memory of the request; called once, before the
     * response is sent or when the request ends without one */
    void                      (*end)(ngx_http_bloom_operation_t *op);

    unsigned                    bytes:1;     /* the body is not keys */
    unsigned                    partial:1;   /* run() is called also if reading
                                                the body has failed */
    unsigned                    leaves:1;    /* the request ends if the client
                                                closes the connection while
                                                run() waits */
} ngx_http_bloom_kind_t;

#define NGX_HTTP_BLOOM_OPERATION_PAUSE  10   /* ms */

struct ngx_http_bloom_operation_s {
    const ngx_http_bloom_kind_t  *kind;
    ngx_http_request_t         *request;
    ngx_bloom_zone_t           *zone;
    ngx_http_bloom_body_t       body;
    ngx_http_bloom_error_t      error;   /* of the response */
    ngx_uint_t                  answered;  /* the client gets a response */

    /* ---- private ---- */

    ngx_event_t                 event;
    ngx_bloom_waiter_t          waiter;
    ngx_uint_t                  reading; /* the body */
    ngx_uint_t                  paused;  /* pause() is due when it is woken */
    ngx_uint_t                  ended;
};


/* Runs an operation for a request.  Returns what a content handler returns. */
ngx_int_t ngx_http_bloom_operation(ngx_http_request_t *r,
    ngx_bloom_zone_t *zone, const ngx_http_bloom_kind_t *kind);

/* Do that in two steps.  Creating returns NULL if memory is short. */
void *ngx_http_bloom_operation_create(ngx_http_request_t *r,
    ngx_bloom_zone_t *zone, const ngx_http_bloom_kind_t *kind);
ngx_int_t ngx_http_bloom_operation_start(ngx_http_bloom_operation_t *op);

/*
 * Wake the operation after `ms` milliseconds; as soon as other connections have
 * been served; or when it is first in a queue of its zone and the queue is
 * served.  They return NGX_AGAIN.
 */
ngx_int_t ngx_http_bloom_operation_after(ngx_http_bloom_operation_t *op,
    ngx_msec_t ms);
ngx_int_t ngx_http_bloom_operation_soon(ngx_http_bloom_operation_t *op);
ngx_int_t ngx_http_bloom_operation_in_queue(ngx_http_bloom_operation_t *op,
    ngx_bloom_queue_e which);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_OPERATION_H_INCLUDED_ */
