/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Prefetch takes and hashes the keys of the first rules of a list, and asks for
 * their lines, before the first is looked up.  So memory brings the lines at
 * once.  This changes no answer.
 *
 * It goes up to the first rule whose key cannot be taken before its turn:
 *
 *     a text of several variables, or a list of keys
 *     a variable whose evaluation may have an effect that an earlier rule must
 *     not see yet: one of map, js_set, perl_set, auth_request ...
 *
 * A variable can be taken early if it need not be evaluated, as captures and
 * what "set" has set, or if it is one of nginx's own, or of bloom_arg, that
 * only read the request.  A rule that stands alone is not concerned and pays
 * nothing.
 */

#ifndef _NGX_HTTP_BLOOM_PREFETCH_H_INCLUDED_
#define _NGX_HTTP_BLOOM_PREFETCH_H_INCLUDED_

#include "ngx_http_bloom.h"

#pragma GCC visibility push(hidden)


#define NGX_HTTP_BLOOM_PREFETCH_MAX  8

/*
 * Marks the rules of each list that are NGX_HTTP_BLOOM_PREFETCH.  Called when
 * all variables of a configuration are known.
 */
void ngx_http_bloom_prefetch_plan(ngx_http_core_main_conf_t *cmcf,
    ngx_http_bloom_main_conf_t *bmcf);

/*
 * Does ngx_http_bloom_key_check() for the i-th rule of a list, which is
 * NGX_HTTP_BLOOM_PREFETCH.  The rules of a list are checked one after the other
 * from 0 on.  Returns the answer instead of NGX_OK.
 */
ngx_int_t ngx_http_bloom_prefetch_check(ngx_http_request_t *r,
    ngx_http_bloom_rule_t *rule, ngx_uint_t i, ngx_str_t *text);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_PREFETCH_H_INCLUDED_ */
