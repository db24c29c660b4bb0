/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares how bloom_add and bloom_remove change zones by the keys
 * of a response.
 */

#ifndef _NGX_HTTP_BLOOM_CHANGE_H_INCLUDED_
#define _NGX_HTTP_BLOOM_CHANGE_H_INCLUDED_

#include "ngx_http_bloom.h"

#pragma GCC visibility push(hidden)


/*
 * Removes and adds the keys of a response whose header is about to be sent.
 * Returns NGX_OK, also if a key could not be added or removed, which is logged;
 * NGX_ERROR if memory is short.
 */
ngx_int_t ngx_http_bloom_change_zones(ngx_http_request_t *r);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_CHANGE_H_INCLUDED_ */
