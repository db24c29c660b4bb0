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


static const ngx_http_bloom_kind_t  ngx_http_bloom_turns_kind = {
    .size = sizeof(ngx_http_bloom_turns_t),
    .run = ngx_http_bloom_turns_turn,
    .send = ngx_http_bloom_turns_send
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

    ngx_http_bloom_turns_init(turns, step, done);

    return turns;
}


void
ngx_http_bloom_turns_init(ngx_http_bloom_turns_t *turns,
    ngx_int_t (*step)(ngx_http_request_t *r, ngx_http_bloom_turns_t *turns),
    ngx_int_t (*done)(ngx_http_request_t *r, ngx_http_bloom_turns_t *turns))
{
    ngx_http_bloom_text_init(&turns->text, turns->op.request->pool);

    turns->step = step;
    turns->done = done;
}


ngx_int_t
ngx_http_bloom_turns_run(ngx_http_request_t *r, ngx_http_bloom_turns_t *turns)
{
    return ngx_http_bloom_operation_start(&turns->op);
}


/* Writes until the response is complete, it has failed, or the turn is over. */
ngx_int_t
ngx_http_bloom_turns_turn(ngx_http_bloom_operation_t *op)
{
    uint64_t                 spent;
    ngx_int_t                rc;
    ngx_http_bloom_turns_t  *turns;

    turns = (ngx_http_bloom_turns_t *) op;

    turns->left = NGX_HTTP_BLOOM_TURNS_STEPS;

    for ( /* void */ ; turns->left > 0; turns->left--) {

        spent = bloom_idn_spent();

        rc = turns->text.failed ? NGX_OK : turns->step(op->request, turns);

        if (rc != NGX_AGAIN) {
            return rc;
        }

        turns->left -= (ngx_int_t) ((bloom_idn_spent() - spent)
                                    / NGX_HTTP_BLOOM_TURNS_IDN);
    }

    return ngx_http_bloom_operation_soon(op);
}


ngx_int_t
ngx_http_bloom_turns_send(ngx_http_bloom_operation_t *op)
{
    ngx_http_bloom_turns_t  *turns;

    turns = (ngx_http_bloom_turns_t *) op;

    return turns->done(op->request, turns);
}
