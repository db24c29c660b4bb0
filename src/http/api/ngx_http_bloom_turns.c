/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file writes a long response in turns.
 */

#include "ngx_http_bloom_turns.h"
#include "bloom_idn.h"


/* The number of steps in a turn; a step takes about 20 us. */
#define NGX_HTTP_BLOOM_TURNS_STEPS  32

/* What libidn2 does in the time of a step, in bytes passed. */
#define NGX_HTTP_BLOOM_TURNS_IDN    200


static ngx_int_t ngx_http_bloom_turns_turn(ngx_http_bloom_operation_t *op);
static ngx_int_t ngx_http_bloom_turns_send(ngx_http_bloom_operation_t *op);


static const ngx_http_bloom_kind_t  ngx_http_bloom_turns_kind = {
    .size = sizeof(ngx_http_bloom_turns_t),
    .run = ngx_http_bloom_turns_turn,
    .send = ngx_http_bloom_turns_send,
    .leaves = 1
};


ngx_http_bloom_turns_t *
ngx_http_bloom_turns_create(ngx_http_request_t *r,
    ngx_int_t (*step)(ngx_http_request_t *r, ngx_http_bloom_turns_t *turns),
    ngx_int_t (*done)(ngx_http_request_t *r, ngx_http_bloom_turns_t *turns))
{
    ngx_http_bloom_turns_t  *turns;

    turns = ngx_http_bloom_operation_create(r, NULL,
                                            &ngx_http_bloom_turns_kind);
    if (turns == NULL) {
        return NULL;
    }

    ngx_http_bloom_text_init(&turns->text, r->pool);

    turns->step = step;
    turns->done = done;

    return turns;
}


ngx_int_t
ngx_http_bloom_turns_run(ngx_http_request_t *r, ngx_http_bloom_turns_t *turns)
{
    return ngx_http_bloom_operation_start(&turns->op);
}


/* Writes until the response is complete, its text has failed, or the turn is
 * over. */
static ngx_int_t
ngx_http_bloom_turns_turn(ngx_http_bloom_operation_t *op)
{
    uint64_t                 spent;
    ngx_http_bloom_turns_t  *turns;

    turns = (ngx_http_bloom_turns_t *) op;

    turns->left = NGX_HTTP_BLOOM_TURNS_STEPS;

    for ( /* void */ ; turns->left > 0; turns->left--) {

        spent = bloom_idn_spent();

        if (turns->text.failed || turns->step(op->request, turns) == NGX_OK) {
            return NGX_OK;
        }

        turns->left -= (ngx_int_t) ((bloom_idn_spent() - spent)
                                    / NGX_HTTP_BLOOM_TURNS_IDN);
    }

    return ngx_http_bloom_operation_soon(op);
}


static ngx_int_t
ngx_http_bloom_turns_send(ngx_http_bloom_operation_t *op)
{
    ngx_http_bloom_turns_t  *turns;

    turns = (ngx_http_bloom_turns_t *) op;

    return turns->done(op->request, turns);
}
