/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A layout says where a key's bits are, in memory that the caller owns.
 *
 * A filter's bits are an array of 64-bit words, little-endian in memory on
 * every machine: bit b is bit b & 7 of byte b / 8.  So memory, file and other
 * languages agree.  The array has g->bits / 64 words and is aligned to 64
 * bytes wherever speed matters, to 8 always.
 *
 * classic, bit i of a key (Kirsch and Mitzenmacher, "Less Hashing, Same
 * Performance", 2006), i = 0 .. k-1:
 *
 *     b = ((h1 + i * h2) mod 2^64) * bits / 2^64
 *
 * blocked, line j of a key, j = 0 .. lines-1, r = k / lines bits in it:
 *
 *     (a, c) = (h1, h2)                                          if j = 0
 *              (mix64(h1 + j * PHI), mix64(h2 + j * PHI))        otherwise
 *     line   = a * (bits / 512) / 2^64
 *     b      = line * 512 + i * S + (c >> (i * log2 S)) mod S,   i = 0 .. r-1
 *
 * with S = 512 / r, PHI = 0x9e3779b97f4a7c15 and mix64 = bloom_murmur3_mix().
 * The divisions round down; sums wrap at 2^64; products are of 128 bits.  Every
 * bit of a key within a line comes from hash bits of its own: double hashing
 * inside so small a line would give too few distinct patterns.
 *
 * Those of imported filters are in bloom_layout_foreign.h; the functions here
 * know them all.
 *
 * Filters with other geometries or hashers cannot be compared or merged.
 */

#ifndef BLOOM_LAYOUT_H
#define BLOOM_LAYOUT_H

#include "bloom_hash.h"
#include "bloom_geometry.h"

#pragma GCC visibility push(hidden)


#define BLOOM_BATCH  64                  /* keys at a time, at most */


/* 1 if the key with this hash may be present, 0 if it is absent.  Safe while
 * other threads or processes add with bloom_layout_add_atomic(). */
int bloom_layout_test(const bloom_geometry_t *g, const uint64_t *words,
    bloom_hash_t hash);

/* Adds; 1 if any bit changed, 0 if the key was maybe present before.  The
 * caller is alone with the words. */
int bloom_layout_add(const bloom_geometry_t *g, uint64_t *words,
    bloom_hash_t hash);

/* The same for n keys, having asked for their lines ahead, and with vector
 * instructions where the processor has them. */
void bloom_layout_add_many(const bloom_geometry_t *g, uint64_t *words,
    const bloom_hash_t *hash, size_t n);

/* Like bloom_layout_add() with an atomic OR for each word, safe beside any
 * other: how many bits it changed, 0 if the key was maybe present before. */
int bloom_layout_add_atomic(const bloom_geometry_t *g, uint64_t *words,
    bloom_hash_t hash);

/* Asks the processor for the first line a test or an addition will touch. */
void bloom_layout_prefetch(const bloom_geometry_t *g, const uint64_t *words,
    bloom_hash_t hash);

/*
 * Tests n keys, up to BLOOM_BATCH, with vector instructions where the processor
 * has them, and with all lines that they need next on their way from memory
 * together: bit i is 1 if key i may be present.
 */
uint64_t bloom_layout_test_batch(const bloom_geometry_t *g,
    const uint64_t *words, const bloom_hash_t *hash, unsigned n);

/* In batches: the index of the first of n that may be present, n if all are
 * absent. */
unsigned bloom_layout_test_any(const bloom_geometry_t *g, const uint64_t *words,
    const bloom_hash_t *hash, unsigned n);

/* The numbers of the k bits of the key with this hash, in the order above;
 * some may be equal, and they may or may not be set.  Returns k.  Of links,
 * those of the last one, to which it would be added. */
uint32_t bloom_layout_bits(const bloom_geometry_t *g, bloom_hash_t hash,
    uint64_t bits[BLOOM_K_MAX]);

/* dst |= src, over n words. */
void bloom_layout_merge(uint64_t *dst, const uint64_t *src, uint64_t n);

/* How many bits of n words are set. */
uint64_t bloom_layout_bits_set(const uint64_t *words, uint64_t n);


#pragma GCC visibility pop

#endif /* BLOOM_LAYOUT_H */
