/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A lookup reads three slots at once.  In a batch, all slots of all keys are
 * requested from memory before the first of them is read.
 */

#include "bloom_layout_fuse.h"
#include "bloom_fuse.h"
#include "bloom_layout.h"


int
bloom_layout_fuse_test(const bloom_geometry_t *g, const uint64_t *words,
    bloom_hash_t hash)
{
    bloom_fuse_place_t  at;

    at = bloom_fuse_place(g, hash);

    return bloom_fuse_match(g, words, &at);
}


uint64_t
bloom_layout_fuse_test_batch(const bloom_geometry_t *g, const uint64_t *words,
    const bloom_hash_t *hash, unsigned n)
{
    unsigned            i;
    uint64_t            present;
    bloom_fuse_place_t  at[BLOOM_BATCH];

    for (i = 0; i < n; i++) {
        at[i] = bloom_fuse_place(g, hash[i]);
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

    at = bloom_fuse_place(g, hash);

    bloom_fuse_prefetch(words, &at);
}
