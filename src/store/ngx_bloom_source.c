/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file keeps the place of a zone in its source in the control page.
 */

#include "ngx_bloom_source.h"
#include "bloom_siphash.h"


uint64_t
ngx_bloom_source_id(const ngx_str_t *name)
{
    static const uint8_t  key[BLOOM_HASH_KEY_LEN];

    return bloom_siphash_128(name->data, name->len, key, 1, 3).h1 | 1;
}


void
ngx_bloom_source_read(ngx_bloom_control_t *control, uint64_t source,
    ngx_bloom_place_t *place)
{
    uint64_t  which;

    /* the slot that is read may be written only after a later store */

    do {
        which = __atomic_load_n(&control->source.which, __ATOMIC_ACQUIRE);

        *place = *(volatile ngx_bloom_place_t *)
                 &control->source.place[which & 1];

        __atomic_thread_fence(__ATOMIC_ACQUIRE);

    } while (__atomic_load_n(&control->source.which, __ATOMIC_RELAXED)
             != which);

    if (place->source != source) {
        ngx_memzero(place, sizeof(ngx_bloom_place_t));
        place->source = source;
    }
}


void
ngx_bloom_source_gap(ngx_bloom_place_t *place, bloom_position_t seen,
    bloom_position_t position)
{
    bloom_position_t  gap;

    gap = bloom_position_cmp(seen, position) > 0 ? bloom_position_next(seen)
                                                 : position;

    if (bloom_position_cmp(gap, place->gap) > 0) {
        place->gap = gap;
        place->lost = 1;
    }

    place->position = position;
}


void
ngx_bloom_source_store(ngx_bloom_control_t *control,
    const ngx_bloom_place_t *place)
{
    uint64_t  which;

    which = control->source.which + 1;

    /* readers of the other slot, which the last store has left valid, find out
     * that it is written again */

    __atomic_thread_fence(__ATOMIC_SEQ_CST);

    control->source.place[which & 1] = *place;

    __atomic_store_n(&control->source.which, which, __ATOMIC_RELEASE);
}
