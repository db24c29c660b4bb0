/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares how a request's body is read while it arrives: as keys,
 * in lines or in a JSON array of strings, or as the bytes of an image.
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
 * The most bytes of a key that take() gets: a sign, the longest key, and one
 * byte more.  Of a longer key it gets those at its beginning, so that a key
 * that is too long stays too long.
 */
#define NGX_HTTP_BLOOM_BODY_KEY  (1 + BLOOM_KEY_MAX + 1)

/*
 * Takes a key.  It is empty only if it is an empty string of an array.  Returns
 * NGX_OK; NGX_AGAIN to get the key again later; NGX_ERROR to end the reading.
 */
typedef ngx_int_t (*ngx_http_bloom_body_take_pt)(void *data, ngx_str_t *key);

/* A body that is being read. */
typedef struct {
    ngx_http_bloom_error_t      error;   /* what is wrong with the body */
    ngx_uint_t                  gone;    /* the client waits for no response */

    /* ---- private ---- */

    ngx_http_request_t         *request;
    ngx_http_bloom_body_take_pt  take;
    void                       *data;

    ngx_uint_t                  shared;  /* nginx has read all of it before; its
                                            buffers have other users */
    ngx_int_t                   failed;  /* the status with which reading ended;
                                            0: it has not failed */
    ngx_chain_t                *in;      /* received, but not read yet */
    ngx_str_t                   pending; /* the key to be offered again; data
                                            NULL: none */
    uint64_t                    begun;   /* when this turn began, us */
    uint64_t                    taken;   /* number of keys */
    uint64_t                    lines;   /* number of lines read */
    u_char                     *joined;  /* a line in several buffers, */
    size_t                      joined_len;
    ngx_uint_t                  cut;     /* 1: which has no room for its rest */
    size_t                      line;    /* the most bytes of a line or string
                                            that matter */
    u_char                     *decoded; /* memory for a decoded key; NULL: the
                                            keys are not encoded */
    bloom_json_t               *json;    /* NULL: the body is lines */
    ngx_buf_t                  *slice;   /* of a body in a file */
} ngx_http_bloom_body_t;

/* Returns the number of the key that is being taken: its line, or its place in
 * the array, from 1. */
#define ngx_http_bloom_body_number(body)                                      \
    ((body)->json ? (body)->json->strings : (body)->lines)

/*
 * Prepares to read keys, which are percent-encoded if the query has
 * "decode=uri".  Returns NGX_OK; NGX_DECLINED with body->error if the body has
 * a type that cannot be read, or the query another "decode="; NGX_ERROR if
 * memory is short.
 */
ngx_int_t ngx_http_bloom_body_init(ngx_http_bloom_body_t *body,
    ngx_http_request_t *r, ngx_http_bloom_body_take_pt take, void *data);

/* Prepares to read bytes, whatever the type of the body. */
void ngx_http_bloom_body_init_bytes(ngx_http_bloom_body_t *body,
    ngx_http_request_t *r);

/*
 * Gives the next bytes that have arrived; they are valid until the next call.
 * Returns NGX_OK; NGX_DONE at the end of the body; NGX_AGAIN if the client has
 * not sent more yet; NGX_ERROR with body->error.
 */
ngx_int_t ngx_http_bloom_body_bytes(ngx_http_bloom_body_t *body,
    ngx_str_t *bytes);

/* Starts reading.  nginx then calls `run` when the body begins to arrive, or
 * when reading fails.  Returns NGX_DONE. */
ngx_int_t ngx_http_bloom_body_start(ngx_http_bloom_body_t *body,
    void (*run)(ngx_http_request_t *r));

/*
 * Reads the keys that have arrived and calls take() for each.  Returns
 *
 *     NGX_OK      the body is read to its end
 *     NGX_AGAIN   the client has not sent more yet
 *     NGX_BUSY    take() returned NGX_AGAIN
 *     NGX_DONE    enough for now: call again after other connections
 *                 have been served
 *     NGX_ABORT   take() returned NGX_ERROR
 *     NGX_ERROR   the body cannot be read: body->error
 */
ngx_int_t ngx_http_bloom_body_read(ngx_http_bloom_body_t *body);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_BODY_H_INCLUDED_ */
