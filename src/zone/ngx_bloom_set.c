/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Keys are taken in groups, and the memory of a group is requested together.
 */

#include "ngx_bloom_set.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_layers.h"


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

        /* request all lines with nothing in between, so that most overlap */

        for (i = 0; i < n; i++) {
            bloom_layout_prefetch(bits->geometry, bits->words, hash[i]);
        }

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
