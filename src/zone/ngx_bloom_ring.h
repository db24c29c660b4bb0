/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The filter of a zone with "expire" is a ring of slices (bloom_ring.h).  Keys
 * are added to one of them, the open one.  Lookups test the live ones:
 *
 *     ready --> open and live --> closed and live --> dropped --> ready
 *
 * The open slice is closed when a slice's time has passed since its first key,
 * or when it is full, and a ready one, which is all zeros, is opened in its
 * place: a single compare-and-set of ring->turn.  A slice is dropped when all
 * of a key's life has passed since it was closed, and the helper fills it with
 * zeros.
 *
 * So a key lives at least as long as it should: it is added before its slice is
 * closed.  It lives longer by at most a slice's time.  ngx_bloom_ring_keep()
 * ensures this if a process is stopped while it adds keys.
 *
 * A process may be stopped or killed at any step, and another one may then do
 * the rest.  Only the helper decides that a slice is closed for good: it reads
 * the clock after it has seen that the slice is neither open nor ready.  A
 * worker that goes on a life later writes times of the past, or makes a slice
 * live that is not: that can only prolong lives.
 *
 * Times are those of the zone's clock (ngx_bloom_clock.h).  A lookup needs no
 * time, and begins with the slices that are live then.  It starts again if one
 * of them may have been cleared meanwhile: its keys may have been added again,
 * to a slice that was opened later.
 */

#ifndef _NGX_BLOOM_RING_H_INCLUDED_
#define _NGX_BLOOM_RING_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "bloom_ring.h"
#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/* The life of a key that was found, in times of the zone's clock. */
typedef struct {
    uint64_t             from;           /* it is present until then for sure,
                                            unless it is removed */
    uint64_t             until;          /* it is absent from then on, unless it
                                            is added again */
} ngx_bloom_ring_life_t;


/* What the helper is doing; zeros at first. */
typedef struct {
    uint64_t             generation;     /* of the slice that it clears */
    uint32_t             slice;
    size_t               cleared;        /* bytes of it */
    uint64_t             cursor;         /* in the exceptions; UINT64_MAX: it
                                            has seen all of them */
    uint64_t             sought;         /* the oldest key's time when it began
                                            with them */
} ngx_bloom_ring_work_t;


/* Describes the ring of a bank of zeros, with one slice open, for the
 * generation in which the bank is going to serve. */
void ngx_bloom_ring_plan(ngx_bloom_zone_t *zone, ngx_uint_t bank,
    uint64_t generation);

/*
 * Adds n keys to the open slice, whether or not other slices have them, and
 * opens the next slice if it is full.  changed[i] becomes 1 if no live slice
 * had key i, else 0.  Does nothing if another generation serves.
 *
 * The keys are as new as bits->time; if that is 0, they are new, and the caller
 * calls ngx_bloom_ring_keep() before it says that they are added.  Otherwise a
 * load adds them, which does not ask what changed: changed[i] becomes 1.
 */
void ngx_bloom_ring_put(ngx_bloom_zone_bits_t *bits, const bloom_hash_t *hash,
    ngx_uint_t n, u_char *changed);

/*
 * Ensures that all keys that this process has added since the time `begun` live
 * long enough, counted from now.  Returns NGX_OK, or NGX_AGAIN if they must be
 * added again, because the process was stopped for long.
 */
ngx_int_t ngx_bloom_ring_keep(ngx_bloom_zone_bits_t *bits, uint64_t begun);

/*
 * Prepares a ring that a load fills for keys that were added at `time`: opens
 * the next slice if a slice's time has passed, and clears slices whose keys had
 * expired then.  No other process adds keys.
 */
void ngx_bloom_ring_reach(ngx_bloom_zone_bits_t *bits, uint64_t time);

/*
 * Prepares a ring that a load has filled for keys that are added now.  All of
 * its keys were added before, so slices with a later time, which a wrong clock
 * has left in the journal, get the time of now.  The zone's clock has been
 * started.  No other process adds keys.
 */
void ngx_bloom_ring_replayed(ngx_bloom_zone_bits_t *bits);

/*
 * Opens the next slice if it is time, drops slices, clears a part of one that
 * was dropped, and ends exceptions that no key needs any more.  The caller
 * holds sh->applying.  Returns after how many ms to call it again.
 */
ngx_msec_t ngx_bloom_ring_tick(ngx_bloom_zone_t *zone,
    ngx_bloom_ring_work_t *work);

/* Returns for how many ms the open slice has been due to be closed while no
 * slice is ready; 0 if it is not due, or one is ready. */
uint64_t ngx_bloom_ring_late(ngx_bloom_zone_t *zone);

/* Computes how long a key, in the image's key form, lives that is present in
 * the generation that serves.  Returns 1, or 0 if the key is absent. */
ngx_uint_t ngx_bloom_ring_life(ngx_bloom_zone_t *zone, const bloom_key_t *key,
    ngx_bloom_ring_life_t *life);

/* Updates the process's own geometry to the slice that is open.  Does nothing
 * if keys do not expire. */
void ngx_bloom_ring_follow(ngx_bloom_zone_t *zone);

/* Copies the state of a bank's ring. */
void ngx_bloom_ring_copy(ngx_bloom_zone_t *zone, ngx_uint_t bank,
    ngx_bloom_ring_t *ring);

/* Fills at most 4 MiB of `len` bytes with zeros, and gives back the memory of
 * whole pages.  Returns how many it has filled. */
size_t ngx_bloom_ring_zero(u_char *p, size_t len);

/*
 * ring->turn says which slice is open and which are ready:
 *
 *     63          48 47                                6 5        0
 *     | generation  | bitmap of the ready slices        | open    |
 */
#define NGX_BLOOM_RING_GENERATIONS  0xffff           /* the lowest bits */

_Static_assert(BLOOM_RING_MAX <= 42, "there is a bit for each slice");

static ngx_inline uint64_t
ngx_bloom_ring_word(uint64_t generation, uint64_t ready, uint32_t open)
{
    return generation << 48 | ready << 6 | open;
}

static ngx_inline uint32_t
ngx_bloom_ring_open(uint64_t turn)
{
    return (uint32_t) (turn & 0x3f);
}

static ngx_inline uint64_t
ngx_bloom_ring_ready(uint64_t turn)
{
    return (turn >> 6) & 0x3ffffffffff;
}

static ngx_inline uint64_t
ngx_bloom_ring_generation(uint64_t turn)
{
    return turn >> 48;
}

static ngx_inline uint64_t
ngx_bloom_ring_bit(uint32_t slice)
{
    return (uint64_t) 1 << slice;
}

/* Returns the bits of all slices. */
static ngx_inline uint64_t
ngx_bloom_ring_all(uint32_t slices)
{
    return ngx_bloom_ring_bit(slices) - 1;
}


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_RING_H_INCLUDED_ */
