/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Keys are taken in groups, and the memory of a group is requested together.
 */

#include "ngx_bloom_set.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_layers.h"
#include "ngx_bloom_ring.h"


static ngx_inline void ngx_bloom_set_prefetch(ngx_bloom_zone_bits_t *bits,
    const bloom_hash_t *hash, ngx_uint_t n);


void
ngx_bloom_set_keys(ngx_bloom_zone_bits_t *bits, const uint8_t *keys,
    const uint8_t *end, ngx_bloom_set_tally_t *tally)
{
    ngx_uint_t           i, n, read, most, some;
    bloom_key_t          key[NGX_BLOOM_ZONE_GROUP];
    bloom_hash_t         hash[NGX_BLOOM_ZONE_GROUP];
    bloom_record_t       record;
    bloom_exceptions_t  *exceptions;
    u_char               excepted[NGX_BLOOM_ZONE_GROUP];
    u_char               changed[NGX_BLOOM_ZONE_GROUP];

    record.keys = keys;
    record.end = end;

    ngx_memzero(tally, sizeof(ngx_bloom_set_tally_t));

    if (bits->ring != NULL) {
        tally->begun = ngx_bloom_clock_now(bits->clock);
    }

    exceptions = &bits->exceptions;
    some = (bloom_exceptions_count(exceptions) != 0);
    excepted[0] = 0;

    /* a converted key stays in the static buffer only until the next one */

    most = (bits->form != BLOOM_FORM_RAW && bloom_hasher_refers(bits->hasher))
           ? 1 : NGX_BLOOM_ZONE_GROUP;

    do {
        read = ngx_bloom_zone_keys(&record, key, most);

        if (some) {
            ngx_bloom_zone_prefetch(bits, key, read);
        }

        for (i = 0, n = 0; i < read; i++) {

            if (ngx_bloom_zone_canonical(bits->form, &key[i]) != NULL) {
                continue;
            }

            if (some) {
                excepted[n] = bloom_exceptions_contains(exceptions, key[i].data,
                                                        key[i].len);
            }

            hash[n++] = bloom_hash(bits->hasher, key[i].data, key[i].len);
        }

        ngx_bloom_set_prefetch(bits, hash, n);

        ngx_bloom_layers_put(bits, hash, n, changed);

        for (i = 0; i < n; i++) {
            tally->added += (changed[i] || (some && excepted[i]));
            tally->excepted += (some && excepted[i]);
        }

        if (bits->recent != NULL) {
            ngx_bloom_fault("remember");

            ngx_bloom_recent_put(bits->recent, bits->hasher, hash, n);
        }

        tally->keys += n;
    } while (read == most);
}


/* Requests all lines of a group with nothing in between, so that most overlap.
 * A load of a ring does not ask which other slices have a key. */
static ngx_inline void
ngx_bloom_set_prefetch(ngx_bloom_zone_bits_t *bits, const bloom_hash_t *hash,
    ngx_uint_t n)
{
    uint64_t    live;
    ngx_uint_t  i;

    live = bits->geometry->live;

    if (bits->time != 0) {
        bits->geometry->live = (uint64_t) 1 << bits->geometry->open;
    }

    for (i = 0; i < n; i++) {

        if (bits->geometry->layers == 0) {
            bloom_layout_prefetch(bits->geometry, bits->words, hash[i]);
        }

        bloom_layout_prefetch_add(bits->geometry, bits->words, hash[i]);
    }

    bits->geometry->live = live;
}


ngx_int_t
ngx_bloom_set_keep(ngx_bloom_zone_t *zone, const ngx_bloom_set_tally_t *tally)
{
    ngx_bloom_zone_bits_t  bits;

    if (tally->begun == 0 || ngx_bloom_zone_serving(zone, &bits) == 0
        || bits.ring == NULL)
    {
        return NGX_OK;
    }

    ngx_bloom_fault("keep");

    return ngx_bloom_ring_keep(&bits, tally->begun);
}
