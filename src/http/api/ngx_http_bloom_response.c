/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file sends responses: JSON, other text, and errors.
 */

#include "ngx_http_bloom_response.h"
#include "ngx_http_bloom_header.h"


ngx_int_t
ngx_http_bloom_response_json(ngx_http_request_t *r, ngx_uint_t status,
    ngx_http_bloom_text_t *text)
{
    ngx_str_t  type;

    ngx_http_bloom_text_printf(text, "\n");
    ngx_str_set(&type, "application/json");

    return ngx_http_bloom_response_text(r, status, &type, text);
}


ngx_int_t
ngx_http_bloom_response_error(ngx_http_request_t *r,
    ngx_http_bloom_error_t *error)
{
    ngx_http_bloom_text_t  text;

    ngx_http_bloom_text_init(&text, r->pool);

    bloom_json_put_object(&text.json, NULL);
    ngx_http_bloom_error_put(&text, error);
    bloom_json_put_end(&text.json);

    return ngx_http_bloom_response_json(r, ngx_http_bloom_error_status(error),
                                        &text);
}


ngx_int_t
ngx_http_bloom_response_refuse(ngx_http_request_t *r,
    ngx_http_bloom_error_t *error)
{
    ngx_int_t  rc;

    rc = ngx_http_discard_request_body(r);

    return rc == NGX_OK ? ngx_http_bloom_response_error(r, error) : rc;
}


ngx_int_t
ngx_http_bloom_response_text(ngx_http_request_t *r, ngx_uint_t status,
    ngx_str_t *type, ngx_http_bloom_text_t *text)
{
    ngx_buf_t               *b;
    ngx_str_t                value;
    ngx_http_bloom_error_t   error;

    if (text->busy) {
        ngx_http_bloom_error_busy(&error);
        return ngx_http_bloom_response_error(r, &error);
    }

    if (text->failed) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_str_set(&value, "no-store");

    if (ngx_http_bloom_header_out(r, "Cache-Control", &value) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    b = ngx_calloc_buf(r->pool);
    if (b == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    b->pos = text->start;
    b->last = text->pos;
    b->memory = (text->pos != text->start);    /* not of an empty body */

    r->headers_out.content_type = *type;
    r->headers_out.content_type_len = type->len;

    return ngx_http_bloom_response_send(r, status, b);
}


ngx_int_t
ngx_http_bloom_response_send(ngx_http_request_t *r, ngx_uint_t status,
    ngx_buf_t *b)
{
    ngx_int_t    rc;
    ngx_chain_t  out;

    r->headers_out.status = status;
    r->headers_out.content_length_n = ngx_buf_size(b);
    r->headers_out.content_type_lowcase = NULL;

    rc = ngx_http_send_header(r);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return rc;
    }

    b->last_buf = 1;
    b->last_in_chain = 1;

    out.buf = b;
    out.next = NULL;

    return ngx_http_output_filter(r, &out);
}
