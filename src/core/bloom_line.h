/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions compute a key's lines and patterns in a blocked filter, and
 * test a pattern in one line.  bloom_layout.h has the formulas.
 */

#ifndef BLOOM_LINE_H
#define BLOOM_LINE_H

#include "bloom_bits.h"
#include "bloom_geometry.h"
#include "bloom_hasher.h"
#include "bloom_murmur3.h"
#include "bloom_simd.h"


#ifndef __SIZEOF_INT128__
#error "a 64-bit machine is needed, and gcc or clang: numbers of 128 bits"
#endif

#define BLOOM_LINE_PHI  0x9e3779b97f4a7c15


/* Returns floor(x * n / 2^64), which maps a hash evenly onto 0 .. n-1
 * (Lemire, 2016). */
static inline uint64_t
bloom_line_scale(uint64_t x, uint64_t n)
{
    return (uint64_t) (((unsigned __int128) x * n) >> 64);
}


/* Returns the base of a blocked filter in the form of a layer. */
static inline bloom_layer_t
bloom_line_base(const bloom_geometry_t *g)
{
    bloom_layer_t  base;

    base.bits = g->bits;
    base.k = g->k;
    base.lines = g->lines;

    return base;
}


/* Returns a key's j-th line, and its pattern there: r bits, one in each sector
 * of 2^shift bits. */
static inline bloom_place_t
bloom_line_place(bloom_layer_t part, bloom_hash_t hash, uint32_t j)
{
    bloom_place_t  at;

    if (j != 0) {
        hash.h1 = bloom_murmur3_mix(hash.h1 + j * BLOOM_LINE_PHI);
        hash.h2 = bloom_murmur3_mix(hash.h2 + j * BLOOM_LINE_PHI);
    }

    at.line = bloom_line_scale(hash.h1, part.bits / BLOOM_LINE_BITS);
    at.pattern = hash.h2;

    return at;
}


/* Returns log2 of the sector size for r = 1, 2, 4 or 8 bits in a line. */
static inline uint32_t
bloom_line_shift(uint32_t r)
{
    return 9 - (uint32_t) __builtin_ctz(r);
}


/* Returns bit i of a pattern, counted from the line's first bit. */
static inline uint32_t
bloom_line_bit(uint64_t pattern, uint32_t i, uint32_t shift)
{
    return (i << shift)
           + (uint32_t) ((pattern >> (i * shift)) & ((1u << shift) - 1));
}


/* Returns 1 if the line has all r bits of the pattern, else 0.  The line costs
 * one memory access, so there is no branch until all bits are read. */
static inline int
bloom_line_test(const uint64_t *line, uint64_t pattern, uint32_t r,
    uint32_t shift)
{
    uint32_t  i;
    uint64_t  all;

    for (all = 1, i = 0; i < r; i++) {
        all &= bloom_bit_load(line, bloom_line_bit(pattern, i, shift));
    }

    return (int) (all & 1);
}


/* Returns 1 if the line has all bits of a pattern with one bit in each word,
 * else 0.  It is the usual case at rates below a few percent. */
static inline int
bloom_line_words_test(const uint64_t *line, uint64_t pattern)
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


/* Tests n patterns of r bits, n <= 64.  Returns a bitmap: bit i is 1 if the
 * line at[i] has all bits of its pattern. */
static inline uint64_t
bloom_line_test_many(const uint64_t *words, const bloom_place_t *at,
    unsigned n, uint32_t r)
{
    unsigned  i;
    uint64_t  answers;
    uint32_t  shift;

    if (r == BLOOM_LINE_WORDS) {
        return bloom_simd()->test(words, at, n);
    }

    shift = bloom_line_shift(r);

    for (answers = 0, i = 0; i < n; i++) {
        answers |= (uint64_t) bloom_line_test(words
                                              + at[i].line * BLOOM_LINE_WORDS,
                                              at[i].pattern, r, shift) << i;
    }

    return answers;
}


/* Returns a word with its n lowest bits set. */
static inline uint64_t
bloom_low_bits(unsigned n)
{
    return n == 64 ? UINT64_MAX : ((uint64_t) 1 << n) - 1;
}


/* Moves bit i of `answers` to the position of the i-th bit that is 1 in `of`,
 * the bitmap of what was tested. */
static inline uint64_t
bloom_spread(uint64_t answers, uint64_t of)
{
    uint64_t  all;

    if ((of & (of + 1)) == 0) {
        return answers;                  /* they are there already */
    }

    for (all = 0; of != 0; of &= of - 1, answers >>= 1) {
        all |= (of & -of) & -(answers & 1);
    }

    return all;
}


#endif /* BLOOM_LINE_H */
