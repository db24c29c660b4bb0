/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A pair is a key and a live slice.  The pairs of several keys are tested
 * together, up to PAIRS of them, because memory serves only so many requests at
 * once.  With s live slices, pair i * s + n is key i in the n-th live slice:
 *
 *     | key 0: slice 2, 3, 5 | key 1: slice 2, 3, 5 | ...
 *       bit 0      1  2        3            4  5
 */

#include "bloom_layout_ring.h"
#include "bloom_line.h"

#define PAIRS  64                        /* the bits of a bitmap */


/* Computes and prefetches the j-th places of the pairs in the bitmap `of`.
 * Returns their number. */
static inline unsigned
places(const bloom_geometry_t *g, const uint64_t *words,
    const bloom_hash_t *hash, unsigned s, uint64_t of, uint32_t j,
    bloom_place_t at[PAIRS])
{
    unsigned       n;
    uint64_t       slice, live, mine;
    bloom_place_t  place;

    for (n = 0; of != 0; hash++) {
        mine = of & bloom_low_bits(s);
        of = s < PAIRS ? of >> s : 0;

        if (mine == 0) {
            continue;
        }

        place = bloom_line_place(bloom_line_base(g), *hash, j);

        for (live = g->live; mine != 0; live &= live - 1, mine >>= 1) {

            if ((mine & 1) == 0) {
                continue;
            }

            slice = (uint64_t) __builtin_ctzll(live);
            at[n].line = place.line + slice * (g->bits / BLOOM_LINE_BITS);
            at[n].pattern = place.pattern;
            __builtin_prefetch(words + at[n].line * BLOOM_LINE_WORDS, 0);
            n++;
        }
    }

    return n;
}


/* Tests n keys in the s live slices, n * s from 1 to PAIRS.  Returns the bitmap
 * of the pairs whose slice may have the key. */
static inline uint64_t
test_pairs(const bloom_geometry_t *g, const uint64_t *words,
    const bloom_hash_t *hash, unsigned n, unsigned s)
{
    uint32_t       j, r;
    uint64_t       present;
    unsigned       some;
    bloom_place_t  at[PAIRS];

    r = g->k / g->lines;
    present = bloom_low_bits(n * s);

    for (j = 0; j < g->lines && present != 0; j++) {
        some = places(g, words, hash, s, present, j, at);
        present = bloom_spread(bloom_line_test_many(words, at, some, r),
                               present);
    }

    return present;
}


uint64_t
bloom_layout_ring_slices(const bloom_geometry_t *g, const uint64_t *words,
    bloom_hash_t hash)
{
    return bloom_spread(test_pairs(g, words, &hash, 1,
                                   (unsigned) __builtin_popcountll(g->live)),
                        g->live);
}


uint64_t
bloom_layout_ring_test_batch(const bloom_geometry_t *g, const uint64_t *words,
    const bloom_hash_t *hash, unsigned n)
{
    unsigned  i, j, s, some;
    uint64_t  pairs, present;

    s = (unsigned) __builtin_popcountll(g->live);

    if (s == 0) {
        return 0;
    }

    for (present = 0, i = 0; i < n; i += some) {
        some = PAIRS / s < n - i ? PAIRS / s : n - i;
        pairs = test_pairs(g, words, hash + i, some, s);

        for (j = i; pairs != 0; j++) {
            present |= (uint64_t) ((pairs & bloom_low_bits(s)) != 0) << j;
            pairs = s < PAIRS ? pairs >> s : 0;
        }
    }

    return present;
}


void
bloom_layout_ring_prefetch(const bloom_geometry_t *g, const uint64_t *words,
    bloom_hash_t hash)
{
    uint64_t  live;

    words += bloom_line_place(bloom_line_base(g), hash, 0).line
             * BLOOM_LINE_WORDS;

    for (live = g->live; live != 0; live &= live - 1) {
        __builtin_prefetch(words + (uint64_t) __builtin_ctzll(live)
                                   * (g->bits / 64), 0);
    }
}
