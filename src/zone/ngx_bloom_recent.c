/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A process may be stopped after it has read which map is current, and may set
 * its bit only when that map is cleared.  So it reads again whether the maps
 * have been turned, and then sets the bit of the current map, too.
 */

#include "ngx_bloom_recent.h"
#include "bloom_murmur3.h"
#include "ngx_bloom_io.h"


_Static_assert(NGX_BLOOM_RECENT_BITS == 1 << 20, "64 - 44 bits of a number");


/*
 * Returns the number of a hash's bit.  Keys in one block of the filter share
 * the upper bits of h1, so the bit follows from all bits of both halves.  A
 * hash that refers to its key depends on where the key is, so the key is
 * hashed.
 */
static ngx_inline uint64_t
ngx_bloom_recent_bit(const bloom_hasher_t *hasher, bloom_hash_t hash)
{
    if (bloom_hasher_refers(hasher)) {
        hash = bloom_murmur3_x64_128((const void *) (uintptr_t) hash.h1,
                                 (size_t) hash.h2, 0);
    }

    return ((hash.h1 ^ hash.h2) * 0x9e3779b97f4a7c15) >> 44;
}


void
ngx_bloom_recent_put(ngx_bloom_recent_t *recent, const bloom_hasher_t *hasher,
    const bloom_hash_t *hash, ngx_uint_t n)
{
    uint64_t    bit, mask, turns, now, *word;
    ngx_uint_t  i;

    now = __atomic_load_n(&recent->turns, __ATOMIC_ACQUIRE);

    do {
        turns = now;

        for (i = 0; i < n; i++) {
            bit = ngx_bloom_recent_bit(hasher, hash[i]);
            mask = (uint64_t) 1 << bit % 64;
            word = &recent->map[turns & 1][bit / 64];

            if ((__atomic_load_n(word, __ATOMIC_RELAXED) & mask) == 0) {
                (void) __atomic_fetch_or(word, mask, __ATOMIC_ACQ_REL);
            }
        }

        now = __atomic_load_n(&recent->turns, __ATOMIC_ACQUIRE);
    } while (now != turns);
}


ngx_uint_t
ngx_bloom_recent_has(ngx_bloom_recent_t *recent, const bloom_hasher_t *hasher,
    bloom_hash_t hash)
{
    uint64_t  bit, mask;

    bit = ngx_bloom_recent_bit(hasher, hash);
    mask = (uint64_t) 1 << bit % 64;

    return ((__atomic_load_n(&recent->map[0][bit / 64], __ATOMIC_RELAXED)
             | __atomic_load_n(&recent->map[1][bit / 64], __ATOMIC_RELAXED))
            & mask) != 0;
}


void
ngx_bloom_recent_turn(ngx_bloom_recent_t *recent, uint64_t generation)
{
    uint64_t  turns;

    if (!recent->on || recent->generation != generation) {

        /* additions that have begun before now may not be remembered */

        __atomic_store_n(&recent->on, 1, __ATOMIC_SEQ_CST);

        ngx_time_update();

        __atomic_store_n(&recent->begun, ngx_current_msec, __ATOMIC_SEQ_CST);
        __atomic_store_n(&recent->generation, generation, __ATOMIC_SEQ_CST);
    }

    if (recent->turned != 0) {

        if (ngx_current_msec - recent->turned < NGX_BLOOM_RECENT_MS) {
            return;
        }

        /* if this process dies before it notes the time, the next one does */

        recent->turned = 0;
        turns = recent->turns + 1;

        ngx_memzero(recent->map[turns & 1], sizeof(recent->map[0]));

        ngx_bloom_fault("turn");

        __atomic_store_n(&recent->turns, turns, __ATOMIC_SEQ_CST);
    }

    /* the older map has keys that were put up to now, even if this process was
     * stopped for long */

    ngx_time_update();

    recent->turned = ngx_current_msec;
}


uint64_t
ngx_bloom_recent_since(ngx_bloom_recent_t *recent, uint64_t generation)
{
    return __atomic_load_n(&recent->generation, __ATOMIC_SEQ_CST) == generation
           ? __atomic_load_n(&recent->begun, __ATOMIC_SEQ_CST) : 0;
}
