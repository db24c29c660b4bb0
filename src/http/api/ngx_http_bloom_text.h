/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Responses are written as text that grows in a request's pool.
 */

#ifndef _NGX_HTTP_BLOOM_TEXT_H_INCLUDED_
#define _NGX_HTTP_BLOOM_TEXT_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#pragma GCC visibility push(hidden)


typedef struct {
    ngx_pool_t                 *pool;
    u_char                     *start;
    u_char                     *pos;
    u_char                     *end;
    ngx_uint_t                  failed;  /* memory is short, */
    ngx_uint_t                  busy;    /* or held by other responses */
    struct ngx_http_bloom_text_held_s  *held;
} ngx_http_bloom_text_t;

/*
 * Bytes that a worker's responses may have together, until their clients have
 * read them; a text that would exceed this has failed.
 */
#define NGX_HTTP_BLOOM_TEXT_MAX  (64 * 1024 * 1024)


void ngx_http_bloom_text_init(ngx_http_bloom_text_t *text, ngx_pool_t *pool);

/* Counts `size` bytes of its pool as the text's.  Returns NGX_OK, or NGX_ERROR,
 * and then the text has failed. */
ngx_int_t ngx_http_bloom_text_take(ngx_http_bloom_text_t *text, size_t size);

/* Returns at least `size` bytes at text->pos, or NULL. */
u_char *ngx_http_bloom_text_room(ngx_http_bloom_text_t *text, size_t size);

/* Formats as ngx_sprintf() does, up to 1024 bytes. */
void ngx_cdecl ngx_http_bloom_text_printf(ngx_http_bloom_text_t *text,
    const char *fmt, ...);

/* Appends text of any length. */
void ngx_http_bloom_text_append(ngx_http_bloom_text_t *text, ngx_str_t *value);

/* Appends a rate: nginx's formats know no exponents, and rates may be tiny. */
void ngx_http_bloom_text_rate(ngx_http_bloom_text_t *text, double rate);

/* Appends a JSON string in quotes, whatever the bytes are. */
void ngx_http_bloom_text_quote(ngx_http_bloom_text_t *text, u_char *data,
    size_t len);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_TEXT_H_INCLUDED_ */
