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

/*
 * Returns 1 if all variables of a key only read the request, so that the key
 * has nothing from "set", "map" and the like.  Call it when all variables of
 * the configuration are known.
 */
ngx_uint_t ngx_http_bloom_variables_only_read(ngx_http_core_main_conf_t *cmcf,
    ngx_http_bloom_key_t *key);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_VARIABLES_H_INCLUDED_ */
