/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Patterns of eight bits are tested or set in lines, many at a time, by
 * whatever vector instructions the processor has.
 *
 * A pattern is 48 bits: word i of its line, i = 0 .. 7, is asked for bit
 * (pattern >> 6 i) & 63, as bloom_layout.h describes it for 8 bits in a line.
 * A set of instructions tests or sets a line's eight words at once:
 *
 *     line      | w0 | w1 | w2 | w3 | w4 | w5 | w6 | w7 |     64 bytes
 *     mask      1 << (pattern >> 6 i & 63), in word i
 *     present   (line & mask) == mask
 *
 * Every set gives the same answers and leaves the same bits; which one runs
 * is decided once, by what the processor says of itself.  Nothing outside of
 * functions that were chosen so has other instructions than the compiler's
 * flags allow.
 */

#ifndef BLOOM_SIMD_H
#define BLOOM_SIMD_H

#include <stdint.h>

#pragma GCC visibility push(hidden)


/* A key's pattern in one line. */
typedef struct {
    uint64_t  line;                      /* its number, from 0 */
    uint64_t  pattern;
} bloom_place_t;


/* The words are aligned to 8 bytes. */
typedef struct {
    const char  *name;

    /* Of n patterns, n up to 64: bit i is 1 if all bits of pattern i are set.
     * Others may be setting bits meanwhile. */
    uint64_t   (*test)(const uint64_t *words, const bloom_place_t *place,
                       unsigned n);

    /* Sets the bits of n patterns.  The caller is alone with the words. */
    void       (*add)(uint64_t *words, const bloom_place_t *place, unsigned n);
} bloom_simd_t;


/* The best for this processor. */
const bloom_simd_t *bloom_simd(void);

/* The i-th that it can run, the best first and "portable" last; then NULL. */
const bloom_simd_t *bloom_simd_list(unsigned i);

/* For tests and measurements: from now on bloom_simd() is this one, or, with
 * NULL, the best again. */
void bloom_simd_use(const bloom_simd_t *simd);


#pragma GCC visibility pop

#endif /* BLOOM_SIMD_H */
