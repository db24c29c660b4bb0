/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These layouts say where a key's bits are in filters that other systems made.
 *
 * Bit i of a key, i = 0 .. k-1, with h1 and h2 of bloom_hash(); sums and
 * products wrap at 2^64 unless said otherwise, i32(x) is the lower half of x
 * as a signed number, and flip(c) = c < 0 ? -c - 1 : c:
 *
 *   double    (h1 + i h2) mod bits                  RedisBloom, libbloom
 *
 *   double63  ((h1 + i h2) mod 2^63) mod bits             Guava, 64 bits
 *
 *   double31  flip(i32(h1 + (i + 1) (h1 / 2^32))) mod bits
 *                                                  Guava, 32 bits; Spark
 *   spark2    c(i) mod bits, c(-1) = (2^31 - 1) i32(h1),
 *             c(i) = flip(c(i - 1) + i32(h1 / 2^32))         Spark, new
 *
 *   zigzag    (s(i) mod 2^63) mod bits, s(0) = h1,
 *             s(i + 1) = s(i) + (i is even ? h2 : h1)         Redisson
 *
 *   lehmer    s(i) mod bits, s(-1) = h1 mod P,
 *             s(i) = ((s(i - 1) G) mod 2^64) mod P                DCSO
 *             with P = 2^64 - 59 and G = 18446744073709550147
 *
 *   four      (g(i mod 2) + i g(2 + ((i + i mod 2) mod 4) / 2)) mod bits,
 *             g(0), g(1) MurmurHash3 of the key and g(2), g(3) of it and a
 *             byte 1 behind                             bits-and-blooms
 *
 *   each      h1 of MurmurHash3 of the key and the byte i behind, mod bits
 *                                                              go-zero
 *   links     double, in each of several filters; a key is present if it is
 *             in any, and is added to the last        RedisBloom, scaled
 *
 * Where the source counts a byte's bits from its highest (a bitmap in Redis),
 * the importer has turned them round: bit b is always bit b & 7 of byte b / 8.
 */

#ifndef BLOOM_LAYOUT_FOREIGN_H
#define BLOOM_LAYOUT_FOREIGN_H

#include "bloom_hasher.h"
#include "bloom_geometry.h"

#pragma GCC visibility push(hidden)


/* Do what bloom_layout_test(), bloom_layout_add() or, with `atomic`,
 * bloom_layout_add_atomic(), and bloom_layout_bits() do, with these layouts. */
int bloom_layout_foreign_test(const bloom_geometry_t *g, const uint64_t *words,
    bloom_hash_t hash);
int bloom_layout_foreign_add(const bloom_geometry_t *g, uint64_t *words,
    bloom_hash_t hash, int atomic);
uint32_t bloom_layout_foreign_bits(const bloom_geometry_t *g, bloom_hash_t hash,
    uint64_t bits[BLOOM_K_MAX]);


#pragma GCC visibility pop

#endif /* BLOOM_LAYOUT_FOREIGN_H */
