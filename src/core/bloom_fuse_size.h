/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions choose and check the dimensions of a fuse base, which
 * bloom_fuse.h describes, and compute its rate.  bloom_geometry.h calls them.
 */

#ifndef BLOOM_FUSE_SIZE_H
#define BLOOM_FUSE_SIZE_H

#include <stdint.h>

#pragma GCC visibility push(hidden)


#define BLOOM_FUSE_K           3         /* slots of a key */
#define BLOOM_FUSE_WIDTH_MAX   31        /* so that a wide slot has 32 bits */
#define BLOOM_FUSE_SHARD_BITS  22        /* at most */
#define BLOOM_FUSE_SLOTS_MAX   (1u << 25)               /* of a shard */
#define BLOOM_FUSE_LENGTH_MAX  (1u << 18)               /* of a segment */
#define BLOOM_FUSE_SALTS       64        /* of a shard: 0 to 63 */
#define BLOOM_FUSE_PADDING     64        /* bits, at least, after the last slot,
                                            so that any slot can be read as
                                            part of eight bytes */


/* The dimensions of a fuse base. */
typedef struct {
    uint64_t  keys;                      /* distinct keys in the base */
    uint64_t  room;                      /* keys that the first layer behind it
                                            has room for, at least 1 */
    uint64_t  wide;                      /* slots that have width + 1 bits: the
                                            first ones */
    uint32_t  length;                    /* slots of a segment */
    uint32_t  segments;                  /* of a shard, at least 3 */
    uint32_t  shard_bits;                /* there are 2^shard_bits shards */
    uint32_t  width;                     /* bits of the other slots */
} bloom_fuse_t;


/* Finds the dimensions of a base of `keys` keys whose rate is at most `fpr`. */
void bloom_fuse_size(bloom_fuse_t *fuse, uint64_t keys, double fpr);

/* Returns the rate of a base, which is exact on average over all keys. */
double bloom_fuse_fpr(const bloom_fuse_t *fuse);

/* Returns 1 if the dimensions fit together, else 0.  Numbers of keys have no
 * limit. */
int bloom_fuse_valid(const bloom_fuse_t *fuse);


/* Returns the slots of a shard. */
static inline uint64_t
bloom_fuse_slots(const bloom_fuse_t *fuse)
{
    return (uint64_t) fuse->segments * fuse->length;
}


/* Returns the bit at which a slot begins. */
static inline uint64_t
bloom_fuse_bit(const bloom_fuse_t *fuse, uint64_t slot)
{
    return slot * fuse->width + (slot < fuse->wide ? slot : fuse->wide);
}


/* Returns the words at the end of a base that have a byte for each shard: its
 * salt. */
static inline uint64_t
bloom_fuse_salt_words(const bloom_fuse_t *fuse)
{
    return (((uint64_t) 1 << fuse->shard_bits) + 7) / 8;
}


/* Returns the bits of all slots, of the padding and of the salts. */
static inline uint64_t
bloom_fuse_bits(const bloom_fuse_t *fuse)
{
    return bloom_fuse_bit(fuse, bloom_fuse_slots(fuse) << fuse->shard_bits)
           + BLOOM_FUSE_PADDING + bloom_fuse_salt_words(fuse) * 64;
}


#pragma GCC visibility pop

#endif /* BLOOM_FUSE_SIZE_H */
