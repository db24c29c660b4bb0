/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file sends the page, which is built from dashboard/, to clients that
 * prefer HTML.
 */

#include "ngx_http_bloom_page.h"
#include "ngx_http_bloom_header.h"
#include "ngx_http_bloom_response.h"

#include <ngx_md5.h>


#define NGX_HTTP_BLOOM_PAGE_NOT_NAMED  -1


typedef struct {
    const char                 *name;
    const char                 *value;
} ngx_http_bloom_page_header_t;


static ngx_int_t ngx_http_bloom_page_quality(ngx_str_t *accept,
    const char *type);
static ngx_int_t ngx_http_bloom_page_headers(ngx_http_request_t *r);
static void ngx_http_bloom_page_etag(ngx_str_t *etag);


/* The bytes of dashboard/page.html.  config.make makes the file of this
 * name. */
static const u_char  ngx_http_bloom_page_html[] = {
#include <ngx_http_bloom_page_html.inc>
};


/*
 * With these headers a browser shows the page in no frame, and revalidates it
 * each time, which is cheap with its ETag.  The page has the rest of its policy
 * itself, which names the hashes of its script and style.
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
    ngx_int_t   html, json, any;
    ngx_str_t  *accept;

    accept = ngx_http_bloom_header_in(r, "accept");

    if (accept == NULL) {
        return 0;
    }

    html = ngx_http_bloom_page_quality(accept, "text/html");
    json = ngx_http_bloom_page_quality(accept, "application/json");

    if (html <= 0) {
        return 0;
    }

    if (json != NGX_HTTP_BLOOM_PAGE_NOT_NAMED) {
        return html > json;
    }

    any = ngx_max(ngx_http_bloom_page_quality(accept, "application/*"),
                  ngx_http_bloom_page_quality(accept, "*/*"));

    return html >= any;
}


/* Returns the quality of a type in thousandths, or
 * NGX_HTTP_BLOOM_PAGE_NOT_NAMED. */
static ngx_int_t
ngx_http_bloom_page_quality(ngx_str_t *accept, const char *type)
{
    u_char     *p, *end, *last, *q;
    size_t      len;
    ngx_int_t   quality;

    len = ngx_strlen(type);
    end = accept->data + accept->len;

    for (p = accept->data; p < end; p = last + 1) {

        while (p < end && (*p == ' ' || *p == '\t')) {
            p++;
        }

        for (last = p; last < end && *last != ','; last++) { /* void */ }

        if ((size_t) (last - p) < len
            || ngx_strncasecmp(p, (u_char *) type, len) != 0)
        {
            continue;
        }

        p += len;

        if (p < last && *p != ';' && *p != ' ' && *p != '\t') {
            continue;
        }

        q = ngx_strlcasestrn(p, last, (u_char *) "q=", 2 - 1);

        if (q == NULL) {
            return 1000;
        }

        quality = ngx_atofp(q + 2, ngx_min(last - q - 2, 5), 3);

        return quality == NGX_ERROR ? 1000 : ngx_min(quality, 1000);
    }

    return NGX_HTTP_BLOOM_PAGE_NOT_NAMED;
}


ngx_int_t
ngx_http_bloom_page_respond(ngx_http_request_t *r)
{
    ngx_buf_t  *b;

    if (ngx_http_bloom_page_headers(r) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    b = ngx_calloc_buf(r->pool);
    if (b == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    b->pos = (u_char *) ngx_http_bloom_page_html;
    b->last = b->pos + sizeof(ngx_http_bloom_page_html);
    b->memory = 1;

    /* this request changes nothing, so nginx may respond with 304 */

    r->disable_not_modified = 0;

    ngx_str_set(&r->headers_out.content_type, "text/html; charset=utf-8");
    r->headers_out.content_type_len = sizeof("text/html") - 1;

    return ngx_http_bloom_response_send(r, NGX_HTTP_OK, b);
}


static ngx_int_t
ngx_http_bloom_page_headers(ngx_http_request_t *r)
{
    ngx_str_t                      value;
    ngx_table_elt_t               *etag;
    ngx_http_bloom_page_header_t  *header;

    for (header = ngx_http_bloom_page_header_table; header->name; header++) {

        value.data = (u_char *) header->value;
        value.len = ngx_strlen(header->value);

        if (ngx_http_bloom_header_out(r, header->name, &value) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    /* nginx knows this ETag, and weakens it if it compresses the page */

    etag = ngx_list_push(&r->headers_out.headers);
    if (etag == NULL) {
        return NGX_ERROR;
    }

    etag->hash = 1;
    ngx_str_set(&etag->key, "ETag");
    ngx_http_bloom_page_etag(&etag->value);
#if (nginx_version >= 1023000)
    etag->next = NULL;
#endif

    r->headers_out.etag = etag;

    return NGX_OK;
}


/* Returns in *etag a digest of the page, which this worker computes once. */
static void
ngx_http_bloom_page_etag(ngx_str_t *etag)
{
    static u_char  quoted[2 + 2 * 16];

    u_char     digest[16], *p;
    ngx_md5_t  md5;

    if (quoted[0] == '\0') {
        ngx_md5_init(&md5);
        ngx_md5_update(&md5, ngx_http_bloom_page_html,
                       sizeof(ngx_http_bloom_page_html));
        ngx_md5_final(digest, &md5);

        quoted[0] = '"';
        p = ngx_hex_dump(quoted + 1, digest, sizeof(digest));
        *p = '"';
    }

    etag->data = quoted;
    etag->len = sizeof(quoted);
}
