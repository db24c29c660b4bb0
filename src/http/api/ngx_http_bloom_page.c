/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file sends the page, which is built from dashboard/, to clients that
 * accept HTML.
 */

#include "ngx_http_bloom_page.h"
#include "ngx_http_bloom_header.h"
#include "ngx_http_bloom_response.h"


typedef struct {
    const char                 *name;
    const char                 *value;
} ngx_http_bloom_page_header_t;


static ngx_uint_t ngx_http_bloom_page_names(ngx_str_t *accept,
    const char *type);


/* The bytes of dashboard/page.html.  config.make makes the file of this
 * name. */
static const u_char  ngx_http_bloom_page_html[] = {
#include <ngx_http_bloom_page_html.inc>
};


/*
 * With these headers a browser shows the page in no frame, and gets it anew
 * each time.  The page has the rest of its policy itself, which names the
 * hashes of its script and style.
 */
static ngx_http_bloom_page_header_t  ngx_http_bloom_page_header_table[] = {
    { "Vary", "Accept" },
    { "Cache-Control", "no-cache" },
    { "Content-Security-Policy", "frame-ancestors 'none'" },
    { "X-Content-Type-Options", "nosniff" },
    { "Referrer-Policy", "same-origin" },
    { "Cross-Origin-Opener-Policy", "same-origin" },
    { NULL, NULL }
};


ngx_uint_t
ngx_http_bloom_page_wanted(ngx_http_request_t *r)
{
    ngx_str_t  *accept;

    accept = ngx_http_bloom_header_in(r, "accept");

    return accept != NULL
           && ngx_http_bloom_page_names(accept, "text/html")
           && !ngx_http_bloom_page_names(accept, "application/json");
}


static ngx_uint_t
ngx_http_bloom_page_names(ngx_str_t *accept, const char *type)
{
    return ngx_strlcasestrn(accept->data, accept->data + accept->len,
                            (u_char *) type, ngx_strlen(type) - 1)
           != NULL;
}


ngx_int_t
ngx_http_bloom_page_respond(ngx_http_request_t *r)
{
    ngx_buf_t                     *b;
    ngx_str_t                      value;
    ngx_http_bloom_page_header_t  *header;

    for (header = ngx_http_bloom_page_header_table; header->name; header++) {

        value.data = (u_char *) header->value;
        value.len = ngx_strlen(header->value);

        if (ngx_http_bloom_header_out(r, header->name, &value) != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }
    }

    b = ngx_calloc_buf(r->pool);
    if (b == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    b->pos = (u_char *) ngx_http_bloom_page_html;
    b->last = b->pos + sizeof(ngx_http_bloom_page_html);
    b->memory = 1;

    ngx_str_set(&r->headers_out.content_type, "text/html; charset=utf-8");
    r->headers_out.content_type_len = sizeof("text/html") - 1;

    return ngx_http_bloom_response_send(r, NGX_HTTP_OK, b);
}
