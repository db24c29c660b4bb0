/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares how the state of a zone is written in JSON.
 */

#ifndef _NGX_HTTP_BLOOM_JSON_H_INCLUDED_
#define _NGX_HTTP_BLOOM_JSON_H_INCLUDED_

#include "ngx_bloom_info.h"
#include "ngx_http_bloom_text.h"

#pragma GCC visibility push(hidden)


/* Writes the state of a zone as an object. */
void ngx_http_bloom_json_put_zone(ngx_http_bloom_text_t *text,
    const char *name, ngx_bloom_zone_t *zone, ngx_bloom_info_t *info);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_JSON_H_INCLUDED_ */
