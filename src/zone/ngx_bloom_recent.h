/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A zone remembers which keys were added to it in the last minutes: each key
 * sets one bit of a map.  Two keys may share a bit, so the memory may have a
 * key that was not added, but it lacks none that was.
 *
 * There are two maps.  Additions set bits of the current one, and a search
 * looks at both.  After NGX_BLOOM_RECENT_MS the helper clears the older map and
 * makes it the current one: it turns the maps.
 */

#ifndef _NGX_BLOOM_RECENT_H_INCLUDED_
#define _NGX_BLOOM_RECENT_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "bloom_hasher.h"

#pragma GCC visibility push(hidden)


/* For how long at least a key is remembered, ms. */
#define NGX_BLOOM_RECENT_MS    (16 * 60 * 1000)

#define NGX_BLOOM_RECENT_BITS  (1024 * 1024)     /* of a map, 128 KB */

/* In shared memory; zeros at first.  Memory that no zone uses is not touched.
 */
typedef struct {
    uint64_t    on;                      /* atomic; 1: keys are remembered */
    uint64_t    generation;              /* atomic; whose keys are remembered */
    uint64_t    begun;                   /* since when, monotonic ms */
    uint64_t    turned;                  /* when the current map became it,
                                            monotonic ms; 0: not known yet */
    uint64_t    turns;                   /* atomic; how often the maps were
                                            turned: the last bit is the number
                                            of the current map */
    uint64_t    map[2][NGX_BLOOM_RECENT_BITS / 64];      /* atomic */
} ngx_bloom_recent_t;


/* Remembers n keys, given their hashes in the filter. */
void ngx_bloom_recent_put(ngx_bloom_recent_t *recent,
    const bloom_hasher_t *hasher, const bloom_hash_t *hash, ngx_uint_t n);

/* Returns 0 if it is certain that no key with this hash has been put for
 * NGX_BLOOM_RECENT_MS, else 1. */
ngx_uint_t ngx_bloom_recent_has(ngx_bloom_recent_t *recent,
    const bloom_hasher_t *hasher, bloom_hash_t hash);

/*
 * Begins to remember keys, clears the older map if it is time to, and notes
 * when a generation is the first time that of the zone: hashes of keys that
 * were put before may be others.  Only one process at a time may call this
 * function.
 */
void ngx_bloom_recent_turn(ngx_bloom_recent_t *recent, uint64_t generation);

/* Returns since when additions to a generation are remembered, monotonic ms:
 * all that have begun since then are.  Returns 0 if they are not remembered. */
uint64_t ngx_bloom_recent_since(ngx_bloom_recent_t *recent,
    uint64_t generation);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_RECENT_H_INCLUDED_ */
