/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions test and add keys in the layouts of filters that other
 * systems made.
 *
 * Below is the position of bit i of a key, i = 0 .. k-1.  h1 and h2 come from
 * bloom_hash(), sums and products wrap at 2^64 unless "mod" says otherwise,
 * i32(x) is the lower half of x as a signed number, and
 * flip(c) = c < 0 ? -c - 1 : c.
 *
 *   double    (h1 + i h2) mod bits                  RedisBloom, libbloom
 *
 *   double63  ((h1 + i h2) mod 2^63) mod bits             Guava, 64 bits
 *
 *   double31  flip(i32(h1 + (i + 1) (h1 / 2^32))) mod bits
 *                                       Guava, 32 bits; Spark, version 1
 *
 *   spark2    flip((2^31 - 1) i32(h1) + (i + 1) i32(h1 / 2^32)) mod bits
 *                                                       Spark, version 2
 *
 *   zigzag    (s(i) mod 2^63) mod bits, s(0) = h1,
 *             s(i + 1) = s(i) + (i is even ? h2 : h1)         Redisson
 *
 *   lehmer    s(i) mod bits, s(-1) = h1 mod P,
 *             s(i) = ((s(i - 1) G) mod 2^64) mod P                DCSO
 *             with P = 2^64 - 59 and G = 18446744073709550147
 *
 *   four      (g(i mod 2) + i g(2 + ((i + i mod 2) mod 4) / 2)) mod bits,
 *             (g(0), g(1)) = MurmurHash3(key),
 *             (g(2), g(3)) = MurmurHash3(key || 1)      bits-and-blooms
 *
 *   each      MurmurHash3(key || i).h1 mod bits                go-zero
 *
 *   links     double, in each of several filters; a key is present if any
 *             of them has it, and is added to the last    RedisBloom, scaled
 *
 * P || b is P followed by the byte b.
 *
 * Bit b is always bit b & 7 of byte b / 8.  If the source numbers the bits of a
 * byte from the highest one (a bitmap in Redis), the importer reverses them.
 */

#ifndef BLOOM_LAYOUT_FOREIGN_H
#define BLOOM_LAYOUT_FOREIGN_H

#include "bloom_hasher.h"
#include "bloom_geometry.h"

#pragma GCC visibility push(hidden)


/* Test a key, add a key and compute its bits, as the functions of
 * bloom_layout.h do.  The addition returns the number of bits it changed; it
 * uses atomic ORs if `atomic` is set. */
int bloom_layout_foreign_test(const bloom_geometry_t *g, const uint64_t *words,
    bloom_hash_t hash);
int bloom_layout_foreign_add(const bloom_geometry_t *g, uint64_t *words,
    bloom_hash_t hash, int atomic);
uint32_t bloom_layout_foreign_bits(const bloom_geometry_t *g, bloom_hash_t hash,
    uint64_t bits[BLOOM_K_MAX]);


#pragma GCC visibility pop

#endif /* BLOOM_LAYOUT_FOREIGN_H */
