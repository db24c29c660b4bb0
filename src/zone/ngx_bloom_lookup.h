/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A lookup answers whether a zone has a key.
 *
 * No function here takes a lock or waits.  Each call takes its answers from one
 * whole generation, the one that serves at that moment.  The key form of its
 * image applies: a key is looked up by all expressions that bloom_form_expand()
 * makes of it, unless the caller asks for the whole key alone.  Each expression
 * counts by itself: if one of them was removed, the key is still present if
 * another one is.
 */

#ifndef _NGX_BLOOM_LOOKUP_H_INCLUDED_
#define _NGX_BLOOM_LOOKUP_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_answer.h"
#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/*
 * Looks up a key.  Returns its answer, NGX_BLOOM_...; if memory is short, that
 * is NGX_BLOOM_UNKNOWN.  Unless the key form is raw or the key is invalid, *key
 * becomes the canonical key, allocated from `pool`.
 */
ngx_uint_t ngx_bloom_lookup(ngx_bloom_zone_t *zone, ngx_str_t *key,
    ngx_pool_t *pool);

/* How a key is looked up: any of these bits. */
#define NGX_BLOOM_LOOKUP_EXACT  1        /* by the whole key alone, not by the
                                            expressions that stand for what it
                                            is part of */
#define NGX_BLOOM_LOOKUP_SOLE   2        /* a URL with two readings is absent */

/* Does what ngx_bloom_lookup() does, but looks the key up in the given way. */
ngx_uint_t ngx_bloom_lookup_as(ngx_bloom_zone_t *zone, ngx_str_t *key,
    ngx_uint_t how, ngx_pool_t *pool);

/*
 * Looks up n keys, with their cache lines requested together, and stores n
 * answers.  Changes no key.  The answer for an empty key is NGX_BLOOM_UNKNOWN.
 */
void ngx_bloom_lookup_many(ngx_bloom_zone_t *zone, const ngx_str_t *key,
    ngx_uint_t n, u_char *answer, ngx_pool_t *pool);

/*
 * Looks up the parts of a list.  Splits `text` at each `separator`, strips
 * spaces and tabs around a part, skips empty parts, and looks each part up in
 * the given way (NGX_BLOOM_LOOKUP_...).  tally[i] becomes the number of parts
 * whose answer is i; all are 0 if the list has no parts.  The parts share the
 * budget of one name (bloom_idn.h), and those for which it does not suffice are
 * NGX_BLOOM_INVALID.
 */
void ngx_bloom_lookup_parts(ngx_bloom_zone_t *zone, ngx_str_t *text,
    u_char separator, ngx_uint_t how, ngx_uint_t tally[NGX_BLOOM_ANSWERS],
    ngx_pool_t *pool);

/*
 * The zone of the last lookup of one key that was answered NGX_BLOOM_ABSENT
 * only because the key is an excepted key.  Lookups never reset it, so a key
 * that the bits lack pays nothing for it: whoever wants to know sets it to NULL
 * before the lookup.
 */
extern ngx_bloom_zone_t  *ngx_bloom_lookup_excepted;


/*
 * Stores the expression by which the last lookup in this process has found a
 * key in this zone, allocated from `pool`; an empty one if memory is short.
 * Call it before the next lookup, and only if the answer was NGX_BLOOM_PRESENT.
 * `key` is the canonical key; NULL after ngx_bloom_lookup_parts(), for the
 * expression of the first part that is present.
 */
void ngx_bloom_lookup_match(ngx_bloom_zone_t *zone, const ngx_str_t *key,
    ngx_str_t *match, ngx_pool_t *pool);

/* Stores the whole key of the second reading of a URL, allocated from `pool`;
 * an empty one if it has none, or memory is short.  `key` is the canonical key
 * of the last lookup of one key. */
void ngx_bloom_lookup_second(const ngx_str_t *key, ngx_str_t *second,
    ngx_pool_t *pool);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_LOOKUP_H_INCLUDED_ */
