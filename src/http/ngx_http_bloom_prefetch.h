/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares the prefetch: before the first rule of a list is
 * checked, the keys of several rules are evaluated and hashed, and their cache
 * lines are requested from memory all at once.  This changes no answer.
 *
 * It ends at the first rule whose key cannot be evaluated before its turn:
 *
 *     a text of several variables, or a key with "split="
 *     the key of a rule with "if=", which may not run
 *     a variable whose evaluation may have a side effect that an earlier rule
 *         must not see yet: one of map, js_set, perl_set, auth_request ...
 *
 * A variable can be evaluated early if it already has its value, as captures
 * and the variables of "set" have, or if evaluating it only reads the request,
 * as for many variables of nginx and those of bloom_arg.  A list with a single
 * rule is not affected.
 */

#ifndef _NGX_HTTP_BLOOM_PREFETCH_H_INCLUDED_
#define _NGX_HTTP_BLOOM_PREFETCH_H_INCLUDED_

#include "ngx_http_bloom.h"

#pragma GCC visibility push(hidden)


#define NGX_HTTP_BLOOM_PREFETCH_MAX  8

/*
 * Marks the rules whose keys only read the request (rule->plain), and those
 * that are checked by prefetch (NGX_HTTP_BLOOM_PREFETCH).  Call this when all
 * variables of the configuration are known.
 */
void ngx_http_bloom_prefetch_plan(ngx_http_core_main_conf_t *cmcf,
    ngx_http_bloom_main_conf_t *bmcf);

/*
 * Checks the key of a rule with NGX_HTTP_BLOOM_PREFETCH, as
 * ngx_http_bloom_key_check() does; `rule` is the i-th rule of its list, and the
 * rules must be checked in order, from 0 on.  Returns the answer
 * (NGX_BLOOM_ABSENT ...), NGX_DECLINED if the key is empty, or NGX_ERROR.
 */
ngx_int_t ngx_http_bloom_prefetch_check(ngx_http_request_t *r,
    ngx_http_bloom_rule_t *rule, ngx_uint_t i, ngx_str_t *text);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_PREFETCH_H_INCLUDED_ */
