/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file reads headers of requests and adds headers to responses.
 */

#include "ngx_http_bloom_header.h"


ngx_str_t *
ngx_http_bloom_header_in(ngx_http_request_t *r, const char *name)
{
    size_t            len;
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *header;

    len = ngx_strlen(name);
    part = &r->headers_in.headers.part;

    for ( /* void */ ; part != NULL; part = part->next) {

        header = part->elts;

        for (i = 0; i < part->nelts; i++) {
            if (header[i].key.len == len
                && ngx_strncmp(header[i].lowcase_key, name, len) == 0)
            {
                return &header[i].value;
            }
        }
    }

    return NULL;
}


ngx_int_t
ngx_http_bloom_header_out(ngx_http_request_t *r, const char *name,
    ngx_str_t *value)
{
    ngx_table_elt_t  *h;

    h = ngx_list_push(&r->headers_out.headers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    h->hash = 1;
    h->key.data = (u_char *) name;
    h->key.len = ngx_strlen(name);
    h->value = *value;
#if (nginx_version >= 1023000)
    h->next = NULL;
#endif

    return NGX_OK;
}
