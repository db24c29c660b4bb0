/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares the effect of a rule on a key that was looked up.
 *
 * A rule takes its key from the request, and the rules of a list may have
 * different keys ($arg_url, $remote_addr).  The rules of a list that have the
 * same key are considered together, as if the request had the given key there
 * and no key elsewhere.  The key is taken as it is: not decoded, not split.
 */

#ifndef _NGX_HTTP_BLOOM_EFFECT_H_INCLUDED_
#define _NGX_HTTP_BLOOM_EFFECT_H_INCLUDED_

#include "ngx_http_bloom.h"
#include "ngx_bloom_explain.h"

#pragma GCC visibility push(hidden)


/* What a zone says about the key. */
typedef struct {
    ngx_bloom_explain_t         lookup;
    ngx_uint_t                  answer;  /* NGX_BLOOM_ABSENT ... */
} ngx_http_bloom_effect_zone_t;

/* What a rule does about the key, and why. */
typedef struct {
    ngx_uint_t                  answer;  /* that the rule gets:
                                            NGX_BLOOM_ABSENT ... */
    bloom_key_t                *entry;   /* the first of the rule's expressions
                                            that is found, or else that is an
                                            exception; NULL: no expression is */
    u_char                      kinds;   /* BLOOM_EXCEPTION_...; not 0: `entry`
                                            is an exception */
    ngx_uint_t                  fires;   /* 1: its condition holds */
    ngx_uint_t                  decided; /* 1: a rule with the same key stands
                                            before it in the list, fires, and
                                            is not on trial ("dry_run") */
} ngx_http_bloom_effect_t;


/* Computes the effect of a rule.  `zones` has what each zone says, by its
 * number; `first` is the first rule of the list. */
void ngx_http_bloom_effect_get(ngx_http_bloom_effect_t *effect,
    ngx_http_bloom_effect_zone_t *zones, ngx_http_bloom_rule_t *first,
    ngx_http_bloom_rule_t *rule);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_EFFECT_H_INCLUDED_ */
