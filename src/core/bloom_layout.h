/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions test and add keys in a filter's bits, in memory that the
 * caller owns.  The layout decides which bits belong to a key.
 *
 * The bits are an array of 64-bit words that are little-endian in memory on
 * every machine: bit b is bit b & 7 of byte b / 8.  So memory, files and
 * programs in other languages agree.  The array has bloom_geometry_bytes() / 8
 * words.  It must be aligned to 8 bytes, and should be aligned to 64 for speed.
 *
 * classic: bit i of a key, i = 0 .. k-1 (Kirsch and Mitzenmacher, "Less
 * Hashing, Same Performance", 2006):
 *
 *     b = ((h1 + i * h2) mod 2^64) * bits / 2^64
 *
 * blocked: line j of a key, j = 0 .. lines-1, and its r = k / lines bits:
 *
 *     (a, c) = (h1, h2)                                          if j = 0
 *              (mix64(h1 + j * PHI), mix64(h2 + j * PHI))        otherwise
 *     line   = a * (bits / 512) / 2^64
 *     b      = line * 512 + i * S + (c >> (i * log2 S)) mod S,   i = 0 .. r-1
 *
 * with S = 512 / r, PHI = 0x9e3779b97f4a7c15 and mix64 = bloom_murmur3_mix().
 * Divisions round down, sums wrap at 2^64, and products have 128 bits.  Each
 * bit of a key in a line is chosen by different bits of the hash: double
 * hashing within a line of 512 bits would give too few distinct patterns.
 *
 * A filter that has grown has layers behind the base.  Layer i is a blocked
 * filter with its own bits, k and lines.  A key has the same hash in all parts;
 * it is present if any part has it, and is added to the last one unless it is
 * present.
 *
 * A ring has slices, blocked filters of equal dimensions one behind the other,
 * so a key has the same lines and bits in each of them: slice i begins at word
 * i * bits / 64.  A key is present if any live slice has it.  It is added to
 * the open slice, also if another slice has it: there it expires earlier.
 *
 * A fuse base is described in bloom_fuse.h.  No key can be added to it: with
 * layers, keys are added to the last one; without layers, the functions that add
 * keys change nothing, and callers refuse additions before.
 *
 * The layouts of imported filters are described in bloom_layout_foreign.h; the
 * functions here accept them too.
 *
 * Only filters with equal geometries and hashers can be compared or merged.
 */

#ifndef BLOOM_LAYOUT_H
#define BLOOM_LAYOUT_H

#include "bloom_hash.h"
#include "bloom_geometry.h"

#pragma GCC visibility push(hidden)


#define BLOOM_BATCH  64                  /* keys in a batch, at most */


/* Returns 1 if the key with this hash may be present, 0 if it is absent.  Other
 * processes may add with bloom_layout_add_atomic() at the same time. */
int bloom_layout_test(const bloom_geometry_t *g, const uint64_t *words,
    bloom_hash_t hash);

/* Adds a key.  Returns 1 if any bit changed, 0 if the key may have been present
 * before, with slices: in the open one.  No other process may access the words
 * at the same time. */
int bloom_layout_add(const bloom_geometry_t *g, uint64_t *words,
    bloom_hash_t hash);

/* Adds n keys faster than n calls of bloom_layout_add(): it prefetches lines,
 * and uses vector instructions if the processor has them. */
void bloom_layout_add_many(const bloom_geometry_t *g, uint64_t *words,
    const bloom_hash_t *hash, size_t n);

/* Adds a key with an atomic OR for each word, while other processes may test
 * and add.  Returns the number of bits it changed; 0 if the key may have been
 * present before, with slices: in the open one. */
int bloom_layout_add_atomic(const bloom_geometry_t *g, uint64_t *words,
    bloom_hash_t hash);

/*
 * Adds n keys, at most BLOOM_BATCH, as so many additions one after another do.
 * If `atomic` is 0, no other process may add at the same time.  Returns the
 * number of bits they changed, and a bitmap: bit i of *changed is 1 if key i
 * changed any.  In a filter without layers, the lines should be prefetched; with
 * layers, it prefetches the first line of each part.
 */
uint64_t bloom_layout_add_batch(const bloom_geometry_t *g, uint64_t *words,
    const bloom_hash_t *hash, unsigned n, int atomic, uint64_t *changed);

/* Prefetches the first line that a test or an addition will touch, in a fuse
 * base all of them; with layers or slices: in each layer or live slice. */
void bloom_layout_prefetch(const bloom_geometry_t *g, const uint64_t *words,
    bloom_hash_t hash);

/* Prefetches the other lines that an addition will touch, if a key has several
 * lines in the base, in the last layer or in the open slice. */
void bloom_layout_prefetch_add(const bloom_geometry_t *g,
    const uint64_t *words, bloom_hash_t hash);

/*
 * Tests n keys, at most BLOOM_BATCH.  Returns a bitmap: bit i is 1 if key i may
 * be present.  The lines of all keys are fetched from memory in parallel, and
 * vector instructions are used if the processor has them.
 */
uint64_t bloom_layout_test_batch(const bloom_geometry_t *g,
    const uint64_t *words, const bloom_hash_t *hash, unsigned n);

/* Returns the index of the first of n keys that may be present; n if all are
 * absent. */
unsigned bloom_layout_test_any(const bloom_geometry_t *g, const uint64_t *words,
    const bloom_hash_t *hash, unsigned n);

/* Returns a bitmap: bit i is 1 if slice i is live and may have the key.
 * Returns 0 if the filter is no ring. */
uint64_t bloom_layout_slices(const bloom_geometry_t *g, const uint64_t *words,
    bloom_hash_t hash);

/* Computes the positions of the key's k bits, in the order of the formulas
 * above.  Some of them may be equal.  With links or layers they are positions
 * in the last one, with slices in the open one, to which keys are added.
 * Returns its k; 0 for a fuse base without layers, to which none are added. */
uint32_t bloom_layout_bits(const bloom_geometry_t *g, bloom_hash_t hash,
    uint64_t bits[BLOOM_K_MAX]);

/* Merges n words of src into dst: dst |= src. */
void bloom_layout_merge(uint64_t *dst, const uint64_t *src, uint64_t n);

/* Returns the number of bits that are set in n words. */
uint64_t bloom_layout_bits_set(const uint64_t *words, uint64_t n);


#pragma GCC visibility pop

#endif /* BLOOM_LAYOUT_H */
