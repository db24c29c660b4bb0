/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares how the body of a request is read while it arrives.
 */

#ifndef _NGX_HTTP_BLOOM_BODY_H_INCLUDED_
#define _NGX_HTTP_BLOOM_BODY_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_http_bloom_error.h"
#include "bloom_json.h"
#include "bloom_key.h"

#pragma GCC visibility push(hidden)


/*
 * The most bytes of a key that take() gets: a sign, the longest key, and one
 * byte more.  Of a longer key it gets those at its beginning, so that a key
 * that is too long stays too long.  An empty key is an empty string of an
 * array.
 */
#define NGX_HTTP_BLOOM_BODY_KEY  (1 + BLOOM_KEY_MAX + 1)

/* Takes a key, or bytes.  Returns NGX_OK; NGX_AGAIN to get the key again later,
 * which bytes never are; anything else to end the reading. */
typedef ngx_int_t (*ngx_http_bloom_body_take_pt)(void *data, ngx_str_t *key);

/* A body that is being read. */
typedef struct ngx_http_bloom_body_s  ngx_http_bloom_body_t;

struct ngx_http_bloom_body_s {
    ngx_uint_t                  gone;    /* the client waits for no response */
    ngx_uint_t                  encoded; /* the keys are percent-encoded; set by
                                            the caller */

    /* ---- private ---- */

    ngx_http_request_t         *request;
    ngx_http_bloom_body_take_pt  take;
    void                       *data;
    ngx_http_bloom_error_t     *error;

    /* offers what is in *pos .. end to take(); returns what
     * ngx_http_bloom_body_read() returns */
    ngx_int_t                 (*split)(ngx_http_bloom_body_t *body,
                                       const u_char **pos, const u_char *end);

    size_t                      turn;    /* the bytes to read in a turn */
    ngx_uint_t                  shared;  /* nginx has read all of it before; its
                                            buffers have other users */
    ngx_int_t                   failed;  /* the status with which reading ended;
                                            0: it has not failed */
    const u_char               *pos;     /* the bytes to read next, */
    const u_char               *last;
    ngx_chain_t                *in;      /* the buffers that follow, */
    off_t                       offset;  /* and where reading the first one
                                            continues, if it is a file */
    u_char                     *slice;   /* memory for a part of a file */
    ngx_str_t                   pending; /* the key to be offered again; data
                                            NULL: none */
    ssize_t                     left;    /* of this turn, bytes */
    uint64_t                    lines;   /* number of lines read */
    u_char                     *joined;  /* a line in several buffers, */
    size_t                      joined_len;
    ngx_uint_t                  cut;     /* 1: which has no room for its rest */
    size_t                      line;    /* the most bytes of a line or string
                                            that matter */
    u_char                     *decoded; /* memory for a decoded key; NULL: the
                                            keys are not encoded */
    bloom_json_t               *json;    /* NULL: the body is no JSON */
};

/* Returns the number of the key that is being taken: its line, or its place in
 * the array, from 1. */
#define ngx_http_bloom_body_number(body)                                      \
    ((body)->json ? (body)->json->strings : (body)->lines)

/*
 * Prepares to read a body: its keys or its bytes.  Returns NGX_OK; NGX_DECLINED
 * with *error if the body has an encoding or a type that cannot be read;
 * NGX_ERROR if memory is short.
 */
ngx_int_t ngx_http_bloom_body_init(ngx_http_bloom_body_t *body,
    ngx_http_request_t *r, ngx_uint_t bytes, ngx_http_bloom_body_take_pt take,
    void *data, ngx_http_bloom_error_t *error);

/* Starts reading.  nginx then calls `run` when the body begins to arrive, or
 * when reading fails.  Returns NGX_DONE. */
ngx_int_t ngx_http_bloom_body_start(ngx_http_bloom_body_t *body,
    void (*run)(ngx_http_request_t *r));

/*
 * Gives what has arrived to take().  Returns
 *
 *     NGX_OK      the body is read to its end
 *     NGX_AGAIN   the client has not sent more yet, or take() returned this
 *     NGX_DONE    enough for now: call again after other connections
 *                 have been served
 *     NGX_ERROR   take() has failed, or the body cannot be read: *error, or
 *                 memory is short
 */
ngx_int_t ngx_http_bloom_body_read(ngx_http_bloom_body_t *body);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_BODY_H_INCLUDED_ */
