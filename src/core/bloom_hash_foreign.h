/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions hash keys as other systems do, for filters imported from
 * them.  Below, P || b is P followed by the byte b.
 *
 *   FUNNEL         MurmurHash3 x64 128 of the key's funnel
 *   MURMUR64A      h1 = MurmurHash64A(key, 0xc6a4a7935bd1e995)
 *                  h2 = MurmurHash64A(key, h1)               RedisBloom
 *   MURMUR2        h1 = MurmurHash2(key, 0x9747b28c)
 *                  h2 = MurmurHash2(key, h1), of 32 bits     libbloom
 *   MURMUR3_32     a = murmur3_32(funnel, seed)
 *                  b = murmur3_32(funnel, a)
 *                  h1 = a + b * 2^32, h2 = 0                 Spark
 *   HIGHWAY        HighwayHash-128 with Redisson's key
 *   FNV1           h1 = FNV-1 of 64 bits, h2 = 0             DCSO
 *   MURMUR3_TWICE  MurmurHash3 x64 128 of key and of key || 1
 *                                                      bits-and-blooms
 *   MURMUR3_EACH   MurmurHash3 x64 128 of key || i for bit i    go-zero
 *
 * MURMUR3_TWICE and MURMUR3_EACH need more than 128 bits, so their bloom_hash_t
 * refers to the key itself: h1 is its address and h2 its length.
 *
 * A funnel is the conversion that the source system applies to a key before it
 * hashes it.  Byte `key[4]` of the hasher names it:
 *
 *   bytes   the key as it is; text is UTF-8
 *   utf16   UTF-8 converted to UTF-16, little-endian.  Bytes that are not UTF-8
 *           become U+FFFD, as in Java's decoder
 *   long    a decimal number as 64 bits, little-endian
 *   int     a decimal number as 32 bits, little-endian
 *
 * The funnels long and int hash a key that is not a number as bytes.  Such a
 * key cannot have been added to the source, so a lookup finds it only as a
 * false positive.
 */

#ifndef BLOOM_HASH_FOREIGN_H
#define BLOOM_HASH_FOREIGN_H

#include "bloom_hasher.h"

#pragma GCC visibility push(hidden)


/* Returns the hash of a key like bloom_hash(), for the kinds listed above. */
bloom_hash_t bloom_hash_foreign(const bloom_hasher_t *hasher, const void *data,
    size_t len);


/* ---- the functions themselves ---- */

/* Return MurmurHash64A and MurmurHash2 by Austin Appleby (public domain,
 * SMHasher).  Their verification values are 0x1F0D3804 and 0x27864C1E. */
uint64_t bloom_murmur64a(const void *data, size_t len, uint64_t seed);
uint32_t bloom_murmur2(const void *data, size_t len, uint32_t seed);

/*
 * Returns Spark's murmur3_32: MurmurHash3 x86 32, except that each byte of the
 * tail is mixed in as a block of its own, as a signed number.
 */
uint32_t bloom_murmur3_32_spark(const void *data, size_t len, uint32_t seed);

/* Returns HighwayHash-128 (Alakuijala, Cox, Wassenberg, 2017). */
bloom_hash_t bloom_highway_128(const void *data, size_t len,
    const uint64_t key[4]);

/* Returns the 64-bit FNV-1 hash (not FNV-1a) of Fowler, Noll and Vo. */
uint64_t bloom_fnv1(const void *data, size_t len);


#pragma GCC visibility pop

#endif /* BLOOM_HASH_FOREIGN_H */
