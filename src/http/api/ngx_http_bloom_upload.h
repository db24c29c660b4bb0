/* SPDX-License-Identifier: BSD-2-Clause */

/* This header declares the operation that takes an image. */

#ifndef _NGX_HTTP_BLOOM_UPLOAD_H_INCLUDED_
#define _NGX_HTTP_BLOOM_UPLOAD_H_INCLUDED_

#include "ngx_http_bloom_operation.h"

#pragma GCC visibility push(hidden)


extern const ngx_http_bloom_kind_t  ngx_http_bloom_put_image;


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_UPLOAD_H_INCLUDED_ */
