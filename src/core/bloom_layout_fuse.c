/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A lookup reads three slots at once.  In a batch, all slots of all keys are
 * requested from memory before the first of them is read.
 */

#include "bloom_layout_fuse.h"
#include "bloom_fuse.h"
#include "bloom_simd.h"

#define BATCH  64                        /* keys, at most: a bitmap's bits */


/* Returns the bits of a slot, and others above them. */
static inline uint32_t
slot_load(const bloom_geometry_t *g, const uint64_t *words, uint64_t slot)
{
    return bloom_fuse_load(words, bloom_fuse_bit(&g->fuse, slot));
}


/* Has the compiler keep the order of what is before and behind: it would
 * compute all places before it loads the first slot, and save registers for
 * them. */
#define AS_WRITTEN(x)  __asm__("" : "+r" (x))


/* Does what bloom_fuse_place() and bloom_fuse_match() do, with fewer
 * instructions. */
int
bloom_layout_fuse_test(const bloom_geometry_t *g, const uint64_t *words,
    bloom_hash_t hash)
{
    uint32_t           rest;
    uint64_t           x, shard, first, length;
    unsigned __int128  product;

    shard = bloom_fuse_shard(g, hash);
    x = bloom_fuse_signature(hash.h2, bloom_fuse_salt(g, words, shard));
    length = g->fuse.length;
    product = (unsigned __int128) x * (g->fuse.segments - 2);
    first = shard * bloom_fuse_slots(&g->fuse)
            + (uint64_t) (product >> 64) * length;

    rest = slot_load(g, words,
                     first + bloom_line_scale((uint64_t) product, length));
    AS_WRITTEN(rest);
    first += length;
    rest ^= slot_load(g, words,
                      first + bloom_line_scale(x << 25 | x >> 39, length));
    AS_WRITTEN(rest);
    first += length;
    rest ^= slot_load(g, words,
                      first + bloom_line_scale(x << 43 | x >> 21, length));
    first += length;

    rest ^= bloom_fuse_print(x);

    return rest << (32 - g->fuse.width - (first <= g->fuse.wide)) == 0
           && g->fuse.keys != 0;
}


/* Tests n keys with vector instructions. */
static uint64_t
vector_test(const bloom_simd_t *simd, const bloom_geometry_t *g,
    const uint64_t *words, const bloom_hash_t *hash, unsigned n)
{
    unsigned      i;
    uint64_t      present;
    bloom_hash_t  key[BATCH];

    for (i = 0; i < n; i++) {
        key[i].h1 = hash[i].h1;
        key[i].h2 = bloom_fuse_signature(hash[i].h2,
                                         bloom_fuse_salt(g, words,
                                                bloom_fuse_shard(g, hash[i])));
    }

    for ( /* void */ ; i % BLOOM_SIMD_LANES != 0; i++) {
        key[i] = key[n - 1];             /* its answer is dropped */
    }

    present = simd->test_fuse(&g->fuse, words, key, i);

    return present & bloom_low_bits(n);
}


uint64_t
bloom_layout_fuse_test_batch(const bloom_geometry_t *g, const uint64_t *words,
    const bloom_hash_t *hash, unsigned n)
{
    unsigned             i;
    uint64_t             present;
    bloom_fuse_place_t   at[BATCH];
    const bloom_simd_t  *simd;

    simd = bloom_simd();

    if (simd->test_fuse != NULL && g->fuse.keys != 0) {
        return vector_test(simd, g, words, hash, n);
    }

    for (i = 0; i < n; i++) {
        at[i] = bloom_fuse_place(g, words, hash[i]);
        bloom_fuse_prefetch(words, &at[i]);
    }

    for (present = 0, i = 0; i < n; i++) {
        present |= (uint64_t) bloom_fuse_match(g, words, &at[i]) << i;
    }

    return present;
}


void
bloom_layout_fuse_prefetch(const bloom_geometry_t *g, const uint64_t *words,
    bloom_hash_t hash)
{
    bloom_fuse_place_t  at;

    at = bloom_fuse_place(g, words, hash);

    bloom_fuse_prefetch(words, &at);
}
