/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Keys are read from a request's body as it comes: lines, or a JSON array of
 * strings.  So are the bytes of an image.
 */

#ifndef _NGX_HTTP_BLOOM_BODY_H_INCLUDED_
#define _NGX_HTTP_BLOOM_BODY_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_http_bloom_error.h"
#include "bloom_json.h"

#pragma GCC visibility push(hidden)


/*
 * Takes a key of 1 to BLOOM_RECORD_KEY_MAX bytes, or an empty one, which is an
 * empty string of an array.  Returns NGX_OK; NGX_AGAIN if the key is to be
 * offered again later; NGX_ERROR if no more keys are wanted.
 */
typedef ngx_int_t (*ngx_http_bloom_body_take_pt)(void *data, ngx_str_t *key);

typedef struct {
    ngx_http_bloom_error_t      error;   /* of the body, if any */
    ngx_uint_t                  gone;    /* nobody waits for a response */

    /* ---- */

    ngx_http_request_t         *request;
    ngx_http_bloom_body_take_pt  take;
    void                       *data;

    ngx_uint_t                  shared;  /* it was there before, whole, and
                                            is not ours alone */
    ngx_int_t                   failed;  /* status, if no more will come */
    ngx_chain_t                *in;      /* what has come and is not read */
    ngx_str_t                   pending; /* the key to be offered once more;
                                            data NULL: none */
    uint64_t                    begun;   /* when this turn was, us */
    uint64_t                    taken;   /* keys */
    uint64_t                    lines;   /* read so far */
    u_char                     *joined;  /* a line of several pieces */
    size_t                      joined_len;
    bloom_json_t               *json;    /* NULL: lines */
    ngx_buf_t                  *slice;   /* of a body in a file */
} ngx_http_bloom_body_t;

/* The number of the key that is taken, from 1 on: its line, or its place in the
 * array. */
#define ngx_http_bloom_body_number(body)                                      \
    ((body)->json ? (body)->json->strings : (body)->lines)

/*
 * Prepares to read a body.  Returns NGX_OK; NGX_DECLINED with body->error if
 * its type cannot be read; NGX_ERROR if memory is short.
 */
ngx_int_t ngx_http_bloom_body_init(ngx_http_bloom_body_t *body,
    ngx_http_request_t *r, ngx_http_bloom_body_take_pt take, void *data);

/* Prepares to read a body as bytes, whatever its type. */
void ngx_http_bloom_body_init_bytes(ngx_http_bloom_body_t *body,
    ngx_http_request_t *r);

/*
 * Gives the next bytes that have come, until the next call.  Returns NGX_OK;
 * NGX_DONE at the end of the body; NGX_AGAIN if the client has not sent more
 * yet; NGX_ERROR with body->error.
 */
ngx_int_t ngx_http_bloom_body_bytes(ngx_http_bloom_body_t *body,
    ngx_str_t *bytes);

/* Has `run` called when the body begins to come or fails; returns NGX_DONE. */
ngx_int_t ngx_http_bloom_body_start(ngx_http_bloom_body_t *body,
    void (*run)(ngx_http_request_t *r));

/*
 * Reads what has come.  Returns
 *
 *     NGX_OK      the body is read to its end
 *     NGX_AGAIN   the client has not sent more yet
 *     NGX_BUSY    take() returned NGX_AGAIN
 *     NGX_DONE    other connections are to have their turn
 *     NGX_ABORT   take() returned NGX_ERROR
 *     NGX_ERROR   the body cannot be read: body->error
 */
ngx_int_t ngx_http_bloom_body_read(ngx_http_bloom_body_t *body);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_BODY_H_INCLUDED_ */
