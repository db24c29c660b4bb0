/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file tests and adds keys in the layouts blocked and classic, singly and
 * in batches, and calls bloom_layout_foreign.c for all other layouts.
 */

#include "bloom_layout.h"
#include "bloom_bits.h"
#include "bloom_layout_foreign.h"
#include "bloom_murmur3.h"
#include "bloom_simd.h"


#ifndef __SIZEOF_INT128__
#error "a 64-bit machine is needed, and gcc or clang: numbers of 128 bits"
#endif

#define PHI  0x9e3779b97f4a7c15

/* Below this number, testing keys one by one is faster than a batch. */
#define FEW  4


/* Returns floor(x * n / 2^64), which maps a hash evenly onto 0 .. n-1
 * (Lemire, 2016). */
static inline uint64_t
scale(uint64_t x, uint64_t n)
{
    return (uint64_t) (((unsigned __int128) x * n) >> 64);
}


/* Returns a key's j-th line, and its pattern there: r bits, one in each sector
 * of 2^shift bits. */
static inline bloom_place_t
place(const bloom_geometry_t *g, bloom_hash_t hash, uint32_t j)
{
    bloom_place_t  at;

    if (j != 0) {
        hash.h1 = bloom_murmur3_mix(hash.h1 + j * PHI);
        hash.h2 = bloom_murmur3_mix(hash.h2 + j * PHI);
    }

    at.line = scale(hash.h1, g->bits / BLOOM_LINE_BITS);
    at.pattern = hash.h2;

    return at;
}


/* Returns log2 of the sector size for r = 1, 2, 4 or 8 bits in a line. */
static inline uint32_t
sector_shift(uint32_t r)
{
    return 9 - (uint32_t) __builtin_ctz(r);
}


/* Returns bit i of a pattern, counted from the line's first bit. */
static inline uint32_t
pattern_bit(uint64_t pattern, uint32_t i, uint32_t shift)
{
    return (i << shift)
           + (uint32_t) ((pattern >> (i * shift)) & ((1u << shift) - 1));
}


static inline uint64_t
classic_bit(const bloom_geometry_t *g, bloom_hash_t hash, uint32_t i)
{
    return scale(hash.h1 + i * hash.h2, g->bits);
}


static int
classic_test(const bloom_geometry_t *g, const uint64_t *words,
    bloom_hash_t hash)
{
    uint32_t  i;

    for (i = 0; i < g->k; i++) {
        if ((bloom_bit_load(words, classic_bit(g, hash, i)) & 1) == 0) {
            return 0;
        }
    }

    return 1;
}


/* The line costs one memory access, so there is no branch until all bits are
 * read. */
static inline int
line_test(const uint64_t *line, uint64_t pattern, uint32_t r, uint32_t shift)
{
    uint32_t  i;
    uint64_t  all;

    for (all = 1, i = 0; i < r; i++) {
        all &= bloom_bit_load(line, pattern_bit(pattern, i, shift));
    }

    return (int) (all & 1);
}


/* Tests a pattern with one bit in each word, the usual case at rates below a
 * few percent. */
static inline int
words_test(const uint64_t *line, uint64_t pattern)
{
    uint32_t  i;
    uint64_t  all;

    all = 1;

#pragma GCC unroll 8
    for (i = 0; i < BLOOM_LINE_WORDS; i++) {
        all &= bloom_le64(__atomic_load_n(&line[i], __ATOMIC_RELAXED))
               >> (pattern & 63);
        pattern >>= 6;
    }

    return (int) all;
}


static int
blocked_test(const bloom_geometry_t *g, const uint64_t *words,
    bloom_hash_t hash)
{
    int              match;
    bloom_place_t    at;
    uint32_t         j, r;
    const uint64_t  *line;

    r = (g->lines == 1) ? g->k : g->k / g->lines;

    for (j = 0; j < g->lines; j++) {
        at = place(g, hash, j);
        line = words + at.line * BLOOM_LINE_WORDS;

        match = (r == BLOOM_LINE_WORDS)
                ? words_test(line, at.pattern)
                : line_test(line, at.pattern, r, sector_shift(r));

        if (!match) {
            return 0;
        }
    }

    return 1;
}


/* A function of its own, so that the usual test need not save registers. */
static int __attribute__((noinline))
other_test(const bloom_geometry_t *g, const uint64_t *words, bloom_hash_t hash)
{
    if (g->layout == BLOOM_LAYOUT_BLOCKED) {
        return blocked_test(g, words, hash);
    }

    if (g->layout == BLOOM_LAYOUT_CLASSIC) {
        return classic_test(g, words, hash);
    }

    return bloom_layout_foreign_test(g, words, hash);
}


int
bloom_layout_test(const bloom_geometry_t *g, const uint64_t *words,
    bloom_hash_t hash)
{
    uint64_t  line;

    if (g->layout != BLOOM_LAYOUT_BLOCKED || g->k != BLOOM_LINE_WORDS
        || g->lines != 1)
    {
        return other_test(g, words, hash);
    }

    line = place(g, hash, 0).line;

    return words_test(words + line * BLOOM_LINE_WORDS, hash.h2);
}


static inline int
add(const bloom_geometry_t *g, uint64_t *words, bloom_hash_t hash, int atomic)
{
    int        changed;
    bloom_place_t  at;
    uint32_t   i, j, r, shift;
    uint64_t  *line;

    if (bloom_geometry_is_foreign(g->layout)) {
        return bloom_layout_foreign_add(g, words, hash, atomic);
    }

    changed = 0;

    if (g->layout == BLOOM_LAYOUT_CLASSIC) {
        for (i = 0; i < g->k; i++) {
            changed += bloom_bit_set(words, classic_bit(g, hash, i), atomic);
        }

        return changed;
    }

    r = g->k / g->lines;
    shift = sector_shift(r);

    for (j = 0; j < g->lines; j++) {
        at = place(g, hash, j);
        line = words + at.line * BLOOM_LINE_WORDS;

        for (i = 0; i < r; i++) {
            changed += bloom_bit_set(line, pattern_bit(at.pattern, i, shift),
                                     atomic);
        }
    }

    return changed;
}


uint32_t
bloom_layout_bits(const bloom_geometry_t *g, bloom_hash_t hash,
    uint64_t bits[BLOOM_K_MAX])
{
    bloom_place_t  at;
    uint32_t  i, j, r;

    if (bloom_geometry_is_foreign(g->layout)) {
        return bloom_layout_foreign_bits(g, hash, bits);
    }

    if (g->layout == BLOOM_LAYOUT_CLASSIC) {
        for (i = 0; i < g->k; i++) {
            bits[i] = classic_bit(g, hash, i);
        }

        return g->k;
    }

    r = g->k / g->lines;

    for (j = 0; j < g->lines; j++) {
        at = place(g, hash, j);

        for (i = 0; i < r; i++) {
            bits[j * r + i] = at.line * BLOOM_LINE_BITS
                              + pattern_bit(at.pattern, i, sector_shift(r));
        }
    }

    return g->k;
}


int
bloom_layout_add(const bloom_geometry_t *g, uint64_t *words, bloom_hash_t hash)
{
    return add(g, words, hash, 0) != 0;
}


int
bloom_layout_add_atomic(const bloom_geometry_t *g, uint64_t *words,
    bloom_hash_t hash)
{
    return add(g, words, hash, 1);
}


static inline const uint64_t *
first_line(const bloom_geometry_t *g, const uint64_t *words, bloom_hash_t hash)
{
    if (g->layout == BLOOM_LAYOUT_CLASSIC) {
        return words + classic_bit(g, hash, 0) / 64;
    }

    return words + place(g, hash, 0).line * BLOOM_LINE_WORDS;
}


void
bloom_layout_prefetch(const bloom_geometry_t *g, const uint64_t *words,
    bloom_hash_t hash)
{
    if (!bloom_geometry_is_foreign(g->layout)) {
        __builtin_prefetch(first_line(g, words, hash), 1);
    }
}


/*
 * A batch is tested line by line, or bit by bit.  For every key that may still
 * be present, the next line or bit is prefetched before the first one is read,
 * so that memory serves all of them in parallel.
 *
 * The code does not call bloom_layout_prefetch(): gcc takes a function that
 * does nothing but prefetch for one without effects, and drops the calls.
 */


/* Returns a word with its n lowest bits set. */
static inline uint64_t
low_bits(unsigned n)
{
    return n == 64 ? UINT64_MAX : ((uint64_t) 1 << n) - 1;
}


/* Moves each bit of `answers` to the position of its key, where `of` is the
 * bitmap of the keys tested, in order. */
static inline uint64_t
spread(uint64_t answers, uint64_t of)
{
    uint64_t  all;

    for (all = 0; of != 0; of &= of - 1, answers >>= 1) {
        all |= (of & -of) & -(answers & 1);
    }

    return all;
}


/* Computes and prefetches the j-th places of the keys in the bitmap `of`.
 * Returns their number. */
static inline unsigned
places(const bloom_geometry_t *g, const uint64_t *words,
    const bloom_hash_t *hash, uint64_t of, uint32_t j,
    bloom_place_t at[BLOOM_BATCH])
{
    unsigned  n;

    for (n = 0; of != 0; of &= of - 1, n++) {
        at[n] = place(g, hash[__builtin_ctzll(of)], j);
        __builtin_prefetch(words + at[n].line * BLOOM_LINE_WORDS, 0);
    }

    return n;
}


static uint64_t
blocked_test_batch(const bloom_geometry_t *g, const uint64_t *words,
    const bloom_hash_t *hash, unsigned n)
{
    uint32_t       j, r, shift;
    unsigned       i;
    uint64_t       present, answers;
    bloom_place_t  at[BLOOM_BATCH];

    r = g->k / g->lines;
    shift = sector_shift(r);
    present = low_bits(n);

    for (j = 0; j < g->lines && present != 0; j++) {
        n = places(g, words, hash, present, j, at);

        if (r == BLOOM_LINE_WORDS) {
            answers = bloom_simd()->test(words, at, n);

        } else {
            for (answers = 0, i = 0; i < n; i++) {
                answers |= (uint64_t)
                           line_test(words + at[i].line * BLOOM_LINE_WORDS,
                                     at[i].pattern, r, shift) << i;
            }
        }

        present = (j == 0) ? answers : spread(answers, present);
    }

    return present;
}


static uint64_t
classic_test_batch(const bloom_geometry_t *g, const uint64_t *words,
    const bloom_hash_t *hash, unsigned n)
{
    uint32_t  i;
    unsigned  key;
    uint64_t  bit[BLOOM_BATCH], of, present;

    present = low_bits(n);

    for (i = 0; i < g->k && present != 0; i++) {

        for (of = present; of != 0; of &= of - 1) {
            key = (unsigned) __builtin_ctzll(of);
            bit[key] = classic_bit(g, hash[key], i);
            __builtin_prefetch(&words[bit[key] / 64], 0);
        }

        for (of = present; of != 0; of &= of - 1) {
            key = (unsigned) __builtin_ctzll(of);
            present ^= (~bloom_bit_load(words, bit[key]) & 1) << key;
        }
    }

    return present;
}


uint64_t
bloom_layout_test_batch(const bloom_geometry_t *g, const uint64_t *words,
    const bloom_hash_t *hash, unsigned n)
{
    unsigned  i;
    uint64_t  present;

    if (g->layout == BLOOM_LAYOUT_BLOCKED) {
        return blocked_test_batch(g, words, hash, n);
    }

    if (g->layout == BLOOM_LAYOUT_CLASSIC) {
        return classic_test_batch(g, words, hash, n);
    }

    for (present = 0, i = 0; i < n; i++) {
        present |= (uint64_t) bloom_layout_foreign_test(g, words, hash[i]) << i;
    }

    return present;
}


/* Adds at most BLOOM_BATCH keys with eight bits in each line. */
static void
blocked_add_batch(const bloom_geometry_t *g, uint64_t *words,
    const bloom_hash_t *hash, unsigned n)
{
    uint32_t       j;
    unsigned       i;
    bloom_place_t  at[BLOOM_LINES_MAX][BLOOM_BATCH];

    for (j = 0; j < g->lines; j++) {
        for (i = 0; i < n; i++) {
            at[j][i] = place(g, hash[i], j);
            __builtin_prefetch(words + at[j][i].line * BLOOM_LINE_WORDS, 1);
        }
    }

    for (j = 0; j < g->lines; j++) {
        bloom_simd()->add(words, at[j], n);
    }
}


void
bloom_layout_add_many(const bloom_geometry_t *g, uint64_t *words,
    const bloom_hash_t *hash, size_t n)
{
    size_t    i;
    unsigned  part;

    for ( /* void */ ; n != 0; hash += part, n -= part) {
        part = (n < BLOOM_BATCH) ? (unsigned) n : BLOOM_BATCH;

        if (g->layout == BLOOM_LAYOUT_BLOCKED
            && g->k == g->lines * BLOOM_LINE_WORDS)
        {
            blocked_add_batch(g, words, hash, part);
            continue;
        }

        if (!bloom_geometry_is_foreign(g->layout)) {
            for (i = 0; i < part; i++) {
                __builtin_prefetch(first_line(g, words, hash[i]), 1);
            }
        }

        for (i = 0; i < part; i++) {
            (void) bloom_layout_add(g, words, hash[i]);
        }
    }
}


unsigned
bloom_layout_test_any(const bloom_geometry_t *g, const uint64_t *words,
    const bloom_hash_t *hash, unsigned n)
{
    unsigned  i, part;
    uint64_t  present;

    if (n < FEW) {

        for (i = 1; i < n && !bloom_geometry_is_foreign(g->layout); i++) {
            __builtin_prefetch(first_line(g, words, hash[i]), 0);
        }

        for (i = 0; i < n && !bloom_layout_test(g, words, hash[i]); i++) {
            /* void */
        }

        return i;
    }

    for (i = 0; i < n; i += part) {
        part = (n - i < BLOOM_BATCH) ? n - i : BLOOM_BATCH;
        present = bloom_layout_test_batch(g, words, hash + i, part);

        if (present != 0) {
            return i + (unsigned) __builtin_ctzll(present);
        }
    }

    return n;
}


void
bloom_layout_merge(uint64_t *dst, const uint64_t *src, uint64_t n)
{
    uint64_t  i;

    for (i = 0; i < n; i++) {
        dst[i] |= src[i];
    }
}


static uint64_t
count_portable(const uint64_t *words, uint64_t n)
{
    uint64_t  i, w, bits_set;

    for (i = 0, bits_set = 0; i < n; i++) {
        w = words[i];

        w -= (w >> 1) & 0x5555555555555555;
        w = (w & 0x3333333333333333) + ((w >> 2) & 0x3333333333333333);
        w = (w + (w >> 4)) & 0x0f0f0f0f0f0f0f0f;

        bits_set += (w * 0x0101010101010101) >> 56;
    }

    return bits_set;
}


#if defined(__x86_64__)

__attribute__((target("popcnt")))
static uint64_t
count_popcnt(const uint64_t *words, uint64_t n)
{
    uint64_t  i, bits_set;

    for (i = 0, bits_set = 0; i < n; i++) {
        bits_set += (uint64_t) __builtin_popcountll(words[i]);
    }

    return bits_set;
}

#endif


uint64_t
bloom_layout_bits_set(const uint64_t *words, uint64_t n)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("popcnt")) {
        return count_popcnt(words, n);
    }
#endif

    return count_portable(words, n);
}
