/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A lookup answers whether a zone has a key.
 *
 * Nothing here takes a lock or waits for anybody.  What is asked at once is
 * answered by one whole generation, that which serves at the time, and in the
 * key form of its image: a key is looked up by all that bloom_form_expand()
 * makes of it.
 */

#ifndef _NGX_BLOOM_LOOKUP_H_INCLUDED_
#define _NGX_BLOOM_LOOKUP_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/* Answers of a zone; each has a counter. */
#define NGX_BLOOM_ABSENT      0
#define NGX_BLOOM_PRESENT     1          /* maybe */
#define NGX_BLOOM_UNKNOWN     2          /* see ngx_bloom_condition_e */
#define NGX_BLOOM_INVALID     3          /* invalid in the zone's key form */
#define NGX_BLOOM_ANSWERS     4


/*
 * Looks up a key.  Returns NGX_BLOOM_...; NGX_BLOOM_UNKNOWN also if memory is
 * short.  Unless the key form is raw, *key becomes the canonical key, in memory
 * of `pool`; it stays as it is if it is invalid.
 */
ngx_uint_t ngx_bloom_lookup(ngx_bloom_zone_t *zone, ngx_str_t *key,
    ngx_pool_t *pool);

/* A key whose line is on its way from memory while others are tested. */
typedef struct {
    uint64_t            generation;      /* it was hashed for; 0: it was not */
    bloom_hash_t        hash;
    ngx_str_t           key;             /* canonical */
} ngx_bloom_lookup_prefetch_t;

/* Hashes a key, if the key form makes one key of it: raw or lower. */
void ngx_bloom_lookup_hash(ngx_bloom_zone_t *zone, const ngx_str_t *key,
    ngx_bloom_lookup_prefetch_t *prefetch, ngx_pool_t *pool);

/*
 * Asks the processor for its line.  That stops it until it knows where the page
 * is, so lines are on their way together only if they are asked for one right
 * after the other, with nothing between.
 */
void ngx_bloom_lookup_prefetch(ngx_bloom_zone_t *zone,
    const ngx_bloom_lookup_prefetch_t *prefetch);

/*
 * ngx_bloom_lookup() of the same key.  What was hashed is used if the
 * generation it was hashed for still serves.
 */
ngx_uint_t ngx_bloom_lookup_prefetched(ngx_bloom_zone_t *zone, ngx_str_t *key,
    const ngx_bloom_lookup_prefetch_t *prefetch, ngx_pool_t *pool);

/*
 * ngx_bloom_lookup() of n keys, none of which is changed, with their lines
 * on their way from memory together; the answer for an empty one is unknown.
 */
void ngx_bloom_lookup_many(ngx_bloom_zone_t *zone, const ngx_str_t *key,
    ngx_uint_t n, u_char *answer, ngx_pool_t *pool);

/*
 * The same for a list: `text` is cut at each `separator`, spaces and tabs
 * around a part are left out, and so are empty parts.  How many parts have each
 * answer; all zero if there is none.
 */
void ngx_bloom_lookup_parts(ngx_bloom_zone_t *zone, ngx_str_t *text,
    u_char separator, ngx_uint_t tally[NGX_BLOOM_ANSWERS], ngx_pool_t *pool);


/* All that is to be known of a lookup. */
typedef struct {
    uint64_t            generation;      /* 0: nothing serves, and nothing
                                            below is known */
    uint32_t            form;            /* BLOOM_FORM_... */
    const char         *why;             /* of NGX_BLOOM_INVALID: a phrase
                                            to follow the key; else NULL */
    bloom_form_t        keys;            /* that were looked up, if not `why` */
    uint32_t            matches;         /* bit i: keys.expression[i] is maybe
                                            present */
    uint32_t            k;
    uint64_t            bits[BLOOM_K_MAX];             /* of the canonical key:
                                                          keys.expression[0] */
    u_char              set[BLOOM_K_MAX];              /* 1: that bit is set */
} ngx_bloom_lookup_t;

/* As ngx_bloom_lookup(), but *key stays as it is. */
ngx_uint_t ngx_bloom_lookup_explain(ngx_bloom_zone_t *zone, ngx_str_t *key,
    ngx_bloom_lookup_t *lookup, ngx_pool_t *pool);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_LOOKUP_H_INCLUDED_ */
