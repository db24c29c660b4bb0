/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A lookup reads the generation, tests the key in the bank it names, and starts
 * again if the generation has changed.  A key that the bits have is present
 * unless it is an exception, so only present keys pay for exceptions.
 */

#include "ngx_bloom_lookup.h"
#include "ngx_bloom_ring.h"
#include "ngx_bloom_io.h"
#include "bloom_bits.h"


static ngx_int_t ngx_bloom_lookup_except(ngx_bloom_zone_t *zone,
    const ngx_str_t *key, ngx_uint_t behind);
static ngx_int_t ngx_bloom_lookup_any_except(ngx_bloom_zone_t *zone,
    uint64_t present, ngx_uint_t how, ngx_uint_t behind);
static ngx_inline ngx_uint_t ngx_bloom_lookup_key(ngx_bloom_zone_t *zone,
    ngx_str_t *key, ngx_uint_t how, ngx_pool_t *pool);
static ngx_int_t ngx_bloom_lookup_form(ngx_bloom_zone_t *zone, ngx_str_t *key,
    ngx_uint_t how, ngx_uint_t behind, ngx_pool_t *pool);
static ngx_int_t ngx_bloom_lookup_one(ngx_bloom_zone_t *zone, ngx_str_t *key,
    ngx_uint_t behind, ngx_pool_t *pool);
static ngx_int_t ngx_bloom_lookup_any(ngx_bloom_zone_t *zone, ngx_str_t *key,
    ngx_uint_t how, ngx_uint_t behind, ngx_pool_t *pool);
static ngx_inline ngx_int_t ngx_bloom_lookup_give(ngx_int_t rc, ngx_str_t *key,
    const bloom_key_t *canonical, ngx_pool_t *pool);
static const char *ngx_bloom_lookup_expand(uint32_t form,
    const ngx_str_t *key);
static const bloom_form_t *ngx_bloom_lookup_choose(ngx_uint_t how,
    bloom_form_t *whole);


u_char  ngx_bloom_lookup_scratch[NGX_BLOOM_LOOKUP_SCRATCH];


/*
 * The last key of a form with many expressions, and what was made of it.  Rules
 * often ask several zones about one key, and to make and hash its expressions
 * costs more than to look them up.
 */
static struct {
    uint32_t         form;               /* BLOOM_FORM_RAW: no key yet */
    size_t           len;
    const char      *why;                /* it is invalid; NULL: it is valid */
    bloom_form_t     keys;               /* point into `buf` */
    bloom_hasher_t   hasher;             /* of `hash`; kind 0: not hashed */
    bloom_hash_t     hash[BLOOM_FORM_EXPRESSIONS];
    u_char           text[BLOOM_KEY_MAX];
    u_char           buf[BLOOM_URL_ROOM(BLOOM_KEY_MAX)];
} ngx_bloom_lookup_last;


/* The number of the expression of the last key that the last lookup found. */
static unsigned  ngx_bloom_lookup_found;


ngx_bloom_zone_t  *ngx_bloom_lookup_excepted;


/* These two return the answer for a key that the bits have, or what
 * ngx_bloom_zone_end() returns, once the exceptions are read.  They are not
 * inline: absent keys would pay for their registers.  For one expression. */
static ngx_int_t __attribute__((noinline))
ngx_bloom_lookup_except(ngx_bloom_zone_t *zone, const ngx_str_t *key,
    ngx_uint_t behind)
{
    unsigned   kinds;
    ngx_int_t  rc;

    ngx_bloom_fault("present");

    kinds = bloom_exceptions_has(&zone->exceptions, key->data, key->len);

    rc = ngx_bloom_zone_end(zone);

    if (rc != NGX_OK) {
        return rc;
    }

    if (kinds == 0) {
        return NGX_BLOOM_PRESENT;
    }

    if (kinds == BLOOM_EXCEPTION_FEEDBACK) {
        ngx_bloom_lookup_excepted = zone;
    }

    return (ngx_int_t) ngx_bloom_lookup_answer(0, behind);
}


/* For the expressions of the last key, of which the bits have those that are
 * set in `present`. */
static ngx_int_t __attribute__((noinline))
ngx_bloom_lookup_any_except(ngx_bloom_zone_t *zone, uint64_t present,
    ngx_uint_t how, ngx_uint_t behind)
{
    ngx_int_t            rc;
    ngx_uint_t           excepted;
    bloom_form_t         whole;
    const bloom_form_t  *keys;

    ngx_bloom_fault("present");

    excepted = 0;
    keys = ngx_bloom_lookup_choose(how, &whole);

    if (bloom_exceptions_count(&zone->exceptions) != 0) {
        present = ngx_bloom_lookup_kept(zone, keys, present, &excepted);
    }

    if (present != 0) {
        ngx_bloom_lookup_found =
                        (keys == &whole && !(present & 1))
                        ? ngx_bloom_lookup_last.keys.second
                        : (unsigned) __builtin_ctzll(present);
    }

    rc = ngx_bloom_zone_end(zone);

    if (rc != NGX_OK) {
        return rc;
    }

    if (present == 0 && excepted) {
        ngx_bloom_lookup_excepted = zone;
    }

    return (ngx_int_t) ngx_bloom_lookup_answer(present != 0, behind);
}


ngx_uint_t
ngx_bloom_lookup(ngx_bloom_zone_t *zone, ngx_str_t *key, ngx_pool_t *pool)
{
    return ngx_bloom_lookup_key(zone, key, 0, pool);
}


ngx_uint_t
ngx_bloom_lookup_as(ngx_bloom_zone_t *zone, ngx_str_t *key, ngx_uint_t how,
    ngx_pool_t *pool)
{
    return ngx_bloom_lookup_key(zone, key, how, pool);
}


/* Inline: one of its two callers has a constant for `how`. */
static ngx_inline ngx_uint_t __attribute__((always_inline))
ngx_bloom_lookup_key(ngx_bloom_zone_t *zone, ngx_str_t *key, ngx_uint_t how,
    ngx_pool_t *pool)
{
    ngx_int_t     rc;
    ngx_uint_t    i, behind;
    bloom_hash_t  hash;

    for (i = 0; i < NGX_BLOOM_LOOKUP_ATTEMPTS; i++) {

        rc = ngx_bloom_lookup_begin(zone, &behind);

        if (rc == NGX_AGAIN) {
            continue;
        }

        if (rc == NGX_DECLINED) {
            break;
        }

        if (!zone->plain) {

            if (zone->raw) {
                ngx_bloom_zone_follow_layers(zone);

            } else {
                ngx_bloom_zone_follow_serving(zone);

                rc = ngx_bloom_lookup_form(zone, key, how, behind, pool);

                if (rc >= 0) {
                    return rc;
                }

                if (rc == NGX_DECLINED) {
                    break;
                }

                continue;
            }
        }

        hash = bloom_hash(&zone->hasher, key->data, key->len);

        /* three ends, since each answer costs the other two no instruction */

        if (!bloom_layout_test(&zone->geometry, zone->words, hash)) {
            rc = ngx_bloom_zone_end_image(zone);

            if (rc == NGX_OK) {
                return ngx_bloom_lookup_answer(0, behind);
            }

        } else if (bloom_exceptions_count(&zone->exceptions) == 0) {
            rc = ngx_bloom_zone_end_image(zone);

            if (rc == NGX_OK) {
                return NGX_BLOOM_PRESENT;
            }

        } else {
            rc = ngx_bloom_lookup_except(zone, key, behind);

            if (rc >= 0) {
                return rc;
            }
        }

        if (rc == NGX_DECLINED) {
            break;
        }
    }

    return NGX_BLOOM_UNKNOWN;
}


/*
 * Looks up a key in a form other than raw, one that expires or one of a source,
 * and ends the lookup.  Returns the answer; NGX_AGAIN to start again;
 * NGX_DECLINED if the image is too old or memory is short.  Not inline, as raw
 * keys would pay for its registers.
 */
static ngx_int_t __attribute__((noinline))
ngx_bloom_lookup_form(ngx_bloom_zone_t *zone, ngx_str_t *key, ngx_uint_t how,
    ngx_uint_t behind, ngx_pool_t *pool)
{
    if (zone->source.len != 0) {
        behind |= ngx_bloom_zone_late(zone);
    }

    return zone->form <= BLOOM_FORM_LOWER
           ? ngx_bloom_lookup_one(zone, key, behind, pool)
           : ngx_bloom_lookup_any(zone, key, how, behind, pool);
}


/* Does so in a form with one expression for each key. */
static ngx_int_t
ngx_bloom_lookup_one(ngx_bloom_zone_t *zone, ngx_str_t *key,
    ngx_uint_t behind, ngx_pool_t *pool)
{
    u_char       *buf;
    ngx_int_t     rc;
    ngx_str_t     text;
    bloom_key_t   k, canonical;
    bloom_hash_t  hash;

    buf = ngx_bloom_lookup_room(zone, key->len, pool);

    if (buf == NULL) {
        return NGX_DECLINED;
    }

    k.data = key->data;
    k.len = key->len;

    (void) bloom_form_canonical(zone->form, &canonical, &k, buf);

    hash = bloom_hash(&zone->hasher, canonical.data, canonical.len);

    if (bloom_layout_test(&zone->geometry, zone->words, hash)) {
        text.data = (u_char *) canonical.data;
        text.len = canonical.len;

        rc = ngx_bloom_lookup_except(zone, &text, behind);

    } else {
        rc = ngx_bloom_zone_end(zone);

        if (rc == NGX_OK) {
            rc = (ngx_int_t) ngx_bloom_lookup_answer(0, behind);
        }
    }

    return ngx_bloom_lookup_give(rc, key, &canonical, pool);
}


/* Does so in a form with many expressions for each key. */
static ngx_int_t
ngx_bloom_lookup_any(ngx_bloom_zone_t *zone, ngx_str_t *key, ngx_uint_t how,
    ngx_uint_t behind, ngx_pool_t *pool)
{
    uint64_t             present;
    unsigned             first;
    ngx_int_t            rc;
    bloom_form_t         whole;
    bloom_hash_t        *hash, exact[BLOOM_URL_READINGS];
    const bloom_form_t  *keys;

    if (ngx_bloom_lookup_expand(zone->form, key) != NULL) {
        return NGX_BLOOM_INVALID;
    }

    keys = ngx_bloom_lookup_choose(how, &whole);

    if (keys == &whole) {
        hash = exact;
        bloom_hash_many(hash, &zone->hasher, keys->expression, keys->n);

    } else {
        hash = ngx_bloom_lookup_last.hash;

        if (ngx_memcmp(&ngx_bloom_lookup_last.hasher, &zone->hasher,
                       sizeof(bloom_hasher_t))
            != 0)
        {
            ngx_bloom_lookup_last.hasher = zone->hasher;
            bloom_hash_many(hash, &zone->hasher, keys->expression, keys->n);
        }
    }

    first = (keys->second != 0 && (how & NGX_BLOOM_LOOKUP_SOLE))
            ? keys->n
            : bloom_layout_test_any(&zone->geometry, zone->words, hash,
                                    keys->n);

    if (first < keys->n) {
        present = bloom_layout_test_batch(&zone->geometry, zone->words, hash,
                                          keys->n);

        rc = ngx_bloom_lookup_any_except(zone, present, how, behind);

    } else {
        rc = ngx_bloom_zone_end(zone);

        if (rc == NGX_OK) {
            rc = (ngx_int_t) ngx_bloom_lookup_answer(0, behind);
        }
    }

    return ngx_bloom_lookup_give(rc, key, &keys->expression[0], pool);
}


/*
 * Gives the canonical key to the caller with its answer.  A lookup that starts
 * again keeps the caller's key: the next generation may have another key form.
 */
static ngx_inline ngx_int_t
ngx_bloom_lookup_give(ngx_int_t rc, ngx_str_t *key,
    const bloom_key_t *canonical, ngx_pool_t *pool)
{
    if (rc == NGX_AGAIN) {
        return rc;
    }

    return ngx_bloom_lookup_keep(key, canonical, pool) == NGX_OK
           ? rc : NGX_DECLINED;
}


/* Makes a key the last one, in a form with many expressions for each key.
 * Returns NULL, or why the key is invalid. */
static const char *
ngx_bloom_lookup_expand(uint32_t form, const ngx_str_t *key)
{
    bloom_key_t  k;

    if (ngx_bloom_lookup_last.form == form
        && ngx_bloom_lookup_last.len == key->len
        && ngx_memcmp(ngx_bloom_lookup_last.text, key->data, key->len) == 0)
    {
        return ngx_bloom_lookup_last.why;
    }

    k.data = key->data;
    k.len = key->len;

    if (key->len > BLOOM_KEY_MAX) {
        ngx_bloom_lookup_last.form = BLOOM_FORM_RAW;

    } else {
        ngx_bloom_lookup_last.form = form;
        ngx_bloom_lookup_last.len = key->len;
        ngx_memcpy(ngx_bloom_lookup_last.text, key->data, key->len);
    }

    ngx_bloom_lookup_last.hasher.kind = 0;
    ngx_bloom_lookup_last.why = bloom_form_expand(form,
                                                  &ngx_bloom_lookup_last.keys,
                                                  &k,
                                                  ngx_bloom_lookup_last.buf);

    return ngx_bloom_lookup_last.why;
}


/* Returns the expressions of the last key that a lookup tests. */
static const bloom_form_t *
ngx_bloom_lookup_choose(ngx_uint_t how, bloom_form_t *whole)
{
    if (!(how & NGX_BLOOM_LOOKUP_EXACT)) {
        return &ngx_bloom_lookup_last.keys;
    }

    bloom_form_whole(whole, &ngx_bloom_lookup_last.keys);

    return whole;
}


uint64_t
ngx_bloom_lookup_kept(ngx_bloom_zone_t *zone, const bloom_form_t *keys,
    uint64_t present, ngx_uint_t *excepted)
{
    unsigned  i, kinds;
    uint64_t  rest;

    for (rest = present; rest != 0; rest &= rest - 1) {
        i = __builtin_ctzll(rest);

        kinds = bloom_exceptions_has(&zone->exceptions,
                                     keys->expression[i].data,
                                     keys->expression[i].len);

        if (kinds != 0) {
            present &= ~((uint64_t) 1 << i);
        }

        if (kinds == BLOOM_EXCEPTION_FEEDBACK) {
            *excepted = 1;
        }
    }

    return present;
}


void
ngx_bloom_lookup_match(ngx_bloom_zone_t *zone, const ngx_str_t *key,
    ngx_str_t *match, ngx_pool_t *pool)
{
    ngx_str_null(match);

    if (zone->form <= BLOOM_FORM_LOWER) {
        *match = *key;
        return;
    }

    (void) ngx_bloom_lookup_keep(match,
              &ngx_bloom_lookup_last.keys.expression[ngx_bloom_lookup_found],
              pool);
}


void
ngx_bloom_lookup_second(const ngx_str_t *key, ngx_str_t *second,
    ngx_pool_t *pool)
{
    bloom_form_t  *keys;

    ngx_str_null(second);

    keys = &ngx_bloom_lookup_last.keys;

    if (ngx_bloom_lookup_last.form == BLOOM_FORM_URL
        && ngx_bloom_lookup_last.why == NULL && keys->second != 0
        && key->len == keys->expression[0].len
        && ngx_memcmp(key->data, keys->expression[0].data, key->len) == 0)
    {
        (void) ngx_bloom_lookup_keep(second, &keys->expression[keys->second],
                                     pool);
    }
}
