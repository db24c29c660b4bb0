/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares the variables $bloom_status, $bloom_zone and $bloom_key,
 * which say what was decided about a request, and those of bloom_lookup, which
 * say what a zone answers.
 */

#ifndef _NGX_HTTP_BLOOM_VARIABLES_H_INCLUDED_
#define _NGX_HTTP_BLOOM_VARIABLES_H_INCLUDED_

#include "ngx_http_bloom.h"

#pragma GCC visibility push(hidden)


/* Adds $bloom_status, $bloom_zone and $bloom_key. */
ngx_int_t ngx_http_bloom_variables_add(ngx_conf_t *cf);

/* Evaluates the variable of a bloom_lookup, whose answer is pinned: see
 * ngx_bloom_rule_pin.h.  `data` is its ngx_http_bloom_key_t. */
ngx_int_t ngx_http_bloom_variables_lookup(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_VARIABLES_H_INCLUDED_ */
