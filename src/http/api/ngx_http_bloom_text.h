/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares text that grows in a request's pool.  The endpoint
 * writes its responses into it.
 */

#ifndef _NGX_HTTP_BLOOM_TEXT_H_INCLUDED_
#define _NGX_HTTP_BLOOM_TEXT_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "bloom_json_writer.h"

#pragma GCC visibility push(hidden)


/* It is not copied: the writer points to it. */
typedef struct {
    bloom_json_writer_t         json;    /* appends JSON to this text */

    ngx_pool_t                 *pool;
    u_char                     *start;
    u_char                     *pos;
    u_char                     *end;
    ngx_uint_t                  failed;  /* it could not grow: some text is
                                            missing */
    ngx_uint_t                  busy;    /* it has failed because of
                                            NGX_HTTP_BLOOM_TEXT_MAX */
    size_t                     *held;    /* its memory, which counts until the
                                            pool is destroyed */
} ngx_http_bloom_text_t;

/*
 * The bytes that all texts of a worker may take together.  A text counts until
 * its client has read the response.
 */
#define NGX_HTTP_BLOOM_TEXT_MAX  (64 * 1024 * 1024)


void ngx_http_bloom_text_init(ngx_http_bloom_text_t *text, ngx_pool_t *pool);

/* Counts `size` further bytes of the pool as memory of the text.  Returns
 * NGX_OK, or NGX_ERROR if the text has failed. */
ngx_int_t ngx_http_bloom_text_take(ngx_http_bloom_text_t *text, size_t size);

/* Makes room for at least `size` bytes.  Returns text->pos, or NULL if the text
 * has failed. */
u_char *ngx_http_bloom_text_room(ngx_http_bloom_text_t *text, size_t size);

/* Appends up to 1024 bytes, formatted as by ngx_sprintf(). */
void ngx_cdecl ngx_http_bloom_text_printf(ngx_http_bloom_text_t *text,
    const char *fmt, ...);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_TEXT_H_INCLUDED_ */
