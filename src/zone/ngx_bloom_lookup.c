/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A lookup reads the generation, tests the key in the bank it names, and starts
 * again if the generation has changed.
 */

#include "ngx_bloom_lookup.h"
#include "bloom_bits.h"


/* Attempts of a lookup.  It gives up only if as many loads end within its few
 * nanoseconds, and a load takes much longer than that. */
#define NGX_BLOOM_LOOKUP_ATTEMPTS    8


static ngx_inline ngx_int_t ngx_bloom_lookup_begin(ngx_bloom_zone_t *zone,
    ngx_uint_t *behind);
static ngx_inline ngx_int_t ngx_bloom_lookup_end(ngx_bloom_zone_t *zone);
static ngx_inline ngx_uint_t ngx_bloom_lookup_answer(int present,
    ngx_uint_t behind);
static ngx_int_t ngx_bloom_lookup_form(ngx_bloom_zone_t *zone, ngx_str_t *key,
    ngx_uint_t behind, ngx_pool_t *pool);
static ngx_inline int ngx_bloom_lookup_one(ngx_bloom_zone_t *zone,
    bloom_key_t *canonical, ngx_str_t *key, u_char *buf);
static int ngx_bloom_lookup_any(ngx_bloom_zone_t *zone, bloom_key_t *canonical,
    ngx_str_t *key, u_char *buf);
static const char *ngx_bloom_lookup_expand(ngx_bloom_zone_t *zone,
    bloom_form_t *keys, bloom_hash_t *hash, const ngx_str_t *key, u_char *buf);
static ngx_inline u_char *ngx_bloom_lookup_room(ngx_bloom_zone_t *zone,
    size_t len, ngx_pool_t *pool);
static ngx_inline ngx_int_t ngx_bloom_lookup_keep(ngx_str_t *key,
    const bloom_key_t *canonical, ngx_pool_t *pool);
static void ngx_bloom_lookup_keys(ngx_bloom_zone_t *zone, const ngx_str_t *key,
    ngx_uint_t n, u_char *answer, u_char *buf);
static ngx_uint_t ngx_bloom_lookup_group(ngx_bloom_zone_t *zone,
    const ngx_str_t *key, ngx_uint_t n, u_char *answer, u_char *buf);
static ngx_uint_t ngx_bloom_lookup_cut(ngx_str_t *part, u_char **pos,
    u_char *end, u_char separator);
static ngx_uint_t ngx_bloom_lookup_next_part(ngx_str_t *part, u_char **pos,
    u_char *end, u_char separator);


/* A buffer in which keys are converted to their form; longer keys use the pool.
 * One buffer suffices, because no lookup begins while another is running. */
static u_char  ngx_bloom_lookup_scratch[BLOOM_URL_ROOM(BLOOM_URL_MAX)];


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


/*
 * Ends a lookup.  Returns NGX_OK; NGX_AGAIN to start again, because the
 * generation has changed; NGX_DECLINED if the image is too old.
 */
static ngx_inline ngx_int_t
ngx_bloom_lookup_end(ngx_bloom_zone_t *zone)
{
    __atomic_thread_fence(__ATOMIC_ACQUIRE);

    if (__atomic_load_n(&zone->sh->generation, __ATOMIC_RELAXED)
        != zone->generation)
    {
        return NGX_AGAIN;
    }

    return ngx_time() < zone->stale ? NGX_OK : NGX_DECLINED;
}


/* Returns the answer for a tested key.  If the zone is behind, it may not have
 * applied a key that it does not find. */
static ngx_inline ngx_uint_t
ngx_bloom_lookup_answer(int present, ngx_uint_t behind)
{
    if (present) {
        return NGX_BLOOM_PRESENT;
    }

    return behind ? NGX_BLOOM_UNKNOWN : NGX_BLOOM_ABSENT;
}


ngx_uint_t
ngx_bloom_lookup(ngx_bloom_zone_t *zone, ngx_str_t *key, ngx_pool_t *pool)
{
    int           present;
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

        if (zone->form != BLOOM_FORM_RAW) {
            rc = ngx_bloom_lookup_form(zone, key, behind, pool);

            if (rc >= 0) {
                return rc;
            }

        } else {
            hash = bloom_hash(&zone->hasher, key->data, key->len);
            present = bloom_layout_test(&zone->geometry, zone->words, hash);

            rc = ngx_bloom_lookup_end(zone);

            if (rc == NGX_OK) {
                return ngx_bloom_lookup_answer(present, behind);
            }
        }

        if (rc == NGX_DECLINED) {
            break;
        }
    }

    return NGX_BLOOM_UNKNOWN;
}


/*
 * Looks up a key in a form other than raw, and ends the lookup.  Returns the
 * answer; NGX_AGAIN to start again; NGX_DECLINED if the image is too old or
 * memory is short.  Not inline, as raw keys would pay for its registers.
 */
static ngx_int_t __attribute__((noinline))
ngx_bloom_lookup_form(ngx_bloom_zone_t *zone, ngx_str_t *key, ngx_uint_t behind,
    ngx_pool_t *pool)
{
    int           present;
    u_char       *buf;
    ngx_int_t     rc;
    bloom_key_t   canonical;

    buf = ngx_bloom_lookup_room(zone, key->len, pool);

    if (buf == NULL) {
        return NGX_DECLINED;
    }

    present = (zone->form == BLOOM_FORM_LOWER)
              ? ngx_bloom_lookup_one(zone, &canonical, key, buf)
              : ngx_bloom_lookup_any(zone, &canonical, key, buf);

    if (present == -1) {
        return NGX_BLOOM_INVALID;
    }

    rc = ngx_bloom_lookup_end(zone);

    if (rc == NGX_AGAIN) {
        return NGX_AGAIN;
    }

    if (ngx_bloom_lookup_keep(key, &canonical, pool) != NGX_OK
        || rc == NGX_DECLINED)
    {
        return NGX_DECLINED;
    }

    return ngx_bloom_lookup_answer(present, behind);
}


/* Tests a key in a form with one expression per key.  Returns 1 if it is maybe
 * present, 0 if it is absent, or -1 if it is invalid. */
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


/* Tests a key in a form with many expressions per key.  Returns 1 if one is
 * maybe present, 0 if all are absent, or -1 if the key is invalid. */
static int
ngx_bloom_lookup_any(ngx_bloom_zone_t *zone, bloom_key_t *canonical,
    ngx_str_t *key, u_char *buf)
{
    bloom_form_t  keys;
    bloom_hash_t  hash[BLOOM_FORM_EXPRESSIONS];

    if (ngx_bloom_lookup_expand(zone, &keys, hash, key, buf) != NULL) {
        return -1;
    }

    *canonical = keys.expression[0];

    return bloom_layout_test_any(&zone->geometry, zone->words, hash,
                                 keys.n) < keys.n;
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


/* Hashes all expressions of a key.  Returns NULL, or why the key is invalid. */
static const char *
ngx_bloom_lookup_expand(ngx_bloom_zone_t *zone, bloom_form_t *keys,
    bloom_hash_t *hash, const ngx_str_t *key, u_char *buf)
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

    for (i = 0; i < keys->n; i++) {
        hash[i] = bloom_hash(&zone->hasher, keys->expression[i].data,
                             keys->expression[i].len);
    }

    return NULL;
}


void
ngx_bloom_lookup_hash(ngx_bloom_zone_t *zone, const ngx_str_t *key,
    ngx_bloom_lookup_prefetch_t *prefetch, ngx_pool_t *pool)
{
    u_char       *buf;
    ngx_uint_t    behind;
    bloom_key_t   k, canonical;

    prefetch->generation = 0;

    if (ngx_bloom_lookup_begin(zone, &behind) != NGX_OK
        || (zone->form != BLOOM_FORM_RAW && zone->form != BLOOM_FORM_LOWER))
    {
        return;
    }

    prefetch->key = *key;

    if (zone->form == BLOOM_FORM_LOWER) {

        k.data = key->data;
        k.len = key->len;

        buf = ngx_bloom_lookup_room(zone, key->len, pool);

        if (buf == NULL
            || bloom_form_canonical(zone->form, &canonical, &k, buf) != NULL
            || ngx_bloom_lookup_keep(&prefetch->key, &canonical, pool)
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
    ngx_uint_t  behind;

    if (ngx_bloom_lookup_begin(zone, &behind) == NGX_OK
        && zone->generation == prefetch->generation)
    {
        present = bloom_layout_test(&zone->geometry, zone->words,
                                    prefetch->hash);

        if (ngx_bloom_lookup_end(zone) == NGX_OK) {
            *key = prefetch->key;

            return ngx_bloom_lookup_answer(present, behind);
        }
    }

    return ngx_bloom_lookup(zone, key, pool);
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

        rc = ngx_bloom_lookup_begin(zone, &behind);

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

        ngx_bloom_lookup_keys(zone, key, n, answer, buf);

        rc = ngx_bloom_lookup_end(zone);

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
    u_char separator, ngx_uint_t tally[NGX_BLOOM_ANSWERS], ngx_pool_t *pool)
{
    u_char      *buf, *pos, *end, answer[BLOOM_BATCH];
    ngx_int_t    rc;
    ngx_str_t    part[BLOOM_BATCH];
    ngx_uint_t   i, j, n, behind;

    end = text->data + text->len;

    for (i = 0; i < NGX_BLOOM_LOOKUP_ATTEMPTS; i++) {

        rc = ngx_bloom_lookup_begin(zone, &behind);

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

        pos = text->data;

        do {
            n = ngx_bloom_lookup_cut(part, &pos, end, separator);

            ngx_bloom_lookup_keys(zone, part, n, answer, buf);

            for (j = 0; j < n; j++) {
                tally[answer[j]]++;
            }
        } while (n == BLOOM_BATCH);

        rc = ngx_bloom_lookup_end(zone);

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
        n = ngx_bloom_lookup_cut(part, &pos, end, separator);
        tally[NGX_BLOOM_UNKNOWN] += n;
    } while (n == BLOOM_BATCH);
}


/* Looks up keys within one generation. */
static void
ngx_bloom_lookup_keys(ngx_bloom_zone_t *zone, const ngx_str_t *key,
    ngx_uint_t n, u_char *answer, u_char *buf)
{
    ngx_uint_t  done;

    for (done = 0; done < n; /* void */ ) {
        done += ngx_bloom_lookup_group(zone, key + done, n - done,
                                       answer + done, buf);
    }
}


/* Looks up as many keys as have at most BLOOM_BATCH expressions together.
 * Returns how many keys that were. */
static ngx_uint_t
ngx_bloom_lookup_group(ngx_bloom_zone_t *zone, const ngx_str_t *key,
    ngx_uint_t n, u_char *answer, u_char *buf)
{
    uint64_t      present, asked[BLOOM_BATCH];
    ngx_uint_t    i, j, most, lines;
    bloom_form_t  keys;
    bloom_hash_t  hash[BLOOM_BATCH];

    n = ngx_min(n, BLOOM_BATCH);

    /* all keys are converted in the same buffer */

    if (zone->form != BLOOM_FORM_RAW && bloom_hasher_refers(&zone->hasher)) {
        n = 1;
    }

    most = (zone->form == BLOOM_FORM_RAW || zone->form == BLOOM_FORM_LOWER)
           ? 1 : BLOOM_FORM_EXPRESSIONS;

    for (i = 0, lines = 0; i < n && lines + most <= BLOOM_BATCH; i++) {

        asked[i] = 0;

        if (key[i].len == 0) {
            answer[i] = NGX_BLOOM_UNKNOWN;
            continue;
        }

        if (ngx_bloom_lookup_expand(zone, &keys, &hash[lines], &key[i], buf)
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
        if (asked[j] != 0) {
            answer[j] = (asked[j] & present) ? NGX_BLOOM_PRESENT
                                             : NGX_BLOOM_ABSENT;
        }
    }

    return i;
}


/* Cuts off the next parts of a list, at most BLOOM_BATCH.  Returns how many;
 * fewer at the end of the list. */
static ngx_uint_t
ngx_bloom_lookup_cut(ngx_str_t *part, u_char **pos, u_char *end,
    u_char separator)
{
    ngx_uint_t  n;

    for (n = 0; n < BLOOM_BATCH; n++) {
        if (!ngx_bloom_lookup_next_part(&part[n], pos, end, separator)) {
            break;
        }
    }

    return n;
}


static ngx_uint_t
ngx_bloom_lookup_next_part(ngx_str_t *part, u_char **pos, u_char *end,
    u_char separator)
{
    u_char  *p, *last;

    while (*pos < end) {
        p = *pos;
        last = ngx_strlchr(p, end, separator);

        if (last == NULL) {
            last = end;
        }

        *pos = last + 1;

        while (p < last && (*p == ' ' || *p == '\t')) {
            p++;
        }

        while (p < last && (last[-1] == ' ' || last[-1] == '\t')) {
            last--;
        }

        if (p < last) {
            part->data = p;
            part->len = last - p;
            return 1;
        }
    }

    return 0;
}


ngx_uint_t
ngx_bloom_lookup_explain(ngx_bloom_zone_t *zone, ngx_str_t *key,
    ngx_bloom_lookup_t *lookup, ngx_pool_t *pool)
{
    u_char        *buf;
    ngx_int_t      rc;
    ngx_uint_t     i, j, behind;
    bloom_hash_t   hash[BLOOM_FORM_EXPRESSIONS];

    for (i = 0; i < NGX_BLOOM_LOOKUP_ATTEMPTS; i++) {

        ngx_memzero(lookup, sizeof(ngx_bloom_lookup_t));

        rc = ngx_bloom_lookup_begin(zone, &behind);

        if (rc == NGX_AGAIN) {
            continue;
        }

        if (rc == NGX_DECLINED) {
            return NGX_BLOOM_UNKNOWN;
        }

        /* lookup->keys point into it; + 1, because raw needs no room */

        buf = ngx_pnalloc(pool, bloom_form_room(zone->form, key->len) + 1);

        if (buf == NULL) {
            return NGX_BLOOM_UNKNOWN;
        }

        lookup->form = zone->form;
        lookup->why = ngx_bloom_lookup_expand(zone, &lookup->keys, hash, key,
                                              buf);

        if (lookup->why != NULL) {
            lookup->keys.n = 0;

        } else {
            lookup->k = bloom_layout_bits(&zone->geometry, hash[0],
                                          lookup->bits);

            for (j = 0; j < lookup->k; j++) {
                lookup->set[j] = bloom_bit_load(zone->words, lookup->bits[j])
                                 & 1;
            }

            for (j = 0; j < lookup->keys.n; j++) {
                if (bloom_layout_test(&zone->geometry, zone->words, hash[j])) {
                    lookup->matches |= (uint32_t) 1 << j;
                }
            }
        }

        rc = ngx_bloom_lookup_end(zone);

        if (rc == NGX_AGAIN) {
            continue;
        }

        lookup->generation = zone->generation;

        if (lookup->why != NULL) {
            return NGX_BLOOM_INVALID;
        }

        if (rc == NGX_DECLINED) {
            return NGX_BLOOM_UNKNOWN;
        }

        return ngx_bloom_lookup_answer(lookup->matches != 0, behind);
    }

    ngx_memzero(lookup, sizeof(ngx_bloom_lookup_t));

    return NGX_BLOOM_UNKNOWN;
}
