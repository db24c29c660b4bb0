/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file keeps the place of a zone in its source in the control page.
 */

#include "ngx_bloom_source.h"
#include "bloom_siphash.h"


/* How far the times of two processes may be apart, ms: a process reads the
 * clock once for all events that it handles together. */
#define NGX_BLOOM_SOURCE_AHEAD  60000


uint64_t
ngx_bloom_source_id(const ngx_str_t *name)
{
    static const uint8_t  key[BLOOM_HASH_KEY_LEN];

    return bloom_siphash_128(name->data, name->len, key, 1, 3).h1 | 1;
}


void
ngx_bloom_source_read(ngx_bloom_control_t *control, uint64_t source,
    bloom_reached_t *place)
{
    ngx_bloom_source_place(control, place);

    if (place->source != source) {
        ngx_memzero(place, sizeof(bloom_reached_t));
        place->source = source;
    }
}


void
ngx_bloom_source_place(ngx_bloom_control_t *control, bloom_reached_t *place)
{
    uint64_t  which;

    /* the slot that is read may be written only after a later store */

    do {
        which = __atomic_load_n(&control->source.which, __ATOMIC_ACQUIRE);

        *place = *(volatile bloom_reached_t *)
                 &control->source.place[which & 1];

        __atomic_thread_fence(__ATOMIC_ACQUIRE);

    } while (__atomic_load_n(&control->source.which, __ATOMIC_RELAXED)
             != which);
}


void
ngx_bloom_source_gap(bloom_reached_t *place, bloom_position_t seen,
    bloom_position_t position)
{
    bloom_position_t  gap;

    if (bloom_position_cmp(place->due, seen) > 0) {
        seen = place->due;
    }

    gap = bloom_position_cmp(seen, position) > 0 ? bloom_position_next(seen)
                                                 : position;

    if (bloom_position_cmp(gap, place->gap) > 0) {
        place->gap = gap;
        place->lost = 1;
    }

    place->position = position;
    place->due.high = 0;
    place->due.low = 0;
    bloom_digest_restart(&place->digest, position);
}


void
ngx_bloom_source_sign(ngx_bloom_control_t *control, uint64_t source,
    bloom_position_t position, ngx_msec_t now)
{
    ngx_bloom_sign_t  *sign;

    sign = &control->source.sign;

    __atomic_store_n(&sign->source, source, __ATOMIC_RELAXED);
    __atomic_store_n(&sign->position.high, position.high, __ATOMIC_RELAXED);
    __atomic_store_n(&sign->position.low, position.low, __ATOMIC_RELAXED);
    __atomic_store_n(&sign->time, now ? now : 1, __ATOMIC_RELEASE);
}


void
ngx_bloom_source_unsign(ngx_bloom_control_t *control)
{
    __atomic_store_n(&control->source.sign.time, 0, __ATOMIC_RELEASE);
}


uint64_t
ngx_bloom_source_lag(ngx_bloom_control_t *control,
    const bloom_reached_t *place, ngx_msec_t now)
{
    uint64_t           time;
    bloom_position_t   position;
    ngx_bloom_sign_t  *sign;

    sign = &control->source.sign;

    time = __atomic_load_n(&sign->time, __ATOMIC_ACQUIRE);
    position.high = __atomic_load_n(&sign->position.high, __ATOMIC_RELAXED);
    position.low = __atomic_load_n(&sign->position.low, __ATOMIC_RELAXED);

    if (time == 0
        || __atomic_load_n(&sign->source, __ATOMIC_RELAXED) != place->source
        || bloom_position_cmp(place->position, position) < 0)
    {
        return UINT64_MAX;
    }

    /* another process may have seen it a little later than now; a time that is
     * far ahead is not of this clock */

    if (time > now) {
        return time - now < NGX_BLOOM_SOURCE_AHEAD ? 0 : UINT64_MAX;
    }

    return now - time;
}


void
ngx_bloom_source_read_part(ngx_bloom_control_t *control, uint64_t source,
    bloom_position_t before, bloom_position_t after, ngx_bloom_part_t *part)
{
    *part = control->part;

    if (part->count == 0 || part->source != source
        || bloom_position_cmp(part->before, before) != 0
        || bloom_position_cmp(part->after, after) != 0)
    {
        ngx_memzero(part, sizeof(ngx_bloom_part_t));
    }
}


void
ngx_bloom_source_store_part(ngx_bloom_control_t *control,
    const ngx_bloom_part_t *part)
{
    /* a process that dies in between leaves no count that is wrong */

    __atomic_store_n(&control->part.count, 0, __ATOMIC_SEQ_CST);

    control->part.source = part->source;
    control->part.before = part->before;
    control->part.after = part->after;
    control->part.digest = part->digest;

    __atomic_store_n(&control->part.count, part->count, __ATOMIC_RELEASE);
}


void
ngx_bloom_source_store(ngx_bloom_control_t *control,
    const bloom_reached_t *place)
{
    uint64_t  which;

    __atomic_store_n(&control->part.count, 0, __ATOMIC_SEQ_CST);

    which = control->source.which + 1;

    /* readers of the other slot, which the last store has left valid, find out
     * that it is written again */

    __atomic_thread_fence(__ATOMIC_SEQ_CST);

    control->source.place[which & 1] = *place;

    __atomic_store_n(&control->source.which, which, __ATOMIC_RELEASE);
}
