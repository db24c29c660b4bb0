/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares lookups of many keys, each call within one generation.
 */

#ifndef _NGX_BLOOM_LOOKUP_LIST_H_INCLUDED_
#define _NGX_BLOOM_LOOKUP_LIST_H_INCLUDED_

#include "ngx_bloom_lookup.h"

#pragma GCC visibility push(hidden)


/*
 * Looks up n keys, with their cache lines requested together, and stores n
 * answers.  Changes no key.  The answer for an empty key is NGX_BLOOM_UNKNOWN.
 */
void ngx_bloom_lookup_list(ngx_bloom_zone_t *zone, const ngx_str_t *key,
    ngx_uint_t n, u_char *answer, ngx_pool_t *pool);

/*
 * Looks up the parts of a list.  Splits `text` at each `separator`, strips
 * spaces and tabs around a part, skips empty parts, and looks each part up in
 * the given way (NGX_BLOOM_LOOKUP_...).  tally[i] becomes the number of parts
 * whose answer is i; all are 0 if the list has no parts.  The parts share the
 * budget of one name (bloom_idn.h), and those for which it does not suffice are
 * NGX_BLOOM_INVALID.
 */
void ngx_bloom_lookup_list_parts(ngx_bloom_zone_t *zone, ngx_str_t *text,
    u_char separator, ngx_uint_t how, ngx_uint_t tally[NGX_BLOOM_ANSWERS],
    ngx_pool_t *pool);

/* Does what ngx_bloom_lookup_match() does after ngx_bloom_lookup_list_parts(),
 * for the expression of the first part that is present. */
void ngx_bloom_lookup_list_match(ngx_bloom_zone_t *zone, ngx_str_t *match,
    ngx_pool_t *pool);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_LOOKUP_LIST_H_INCLUDED_ */
