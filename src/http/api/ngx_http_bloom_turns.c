/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file writes a long response in turns.
 */

#include "ngx_http_bloom_turns.h"
#include "ngx_http_bloom_ctx.h"
#include "bloom_idn.h"


/* The number of steps in a turn; a step takes about 20 us. */
#define NGX_HTTP_BLOOM_TURNS_STEPS  32

/* What libidn2 does in the time of a step, in bytes passed. */
#define NGX_HTTP_BLOOM_TURNS_IDN    200


static ngx_int_t ngx_http_bloom_turns_step(ngx_http_request_t *r,
    ngx_http_bloom_turns_t *turns);
static void ngx_http_bloom_turns_resume(ngx_http_request_t *r);


ngx_http_bloom_turns_t *
ngx_http_bloom_turns_create(ngx_http_request_t *r,
    ngx_int_t (*step)(ngx_http_request_t *r, ngx_http_bloom_turns_t *turns),
    ngx_int_t (*done)(ngx_http_request_t *r, ngx_http_bloom_turns_t *turns))
{
    ngx_http_bloom_turns_t  *turns;

    turns = ngx_pcalloc(r->pool, sizeof(ngx_http_bloom_turns_t));

    if (turns == NULL
        || ngx_http_bloom_ctx_set_operation(r, turns) != NGX_OK
        || ngx_http_bloom_resume_init(&turns->resume, r,
                                      ngx_http_bloom_turns_resume)
           != NGX_OK)
    {
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
    if (ngx_http_bloom_turns_step(r, turns) == NGX_OK) {
        return turns->done(r, turns);
    }

    if (!r->discard_body) {
        r->read_event_handler = ngx_http_test_reading;

        if (ngx_handle_read_event(r->connection->read, 0) != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }
    }

    ngx_http_bloom_resume_soon(&turns->resume);

    r->main->count++;

    return NGX_DONE;
}


/* Takes one turn.  Returns NGX_OK if the response is complete or its text has
 * failed, else NGX_AGAIN. */
static ngx_int_t
ngx_http_bloom_turns_step(ngx_http_request_t *r, ngx_http_bloom_turns_t *turns)
{
    uint64_t  spent;

    turns->left = NGX_HTTP_BLOOM_TURNS_STEPS;

    for ( /* void */ ; turns->left > 0; turns->left--) {

        spent = bloom_idn_spent();

        if (turns->text.failed || turns->step(r, turns) == NGX_OK) {
            return NGX_OK;
        }

        turns->left -= (ngx_int_t) ((bloom_idn_spent() - spent)
                                    / NGX_HTTP_BLOOM_TURNS_IDN);
    }

    return NGX_AGAIN;
}


static void
ngx_http_bloom_turns_resume(ngx_http_request_t *r)
{
    ngx_http_bloom_turns_t  *turns;

    turns = ngx_http_bloom_ctx_operation(r);

    if (ngx_http_bloom_turns_step(r, turns) == NGX_AGAIN) {
        ngx_http_bloom_resume_soon(&turns->resume);
        return;
    }

    r->read_event_handler = ngx_http_block_reading;

    ngx_http_finalize_request(r, turns->done(r, turns));
}
