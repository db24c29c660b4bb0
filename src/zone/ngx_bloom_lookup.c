/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A lookup reads the generation, tests the key in the bank it names, and starts
 * again if the generation has changed.  A key that the bits have is present
 * unless it is an exception, so only present keys pay for exceptions.
 */

#include "ngx_bloom_lookup.h"
#include "ngx_bloom_parts.h"
#include "ngx_bloom_ring.h"
#include "bloom_bits.h"
#include "bloom_idn.h"


static ngx_int_t ngx_bloom_lookup_except(ngx_bloom_zone_t *zone,
    const ngx_str_t *key, ngx_uint_t behind);
static ngx_int_t ngx_bloom_lookup_any_except(ngx_bloom_zone_t *zone,
    ngx_uint_t behind);
static ngx_inline ngx_uint_t ngx_bloom_lookup_key(ngx_bloom_zone_t *zone,
    ngx_str_t *key, ngx_uint_t exact, ngx_pool_t *pool);
static ngx_int_t ngx_bloom_lookup_form(ngx_bloom_zone_t *zone, ngx_str_t *key,
    ngx_uint_t exact, ngx_uint_t behind, ngx_pool_t *pool);
static ngx_inline int ngx_bloom_lookup_one(ngx_bloom_zone_t *zone,
    bloom_key_t *canonical, ngx_str_t *key, u_char *buf);
static int ngx_bloom_lookup_any(ngx_bloom_zone_t *zone, bloom_key_t *canonical,
    ngx_str_t *key, ngx_uint_t exact, u_char *buf);
static uint64_t ngx_bloom_lookup_kept(ngx_bloom_zone_t *zone,
    const bloom_form_t *keys, uint64_t present, ngx_uint_t *learned);
static const char *ngx_bloom_lookup_expand(ngx_bloom_zone_t *zone,
    bloom_form_t *keys, bloom_hash_t *hash, const ngx_str_t *key,
    ngx_uint_t exact, u_char *buf);
static ngx_inline u_char *ngx_bloom_lookup_room(ngx_bloom_zone_t *zone,
    size_t len, ngx_pool_t *pool);
static ngx_inline ngx_int_t ngx_bloom_lookup_keep(ngx_str_t *key,
    const bloom_key_t *canonical, ngx_pool_t *pool);
static void ngx_bloom_lookup_list(ngx_bloom_zone_t *zone, const ngx_str_t *key,
    ngx_uint_t n, ngx_uint_t exact, u_char *answer, u_char *buf);
static ngx_uint_t ngx_bloom_lookup_group(ngx_bloom_zone_t *zone,
    const ngx_str_t *key, ngx_uint_t n, ngx_uint_t exact, u_char *answer,
    u_char *buf);


/* Keys are converted in this buffer; longer keys use the pool.  One suffices,
 * because no lookup begins while another is running. */
static u_char  ngx_bloom_lookup_scratch[BLOOM_URL_ROOM(BLOOM_URL_MAX)];


/* The expressions of the last key that had many, and their hashes, which is all
 * that the set of exceptions needs if the bits have one of them. */
static bloom_form_t  ngx_bloom_lookup_keys;
static bloom_hash_t  ngx_bloom_lookup_hashes[BLOOM_FORM_EXPRESSIONS];


/* What the last lookup has found.  Lookups in the forms raw and lower need not
 * set `expression`; only lookups of lists set `key`. */
static ngx_bloom_match_t  ngx_bloom_lookup_found;


ngx_bloom_zone_t  *ngx_bloom_lookup_learned;


/* These two return the answer for a key that the bits have, or what
 * ngx_bloom_zone_end() returns, once the exceptions are read.  They are not
 * inline: absent keys would pay for their registers.  For one expression. */
static ngx_int_t __attribute__((noinline))
ngx_bloom_lookup_except(ngx_bloom_zone_t *zone, const ngx_str_t *key,
    ngx_uint_t behind)
{
    unsigned   kinds;
    ngx_int_t  rc;

    kinds = bloom_exceptions_has(&zone->exceptions, key->data, key->len);

    rc = ngx_bloom_zone_end(zone);

    if (rc != NGX_OK) {
        return rc;
    }

    if (kinds == 0) {
        return NGX_BLOOM_PRESENT;
    }

    if (kinds == BLOOM_EXCEPTION_LEARNED) {
        ngx_bloom_lookup_learned = zone;
    }

    return (ngx_int_t) ngx_bloom_lookup_answer(0, behind);
}


/* Returns the answer for the expressions of ngx_bloom_lookup_any(). */
static ngx_int_t __attribute__((noinline))
ngx_bloom_lookup_any_except(ngx_bloom_zone_t *zone, ngx_uint_t behind)
{
    uint64_t    present;
    ngx_int_t   rc;
    ngx_uint_t  learned;

    present = 1;
    learned = 0;

    if (bloom_exceptions_count(&zone->exceptions) != 0) {
        present = bloom_layout_test_batch(&zone->geometry, zone->words,
                                          ngx_bloom_lookup_hashes,
                                          ngx_bloom_lookup_keys.n);
        present = ngx_bloom_lookup_kept(zone, &ngx_bloom_lookup_keys, present,
                                        &learned);

        if (present != 0) {
            ngx_bloom_lookup_found.expression = __builtin_ctzll(present);
        }
    }

    rc = ngx_bloom_zone_end(zone);

    if (rc != NGX_OK) {
        return rc;
    }

    if (present == 0 && learned) {
        ngx_bloom_lookup_learned = zone;
    }

    return (ngx_int_t) ngx_bloom_lookup_answer(present != 0, behind);
}


ngx_uint_t
ngx_bloom_lookup(ngx_bloom_zone_t *zone, ngx_str_t *key, ngx_pool_t *pool)
{
    return ngx_bloom_lookup_key(zone, key, 0, pool);
}


ngx_uint_t
ngx_bloom_lookup_exact(ngx_bloom_zone_t *zone, ngx_str_t *key,
    ngx_pool_t *pool)
{
    return ngx_bloom_lookup_key(zone, key, 1, pool);
}


/* Inline: each of its two callers has its own constant for `exact`. */
static ngx_inline ngx_uint_t __attribute__((always_inline))
ngx_bloom_lookup_key(ngx_bloom_zone_t *zone, ngx_str_t *key, ngx_uint_t exact,
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

                rc = ngx_bloom_lookup_form(zone, key, exact, behind, pool);

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
 * Looks up a key in a form other than raw, one that expires, or one of a source,
 * and ends the lookup.  Returns the answer; NGX_AGAIN to start again;
 * NGX_DECLINED if the image is too old or memory is short.  Not inline, as raw
 * keys would pay for its registers.
 */
static ngx_int_t __attribute__((noinline))
ngx_bloom_lookup_form(ngx_bloom_zone_t *zone, ngx_str_t *key, ngx_uint_t exact,
    ngx_uint_t behind, ngx_pool_t *pool)
{
    int           present;
    u_char       *buf;
    ngx_int_t     rc;
    bloom_key_t   canonical;

    if (zone->source.len != 0) {
        behind |= ngx_bloom_zone_late(zone);
    }

    buf = ngx_bloom_lookup_room(zone, key->len, pool);

    if (buf == NULL) {
        return NGX_DECLINED;
    }

    present = (zone->form <= BLOOM_FORM_LOWER)
              ? ngx_bloom_lookup_one(zone, &canonical, key, buf)
              : ngx_bloom_lookup_any(zone, &canonical, key, exact, buf);

    if (present == -1) {
        return NGX_BLOOM_INVALID;
    }

    rc = ngx_bloom_zone_end(zone);

    if (rc == NGX_DECLINED) {
        (void) ngx_bloom_lookup_keep(key, &canonical, pool);
    }

    if (rc != NGX_OK) {
        return rc;
    }

    if (ngx_bloom_lookup_keep(key, &canonical, pool) != NGX_OK) {
        return NGX_DECLINED;
    }

    if (!present) {
        return ngx_bloom_lookup_answer(present, behind);
    }

    return zone->form <= BLOOM_FORM_LOWER
           ? ngx_bloom_lookup_except(zone, key, behind)
           : ngx_bloom_lookup_any_except(zone, behind);
}


/* Tests a key in a form with one expression per key.  Returns 1 if the bits
 * have it, 0 if it is absent, or -1 if it is invalid. */
static ngx_inline int
ngx_bloom_lookup_one(ngx_bloom_zone_t *zone, bloom_key_t *canonical,
    ngx_str_t *key, u_char *buf)
{
    bloom_key_t   k;
    bloom_hash_t  hash;

    k.data = key->data;
    k.len = key->len;

    if (bloom_form_canonical(zone->form, canonical, &k, buf) != NULL) {
        return -1;
    }

    hash = bloom_hash(&zone->hasher, canonical->data, canonical->len);

    return bloom_layout_test(&zone->geometry, zone->words, hash);
}


/* Tests a key in a form with many expressions per key, or with `exact` only its
 * canonical key.  Returns 1 if an expression is maybe present, 0 if all are
 * absent, or -1 if the key is invalid. */
static int
ngx_bloom_lookup_any(ngx_bloom_zone_t *zone, bloom_key_t *canonical,
    ngx_str_t *key, ngx_uint_t exact, u_char *buf)
{
    unsigned       found;
    bloom_form_t  *keys;

    keys = &ngx_bloom_lookup_keys;

    if (ngx_bloom_lookup_expand(zone, keys, ngx_bloom_lookup_hashes, key, exact,
                                buf)
        != NULL)
    {
        return -1;
    }

    *canonical = keys->expression[0];

    found = bloom_layout_test_any(&zone->geometry, zone->words,
                                  ngx_bloom_lookup_hashes, keys->n);

    ngx_bloom_lookup_found.expression = found;

    return found < keys->n;
}


/* Returns which of the expressions that the bits have are no exceptions.  Bit i
 * belongs to expression i.  Sets *learned to 1 if one is left out only because
 * it is a learned key. */
static uint64_t
ngx_bloom_lookup_kept(ngx_bloom_zone_t *zone, const bloom_form_t *keys,
    uint64_t present, ngx_uint_t *learned)
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

        if (kinds == BLOOM_EXCEPTION_LEARNED) {
            *learned = 1;
        }
    }

    return present;
}


/* Returns room for a key of `len` bytes in the zone's form, until the next
 * lookup. */
static ngx_inline u_char *
ngx_bloom_lookup_room(ngx_bloom_zone_t *zone, size_t len, ngx_pool_t *pool)
{
    size_t  need;

    need = bloom_form_room(zone->form, len);

    return need <= sizeof(ngx_bloom_lookup_scratch)
           ? ngx_bloom_lookup_scratch : ngx_pnalloc(pool, need);
}


/* Gives the canonical key to the caller; copies it only if it differs. */
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


/* Hashes all expressions of a key or, with `exact`, the canonical key, which is
 * the first of them.  Returns NULL, or why the key is invalid. */
static const char *
ngx_bloom_lookup_expand(ngx_bloom_zone_t *zone, bloom_form_t *keys,
    bloom_hash_t *hash, const ngx_str_t *key, ngx_uint_t exact, u_char *buf)
{
    unsigned      i;
    const char   *why;
    bloom_key_t   k;

    k.data = key->data;
    k.len = key->len;

    why = bloom_form_expand(zone->form, keys, &k, buf);

    if (why != NULL) {
        return why;
    }

    if (exact) {
        keys->n = 1;
    }

    for (i = 0; i < keys->n; i++) {
        hash[i] = bloom_hash(&zone->hasher, keys->expression[i].data,
                             keys->expression[i].len);
    }

    return NULL;
}


void
ngx_bloom_lookup_hash(ngx_bloom_zone_t *zone, const ngx_str_t *key,
    ngx_uint_t exact, ngx_bloom_lookup_prefetch_t *prefetch, ngx_pool_t *pool)
{
    u_char        *buf;
    ngx_uint_t     behind;
    bloom_key_t    k;
    bloom_form_t   keys;

    prefetch->generation = 0;
    prefetch->exact = exact;

    if (ngx_bloom_lookup_begin_any(zone, &behind) != NGX_OK
        || (!exact && zone->form != BLOOM_FORM_RAW
            && zone->form != BLOOM_FORM_LOWER))
    {
        return;
    }

    prefetch->key = *key;

    if (zone->form != BLOOM_FORM_RAW) {

        k.data = key->data;
        k.len = key->len;

        buf = ngx_bloom_lookup_room(zone, key->len, pool);

        if (buf == NULL
            || bloom_form_expand(zone->form, &keys, &k, buf) != NULL
            || ngx_bloom_lookup_keep(&prefetch->key, &keys.expression[0], pool)
               != NGX_OK)
        {
            return;
        }
    }

    /* hash the stored copy, because a hash may point into the key */

    prefetch->hash = bloom_hash(&zone->hasher, prefetch->key.data,
                                prefetch->key.len);
    prefetch->generation = zone->generation;
}


void
ngx_bloom_lookup_prefetch(ngx_bloom_zone_t *zone,
    const ngx_bloom_lookup_prefetch_t *prefetch)
{
    if (prefetch->generation != 0 && prefetch->generation == zone->generation) {
        bloom_layout_prefetch(&zone->geometry, zone->words, prefetch->hash);
    }
}


ngx_uint_t
ngx_bloom_lookup_prefetched(ngx_bloom_zone_t *zone, ngx_str_t *key,
    const ngx_bloom_lookup_prefetch_t *prefetch, ngx_pool_t *pool)
{
    int         present;
    ngx_int_t   rc;
    ngx_uint_t  behind;

    if (ngx_bloom_lookup_begin_any(zone, &behind) == NGX_OK
        && zone->generation == prefetch->generation)
    {
        present = bloom_layout_test(&zone->geometry, zone->words,
                                    prefetch->hash);

        if (ngx_bloom_zone_end(zone) == NGX_OK) {
            *key = prefetch->key;
            ngx_bloom_lookup_found.expression = 0;

            if (!present) {
                return ngx_bloom_lookup_answer(present, behind);
            }

            rc = ngx_bloom_lookup_except(zone, key, behind);

            if (rc >= 0) {
                return rc;
            }
        }
    }

    return prefetch->exact ? ngx_bloom_lookup_exact(zone, key, pool)
                           : ngx_bloom_lookup(zone, key, pool);
}


void
ngx_bloom_lookup_many(ngx_bloom_zone_t *zone, const ngx_str_t *key,
    ngx_uint_t n, u_char *answer, ngx_pool_t *pool)
{
    size_t       len;
    u_char      *buf;
    ngx_int_t    rc;
    ngx_uint_t   i, j, behind;

    for (len = 0, j = 0; j < n; j++) {
        len = ngx_max(len, key[j].len);
    }

    for (i = 0; i < NGX_BLOOM_LOOKUP_ATTEMPTS; i++) {

        rc = ngx_bloom_lookup_begin_any(zone, &behind);

        if (rc == NGX_AGAIN) {
            continue;
        }

        if (rc == NGX_DECLINED) {
            break;
        }

        buf = ngx_bloom_lookup_room(zone, len, pool);

        if (buf == NULL) {
            break;
        }

        ngx_bloom_lookup_list(zone, key, n, 0, answer, buf);

        rc = ngx_bloom_zone_end(zone);

        if (rc == NGX_AGAIN) {
            continue;
        }

        if (rc == NGX_DECLINED) {
            break;
        }

        for (j = 0; j < n; j++) {
            if (answer[j] == NGX_BLOOM_ABSENT && behind) {
                answer[j] = NGX_BLOOM_UNKNOWN;
            }
        }

        return;
    }

    ngx_memset(answer, NGX_BLOOM_UNKNOWN, n);
}


void
ngx_bloom_lookup_parts(ngx_bloom_zone_t *zone, ngx_str_t *text,
    u_char separator, ngx_uint_t exact, ngx_uint_t tally[NGX_BLOOM_ANSWERS],
    ngx_pool_t *pool)
{
    u_char      *buf, *pos, *end, answer[BLOOM_BATCH];
    ngx_int_t    rc;
    ngx_str_t    part[BLOOM_BATCH];
    ngx_uint_t   i, j, n, behind;

    end = text->data + text->len;

    for (i = 0; i < NGX_BLOOM_LOOKUP_ATTEMPTS; i++) {

        rc = ngx_bloom_lookup_begin_any(zone, &behind);

        if (rc == NGX_AGAIN) {
            continue;
        }

        if (rc == NGX_DECLINED) {
            break;
        }

        buf = ngx_bloom_lookup_room(zone, text->len, pool);

        if (buf == NULL) {
            break;
        }

        ngx_memzero(tally, NGX_BLOOM_ANSWERS * sizeof(ngx_uint_t));
        ngx_bloom_lookup_found.key.data = NULL;

        pos = text->data;

        bloom_idn_begin_list();

        do {
            n = ngx_bloom_parts_cut(part, BLOOM_BATCH, &pos, end, separator);

            ngx_bloom_lookup_list(zone, part, n, exact, answer, buf);

            for (j = 0; j < n; j++) {
                tally[answer[j]]++;
            }
        } while (n == BLOOM_BATCH);

        bloom_idn_end_list();

        rc = ngx_bloom_zone_end(zone);

        if (rc == NGX_AGAIN) {
            continue;
        }

        if (rc == NGX_DECLINED) {
            break;
        }

        if (behind) {
            tally[NGX_BLOOM_UNKNOWN] = tally[NGX_BLOOM_ABSENT];
            tally[NGX_BLOOM_ABSENT] = 0;
        }

        return;
    }

    ngx_memzero(tally, NGX_BLOOM_ANSWERS * sizeof(ngx_uint_t));

    pos = text->data;

    do {
        n = ngx_bloom_parts_cut(part, BLOOM_BATCH, &pos, end, separator);
        tally[NGX_BLOOM_UNKNOWN] += n;
    } while (n == BLOOM_BATCH);
}


/* Looks up keys within one generation. */
static void
ngx_bloom_lookup_list(ngx_bloom_zone_t *zone, const ngx_str_t *key,
    ngx_uint_t n, ngx_uint_t exact, u_char *answer, u_char *buf)
{
    ngx_uint_t  done;

    for (done = 0; done < n; /* void */ ) {
        done += ngx_bloom_lookup_group(zone, key + done, n - done, exact,
                                       answer + done, buf);
    }
}


/* Looks up as many keys as have at most BLOOM_BATCH expressions together.
 * Returns how many keys that were. */
static ngx_uint_t
ngx_bloom_lookup_group(ngx_bloom_zone_t *zone, const ngx_str_t *key,
    ngx_uint_t n, ngx_uint_t exact, u_char *answer, u_char *buf)
{
    uint64_t      present, found, asked[BLOOM_BATCH];
    ngx_uint_t    i, j, most, lines, learned;
    bloom_key_t   k;
    bloom_form_t  keys;
    bloom_hash_t  hash[BLOOM_BATCH];

    n = ngx_min(n, BLOOM_BATCH);

    /* all keys are converted in the same buffer */

    if (zone->form != BLOOM_FORM_RAW && bloom_hasher_refers(&zone->hasher)) {
        n = 1;
    }

    most = (exact || zone->form == BLOOM_FORM_RAW
            || zone->form == BLOOM_FORM_LOWER)
           ? 1 : BLOOM_FORM_EXPRESSIONS;

    for (i = 0, lines = 0; i < n && lines + most <= BLOOM_BATCH; i++) {

        asked[i] = 0;

        if (key[i].len == 0) {
            answer[i] = NGX_BLOOM_UNKNOWN;
            continue;
        }

        if (ngx_bloom_lookup_expand(zone, &keys, &hash[lines], &key[i], exact,
                                    buf)
            != NULL)
        {
            answer[i] = NGX_BLOOM_INVALID;
            continue;
        }

        asked[i] = (((uint64_t) 1 << keys.n) - 1) << lines;
        lines += keys.n;
    }

    present = 0;

    if (lines != 0) {
        present = bloom_layout_test_batch(&zone->geometry, zone->words, hash,
                                          lines);
    }

    for (j = 0; j < i; j++) {

        if (asked[j] == 0) {
            continue;
        }

        found = (asked[j] & present) >> __builtin_ctzll(asked[j]);

        if (found != 0 && bloom_exceptions_count(&zone->exceptions) != 0) {
            k.data = key[j].data;
            k.len = key[j].len;

            /* make them again: the buffer has those of the last key */

            if (bloom_form_expand(zone->form, &keys, &k, buf) != NULL) {

                /* the list's budget is used up */

                answer[j] = NGX_BLOOM_INVALID;
                continue;
            }

            found = ngx_bloom_lookup_kept(zone, &keys, found, &learned);
        }

        answer[j] = found ? NGX_BLOOM_PRESENT : NGX_BLOOM_ABSENT;

        if (found != 0 && ngx_bloom_lookup_found.key.data == NULL) {
            ngx_bloom_lookup_found.key = key[j];
            ngx_bloom_lookup_found.expression = __builtin_ctzll(found);
        }
    }

    return i;
}


void
ngx_bloom_lookup_match(ngx_bloom_zone_t *zone, const ngx_str_t *key,
    ngx_bloom_match_t *match)
{
    *match = ngx_bloom_lookup_found;

    match->form = zone->form;

    if (key != NULL) {
        match->key = *key;
    }

    if (zone->form == BLOOM_FORM_RAW || zone->form == BLOOM_FORM_LOWER) {
        match->expression = 0;
    }
}


ngx_int_t
ngx_bloom_lookup_expression(const ngx_bloom_match_t *match,
    ngx_str_t *expression, ngx_pool_t *pool)
{
    u_char        *buf;
    bloom_key_t    key;
    bloom_form_t   keys;

    ngx_str_null(expression);

    if (match->key.data == NULL) {
        return NGX_OK;
    }

    key.data = match->key.data;
    key.len = match->key.len;

    /* + 1, because raw needs no room */

    buf = ngx_pnalloc(pool, bloom_form_room(match->form, key.len) + 1);

    if (buf == NULL) {
        return NGX_ERROR;
    }

    if (bloom_form_expand(match->form, &keys, &key, buf) == NULL
        && match->expression < keys.n)
    {
        expression->data = (u_char *) keys.expression[match->expression].data;
        expression->len = keys.expression[match->expression].len;
    }

    return NGX_OK;
}
