/* SPDX-License-Identifier: BSD-2-Clause */

/* This header declares the operations that add or remove keys. */

#ifndef _NGX_HTTP_BLOOM_KEYS_H_INCLUDED_
#define _NGX_HTTP_BLOOM_KEYS_H_INCLUDED_

#include "ngx_http_bloom_operation.h"

#pragma GCC visibility push(hidden)


extern const ngx_http_bloom_kind_t  ngx_http_bloom_post_keys;
extern const ngx_http_bloom_kind_t  ngx_http_bloom_post_remove;
extern const ngx_http_bloom_kind_t  ngx_http_bloom_delete_keys;


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_KEYS_H_INCLUDED_ */
