/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file adds a zone's ETag to responses and compares the If-Match of
 * requests with it.
 */

#include "ngx_http_bloom_etag.h"
#include "ngx_http_bloom_header.h"


/* The ETag is "GENERATION-INSTANCE" with quotes: up to 20 and 16 digits. */
#define NGX_HTTP_BLOOM_ETAG_LEN  (NGX_INT64_LEN + 20)


static u_char *ngx_http_bloom_etag_text(u_char *p, ngx_bloom_info_t *info);


ngx_int_t
ngx_http_bloom_etag_match(ngx_http_request_t *r, ngx_bloom_zone_t *zone,
    ngx_http_bloom_error_t *error)
{
    u_char            *p, *end, *last;
    size_t             len;
    u_char             etag[NGX_HTTP_BLOOM_ETAG_LEN];
    ngx_table_elt_t   *h;
    ngx_bloom_info_t   info;

    h = r->headers_in.if_match;

    if (h == NULL) {
        return NGX_OK;
    }

    ngx_bloom_info_get(zone, &info);

    if (info.generation == 0) {
        ngx_http_bloom_error(error, NGX_HTTP_BLOOM_E_GENERATION,
                             "no image of zone \"%V\" serves, so \"If-Match\" "
                             "cannot match, and nothing was changed; load an "
                             "image without \"If-Match\"", &zone->name);
        return NGX_DECLINED;
    }

    len = ngx_http_bloom_etag_text(etag, &info) - etag;

    while (h != NULL) {

        p = h->value.data;
        end = p + h->value.len;

        while (p < end) {

            while (p < end && (*p == ' ' || *p == '\t' || *p == ',')) {
                p++;
            }

            for (last = p; last < end && *last != ','; last++) { /* void */ }

            while (last > p && (last[-1] == ' ' || last[-1] == '\t')) {
                last--;
            }

            if ((last - p == 1 && *p == '*')
                || ((size_t) (last - p) == len
                    && ngx_strncmp(p, etag, len) == 0))
            {
                return NGX_OK;
            }

            p = last;

            while (p < end && *p != ',') {
                p++;
            }
        }

#if (nginx_version >= 1023000)
        h = h->next;
#else
        h = NULL;
#endif
    }

    ngx_http_bloom_error(error, NGX_HTTP_BLOOM_E_GENERATION,
                         "zone \"%V\" serves generation %*s, which "
                         "\"If-Match\" does not name; nothing was changed: "
                         "look at the zone's state and try again",
                         &zone->name, len, etag);

    return NGX_DECLINED;
}


/*
 * Writes the generation and the instance.  After a restart the zone is a new
 * instance and counts its generations from 1 again.
 */
static u_char *
ngx_http_bloom_etag_text(u_char *p, ngx_bloom_info_t *info)
{
    return ngx_sprintf(p, "\"%uL-%016xL\"", info->generation,
                       info->instance);
}


/*
 * Adds the ETag as an ordinary header, unknown to nginx: otherwise nginx would
 * weaken it if it compresses the response, and If-Match needs a strong one.
 */
ngx_int_t
ngx_http_bloom_etag_add(ngx_http_request_t *r, ngx_bloom_info_t *info)
{
    ngx_str_t  value;

    if (info->generation == 0) {
        return NGX_OK;
    }

    value.data = ngx_pnalloc(r->pool, NGX_HTTP_BLOOM_ETAG_LEN);
    if (value.data == NULL) {
        return NGX_ERROR;
    }

    value.len = ngx_http_bloom_etag_text(value.data, info) - value.data;

    return ngx_http_bloom_header_out(r, "ETag", &value);
}
