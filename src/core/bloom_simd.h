/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions test or set patterns of eight bits in many lines at a time,
 * and look many keys up in a fuse base, with the best vector instructions that
 * the processor has.
 *
 * A pattern has 48 bits.  It selects one bit in each word of a line: bit
 * (pattern >> 6 i) & 63 of word i, i = 0 .. 7, as in bloom_layout.h with 8 bits
 * in a line.  Vector instructions test or set the eight words of a line at
 * once:
 *
 *     line      | w0 | w1 | w2 | w3 | w4 | w5 | w6 | w7 |     64 bytes
 *     mask      1 << (pattern >> 6 i & 63), in word i
 *     present   (line & mask) == mask
 *
 * All implementations give the same answers and set the same bits.  The choice
 * is made once, from what the processor reports.  Only the chosen functions
 * contain instructions beyond those that the compiler's flags allow, so the
 * program runs on any processor of its architecture.
 */

#ifndef BLOOM_SIMD_H
#define BLOOM_SIMD_H

#include <stdint.h>

#include "bloom_fuse_size.h"
#include "bloom_hasher.h"

#pragma GCC visibility push(hidden)


#define BLOOM_SIMD_LANES  4

/* A key's pattern in one line. */
typedef struct {
    uint64_t  line;                      /* number of the line, from 0 */
    uint64_t  pattern;
} bloom_place_t;


/* An implementation.  The words must be aligned to 8 bytes. */
typedef struct {
    const char  *name;

    /* Tests n patterns, at most 64.  Returns a bitmap: bit i is 1 if all bits
     * of pattern i are set.  Other processes may set bits at the same time. */
    uint64_t   (*test)(const uint64_t *words, const bloom_place_t *place,
                       unsigned n);

    /* Sets the bits of n patterns.  No other process may access the words at
     * the same time. */
    void       (*add)(uint64_t *words, const bloom_place_t *place, unsigned n);

    /* Looks up n keys in a fuse base: at most 64, and a multiple of
     * BLOOM_SIMD_LANES.  hash[i].h2 is the signature of key i.  Returns a
     * bitmap: bit i is 1 if the slots of key i have its fingerprint.  NULL if
     * there are no vector instructions for this. */
    uint64_t   (*test_fuse)(const bloom_fuse_t *fuse, const uint64_t *words,
                            const bloom_hash_t *hash, unsigned n);
} bloom_simd_t;


/* Returns the best implementation for this processor. */
const bloom_simd_t *bloom_simd(void);

/* Returns the i-th implementation that this processor can run, from 0: the best
 * one first, "portable" last, then NULL. */
const bloom_simd_t *bloom_simd_list(unsigned i);

/* Makes bloom_simd() return this implementation, or the best one again if
 * `simd` is NULL.  Tests and measurements use it. */
void bloom_simd_use(const bloom_simd_t *simd);


#pragma GCC visibility pop

#endif /* BLOOM_SIMD_H */
