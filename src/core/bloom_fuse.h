/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A fuse base is a static filter near the information bound: it takes 1.10 to
 * 1.14 times n log2(1/p) bits for n keys at the rate p, where blocked and
 * classic filters take 1.44 to 1.6 times as many.
 *
 * It is a table of slots of a few bits.  A key has three slots and a
 * fingerprint, and it is maybe present if the XOR of its slots is its
 * fingerprint.  The table is found by solving one equation for each key, so all
 * keys must be known; see bloom_fuse_build.h.
 *
 * The slots of a key are close together (Graf and Lemire, "Binary Fuse Filters:
 * Fast and Smaller Than Xor Filters", 2022).  A table is divided into segments
 * of equal length.  A key has a window of three adjacent segments and a slot in
 * each of them:
 *
 *     |-- segment 0 --|-- segment 1 --|-- segment 2 --|-- segment 3 --| ...
 *     |--------------- window 0 ----------------------|
 *                     |---------------- window 1 ---------------------|
 *                           slot 0         slot 1          slot 2
 *
 * Windows that overlap let the equations be solved by peeling, from both ends
 * towards the middle, with few more slots than keys.  A small table has one
 * window.
 *
 * A large filter is divided into shards by the first bits of h1, which all have
 * the same number of slots: the keys are spread so evenly that the fullest
 * shard costs less than half a percent (Vigna and others, "Epsilon-Cost
 * Sharding: Scaling Hypergraph-Based Static Functions and Filters to Trillions
 * of Keys", 2025).  So a lookup needs no table of sizes, and a shard is built
 * in memory that fits into the processor's caches.  Each shard has a salt: if
 * its equations cannot be peeled, it is built again with another one, and no
 * other shard is concerned.
 *
 *     h1 --> shard --> salt
 *     h2, salt --> x, the signature --> window, three slots and fingerprint
 *
 * Rates between 2^-(width + 1) and 2^-width come from slots of two widths: the
 * first `wide` slots of the filter have width + 1 bits, the others width bits.
 * A key whose window lies among the wide slots is compared in width + 1 bits,
 * any other key in width bits.
 *
 *     |-- width + 1 --|-- width + 1 --| ... |-- width --| ... | pad | salts |
 *     slot 0                                slot wide
 *
 * The exact formulas, for a hash (h1, h2), with scale(x, n) = x n / 2^64:
 *
 *     shard  = h1 / 2^(64 - shard_bits)
 *     salt   = byte bits / 8 - 1 - shard
 *     x      = rotate(h2, salt mod 64)
 *     z      = segments - 2, the number of windows
 *     window = scale(x, z)
 *     r      = x * z mod 2^64
 *     begin  = shard * segments * length + window * length
 *     slot 0 = begin + scale(r, length)
 *     slot 1 = begin + length + scale(rotate(x, 25), length)
 *     slot 2 = begin + 2 * length + scale(rotate(x, 43), length)
 *     print  = ((x ^ x / 2^32) * PHI mod 2^64) / 2^32
 *     w      = width + 1 if begin + 3 * length <= wide, else width
 *
 *     maybe present if (slot 0 ^ slot 1 ^ slot 2 ^ print) mod 2^w = 0
 *
 * Slot t begins at bit t * width + min(t, wide), and its lowest bit comes
 * first.  After the last slot there are at least 64 bits.  rotate() rotates to
 * the left; PHI is that of bloom_layout.h.  The salts are the last bytes of the
 * base, whose size is `bits`, in the order from the end.  A shard has at most
 * 2^25 slots and a segment at most 2^18, so the three slots come from different
 * bits of x.
 *
 * A base without keys is absent for every key, whatever its slots are.
 */

#ifndef BLOOM_FUSE_H
#define BLOOM_FUSE_H

#include "bloom_bytes.h"
#include "bloom_fuse_size.h"
#include "bloom_geometry.h"
#include "bloom_hasher.h"
#include "bloom_line.h"

#pragma GCC visibility push(hidden)


/* Where a key is looked up: in bits 0 .. w-1 from each of three bits. */
typedef struct {
    uint64_t  bit[BLOOM_FUSE_K];         /* at which the slots begin */
    uint32_t  print;                     /* the fingerprint */
    uint32_t  drop;                      /* 32 - w: the upper bits of it that
                                            are not compared */
} bloom_fuse_place_t;


/* Returns the shard of a key: the first shard_bits bits of h1, or 0 if
 * shard_bits is 0. */
static inline uint64_t
bloom_fuse_shard(const bloom_geometry_t *g, bloom_hash_t hash)
{
    return hash.h1 >> 1 >> (63 - g->fuse.shard_bits);
}


/* Returns the salt of a shard. */
static inline uint8_t
bloom_fuse_salt(const bloom_geometry_t *g, const uint64_t *words,
    uint64_t shard)
{
    return ((const uint8_t *) words)[g->bits / 8 - 1 - shard];
}


/* Returns the signature of a key, from which all but its shard follows. */
static inline uint64_t
bloom_fuse_signature(uint64_t h2, uint8_t salt)
{
    return h2 << (salt & 63) | h2 >> (-salt & 63);
}


/* Returns the fingerprint of a signature. */
static inline uint32_t
bloom_fuse_print(uint64_t x)
{
    return (uint32_t) (((x ^ x >> 32) * BLOOM_LINE_PHI) >> 32);
}


/* Computes the slots of a signature, counted from the first one of its shard.
 * Returns the first slot of its window. */
static inline uint32_t
bloom_fuse_window(uint32_t windows, uint32_t length, uint64_t x,
    uint32_t slot[BLOOM_FUSE_K])
{
    uint32_t           begin;
    unsigned __int128  product;

    product = (unsigned __int128) x * windows;
    begin = (uint32_t) (product >> 64) * length;

    slot[0] = begin + (uint32_t) bloom_line_scale((uint64_t) product, length);
    slot[1] = begin + length
              + (uint32_t) bloom_line_scale(x << 25 | x >> 39, length);
    slot[2] = begin + 2 * length
              + (uint32_t) bloom_line_scale(x << 43 | x >> 21, length);

    return begin;
}


/* Computes where a key is looked up. */
static inline bloom_fuse_place_t
bloom_fuse_place(const bloom_geometry_t *g, const uint64_t *words,
    bloom_hash_t hash)
{
    uint32_t            i, window, slot[BLOOM_FUSE_K];
    uint64_t            x, shard, first;
    bloom_fuse_place_t  at;

    shard = bloom_fuse_shard(g, hash);
    x = bloom_fuse_signature(hash.h2, bloom_fuse_salt(g, words, shard));
    first = shard * bloom_fuse_slots(&g->fuse);
    window = bloom_fuse_window(g->fuse.segments - 2, g->fuse.length, x, slot);

#pragma GCC unroll 3
    for (i = 0; i < BLOOM_FUSE_K; i++) {
        at.bit[i] = bloom_fuse_bit(&g->fuse, first + slot[i]);
    }

    at.print = bloom_fuse_print(x);
    at.drop = 32 - g->fuse.width
              - (first + window + BLOOM_FUSE_K * (uint64_t) g->fuse.length
                 <= g->fuse.wide);

    return at;
}


/* Requests the slots from memory. */
static inline void
bloom_fuse_prefetch(const uint64_t *words, const bloom_fuse_place_t *at)
{
    uint32_t  i;

#pragma GCC unroll 3
    for (i = 0; i < BLOOM_FUSE_K; i++) {
        __builtin_prefetch((const uint8_t *) words + at->bit[i] / 8, 0);
    }
}


/* Returns the bits from this bit on, at least 32 of them. */
static inline uint32_t
bloom_fuse_load(const uint64_t *words, uint64_t bit)
{
    return (uint32_t) (bloom_get64((const uint8_t *) words + bit / 8)
                       >> (bit % 8));
}


/* Returns 1 if the key may be in the base: its slots have its fingerprint.
 * Returns 0 if it is absent.  All three are read without a branch between them,
 * so that memory serves them in parallel. */
static inline int
bloom_fuse_match(const bloom_geometry_t *g, const uint64_t *words,
    const bloom_fuse_place_t *at)
{
    return ((bloom_fuse_load(words, at->bit[0])
             ^ bloom_fuse_load(words, at->bit[1])
             ^ bloom_fuse_load(words, at->bit[2]) ^ at->print)
            << at->drop)
           == 0 && g->fuse.keys != 0;
}


#pragma GCC visibility pop

#endif /* BLOOM_FUSE_H */
