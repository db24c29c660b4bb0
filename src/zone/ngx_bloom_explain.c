/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file explains the answer about a key.
 */

#include "ngx_bloom_explain.h"
#include "ngx_bloom_ring.h"
#include "bloom_bits.h"
#include "bloom_layout.h"


static void ngx_bloom_explain_keys(ngx_bloom_zone_t *zone,
    ngx_bloom_explain_t *how);


ngx_uint_t
ngx_bloom_explain(ngx_bloom_zone_t *zone, ngx_str_t *key,
    ngx_bloom_explain_t *how, ngx_pool_t *pool)
{
    u_char       *buf;
    ngx_int_t     rc;
    ngx_uint_t    i, behind;
    bloom_key_t   whole;

    whole.data = key->data;
    whole.len = key->len;

    for (i = 0; i < NGX_BLOOM_LOOKUP_ATTEMPTS; i++) {
        ngx_memzero(how, sizeof(ngx_bloom_explain_t));

        rc = ngx_bloom_lookup_begin_any(zone, &behind);

        if (rc == NGX_AGAIN) {
            continue;
        }

        if (rc == NGX_DECLINED) {
            return NGX_BLOOM_UNKNOWN;
        }

        /* how->keys point into it; + 1, because raw needs no room */

        buf = ngx_pnalloc(pool, bloom_form_room(zone->form, key->len) + 1);

        if (buf == NULL) {
            return NGX_BLOOM_UNKNOWN;
        }

        how->form = zone->form;
        how->why = bloom_form_expand(zone->form, &how->keys, &whole, buf);

        if (how->why != NULL) {
            how->keys.n = 0;

        } else {
            ngx_bloom_explain_keys(zone, how);
        }

        rc = ngx_bloom_zone_end(zone);

        if (rc == NGX_AGAIN) {
            continue;
        }

        how->generation = zone->generation;
        how->behind = behind;

        if (how->why != NULL) {
            return NGX_BLOOM_INVALID;
        }

        if (rc == NGX_DECLINED) {
            return NGX_BLOOM_UNKNOWN;
        }

        return ngx_bloom_lookup_answer(how->matches != 0, behind);
    }

    ngx_memzero(how, sizeof(ngx_bloom_explain_t));

    return NGX_BLOOM_UNKNOWN;
}


/* Looks up how->keys, and stores which bits and exceptions they have. */
static void
ngx_bloom_explain_keys(ngx_bloom_zone_t *zone, ngx_bloom_explain_t *how)
{
    ngx_uint_t     j;
    bloom_key_t   *k;
    bloom_hash_t   hash[BLOOM_FORM_EXPRESSIONS];

    bloom_hash_many(hash, &zone->hasher, how->keys.expression, how->keys.n);

    ngx_bloom_ring_follow(zone);
    how->k = bloom_layout_bits(&zone->geometry, hash[0], how->bits);

    for (j = 0; j < how->k; j++) {
        how->set[j] = bloom_bit_load(zone->words, how->bits[j]) & 1;
    }

    for (j = 0; j < how->keys.n; j++) {
        if (!bloom_layout_test(&zone->geometry, zone->words, hash[j])) {
            continue;
        }

        k = &how->keys.expression[j];
        how->kinds[j] = bloom_exceptions_has(&zone->exceptions, k->data,
                                             k->len);
        how->matches |= (uint64_t) (how->kinds[j] == 0) << j;
    }
}
