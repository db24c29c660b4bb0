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
 * The zone of the last lookup of one key that was answered NGX_BLOOM_ABSENT
 * only because the key is an excepted key.  Lookups never reset it, so a key
 * that the bits lack pays nothing for it: whoever wants to know sets it to NULL
 * before the lookup.
 */
extern ngx_bloom_zone_t  *ngx_bloom_lookup_excepted;


/*
 * Stores the expression by which the last lookup of one key in this process has
 * found it in this zone, allocated from `pool`; an empty one if memory is
 * short.  Call it before the next lookup, and only if the answer was
 * NGX_BLOOM_PRESENT.  `key` is the canonical key.
 */
void ngx_bloom_lookup_match(ngx_bloom_zone_t *zone, const ngx_str_t *key,
    ngx_str_t *match, ngx_pool_t *pool);

/* Stores the whole key of the second reading of a URL, allocated from `pool`;
 * an empty one if it has none, or memory is short.  `key` is the canonical key
 * of the last lookup of one key. */
void ngx_bloom_lookup_second(const ngx_str_t *key, ngx_str_t *second,
    ngx_pool_t *pool);

/* ---- for lookups of many keys: ngx_bloom_lookup_list.h ---- */

/* Returns which of the expressions that the bits have are no exceptions.  Bit i
 * belongs to expression i.  Sets *excepted to 1 if one is left out only because
 * it is an excepted key. */
uint64_t ngx_bloom_lookup_kept(ngx_bloom_zone_t *zone,
    const bloom_form_t *keys, uint64_t present, ngx_uint_t *excepted);

/* Keys of lists and of the form lower are converted in this buffer.  One
 * suffices, because no lookup begins while another is running. */
#define NGX_BLOOM_LOOKUP_SCRATCH  BLOOM_URL_ROOM(BLOOM_KEY_MAX)

extern u_char  ngx_bloom_lookup_scratch[NGX_BLOOM_LOOKUP_SCRATCH];

/* Returns room for a key of `len` bytes in the zone's form, until the next
 * lookup; NULL if memory is short. */
static ngx_inline u_char *
ngx_bloom_lookup_room(ngx_bloom_zone_t *zone, size_t len, ngx_pool_t *pool)
{
    size_t  need;

    need = bloom_form_room(zone->form, len);

    return need <= NGX_BLOOM_LOOKUP_SCRATCH
           ? ngx_bloom_lookup_scratch : ngx_pnalloc(pool, need);
}

/* Gives a canonical key to the caller; copies it only if it differs from *key.
 * Returns NGX_OK, or NGX_ERROR if memory is short. */
static ngx_inline ngx_int_t
ngx_bloom_lookup_keep(ngx_str_t *key, const bloom_key_t *canonical,
    ngx_pool_t *pool)
{
    u_char  *p;

    if (key->len == canonical->len
        && ngx_memcmp(key->data, canonical->data, key->len) == 0)
    {
        return NGX_OK;
    }

    p = ngx_pnalloc(pool, canonical->len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(p, canonical->data, canonical->len);

    key->data = p;
    key->len = canonical->len;

    return NGX_OK;
}


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_LOOKUP_H_INCLUDED_ */
