/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A process that has read which map is current may set its bit only after that
 * map has become the older one.  The bit is still found until the next turn.
 */

#include "ngx_bloom_recent.h"


_Static_assert(NGX_BLOOM_RECENT_BITS == 1 << 20, "64 - 44 bits of a number");


/* Returns the number of a hash's bit.  Keys in one block of the filter share the
 * upper bits of h1, so the bit follows from all bits of both halves. */
static ngx_inline uint64_t
ngx_bloom_recent_bit(bloom_hash_t hash)
{
    return ((hash.h1 ^ hash.h2) * 0x9e3779b97f4a7c15) >> 44;
}


void
ngx_bloom_recent_put(ngx_bloom_recent_t *recent, bloom_hash_t hash)
{
    uint64_t  bit, mask, *word;

    bit = ngx_bloom_recent_bit(hash);
    mask = (uint64_t) 1 << bit % 64;

    word = &recent->map[__atomic_load_n(&recent->current, __ATOMIC_ACQUIRE)]
                       [bit / 64];

    if ((__atomic_load_n(word, __ATOMIC_RELAXED) & mask) == 0) {
        (void) __atomic_fetch_or(word, mask, __ATOMIC_RELAXED);
    }
}


ngx_uint_t
ngx_bloom_recent_has(ngx_bloom_recent_t *recent, bloom_hash_t hash)
{
    uint64_t  bit, mask;

    bit = ngx_bloom_recent_bit(hash);
    mask = (uint64_t) 1 << bit % 64;

    return ((__atomic_load_n(&recent->map[0][bit / 64], __ATOMIC_RELAXED)
             | __atomic_load_n(&recent->map[1][bit / 64], __ATOMIC_RELAXED))
            & mask) != 0;
}


void
ngx_bloom_recent_turn(ngx_bloom_recent_t *recent, uint64_t generation)
{
    uint64_t  now, older;

    now = ngx_current_msec;

    if (recent->generation != generation) {
        __atomic_store_n(&recent->begun, now, __ATOMIC_SEQ_CST);
        __atomic_store_n(&recent->generation, generation, __ATOMIC_SEQ_CST);
    }

    if (now - recent->turned < NGX_BLOOM_RECENT_MS) {
        return;
    }

    recent->turned = now;
    older = !recent->current;

    ngx_memzero(recent->map[older], sizeof(recent->map[older]));

    __atomic_store_n(&recent->current, older, __ATOMIC_RELEASE);
}


uint64_t
ngx_bloom_recent_since(ngx_bloom_recent_t *recent, uint64_t generation)
{
    return __atomic_load_n(&recent->generation, __ATOMIC_SEQ_CST) == generation
           ? __atomic_load_n(&recent->begun, __ATOMIC_SEQ_CST) : 0;
}
