
/*
 * This file copies what lookups need of a generation, and sets the bits of
 * added keys.
 */

#include "ngx_bloom_zone.h"


/* Keys whose lines are asked for before the first is touched. */
#define NGX_BLOOM_ZONE_PREFETCH       32


const char *
ngx_bloom_zone_canonical(uint32_t form, bloom_key_t *key)
{
    const char      *why;
    bloom_key_t      canonical;
    static uint8_t   buf[BLOOM_URL_ROOM(BLOOM_FORM_KEY_MAX)];

    if (form == BLOOM_FORM_RAW) {
        return NULL;
    }

    why = bloom_form_canonical(form, &canonical, key, buf);

    if (why == NULL) {
        *key = canonical;
    }

    return why;
}


ngx_int_t
ngx_bloom_zone_refresh(ngx_bloom_zone_t *zone, uint64_t generation)
{
    ngx_uint_t  bank;

    bank = generation & 1;

    zone->generation = 0;
    zone->form = zone->sh->bank[bank].image.key_form;
    zone->geometry = zone->sh->bank[bank].image.geometry;
    zone->hasher = zone->sh->bank[bank].image.hasher;
    zone->words = (uint64_t *) ngx_bloom_zone_bank(zone, bank);
    zone->stale = NGX_MAX_TIME_T_VALUE;

    if (zone->max_age != 0) {
        zone->stale = (time_t) (zone->sh->bank[bank].image.as_of / 1000)
                      + zone->max_age;
    }

    __atomic_thread_fence(__ATOMIC_ACQUIRE);

    if (__atomic_load_n(&zone->sh->generation, __ATOMIC_RELAXED)
        != generation)
    {
        return NGX_AGAIN;
    }

    zone->generation = generation;

    return NGX_OK;
}


void
ngx_bloom_zone_bits(ngx_bloom_zone_t *zone, ngx_uint_t bank,
    ngx_bloom_zone_bits_t *bits)
{
    bits->form = zone->sh->bank[bank].image.key_form;
    bits->geometry = &zone->sh->bank[bank].image.geometry;
    bits->hasher = &zone->sh->bank[bank].image.hasher;
    bits->words = (uint64_t *) ngx_bloom_zone_bank(zone, bank);
    bits->bits_set = &zone->sh->bank[bank].bits_set;
}


uint64_t
ngx_bloom_zone_serving(ngx_bloom_zone_t *zone, ngx_bloom_zone_bits_t *bits)
{
    uint64_t  generation;

    do {
        generation = __atomic_load_n(&zone->sh->generation, __ATOMIC_ACQUIRE);

        if (generation == 0) {
            return 0;
        }
    } while (generation != zone->generation
             && ngx_bloom_zone_refresh(zone, generation) != NGX_OK);

    /* this process's own copy, which is whole */

    bits->form = zone->form;
    bits->geometry = &zone->geometry;
    bits->hasher = &zone->hasher;
    bits->words = zone->words;
    bits->bits_set = &zone->sh->bank[generation & 1].bits_set;

    return generation;
}


uint64_t
ngx_bloom_zone_set(ngx_bloom_zone_bits_t *bits, const uint8_t *keys,
    const uint8_t *end, uint64_t *added)
{
    int             changed;
    uint64_t        bits_set, count;
    ngx_uint_t      i, n;
    bloom_key_t     key;
    bloom_hash_t    hash[NGX_BLOOM_ZONE_PREFETCH];
    bloom_record_t  record;

    record.keys = keys;
    record.end = end;

    bits_set = 0;
    count = 0;
    *added = 0;

    do {
        n = 0;

        while (n < NGX_BLOOM_ZONE_PREFETCH && bloom_record_key(&record, &key)) {
            if (ngx_bloom_zone_canonical(bits->form, &key) == NULL) {
                hash[n++] = bloom_hash(bits->hasher, key.data, key.len);
            }
        }

        /* one after another, with nothing in between: so most overlap */

        for (i = 0; i < n; i++) {
            bloom_layout_prefetch(bits->geometry, bits->words, hash[i]);
        }

        for (i = 0; i < n; i++) {
            changed = bloom_layout_add_atomic(bits->geometry, bits->words,
                                              hash[i]);

            bits_set += changed;
            *added += (changed != 0);
        }

        count += n;
    } while (n == NGX_BLOOM_ZONE_PREFETCH);

    (void) __atomic_fetch_add(bits->bits_set, bits_set, __ATOMIC_RELAXED);

    return count;
}


void
ngx_bloom_zone_measure_hugepages(ngx_bloom_zone_t *zone)
{
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;

    __atomic_store_n(&sh->huge_bytes,
                     ngx_bloom_hugepages_measure(sh->banks, 2 * sh->bank_size),
                     __ATOMIC_RELAXED);
}


size_t
ngx_bloom_zone_needs(uint64_t bank)
{
    uint64_t  pages;

    /*
     * The slab allocator takes a descriptor for each page, and its own header;
     * the control block, the log context and rounding take some pages more.
     */

    pages = 2 * ((bank + ngx_pagesize - 1) / ngx_pagesize)
            + sizeof(ngx_bloom_shctx_t) / ngx_pagesize + 8;

    return (size_t) (pages * (ngx_pagesize + sizeof(ngx_slab_page_t))
                     + NGX_BLOOM_ZONE_MIN);
}
