/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Variables tell what was decided about a request, and what a zone answers.
 */

#ifndef _NGX_HTTP_BLOOM_VARIABLES_H_INCLUDED_
#define _NGX_HTTP_BLOOM_VARIABLES_H_INCLUDED_

#include "ngx_http_bloom.h"

#pragma GCC visibility push(hidden)


/* Adds $bloom_status, $bloom_zone and $bloom_key. */
ngx_int_t ngx_http_bloom_variables_add(ngx_conf_t *cf);

/*
 * Evaluates the variable of a bloom_lookup, whose key is `data`: looks the key
 * up, unless the last key of the variable in this request was the same.  nginx
 * may evaluate a variable for the length of a text, and again for the text:
 * between the two an answer must not change, as it may by a load or an
 * addition.
 */
ngx_int_t ngx_http_bloom_variables_lookup(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_VARIABLES_H_INCLUDED_ */
