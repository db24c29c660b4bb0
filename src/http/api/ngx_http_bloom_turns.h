/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares how a long response is written in turns, between which
 * the worker serves other connections.
 */

#ifndef _NGX_HTTP_BLOOM_TURNS_H_INCLUDED_
#define _NGX_HTTP_BLOOM_TURNS_H_INCLUDED_

#include "ngx_http_bloom_operation.h"

#pragma GCC visibility push(hidden)


typedef struct ngx_http_bloom_turns_s  ngx_http_bloom_turns_t;

struct ngx_http_bloom_turns_s {
    ngx_http_bloom_operation_t  op;
    ngx_http_bloom_text_t       text;
    ngx_uint_t                  next;    /* for the caller; initially 0 */
    void                       *data;    /* for the caller */

    ngx_int_t                   left;    /* steps left in this turn; a step that
                                            takes longer than 20 us lowers it */

    /* ---- private ---- */

    /* writes some lines in about 20 us; returns NGX_AGAIN if there are more,
     * NGX_OK, or what run() of an operation returns if it has failed */
    ngx_int_t                 (*step)(ngx_http_request_t *r,
                                      ngx_http_bloom_turns_t *turns);

    /* responds; returns what ngx_http_finalize_request() takes */
    ngx_int_t                 (*done)(ngx_http_request_t *r,
                                      ngx_http_bloom_turns_t *turns);
};

/* Creates a response with an empty text.  Returns NULL if memory is short. */
ngx_http_bloom_turns_t *ngx_http_bloom_turns_create(ngx_http_request_t *r,
    ngx_int_t (*step)(ngx_http_request_t *r, ngx_http_bloom_turns_t *turns),
    ngx_int_t (*done)(ngx_http_request_t *r, ngx_http_bloom_turns_t *turns));

/* Parts of an operation whose struct begins with an ngx_http_bloom_turns_t: its
 * begin() calls the first, and the others are its run() and send(). */
void ngx_http_bloom_turns_init(ngx_http_bloom_turns_t *turns,
    ngx_int_t (*step)(ngx_http_request_t *r, ngx_http_bloom_turns_t *turns),
    ngx_int_t (*done)(ngx_http_request_t *r, ngx_http_bloom_turns_t *turns));
ngx_int_t ngx_http_bloom_turns_turn(ngx_http_bloom_operation_t *op);
ngx_int_t ngx_http_bloom_turns_send(ngx_http_bloom_operation_t *op);

/* Writes the response in turns and then sends it.  Returns what a content
 * handler returns. */
ngx_int_t ngx_http_bloom_turns_run(ngx_http_request_t *r,
    ngx_http_bloom_turns_t *turns);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_TURNS_H_INCLUDED_ */
