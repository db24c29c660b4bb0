/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header has a simple implementation of the description in bloom_layout.h,
 * which works on bytes, one bit at a time, and filters in memory.
 */

#ifndef SLOW_LAYOUT_H
#define SLOW_LAYOUT_H

#include "unit.h"

#include "bloom_layout.h"
#include "bloom_simd.h"

#define GUARD  0x5ca1ab1e0ddba115


/* ---- the slow layout ---- */

typedef struct {
    uint64_t  bit[BLOOM_K_MAX];
} places_t;


/* Returns floor(a * b / 2^64), from the four products of 32-bit halves. */
static inline uint64_t
high_half(uint64_t a, uint64_t b)
{
    uint64_t  al, ah, bl, bh, middle;

    al = (uint32_t) a;
    ah = a >> 32;
    bl = (uint32_t) b;
    bh = b >> 32;

    middle = ah * bl + (al * bl >> 32);

    return ah * bh + (middle >> 32) + ((al * bh + (uint32_t) middle) >> 32);
}


static inline uint64_t
mix64(uint64_t x)
{
    x = (x ^ x >> 33) * 0xff51afd7ed558ccd;
    x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53;

    return x ^ x >> 33;
}


static inline places_t
slow_places(const bloom_geometry_t *g, bloom_hash_t h)
{
    uint64_t  i, j, r, s, a, c, line, n;
    places_t  places;

    if (g->layout == BLOOM_LAYOUT_CLASSIC) {
        for (i = 0; i < g->k; i++) {
            places.bit[i] = high_half(h.h1 + i * h.h2, g->bits);
        }

        return places;
    }

    r = g->k / g->lines;
    s = 512 / r;

    for (n = 0, j = 0; j < g->lines; j++) {
        a = j == 0 ? h.h1 : mix64(h.h1 + j * 0x9e3779b97f4a7c15);
        c = j == 0 ? h.h2 : mix64(h.h2 + j * 0x9e3779b97f4a7c15);

        line = high_half(a, g->bits / 512);

        for (i = 0; i < r; i++, c /= s) {
            places.bit[n++] = line * 512 + i * s + c % s;
        }
    }

    return places;
}


/* Returns the i-th part of a filter with layers as a filter of its own, and the
 * byte at which it begins. */
static inline bloom_geometry_t
slow_part(const bloom_geometry_t *g, uint32_t i, uint64_t *begin)
{
    uint32_t          j;
    bloom_geometry_t  part;

    part = *g;
    part.layers = 0;

    for (*begin = 0, j = 0; j < i; j++) {
        *begin += part.bits / 8;
        part.layout = BLOOM_LAYOUT_BLOCKED;
        part.bits = g->layer[j].bits;
        part.k = g->layer[j].k;
        part.lines = g->layer[j].lines;
    }

    return part;
}


static inline int
slow_test(const bloom_geometry_t *g, const uint8_t *bytes, bloom_hash_t h)
{
    uint32_t          i;
    uint64_t          begin;
    places_t          places;
    bloom_geometry_t  part;

    for (i = 0; g->layers != 0 && i <= g->layers; i++) {
        part = slow_part(g, i, &begin);

        if (slow_test(&part, bytes + begin, h)) {
            return 1;
        }
    }

    if (g->layers != 0) {
        return 0;
    }

    places = slow_places(g, h);

    for (i = 0; i < g->k; i++) {
        if ((bytes[places.bit[i] / 8] >> places.bit[i] % 8 & 1) == 0) {
            return 0;
        }
    }

    return 1;
}


static inline int
slow_add(const bloom_geometry_t *g, uint8_t *bytes, bloom_hash_t h)
{
    int               known;
    uint32_t          i;
    uint64_t          begin;
    places_t          places;
    bloom_geometry_t  last;

    if (g->layers != 0) {
        last = slow_part(g, g->layers, &begin);

        return !slow_test(g, bytes, h) && slow_add(&last, bytes + begin, h);
    }

    known = slow_test(g, bytes, h);
    places = slow_places(g, h);

    for (i = 0; i < g->k; i++) {
        bytes[places.bit[i] / 8] |= (uint8_t) (1 << places.bit[i] % 8);
    }

    return !known;
}


/* ---- filters ---- */


/* The words of a filter, with guards on both sides. */
static inline uint64_t *
filter_new(const bloom_geometry_t *g)
{
    uint64_t  *words, n;

    n = bloom_geometry_bytes(g) / 8;
    words = unit_zeros((n + 2) * sizeof(uint64_t));

    words[0] = GUARD;
    words[n + 1] = GUARD;

    return words + 1;
}


static inline void
filter_free(const bloom_geometry_t *g, uint64_t *words)
{
    assert_true(words[-1] == GUARD);
    assert_true(words[bloom_geometry_bytes(g) / 8] == GUARD);

    free(words - 1);
}


static inline bloom_hash_t
random_hash(uint64_t *seed)
{
    bloom_hash_t  hash;

    hash.h1 = unit_random(seed);
    hash.h2 = unit_random(seed);

    return hash;
}


/* A filter of the simple implementation. */
typedef struct {
    const bloom_geometry_t  *g;
    const uint8_t           *bytes;
} slow_t;


static inline int
slow_has(const void *data, bloom_hash_t hash)
{
    const slow_t  *slow = data;

    return slow_test(slow->g, slow->bytes, hash);
}


/* Compares all ways to look keys up with `has`, in batches of every size
 * and with every instruction set.  Half of the keys are those that were
 * added. */
static inline void
check_lookups(const bloom_geometry_t *g, const uint64_t *words,
    const bloom_hash_t *added, unsigned n_added, uint64_t seed,
    int (*has)(const void *data, bloom_hash_t hash), const void *data)
{
    uint64_t             answers;
    unsigned             i, n, v, first;
    bloom_hash_t         hash[BLOOM_BATCH];
    const bloom_simd_t  *vector;

    for (v = 0; (vector = bloom_simd_list(v)) != NULL; v++) {
        bloom_simd_use(vector);

        for (n = 0; n <= BLOOM_BATCH; n += n < 4 ? 1 : 6) {
            answers = 0;
            first = n;

            for (i = n; i-- > 0; /* void */ ) {
                hash[i] = n_added != 0 && unit_random(&seed) % 2
                          ? added[unit_random(&seed) % n_added]
                          : random_hash(&seed);

                if (has(data, hash[i])) {
                    answers |= (uint64_t) 1 << i;
                    first = i;
                }

                bloom_layout_prefetch(g, words, hash[i]);
                assert_int_equal(bloom_layout_test(g, words, hash[i]),
                                 answers >> i & 1);
            }

            assert_true(bloom_layout_test_batch(g, words, hash, n) == answers);
            assert_int_equal(bloom_layout_test_any(g, words, hash, n), first);
        }
    }

    bloom_simd_use(NULL);
}


#endif /* SLOW_LAYOUT_H */
