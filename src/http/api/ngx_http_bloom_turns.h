/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A response whose text takes long is written in turns: other connections have
 * theirs in between.
 */

#ifndef _NGX_HTTP_BLOOM_TURNS_H_INCLUDED_
#define _NGX_HTTP_BLOOM_TURNS_H_INCLUDED_

#include "ngx_http_bloom_resume.h"
#include "ngx_http_bloom_text.h"

#pragma GCC visibility push(hidden)


typedef struct ngx_http_bloom_turns_s  ngx_http_bloom_turns_t;

struct ngx_http_bloom_turns_s {
    ngx_http_bloom_text_t       text;
    ngx_uint_t                  next;    /* what is to be written: the caller's
                                            own, 0 at first */
    void                       *data;    /* the caller's own, too */

    /* ---- */

    ngx_http_bloom_resume_t     resume;

    /* writes some lines, in 20 us or so; returns NGX_AGAIN if there are more,
     * or NGX_OK */
    ngx_int_t                 (*step)(ngx_http_request_t *r,
                                      ngx_http_bloom_turns_t *turns);

    /* responds; what it returns ends the request */
    ngx_int_t                 (*done)(ngx_http_request_t *r,
                                      ngx_http_bloom_turns_t *turns);
};

/* Prepares; returns NULL if memory is short. */
ngx_http_bloom_turns_t *ngx_http_bloom_turns_create(ngx_http_request_t *r,
    ngx_int_t (*step)(ngx_http_request_t *r, ngx_http_bloom_turns_t *turns),
    ngx_int_t (*done)(ngx_http_request_t *r, ngx_http_bloom_turns_t *turns));

/* Writes all, and responds; what it returns is for a content handler to
 * return. */
ngx_int_t ngx_http_bloom_turns_run(ngx_http_request_t *r,
    ngx_http_bloom_turns_t *turns);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_TURNS_H_INCLUDED_ */
