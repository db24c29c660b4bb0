/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares operations: what a request to the endpoint does when it
 * cannot finish at once, because its body is still arriving, it waits for the
 * journal, for the disk or for the helper, or its response is long.
 *
 *     begin()   take() ...   run() ...   put() or send()   end()
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
#include "ngx_http_bloom_query.h"
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
    const ngx_http_bloom_arg_t  *args;   /* of the query, which become members
                                            of the struct; NULL: others read
                                            the query */

    /* checks the request before its body is read; does not wait.  NULL: there
     * is nothing to check */
    ngx_int_t                 (*begin)(ngx_http_bloom_operation_t *op);

    /* takes a key of the body or, with `bytes`, some bytes of it; NULL: the
     * request has no body */
    ngx_int_t                 (*take)(ngx_http_bloom_operation_t *op,
                                      ngx_str_t *key);

    /* does the rest when the body is complete; without a body, the request ends
     * if the client closes the connection while this waits.  NULL: there is
     * nothing else to do */
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
} ngx_http_bloom_kind_t;

/* The argument with which a client says how it has encoded keys, and that with
 * which it says what serves (ngx_http_bloom_token.h). */
#define ngx_http_bloom_arg_decode                                             \
    { "decode", NGX_HTTP_BLOOM_ARG_WORD,                                      \
      offsetof(ngx_http_bloom_operation_t, body.encoded),                     \
      "\"off\" or \"uri\"", { "off", "uri" }, 0, 0, 0 }
#define ngx_http_bloom_arg_serving  ngx_http_bloom_arg_other("serving")

struct ngx_http_bloom_operation_s {
    const ngx_http_bloom_kind_t  *kind;
    ngx_http_request_t         *request;
    ngx_bloom_zone_t           *zone;
    ngx_http_bloom_body_t       body;
    ngx_http_bloom_error_t      error;   /* of the response */

    /* ---- private ---- */

    ngx_event_t                 event;
    ngx_bloom_waiter_t          waiter;
    ngx_uint_t                  reading; /* the body */
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
 * served.  They return NGX_AGAIN; the last one returns NGX_ERROR if memory is
 * short.
 */
ngx_int_t ngx_http_bloom_operation_after(ngx_http_bloom_operation_t *op,
    ngx_msec_t ms);
ngx_int_t ngx_http_bloom_operation_soon(ngx_http_bloom_operation_t *op);
ngx_int_t ngx_http_bloom_operation_in_queue(ngx_http_bloom_operation_t *op,
    ngx_bloom_queue_e which);


/* ---- the operations, each in a file of its own ---- */

/* ngx_http_bloom_keys.c: add or remove keys */
extern const ngx_http_bloom_kind_t  ngx_http_bloom_post_keys;
extern const ngx_http_bloom_kind_t  ngx_http_bloom_post_remove;
extern const ngx_http_bloom_kind_t  ngx_http_bloom_delete_keys;

/* ngx_http_bloom_source.c: take changes of a zone's source, or know that some
 * are missing */
extern const ngx_http_bloom_kind_t  ngx_http_bloom_post_changes;
extern const ngx_http_bloom_kind_t  ngx_http_bloom_post_gap;

/* ngx_http_bloom_removed.c: lists the removed or the excepted keys */
extern const ngx_http_bloom_kind_t  ngx_http_bloom_get_removed;

/* ngx_http_bloom_test.c: looks up the keys of a body */
extern const ngx_http_bloom_kind_t  ngx_http_bloom_post_test;

/* ngx_http_bloom_task.c: wait for a task of the helper */
extern const ngx_http_bloom_kind_t  ngx_http_bloom_post_reload;
extern const ngx_http_bloom_kind_t  ngx_http_bloom_post_checkpoint;
extern const ngx_http_bloom_kind_t  ngx_http_bloom_post_clear;

/* ngx_http_bloom_image.c, ngx_http_bloom_upload.c: send and take an image */
extern const ngx_http_bloom_kind_t  ngx_http_bloom_get_image;
extern const ngx_http_bloom_kind_t  ngx_http_bloom_put_image;


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_OPERATION_H_INCLUDED_ */
