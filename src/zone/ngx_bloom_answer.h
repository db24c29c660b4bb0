/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file defines the answers of a zone, and how a lookup of one generation
 * begins and comes to its answer.  The functions are for the files that look
 * keys up.
 */

#ifndef _NGX_BLOOM_ANSWER_H_INCLUDED_
#define _NGX_BLOOM_ANSWER_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/* The answers of a zone.  Each has a counter. */
#define NGX_BLOOM_ABSENT      0
#define NGX_BLOOM_PRESENT     1          /* maybe */
#define NGX_BLOOM_UNKNOWN     2          /* see ngx_bloom_condition_e */
#define NGX_BLOOM_INVALID     3          /* invalid in the zone's key form */
#define NGX_BLOOM_ANSWERS     4


/* Attempts of a lookup.  It gives up only if as many loads end within its few
 * nanoseconds, and a load takes much longer than that. */
#define NGX_BLOOM_LOOKUP_ATTEMPTS    8


/*
 * Begins a lookup.  Returns NGX_OK, NGX_AGAIN to start again, or NGX_DECLINED
 * if nothing serves.
 */
static ngx_inline ngx_int_t
ngx_bloom_lookup_begin(ngx_bloom_zone_t *zone, ngx_uint_t *behind)
{
    uint64_t  generation;

    generation = __atomic_load_n(&zone->sh->generation, __ATOMIC_ACQUIRE);

    if (generation == 0) {
        return NGX_DECLINED;
    }

    if (generation != zone->generation
        && ngx_bloom_zone_refresh(zone, generation) != NGX_OK)
    {
        return NGX_AGAIN;
    }

    /* read this before the bits: they may lack what is applied later */

    *behind = ngx_bloom_zone_behind(zone);

    return NGX_OK;
}


/* Does so for any zone: one that is not zone->plain may have layers, slices or
 * a source. */
static ngx_inline ngx_int_t
ngx_bloom_lookup_begin_any(ngx_bloom_zone_t *zone, ngx_uint_t *behind)
{
    ngx_int_t  rc;

    rc = ngx_bloom_lookup_begin(zone, behind);

    if (rc != NGX_OK) {
        return rc;
    }

    ngx_bloom_zone_follow_serving(zone);

    if (zone->source.len != 0) {
        *behind |= ngx_bloom_zone_late(zone);
    }

    return NGX_OK;
}


/* Returns the answer for a tested key.  If the zone is behind, it may not have
 * applied a key that it does not find. */
static ngx_inline ngx_uint_t
ngx_bloom_lookup_answer(int present, ngx_uint_t behind)
{
    return present ? NGX_BLOOM_PRESENT
           : behind ? NGX_BLOOM_UNKNOWN : NGX_BLOOM_ABSENT;
}


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_ANSWER_H_INCLUDED_ */
