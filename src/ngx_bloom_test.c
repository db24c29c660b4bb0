
#include "ngx_bloom_test.h"


/* Attempts of a lookup: only as many loads in its few nanoseconds make it
 * give up, and a load takes longer than that. */
#define NGX_BLOOM_ATTEMPTS    8

/* Lines of a list's parts that are asked for before the first is tested: more
 * than a processor can wait for at once. */
#define NGX_BLOOM_TEST_LINES  64


static ngx_inline ngx_int_t ngx_bloom_test_begin(ngx_bloom_zone_t *zone,
    ngx_uint_t *behind);
static ngx_inline ngx_int_t ngx_bloom_test_end(ngx_bloom_zone_t *zone);
static ngx_uint_t ngx_bloom_test_form(ngx_bloom_zone_t *zone, ngx_str_t *key,
    ngx_pool_t *pool);
static const char *ngx_bloom_test_expand(ngx_bloom_zone_t *zone,
    bloom_form_t *keys, bloom_hash_t *hash, ngx_str_t *key, u_char *buf);
static ngx_int_t ngx_bloom_test_room(ngx_bloom_zone_t *zone, size_t len,
    u_char **buf, size_t *size, ngx_pool_t *pool);
static ngx_uint_t ngx_bloom_test_group(ngx_bloom_zone_t *zone,
    u_char **pos, u_char *end, u_char separator, ngx_uint_t *tally,
    u_char *buf);
static ngx_uint_t ngx_bloom_test_next_part(ngx_str_t *part, u_char **pos,
    u_char *end, u_char separator);


/*
 * What a lookup does is between these two.  begin: NGX_OK, NGX_AGAIN to begin
 * anew, NGX_DECLINED if nothing serves.
 */
static ngx_inline ngx_int_t
ngx_bloom_test_begin(ngx_bloom_zone_t *zone, ngx_uint_t *behind)
{
    uint64_t  generation;

    generation = __atomic_load_n(&zone->sh->generation, __ATOMIC_ACQUIRE);

    if (generation == 0) {
        return NGX_DECLINED;
    }

    if (generation != zone->generation
        && ngx_bloom_zone_attend(zone, generation) != NGX_OK)
    {
        return NGX_AGAIN;
    }

    /* before the bits: what is applied later may be missing in them */

    *behind = ngx_bloom_zone_behind(zone);

    return NGX_OK;
}


/*
 * NGX_OK; NGX_AGAIN: what was seen is not of one generation, begin anew;
 * NGX_DECLINED: its image is too old.
 */
static ngx_inline ngx_int_t
ngx_bloom_test_end(ngx_bloom_zone_t *zone)
{
    __atomic_thread_fence(__ATOMIC_ACQUIRE);

    if (__atomic_load_n(&zone->sh->generation, __ATOMIC_RELAXED)
        != zone->generation)
    {
        return NGX_AGAIN;
    }

    return ngx_time() < zone->stale ? NGX_OK : NGX_DECLINED;
}


ngx_uint_t
ngx_bloom_zone_test(ngx_bloom_zone_t *zone, ngx_str_t *key, ngx_pool_t *pool)
{
    int           present;
    ngx_int_t     rc;
    ngx_uint_t    i, behind;
    bloom_hash_t  hash;

    for (i = 0; i < NGX_BLOOM_ATTEMPTS; i++) {

        rc = ngx_bloom_test_begin(zone, &behind);

        if (rc == NGX_AGAIN) {
            continue;
        }

        if (rc == NGX_DECLINED) {
            break;
        }

        if (zone->form != BLOOM_KEY_RAW) {
            return ngx_bloom_test_form(zone, key, pool);
        }

        hash = bloom_hash(&zone->hasher, key->data, key->len);
        present = bloom_test(&zone->geometry, zone->words, hash);

        rc = ngx_bloom_test_end(zone);

        if (rc == NGX_AGAIN) {
            continue;
        }

        if (rc == NGX_DECLINED) {
            break;
        }

        if (present) {
            return NGX_BLOOM_PRESENT;
        }

        return behind ? NGX_BLOOM_UNKNOWN : NGX_BLOOM_ABSENT;
    }

    return NGX_BLOOM_UNKNOWN;
}


/* The same for whatever key form. */
static ngx_uint_t
ngx_bloom_test_form(ngx_bloom_zone_t *zone, ngx_str_t *key, ngx_pool_t *pool)
{
    size_t         size;
    u_char        *buf;
    unsigned       first;
    ngx_int_t      rc;
    ngx_uint_t     i, behind;
    bloom_form_t   keys;
    bloom_hash_t   hash[BLOOM_FORM_EXPRESSIONS];

    buf = NULL;
    size = 0;

    for (i = 0; i < NGX_BLOOM_ATTEMPTS; i++) {

        rc = ngx_bloom_test_begin(zone, &behind);

        if (rc == NGX_AGAIN) {
            continue;
        }

        if (rc == NGX_DECLINED
            || ngx_bloom_test_room(zone, key->len, &buf, &size, pool)
               != NGX_OK)
        {
            break;
        }

        if (ngx_bloom_test_expand(zone, &keys, hash, key, buf) != NULL) {
            return NGX_BLOOM_UNPARSABLE;
        }

        first = bloom_test_any(&zone->geometry, zone->words, hash, keys.n);

        rc = ngx_bloom_test_end(zone);

        if (rc == NGX_AGAIN) {
            continue;
        }

        key->data = (u_char *) keys.expression[0].data;
        key->len = keys.expression[0].len;

        if (rc == NGX_DECLINED) {
            break;
        }

        if (first < keys.n) {
            return NGX_BLOOM_PRESENT;
        }

        return behind ? NGX_BLOOM_UNKNOWN : NGX_BLOOM_ABSENT;
    }

    return NGX_BLOOM_UNKNOWN;
}


/* Memory for a key of `len` bytes in the zone's form, at *buf. */
static ngx_int_t
ngx_bloom_test_room(ngx_bloom_zone_t *zone, size_t len, u_char **buf,
    size_t *size, ngx_pool_t *pool)
{
    size_t  need;

    need = bloom_form_room(zone->form, len);

    if (need > *size) {
        *buf = ngx_pnalloc(pool, need);
        *size = (*buf != NULL) ? need : 0;
    }

    return need > *size ? NGX_ERROR : NGX_OK;
}


/* All that a key is looked up by; NULL, or why it is none. */
static const char *
ngx_bloom_test_expand(ngx_bloom_zone_t *zone, bloom_form_t *keys,
    bloom_hash_t *hash, ngx_str_t *key, u_char *buf)
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
ngx_bloom_zone_test_parts(ngx_bloom_zone_t *zone, ngx_str_t *text,
    u_char separator, ngx_uint_t tally[NGX_BLOOM_ANSWERS], ngx_pool_t *pool)
{
    size_t       size;
    u_char      *buf, *pos, *end;
    ngx_int_t    rc;
    ngx_str_t    part;
    ngx_uint_t   i, behind;

    buf = NULL;
    size = 0;
    end = text->data + text->len;

    for (i = 0; i < NGX_BLOOM_ATTEMPTS; i++) {

        rc = ngx_bloom_test_begin(zone, &behind);

        if (rc == NGX_AGAIN) {
            continue;
        }

        if (rc == NGX_DECLINED
            || ngx_bloom_test_room(zone, text->len, &buf, &size, pool)
               != NGX_OK)
        {
            break;
        }

        ngx_memzero(tally, NGX_BLOOM_ANSWERS * sizeof(ngx_uint_t));

        pos = text->data;

        while (ngx_bloom_test_group(zone, &pos, end, separator, tally, buf)) {
            /* void */
        }

        rc = ngx_bloom_test_end(zone);

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

    for (pos = text->data;
         ngx_bloom_test_next_part(&part, &pos, end, separator);
         /* void */)
    {
        tally[NGX_BLOOM_UNKNOWN]++;
    }
}


/* The next parts of a list, which are tested together; 0 if that was all. */
static ngx_uint_t
ngx_bloom_test_group(ngx_bloom_zone_t *zone, u_char **pos, u_char *end,
    u_char separator, ngx_uint_t *tally, u_char *buf)
{
    ngx_str_t     part;
    ngx_uint_t    i, j, parts, lines, more, answer;
    bloom_form_t  keys;
    bloom_hash_t  hash[NGX_BLOOM_TEST_LINES + BLOOM_FORM_EXPRESSIONS];
    ngx_uint_t    begin[NGX_BLOOM_TEST_LINES + 1];

    parts = 0;
    lines = 0;
    more = 1;

    while (lines < NGX_BLOOM_TEST_LINES) {

        more = ngx_bloom_test_next_part(&part, pos, end, separator);

        if (!more) {
            break;
        }

        if (ngx_bloom_test_expand(zone, &keys, &hash[lines], &part, buf)
            != NULL)
        {
            tally[NGX_BLOOM_UNPARSABLE]++;
            continue;
        }

        begin[parts++] = lines;
        lines += keys.n;
    }

    begin[parts] = lines;

    /* one after another, with nothing in between: so most overlap */

    for (i = 0; i < lines; i++) {
        bloom_prefetch(&zone->geometry, zone->words, hash[i]);
    }

    for (i = 0; i < parts; i++) {
        answer = NGX_BLOOM_ABSENT;

        for (j = begin[i]; j < begin[i + 1]; j++) {
            if (bloom_test(&zone->geometry, zone->words, hash[j])) {
                answer = NGX_BLOOM_PRESENT;
                break;
            }
        }

        tally[answer]++;
    }

    return more;
}


static ngx_uint_t
ngx_bloom_test_next_part(ngx_str_t *part, u_char **pos, u_char *end,
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
ngx_bloom_zone_explain(ngx_bloom_zone_t *zone, ngx_str_t *key,
    ngx_bloom_lookup_t *lookup, ngx_pool_t *pool)
{
    size_t         size;
    u_char        *buf;
    ngx_int_t      rc;
    ngx_uint_t     i, j, behind;
    bloom_hash_t   hash[BLOOM_FORM_EXPRESSIONS];

    buf = NULL;
    size = 0;

    for (i = 0; i < NGX_BLOOM_ATTEMPTS; i++) {

        ngx_memzero(lookup, sizeof(ngx_bloom_lookup_t));

        rc = ngx_bloom_test_begin(zone, &behind);

        if (rc == NGX_AGAIN) {
            continue;
        }

        if (rc == NGX_DECLINED
            || ngx_bloom_test_room(zone, key->len, &buf, &size, pool)
               != NGX_OK)
        {
            return NGX_BLOOM_UNKNOWN;
        }

        lookup->form = zone->form;
        lookup->why = ngx_bloom_test_expand(zone, &lookup->keys, hash, key,
                                            buf);

        if (lookup->why != NULL) {
            lookup->keys.n = 0;

        } else {
            lookup->k = bloom_bits(&zone->geometry, hash[0], lookup->bits);

            for (j = 0; j < lookup->keys.n; j++) {
                if (bloom_test(&zone->geometry, zone->words, hash[j])) {
                    lookup->matches |= (uint32_t) 1 << j;
                }
            }
        }

        rc = ngx_bloom_test_end(zone);

        if (rc == NGX_AGAIN) {
            continue;
        }

        lookup->generation = zone->generation;

        if (lookup->why != NULL) {
            return NGX_BLOOM_UNPARSABLE;
        }

        if (rc == NGX_DECLINED) {
            return NGX_BLOOM_UNKNOWN;
        }

        if (lookup->matches != 0) {
            return NGX_BLOOM_PRESENT;
        }

        return behind ? NGX_BLOOM_UNKNOWN : NGX_BLOOM_ABSENT;
    }

    ngx_memzero(lookup, sizeof(ngx_bloom_lookup_t));

    return NGX_BLOOM_UNKNOWN;
}
