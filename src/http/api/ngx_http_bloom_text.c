/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file implements text that grows in a request's pool.
 */

#include "ngx_http_bloom_text.h"
#include "bloom_json.h"


#define NGX_HTTP_BLOOM_TEXT_PRINTF  1024


static void ngx_http_bloom_text_cleanup(void *data);
static void ngx_http_bloom_text_sink(void *data, const void *bytes,
    size_t len);


/* The memory of all texts of this worker. */
static size_t  ngx_http_bloom_text_held;


void
ngx_http_bloom_text_init(ngx_http_bloom_text_t *text, ngx_pool_t *pool)
{
    ngx_memzero(text, sizeof(ngx_http_bloom_text_t));

    text->pool = pool;

    bloom_json_writer_init(&text->json, ngx_http_bloom_text_sink, text);
}


ngx_int_t
ngx_http_bloom_text_take(ngx_http_bloom_text_t *text, size_t size)
{
    ngx_pool_cleanup_t  *cln;

    if (text->held == NULL) {

        cln = ngx_pool_cleanup_add(text->pool, sizeof(size_t));
        if (cln == NULL) {
            text->failed = 1;
            return NGX_ERROR;
        }

        text->held = cln->data;
        *text->held = 0;

        cln->handler = ngx_http_bloom_text_cleanup;
    }

    /* small texts are always allowed: they report errors */

    if (size > 64 * NGX_HTTP_BLOOM_TEXT_PRINTF
        && ngx_http_bloom_text_held + size > NGX_HTTP_BLOOM_TEXT_MAX)
    {
        text->failed = 1;
        text->busy = 1;
        return NGX_ERROR;
    }

    *text->held += size;
    ngx_http_bloom_text_held += size;

    return NGX_OK;
}


static void
ngx_http_bloom_text_cleanup(void *data)
{
    size_t *held = data;

    ngx_http_bloom_text_held -= *held;
}


u_char *
ngx_http_bloom_text_room(ngx_http_bloom_text_t *text, size_t size)
{
    size_t   used, room;
    u_char  *p;

    if (text->failed) {
        return NULL;
    }

    if ((size_t) (text->end - text->pos) >= size) {
        return text->pos;
    }

    used = text->pos - text->start;
    room = ngx_max(2 * (size_t) (text->end - text->start), used + size);
    room = ngx_max(room, 2 * NGX_HTTP_BLOOM_TEXT_PRINTF);

    if (ngx_http_bloom_text_take(text, room) != NGX_OK) {
        return NULL;
    }

    p = ngx_palloc(text->pool, room);
    if (p == NULL) {
        text->failed = 1;
        return NULL;
    }

    if (used != 0) {
        ngx_memcpy(p, text->start, used);

        if (ngx_pfree(text->pool, text->start) == NGX_OK) {
            size = text->end - text->start;

            *text->held -= size;
            ngx_http_bloom_text_held -= size;
        }
    }

    text->start = p;
    text->pos = p + used;
    text->end = p + room;

    return text->pos;
}


void ngx_cdecl
ngx_http_bloom_text_printf(ngx_http_bloom_text_t *text, const char *fmt, ...)
{
    u_char   *p;
    va_list   args;

    p = ngx_http_bloom_text_room(text, NGX_HTTP_BLOOM_TEXT_PRINTF);
    if (p == NULL) {
        return;
    }

    va_start(args, fmt);
    text->pos = ngx_vslprintf(p, p + NGX_HTTP_BLOOM_TEXT_PRINTF, fmt, args);
    va_end(args);
}


static void
ngx_http_bloom_text_sink(void *data, const void *bytes, size_t len)
{
    ngx_http_bloom_text_t *text = data;

    u_char  *p;

    p = ngx_http_bloom_text_room(text, len);

    if (p != NULL) {
        text->pos = ngx_cpymem(p, bytes, len);
    }
}
