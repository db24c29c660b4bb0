/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header has a simple implementation of the lookups that bloom_fuse.h
 * describes, one bit at a time, and fuse filters in memory.
 */

#ifndef FUSE_FILTER_H
#define FUSE_FILTER_H

#include "slow_layout.h"

#include "bloom_fuse_build.h"


#define SCRATCH_GUARD  64


static inline uint64_t
rotate(uint64_t x, unsigned n)
{
    return n == 0 ? x : x << n | x >> (64 - n);
}


/* Returns a slot's value, bit by bit. */
static inline uint64_t
slow_slot(const bloom_geometry_t *g, const uint8_t *bytes, uint64_t slot)
{
    uint64_t  bit, i, value, width;

    width = g->fuse.width + (slot < g->fuse.wide);
    bit = slot * g->fuse.width + (slot < g->fuse.wide ? slot : g->fuse.wide);

    for (value = 0, i = 0; i < width; i++, bit++) {
        assert_true(bit < g->bits);
        value |= (uint64_t) (bytes[bit / 8] >> bit % 8 & 1) << i;
    }

    return value;
}


static inline int
slow_fuse_test(const bloom_geometry_t *g, const void *bytes, bloom_hash_t h)
{
    uint64_t  x, shard, begin, z, length, w, print, all;

    if (g->fuse.keys == 0) {
        return 0;
    }

    shard = g->fuse.shard_bits ? h.h1 >> (64 - g->fuse.shard_bits) : 0;
    x = rotate(h.h2, ((const uint8_t *) bytes)[g->bits / 8 - 1 - shard] % 64);

    z = g->fuse.segments - 2;
    length = g->fuse.length;
    begin = shard * g->fuse.segments * length + high_half(x, z) * length;
    print = ((x ^ x >> 32) * 0x9e3779b97f4a7c15) >> 32;
    w = g->fuse.width + (begin + 3 * length <= g->fuse.wide);

    all = slow_slot(g, bytes, begin + high_half(x * z, length))
          ^ slow_slot(g, bytes, begin + length
                                + high_half(rotate(x, 25), length))
          ^ slow_slot(g, bytes, begin + 2 * length
                                + high_half(rotate(x, 43), length))
          ^ print;

    return (all & (((uint64_t) 1 << w) - 1)) == 0;
}


static inline bloom_hash_t *
random_hashes(uint64_t n, uint64_t seed)
{
    uint64_t       i;
    bloom_hash_t  *hash;

    hash = unit_alloc((n + 1) * sizeof(*hash));

    for (i = 0; i < n; i++) {
        hash[i] = random_hash(&seed);
    }

    return hash;
}


/* Returns memory for a filter's words, with nothing behind it, so that
 * sanitizers notice a read beyond them. */
static inline uint64_t *
fuse_words(const bloom_geometry_t *g)
{
    uint64_t  *words;

    words = unit_alloc(bloom_geometry_bytes(g));

    return words;
}


/* The keys of a shard. */
typedef struct {
    uint64_t  *h2;
    uint64_t   n;
    unsigned   reads;                    /* how often they were read */
} fuse_shard_t;


static inline void
fuse_read(void *data, bloom_fuse_take_t take, void *take_data)
{
    uint64_t       half;
    fuse_shard_t  *shard = data;

    half = shard->n / 2;
    shard->reads++;

    take(take_data, shard->h2, half);
    take(take_data, shard->h2 + half, shard->n - half);
}


/* Builds all shards of a filter.  Returns its words, or NULL if a shard
 * failed.  Adds the salts that were tried to *tried. */
static inline uint64_t *
fuse_build(const bloom_geometry_t *g, const bloom_hash_t *hash, uint64_t n,
    uint32_t *tried)
{
    int            rc;
    size_t         size;
    uint8_t       *scratch, salt;
    uint64_t       shards, shard, i, *words, *part;
    fuse_shard_t   keys;

    assert_true(bloom_geometry_valid(g));

    words = unit_zeros(bloom_geometry_bytes(g));
    keys.h2 = unit_alloc(n * sizeof(uint64_t) + 1);

    shards = (uint64_t) 1 << g->fuse.shard_bits;

    for (rc = 0, shard = 0; rc == 0 && shard < shards; shard++) {
        keys.reads = 0;

        for (keys.n = 0, i = 0; i < n; i++) {
            if (bloom_fuse_shard(g, hash[i]) == shard) {
                keys.h2[keys.n++] = hash[i].h2;
            }
        }

        size = bloom_fuse_scratch(g, keys.n);
        scratch = unit_alloc(size + SCRATCH_GUARD);
        memset(scratch + size, 0xa5, SCRATCH_GUARD);

        part = unit_alloc(bloom_fuse_shard_words(g, shard) * 8);

        rc = bloom_fuse_build(g, shard, keys.n, fuse_read, &keys, scratch,
                              part, &salt);
        *tried += keys.reads;

        if (rc == 0) {
            assert_int_equal(salt, keys.reads - 1);
            ((uint8_t *) words)[g->bits / 8 - 1 - shard] = salt;
            memcpy(words + bloom_fuse_shard_begin(g, shard), part,
                   bloom_fuse_shard_words(g, shard) * 8);
        }

        for (i = 0; i < SCRATCH_GUARD; i++) {
            assert_int_equal(scratch[size + i], 0xa5);
        }

        free(part);
        free(scratch);
    }

    free(keys.h2);

    if (rc != 0) {
        free(words);
        return NULL;
    }

    return words;
}


/* Sizes and builds a filter.  Adds the salts that were tried to *tried. */
static inline uint64_t *
fuse_make(bloom_geometry_t *g, const bloom_hash_t *hash, uint64_t n, double fpr,
    uint32_t *tried)
{
    uint64_t  *words;

    assert_int_equal(bloom_geometry_size_fuse(g, n, fpr), 0);

    words = fuse_build(g, hash, n, tried);

    if (words == NULL) {
        fail_msg("%" PRIu64 " keys at %g: no salt is good", n, fpr);
    }

    return words;
}


/* Divides a filter of one shard into 2^bits shards, of which each has as many
 * slots. */
static inline void
fuse_divide(bloom_geometry_t *g, uint32_t bits)
{
    uint64_t  slots;

    g->fuse.length = (g->fuse.length + 63) / 64 * 64;
    g->fuse.shard_bits = bits;

    /* the last wide segment is in the middle of a shard */

    slots = bloom_fuse_slots(&g->fuse) << bits;
    g->fuse.wide = slots * 5 / 8 / g->fuse.length * g->fuse.length;
    g->bits = (bloom_fuse_bit(&g->fuse, slots) + 64
               + ((((uint64_t) 1 << bits) + 7) / 8) * 64 + 511) / 512 * 512;
}


#endif /* FUSE_FILTER_H */
