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
#include "bloom_json_writer.h"

#pragma GCC visibility push(hidden)


/* What a zone says about the key. */
typedef struct {
    ngx_bloom_explain_t         lookup;
    ngx_uint_t                  answer;  /* NGX_BLOOM_ABSENT ... */
} ngx_http_bloom_effect_zone_t;

/*
 * Writes what a rule does about the key, and why: the members from "answer" to
 * "decided".  `zones` has what each zone of the endpoint says, by its number;
 * `first` is the first rule of the list.
 */
void ngx_http_bloom_effect_put(bloom_json_writer_t *json,
    ngx_http_bloom_endpoint_t *endpoint, ngx_http_bloom_effect_zone_t *zones,
    ngx_http_bloom_rule_t *first, ngx_http_bloom_rule_t *rule);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_EFFECT_H_INCLUDED_ */
