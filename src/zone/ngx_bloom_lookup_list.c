/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file looks up many keys within one generation: keys of a request to the
 * endpoint, and the parts of a list.
 */

#include "ngx_bloom_lookup_list.h"
#include "ngx_bloom_parts.h"
#include "bloom_bits.h"
#include "bloom_idn.h"


static void ngx_bloom_lookup_list_all(ngx_bloom_zone_t *zone,
    const ngx_str_t *key, ngx_uint_t n, ngx_uint_t how, u_char *answer,
    u_char *buf);
static ngx_uint_t ngx_bloom_lookup_list_group(ngx_bloom_zone_t *zone,
    const ngx_str_t *key, ngx_uint_t n, ngx_uint_t how, u_char *answer,
    u_char *buf);
static ngx_uint_t ngx_bloom_lookup_list_present(ngx_bloom_zone_t *zone,
    const ngx_str_t *key, uint64_t present, ngx_uint_t how, u_char *buf);


/* The first part of the last list that was found. */
static struct {
    ngx_str_t      part;                 /* data NULL: nothing was found */
    unsigned       expression;           /* its number */
    ngx_uint_t     whole;                /* the number is one of
                                            bloom_form_whole() */
} ngx_bloom_lookup_list_found;


void
ngx_bloom_lookup_list(ngx_bloom_zone_t *zone, const ngx_str_t *key,
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

        ngx_bloom_lookup_list_all(zone, key, n, 0, answer, buf);

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
ngx_bloom_lookup_list_parts(ngx_bloom_zone_t *zone, ngx_str_t *text,
    u_char separator, ngx_uint_t how, ngx_uint_t tally[NGX_BLOOM_ANSWERS],
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
        ngx_bloom_lookup_list_found.part.data = NULL;

        pos = text->data;

        bloom_idn_begin_list();

        do {
            n = ngx_bloom_parts_cut(part, BLOOM_BATCH, &pos, end, separator);

            ngx_bloom_lookup_list_all(zone, part, n, how, answer, buf);

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
ngx_bloom_lookup_list_all(ngx_bloom_zone_t *zone, const ngx_str_t *key,
    ngx_uint_t n, ngx_uint_t how, u_char *answer, u_char *buf)
{
    ngx_uint_t  done;

    for (done = 0; done < n; /* void */ ) {
        done += ngx_bloom_lookup_list_group(zone, key + done, n - done, how,
                                       answer + done, buf);
    }
}


/* Looks up as many keys as have at most BLOOM_BATCH expressions together.
 * Returns how many keys that were. */
static ngx_uint_t
ngx_bloom_lookup_list_group(ngx_bloom_zone_t *zone, const ngx_str_t *key,
    ngx_uint_t n, ngx_uint_t how, u_char *answer, u_char *buf)
{
    uint64_t      present, found, asked[BLOOM_BATCH];
    ngx_uint_t    i, j, lines;
    bloom_key_t   k;
    bloom_form_t  all, whole, *keys;
    bloom_hash_t  hash[BLOOM_BATCH];

    n = ngx_min(n, BLOOM_BATCH);
    keys = (how & NGX_BLOOM_LOOKUP_EXACT) ? &whole : &all;

    /* all keys are converted in the same buffer */

    if (zone->form != BLOOM_FORM_RAW && bloom_hasher_refers(&zone->hasher)) {
        n = 1;
    }

    for (i = 0, lines = 0; i < n; i++) {

        asked[i] = 0;

        if (key[i].len == 0) {
            answer[i] = NGX_BLOOM_UNKNOWN;
            continue;
        }

        k.data = key[i].data;
        k.len = key[i].len;

        if (bloom_form_expand(zone->form, &all, &k, buf) != NULL) {
            answer[i] = NGX_BLOOM_INVALID;
            continue;
        }

        if (keys == &whole) {
            bloom_form_whole(keys, &all);
        }

        if (keys->second != 0 && (how & NGX_BLOOM_LOOKUP_SOLE)) {
            answer[i] = NGX_BLOOM_ABSENT;
            continue;
        }

        if (lines + keys->n > BLOOM_BATCH) {
            break;
        }

        bloom_hash_many(&hash[lines], &zone->hasher, keys->expression,
                        keys->n);

        asked[i] = (((uint64_t) 1 << keys->n) - 1) << lines;
        lines += keys->n;
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

        answer[j] = (found != 0)
                    ? ngx_bloom_lookup_list_present(zone, &key[j], found, how,
                                                    buf)
                    : NGX_BLOOM_ABSENT;
    }

    return i;
}


/* Returns the answer for a key of which the bits have the expressions that are
 * set in `present`. */
static ngx_uint_t
ngx_bloom_lookup_list_present(ngx_bloom_zone_t *zone, const ngx_str_t *key,
    uint64_t present, ngx_uint_t how, u_char *buf)
{
    ngx_uint_t    excepted;
    bloom_key_t   k;
    bloom_form_t  all, whole, *keys;

    if (bloom_exceptions_count(&zone->exceptions) != 0) {

        keys = (how & NGX_BLOOM_LOOKUP_EXACT) ? &whole : &all;

        /* make them again: the buffer has those of the last key */

        k.data = key->data;
        k.len = key->len;

        if (bloom_form_expand(zone->form, &all, &k, buf) != NULL) {

            /* the list's budget is used up: "present" is the safe answer, but
             * for rules that pass */

            return (how & NGX_BLOOM_LOOKUP_SOLE) ? NGX_BLOOM_ABSENT
                                                 : NGX_BLOOM_PRESENT;
        }

        if (keys == &whole) {
            bloom_form_whole(keys, &all);
        }

        present = ngx_bloom_lookup_kept(zone, keys, present, &excepted);

        if (present == 0) {
            return NGX_BLOOM_ABSENT;
        }
    }

    if (ngx_bloom_lookup_list_found.part.data == NULL) {
        ngx_bloom_lookup_list_found.part = *key;
        ngx_bloom_lookup_list_found.whole = (how & NGX_BLOOM_LOOKUP_EXACT);
        ngx_bloom_lookup_list_found.expression = __builtin_ctzll(present);
    }

    return NGX_BLOOM_PRESENT;
}


void
ngx_bloom_lookup_list_match(ngx_bloom_zone_t *zone, ngx_str_t *match,
    ngx_pool_t *pool)
{
    u_char        *buf;
    bloom_key_t    k;
    bloom_form_t   keys, whole, *all;

    ngx_str_null(match);

    all = &keys;
    k.data = ngx_bloom_lookup_list_found.part.data;
    k.len = ngx_bloom_lookup_list_found.part.len;

    if (k.data == NULL) {
        return;
    }

    buf = ngx_bloom_lookup_room(zone, k.len, pool);

    if (buf == NULL || bloom_form_expand(zone->form, all, &k, buf) != NULL) {
        return;
    }

    if (ngx_bloom_lookup_list_found.whole) {
        bloom_form_whole(&whole, &keys);
        all = &whole;
    }

    (void) ngx_bloom_lookup_keep(match,
                 &all->expression[ngx_bloom_lookup_list_found.expression],
                 pool);
}
