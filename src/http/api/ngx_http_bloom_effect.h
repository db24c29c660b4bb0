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
#include "ngx_http_bloom_stats.h"
#include "ngx_http_bloom_text.h"
#include "ngx_bloom_explain.h"

#pragma GCC visibility push(hidden)


/* What a zone says about the key.  The functions below take an array of these,
 * by the numbers of the zones. */
typedef struct {
    ngx_bloom_explain_t         lookup;
    ngx_uint_t                  answer;  /* NGX_BLOOM_ABSENT ... */
} ngx_http_bloom_effect_zone_t;

/* What a rule does about the key. */
typedef enum {
    NGX_HTTP_BLOOM_EFFECT_NONE = 0,
    NGX_HTTP_BLOOM_EFFECT_FIRES,         /* its condition holds */
    NGX_HTTP_BLOOM_EFFECT_UNKNOWN    /* the answer is unknown, and some
                                            place has a "bloom_unknown"
                                            other than "pass" */
} ngx_http_bloom_effect_e;


/* Returns the answer that a rule gets: NGX_BLOOM_ABSENT ... */
ngx_uint_t ngx_http_bloom_effect_answer(ngx_http_bloom_effect_zone_t *zones,
    ngx_http_bloom_rule_t *rule);

/* Returns the effect of a rule; `first` is the first rule of its list. */
ngx_http_bloom_effect_e ngx_http_bloom_effect_of(
    ngx_http_bloom_effect_zone_t *zones, ngx_http_bloom_rule_t *first,
    ngx_http_bloom_rule_t *rule);

/* Returns 1 if a rule with the same key stands before this one in the list and
 * decides: it fires and is not on trial ("dry_run"). */
ngx_uint_t ngx_http_bloom_effect_is_decided(
    ngx_http_bloom_effect_zone_t *zones, ngx_http_bloom_rule_t *first,
    ngx_http_bloom_rule_t *rule);

/*
 * Appends a sentence about a rule that has an effect, in a list that applies
 * somewhere, such as
 *
 *     rejected with 403 by the rule at FILE:LINE in location /go of server
 *     NAME, if $arg_url is this key: zone bad (URLhaus) finds evil.example/
 *
 * The text from outside, a part of the key, stands at its end.
 */
void ngx_http_bloom_effect_say(ngx_http_bloom_text_t *text,
    ngx_http_bloom_effect_zone_t *zones, ngx_http_bloom_rule_t *first,
    ngx_http_bloom_rule_t *rule);

/* Appends a location as the configuration writes it; nothing for a server. */
void ngx_http_bloom_effect_location(ngx_http_bloom_text_t *text,
    ngx_http_core_loc_conf_t *location);

/* Returns the state of a zone, which says why its answers are unknown.  The
 * string points into *stats. */
ngx_str_t *ngx_http_bloom_effect_state(ngx_bloom_zone_t *zone,
    ngx_http_bloom_stats_t *stats);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_EFFECT_H_INCLUDED_ */
