/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A worker may open the next slice, which is a compare-and-set; only the helper
 * drops slices and clears them.
 */

#include "ngx_bloom_ring.h"
#include "bloom_ring.h"
#include "ngx_bloom_io.h"


/* Bytes of a dropped slice that one call clears. */
#define NGX_BLOOM_RING_CLEAR   (4 * 1024 * 1024)

/* Slots of the set of exceptions that one call looks at. */
#define NGX_BLOOM_RING_SEARCH  8192

/* How often the helper looks, at least, ms. */
#define NGX_BLOOM_RING_TICK    1000

static ngx_inline uint64_t ngx_bloom_ring_bit(uint32_t slice);
static uint64_t ngx_bloom_ring_now(const ngx_bloom_zone_bits_t *bits);
static void ngx_bloom_ring_raise(uint64_t *time, uint64_t to);
static ngx_inline uint64_t ngx_bloom_ring_all(uint32_t slices);
static uint64_t ngx_bloom_ring_load(const ngx_bloom_ring_t *ring);
static ngx_uint_t ngx_bloom_ring_turn(ngx_bloom_zone_bits_t *bits,
    uint64_t turn, ngx_uint_t full);
static ngx_uint_t ngx_bloom_ring_has_room(const ngx_bloom_zone_bits_t *bits);
static uint64_t ngx_bloom_ring_begin(ngx_bloom_zone_bits_t *bits);
static void ngx_bloom_ring_recycle(ngx_bloom_zone_bits_t *bits, uint64_t now);
static ngx_uint_t ngx_bloom_ring_drop(ngx_bloom_zone_bits_t *bits,
    uint64_t now, ngx_msec_t *next);
static ngx_uint_t ngx_bloom_ring_clear(ngx_bloom_zone_t *zone,
    ngx_bloom_zone_bits_t *bits, ngx_bloom_ring_work_t *work);
static uint64_t ngx_bloom_ring_oldest(const ngx_bloom_zone_bits_t *bits,
    uint64_t now);
static ngx_uint_t ngx_bloom_ring_forget(ngx_bloom_zone_t *zone,
    ngx_bloom_zone_bits_t *bits, uint64_t before, uint64_t *cursor);


/* Returns the time of the keys that are put. */
static uint64_t
ngx_bloom_ring_now(const ngx_bloom_zone_bits_t *bits)
{
    return bits->time != 0 ? bits->time : ngx_bloom_clock_now(bits->clock);
}


/* Raises a time that is earlier. */
static void
ngx_bloom_ring_raise(uint64_t *time, uint64_t to)
{
    uint64_t  old;

    old = __atomic_load_n(time, __ATOMIC_SEQ_CST);

    while (old < to
           && !__atomic_compare_exchange_n(time, &old, to, 0, __ATOMIC_SEQ_CST,
                                           __ATOMIC_SEQ_CST))
    {
        /* void */
    }
}


static uint64_t
ngx_bloom_ring_load(const ngx_bloom_ring_t *ring)
{
    return __atomic_load_n(&ring->turn, __ATOMIC_SEQ_CST);
}


void
ngx_bloom_ring_plan(ngx_bloom_zone_t *zone, ngx_uint_t bank,
    uint64_t generation)
{
    uint64_t           ready;
    ngx_bloom_ring_t  *ring;

    ring = &zone->sh->bank[bank].ring;
    ready = ngx_bloom_ring_all(zone->sh->bank[bank].image.geometry.slices)
            & ~(uint64_t) 1;

    ngx_memzero(ring, sizeof(ngx_bloom_ring_t));

    ring->live = 1;

    __atomic_store_n(&ring->turn, ngx_bloom_ring_word(generation, ready, 0),
                     __ATOMIC_SEQ_CST);
}


/*
 * Opens a ready slice in place of the one that is open in `turn`.  Returns 1 if
 * another slice is open now, or 0 if none is ready.
 *
 * A process that dies after the compare-and-set leaves an open slice that is
 * not live, which the next addition corrects.  The helper stamps the closed
 * one in any case: the time that this process writes may be late by a life.
 */
static ngx_uint_t
ngx_bloom_ring_turn(ngx_bloom_zone_bits_t *bits, uint64_t turn, ngx_uint_t full)
{
    uint32_t           old, slice;
    uint64_t           ready, next;
    ngx_bloom_ring_t  *ring;

    ring = bits->ring;
    old = ngx_bloom_ring_open(turn);
    ready = ngx_bloom_ring_ready(turn) & ngx_bloom_ring_all(bits->room)
            & ~ngx_bloom_ring_bit(old);

    if (ready == 0) {
        return 0;
    }

    slice = (uint32_t) __builtin_ctzll(ready);
    next = ngx_bloom_ring_word(bits->generation,
                               ready & ~ngx_bloom_ring_bit(slice), slice);

    ngx_bloom_fault("turn");

    if (!__atomic_compare_exchange_n(&ring->turn, &turn, next, 0,
                                     __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
    {
        return 1;
    }

    ngx_bloom_fault("opened");

    (void) __atomic_fetch_or(&ring->live, ngx_bloom_ring_bit(slice),
                             __ATOMIC_SEQ_CST);
    if (full) {
        (void) __atomic_fetch_or(&ring->full, ngx_bloom_ring_bit(old),
                                 __ATOMIC_SEQ_CST);
    }

    ngx_bloom_fault("closed");

    /* read the clock after the change: whoever found the old slice open until
     * now has added earlier */

    ngx_bloom_ring_raise(&ring->closed[old], ngx_bloom_ring_now(bits));

    /* nobody else adds keys while a load does */

    if (bits->time != 0) {
        (void) __atomic_fetch_or(&ring->final, ngx_bloom_ring_bit(old),
                                 __ATOMIC_SEQ_CST);
    }

    return 1;
}


/* Returns 1 if a slice may be closed because it is full: those that are closed
 * in time must find clean ones. */
static ngx_uint_t
ngx_bloom_ring_has_room(const ngx_bloom_zone_bits_t *bits)
{
    uint64_t  full;

    full = __atomic_load_n(&bits->ring->full, __ATOMIC_SEQ_CST);

    return (ngx_uint_t) __builtin_popcountll(full) + 1 + bits->expire
           / bits->slice < bits->room;
}


/*
 * Finds the open slice, and makes sure that it is live.  Returns the word that
 * names it; 0 if another generation serves.
 *
 * A slice that was live while it was open is not cleared before all of its
 * keys' life has passed.  One that was not may have been closed and cleared
 * already, so the word is read again.
 */
static uint64_t
ngx_bloom_ring_begin(ngx_bloom_zone_bits_t *bits)
{
    uint32_t           slice;
    uint64_t           turn, now;
    ngx_bloom_ring_t  *ring;

    ring = bits->ring;

    for (turn = ngx_bloom_ring_load(ring); /* void */ ; turn = now) {

        slice = ngx_bloom_ring_open(turn);

        if (slice >= bits->room
            || ngx_bloom_ring_generation(turn)
               != (bits->generation & NGX_BLOOM_RING_GENERATIONS))
        {
            return 0;
        }

        if (__atomic_load_n(&ring->live, __ATOMIC_SEQ_CST)
            & ngx_bloom_ring_bit(slice))
        {
            return turn;
        }

        ngx_bloom_fault("enliven");

        (void) __atomic_fetch_or(&ring->live, ngx_bloom_ring_bit(slice),
                                 __ATOMIC_SEQ_CST);

        now = ngx_bloom_ring_load(ring);

        if (ngx_bloom_ring_open(now) == slice) {
            return now;
        }
    }
}


void
ngx_bloom_ring_put(ngx_bloom_zone_bits_t *bits, const bloom_hash_t *hash,
    ngx_uint_t n, u_char *changed)
{
    uint32_t           slice;
    uint64_t           turn, bits_set, none, which;
    ngx_uint_t         i;
    ngx_bloom_ring_t  *ring;

    ring = bits->ring;
    ngx_memzero(changed, n);

    turn = ngx_bloom_ring_begin(bits);

    if (turn == 0) {
        return;
    }

    slice = ngx_bloom_ring_open(turn);

    ngx_bloom_zone_follow(bits->geometry, bits->grown, ring, bits->generation,
                          bits->room);
    bits->geometry->open = slice;

    if (__atomic_load_n(&ring->opened[slice], __ATOMIC_RELAXED) == 0) {
        none = 0;
        (void) __atomic_compare_exchange_n(&ring->opened[slice], &none,
                                           ngx_bloom_ring_now(bits), 0,
                                           __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    }

    ngx_bloom_fault("put");

    if (bits->time != 0) {
        bits_set = bloom_layout_add_batch(bits->geometry, bits->words, hash, n,
                                          !bits->alone, &which);
        ngx_memset(changed, 1, n);

    } else {

        for (bits_set = 0, i = 0; i < n; i++) {
            changed[i] = !bloom_layout_test(bits->geometry, bits->words,
                                            hash[i]);
            bits_set += bloom_layout_add_atomic(bits->geometry, bits->words,
                                                hash[i]);
        }
    }

    if (bits_set == 0) {
        return;
    }

    bits_set += __atomic_fetch_add(&bits->bits_set[slice], bits_set,
                                   __ATOMIC_RELAXED);

    if (bloom_ring_is_full(bits->geometry, bits->slice_capacity, bits_set)
        && ngx_bloom_ring_has_room(bits))
    {
        (void) ngx_bloom_ring_turn(bits, turn, 1);
    }
}


ngx_int_t
ngx_bloom_ring_keep(ngx_bloom_zone_bits_t *bits, uint64_t begun)
{
    uint32_t           i;
    uint64_t           now, closed, live, final;
    ngx_bloom_ring_t  *ring;

    ring = bits->ring;
    now = ngx_bloom_clock_now(bits->clock);
    live = __atomic_load_n(&ring->live, __ATOMIC_SEQ_CST);

    for (i = 0; i < bits->room; i++) {

        if ((live & ngx_bloom_ring_bit(i)) == 0) {
            continue;
        }

        /* in this order: it becomes final after it was closed and stamped */

        final = __atomic_load_n(&ring->final, __ATOMIC_SEQ_CST)
                & ngx_bloom_ring_bit(i);
        closed = __atomic_load_n(&ring->closed[i], __ATOMIC_SEQ_CST);

        if (final ? closed >= begun
                  : ngx_bloom_ring_open(ngx_bloom_ring_load(ring)) != i)
        {
            ngx_bloom_ring_raise(&ring->closed[i], now);
        }
    }

    /* a slice that was open at `begun` or later has not been dropped yet */

    return ngx_bloom_clock_now(bits->clock) - begun < bits->expire / 2
           ? NGX_OK : NGX_AGAIN;
}


void
ngx_bloom_ring_reach(ngx_bloom_zone_bits_t *bits, uint64_t time)
{
    uint64_t           turn, opened, now;
    ngx_bloom_ring_t  *ring;

    ring = bits->ring;

    if (bits->time == 0) {
        bits->time = time;
    }

    /* a clock that was never started will start at the time of the last record,
     * but not ahead of the system's */

    now = ngx_bloom_clock_expiry(bits->clock);
    now = now != 0 ? now : ngx_bloom_time();

    ngx_bloom_ring_recycle(bits, ngx_min(time, now));

    turn = ngx_bloom_ring_load(ring);
    opened = ring->opened[ngx_bloom_ring_open(turn) % BLOOM_PARTS_MAX];

    /* it is closed at the time of the keys before */

    if (opened != 0 && time >= opened + bits->slice) {
        (void) ngx_bloom_ring_turn(bits, turn, 0);
    }

    bits->time = ngx_max(bits->time, time);
}


/* Clears the slices of a ring that a load fills whose keys had expired at the
 * time `now`, and makes them ready: a zone that gets "expire" may have a
 * journal with the keys of many lives. */
static void
ngx_bloom_ring_recycle(ngx_bloom_zone_bits_t *bits, uint64_t now)
{
    size_t             size;
    uint32_t           i;
    uint64_t           used, bit;
    ngx_bloom_ring_t  *ring;

    ring = bits->ring;
    size = bits->geometry->bits / 8;

    used = ring->live & ngx_bloom_ring_all(bits->room)
           & ~ngx_bloom_ring_bit(ngx_bloom_ring_open(ring->turn));

    for ( /* void */ ; used != 0; used &= used - 1) {
        i = (uint32_t) __builtin_ctzll(used);
        bit = ngx_bloom_ring_bit(i);

        if (now < ring->closed[i] + bits->expire) {
            continue;
        }

        ngx_memzero((u_char *) bits->words + i * size, size);

        bits->bits_set[i] = 0;
        ring->opened[i] = 0;
        ring->closed[i] = 0;
        ring->live &= ~bit;
        ring->full &= ~bit;
        ring->final &= ~bit;
        ring->turn |= ngx_bloom_ring_word(0, bit, 0);
    }
}


void
ngx_bloom_ring_replayed(ngx_bloom_zone_bits_t *bits)
{
    uint32_t           i;
    uint64_t           now;
    ngx_bloom_ring_t  *ring;

    ring = bits->ring;
    now = ngx_bloom_clock_now(bits->clock);

    ngx_bloom_ring_reach(bits, now);

    for (i = 0; i < bits->room; i++) {
        ring->opened[i] = ngx_min(ring->opened[i], now);
        ring->closed[i] = ngx_min(ring->closed[i], now);
    }

    bits->time = 0;
}


ngx_msec_t
ngx_bloom_ring_tick(ngx_bloom_zone_t *zone, ngx_bloom_ring_work_t *work)
{
    uint32_t                slice;
    uint64_t                now, expiry, turn, opened, oldest;
    ngx_msec_t              next;
    ngx_bloom_ring_t       *ring;
    ngx_bloom_zone_bits_t   bits;

    next = NGX_BLOOM_RING_TICK;

    ngx_bloom_clock_save(zone->clock);

    if (ngx_bloom_zone_serving(zone, &bits) == 0 || bits.ring == NULL) {
        return next;
    }

    ring = bits.ring;
    now = ngx_bloom_clock_now(zone->clock);

    /* a clock in memory was started in this life of the zone (I19) */

    expiry = (zone->state != NULL) ? ngx_bloom_clock_expiry(zone->clock) : now;

    turn = ngx_bloom_ring_load(ring);
    slice = ngx_bloom_ring_open(turn);

    if (slice < bits.room) {
        opened = __atomic_load_n(&ring->opened[slice], __ATOMIC_SEQ_CST);

        if (opened != 0 && now >= opened + bits.slice) {
            if (ngx_bloom_zone_lock(zone, 0) == NGX_OK) {
                (void) ngx_bloom_ring_turn(&bits, turn, 0);
                ngx_bloom_zone_unlock(zone);
            }

        } else if (opened != 0) {
            next = ngx_min(next, opened + bits.slice - now);
        }
    }

    /* keys that were lost have expired as well */

    if (zone->state != NULL && expiry > zone->expire) {
        ngx_bloom_ring_raise(&zone->sh->complete, expiry - zone->expire);
    }

    if (ngx_bloom_ring_drop(&bits, expiry, &next)) {
        work->generation = 0;            /* begin again with what is cleared */
        work->cursor = 0;
    }

    oldest = ngx_bloom_ring_oldest(&bits, now);

    /* without keys no slice is dropped, and removals expire all the same */

    if (work->cursor == UINT64_MAX && oldest >= work->sought + bits.slice) {
        work->cursor = 0;
    }

    if (work->cursor == 0) {
        work->sought = oldest;
    }

    if (ngx_bloom_ring_clear(zone, &bits, work)
        || ngx_bloom_ring_forget(zone, &bits, oldest, &work->cursor))
    {
        return 0;
    }

    return next;
}


/*
 * Drops the slices whose keys have expired.  Lowers *next to when the next one
 * is due.  Returns 1 if it has dropped any, or 0.  A ready slice is not dropped
 * even if it is live, because it may be opened at any time.
 */
static ngx_uint_t
ngx_bloom_ring_drop(ngx_bloom_zone_bits_t *bits, uint64_t now,
    ngx_msec_t *next)
{
    uint32_t           i;
    uint64_t           live, closed, turn;
    ngx_uint_t         dropped;
    ngx_bloom_ring_t  *ring;

    ring = bits->ring;
    dropped = 0;

    live = __atomic_load_n(&ring->live, __ATOMIC_SEQ_CST);

    for (i = 0; i < bits->room; i++) {

        turn = ngx_bloom_ring_load(ring);

        if ((live & ngx_bloom_ring_bit(i)) == 0
            || ngx_bloom_ring_open(turn) == i
            || (ngx_bloom_ring_ready(turn) & ngx_bloom_ring_bit(i)))
        {
            continue;
        }

        if ((__atomic_load_n(&ring->final, __ATOMIC_SEQ_CST)
             & ngx_bloom_ring_bit(i))
            == 0)
        {
            /* `now` may be earlier than the closing */

            ngx_bloom_ring_raise(&ring->closed[i],
                                 ngx_bloom_clock_now(bits->clock));

            ngx_bloom_fault("stamped");

            (void) __atomic_fetch_or(&ring->final, ngx_bloom_ring_bit(i),
                                     __ATOMIC_SEQ_CST);
            continue;
        }

        closed = __atomic_load_n(&ring->closed[i], __ATOMIC_SEQ_CST);

        if (now < closed + bits->expire) {
            *next = ngx_min(*next, closed + bits->expire - now);
            continue;
        }

        ngx_bloom_fault("drop");

        (void) __atomic_fetch_and(&ring->live, ~ngx_bloom_ring_bit(i),
                                  __ATOMIC_SEQ_CST);
        (void) __atomic_fetch_and(&ring->full, ~ngx_bloom_ring_bit(i),
                                  __ATOMIC_SEQ_CST);
        dropped = 1;
    }

    return dropped;
}


/* Clears a piece of a slice that was dropped, and makes it ready when all of it
 * is cleared.  Returns 1 if there is more to do, or 0. */
static ngx_uint_t
ngx_bloom_ring_clear(ngx_bloom_zone_t *zone, ngx_bloom_zone_bits_t *bits,
    ngx_bloom_ring_work_t *work)
{
    size_t             size;
    uint32_t           i;
    uint64_t           turn, dropped;
    ngx_bloom_ring_t  *ring;

    ring = bits->ring;
    turn = ngx_bloom_ring_load(ring);

    if (ngx_bloom_ring_open(turn) >= bits->room) {
        return 0;
    }

    dropped = ngx_bloom_ring_all(bits->room)
              & ~__atomic_load_n(&ring->live, __ATOMIC_SEQ_CST)
              & ~ngx_bloom_ring_ready(turn)
              & ~ngx_bloom_ring_bit(ngx_bloom_ring_open(turn));

    if (dropped == 0) {
        return 0;
    }

    i = (uint32_t) __builtin_ctzll(dropped);
    size = bits->geometry->bits / 8;

    if (work->generation != bits->generation || work->slice != i
        || work->cleared > size)
    {
        work->generation = bits->generation;
        work->slice = i;
        work->cleared = 0;

        /* lookups that began with it start again if they miss any of its bits:
         * see ngx_bloom_zone_ended() */

        (void) __atomic_fetch_add(&ring->drops, 1, __ATOMIC_SEQ_CST);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
    }

    ngx_bloom_fault("zero");

    work->cleared += ngx_bloom_ring_zero((u_char *) bits->words + i * size
                                         + work->cleared, size - work->cleared);

    if (work->cleared < size) {
        return 1;
    }

    work->slice = BLOOM_PARTS_MAX;

    __atomic_store_n(&ring->opened[i], 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&ring->closed[i], 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&bits->bits_set[i], 0, __ATOMIC_SEQ_CST);
    (void) __atomic_fetch_and(&ring->final, ~ngx_bloom_ring_bit(i),
                              __ATOMIC_SEQ_CST);

    ngx_bloom_fault("ready");

    while (!__atomic_compare_exchange_n(&ring->turn, &turn,
                                        turn | ngx_bloom_ring_word(
                                            0, ngx_bloom_ring_bit(i), 0), 0,
                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
    {
        /* void */
    }

    return (dropped & (dropped - 1)) != 0;
}


size_t
ngx_bloom_ring_zero(u_char *p, size_t len)
{
    u_char  *end, *from, *to;

    end = p + len;

    if (len > NGX_BLOOM_RING_CLEAR) {
        end = ngx_align_ptr(p + NGX_BLOOM_RING_CLEAR - ngx_pagesize + 1,
                            ngx_pagesize);
    }

    from = ngx_align_ptr(p, ngx_pagesize);
    to = ngx_align_ptr(end - ngx_pagesize + 1, ngx_pagesize);

    if (from >= to) {
        ngx_memzero(p, end - p);
        return end - p;
    }

    ngx_memzero(p, from - p);
    ngx_bloom_hugepages_clear(from, to - from);
    ngx_memzero(to, end - to);

    return end - p;
}


/* Returns the time of the oldest key; `now` if there is no key. */
static uint64_t
ngx_bloom_ring_oldest(const ngx_bloom_zone_bits_t *bits, uint64_t now)
{
    uint32_t  i;
    uint64_t  live, opened;

    live = __atomic_load_n(&bits->ring->live, __ATOMIC_SEQ_CST);

    for (i = 0; i < bits->room; i++) {
        opened = __atomic_load_n(&bits->ring->opened[i], __ATOMIC_SEQ_CST);

        if ((live & ngx_bloom_ring_bit(i)) && opened != 0) {
            now = ngx_min(now, opened);
        }
    }

    return now;
}


/*
 * Ends exceptions from before a time that no live slice has: the additions
 * before them have expired, and an addition after them would have ended them.
 * Times alone do not prove this, because a clock may have gone back between an
 * addition and a removal.  Looks at a part of the set, from *cursor on; *cursor
 * is UINT64_MAX when it has seen all.  Returns 1 if there is more to do, or 0.
 */
static ngx_uint_t
ngx_bloom_ring_forget(ngx_bloom_zone_t *zone, ngx_bloom_zone_bits_t *bits,
    uint64_t before, uint64_t *cursor)
{
    int                rc;
    uint64_t           end;
    bloom_exception_t  exception;

    static u_char      buf[BLOOM_KEY_MAX];

    if (*cursor == UINT64_MAX
        || bloom_exceptions_count(&bits->exceptions) == 0
        || ngx_bloom_zone_lock(zone, 0) != NGX_OK)
    {
        return 0;
    }

    end = *cursor + NGX_BLOOM_RING_SEARCH;

    ngx_bloom_zone_follow(bits->geometry, bits->grown, bits->ring,
                          bits->generation, bits->room);

    do {
        rc = bloom_exceptions_next_within(&bits->exceptions, cursor,
                                          NGX_BLOOM_RING_SEARCH, &exception,
                                          buf);

        if (rc == 1 && exception.time < before
            && !bloom_layout_test(bits->geometry, bits->words,
                                  bloom_hash(bits->hasher, exception.key.data,
                                             exception.key.len)))
        {
            (void) bloom_exceptions_drop(&bits->exceptions, exception.key.data,
                                         exception.key.len,
                                         BLOOM_EXCEPTION_KINDS, UINT64_MAX);
        }
    } while (rc == 1 && *cursor < end);

    ngx_bloom_zone_unlock(zone);

    if (rc == 0) {
        *cursor = UINT64_MAX;
    }

    return rc != 0;
}


uint64_t
ngx_bloom_ring_late(ngx_bloom_zone_t *zone)
{
    uint32_t                slice;
    uint64_t                now, turn, opened;
    ngx_bloom_zone_bits_t   bits;

    if (ngx_bloom_zone_serving(zone, &bits) == 0 || bits.ring == NULL) {
        return 0;
    }

    turn = ngx_bloom_ring_load(bits.ring);
    slice = ngx_bloom_ring_open(turn);

    if (slice >= bits.room
        || (ngx_bloom_ring_ready(turn) & ngx_bloom_ring_all(bits.room)) != 0)
    {
        return 0;
    }

    opened = __atomic_load_n(&bits.ring->opened[slice], __ATOMIC_SEQ_CST);
    now = ngx_bloom_clock_now(zone->clock);

    return opened != 0 && now > opened + bits.slice
           ? now - opened - bits.slice : 0;
}


ngx_uint_t
ngx_bloom_ring_life(ngx_bloom_zone_t *zone, const bloom_key_t *key,
    ngx_bloom_ring_life_t *life)
{
    uint32_t                i;
    uint64_t                slices, now, from, until;
    ngx_bloom_ring_t       *ring;
    ngx_bloom_zone_bits_t   bits;

    if (ngx_bloom_zone_serving(zone, &bits) == 0 || bits.ring == NULL) {
        return 0;
    }

    ring = bits.ring;
    now = ngx_bloom_clock_now(zone->clock);

    slices = bloom_layout_slices(bits.geometry, bits.words,
                                 bloom_hash(bits.hasher, key->data, key->len));

    life->from = 0;
    life->until = 0;

    for (i = 0; i < bits.room; i++) {

        if ((slices & ngx_bloom_ring_bit(i)) == 0) {
            continue;
        }

        from = __atomic_load_n(&ring->closed[i], __ATOMIC_SEQ_CST);
        until = from;

        if (from == 0 || ngx_bloom_ring_open(ngx_bloom_ring_load(ring)) == i) {
            from = now;
            until = __atomic_load_n(&ring->opened[i], __ATOMIC_SEQ_CST)
                    + bits.slice;
            until = ngx_max(until, now);
        }

        life->from = ngx_max(life->from, from + bits.expire);
        life->until = ngx_max(life->until, until + bits.expire);
    }

    return slices != 0;
}


void
ngx_bloom_ring_follow(ngx_bloom_zone_t *zone)
{
    uint32_t  slice;

    if (zone->ring == NULL) {
        return;
    }

    slice = ngx_bloom_ring_open(ngx_bloom_ring_load(zone->ring));

    if (slice < zone->room) {
        zone->geometry.open = slice;
    }
}


void
ngx_bloom_ring_copy(ngx_bloom_zone_t *zone, ngx_uint_t bank,
    ngx_bloom_ring_t *ring)
{
    uint32_t           i;
    ngx_bloom_ring_t  *from;

    from = &zone->sh->bank[bank].ring;

    /* in this order: a slice that was closed meanwhile is live, or dropped */

    ring->turn = ngx_bloom_ring_load(from);
    ring->final = __atomic_load_n(&from->final, __ATOMIC_SEQ_CST);
    ring->live = __atomic_load_n(&from->live, __ATOMIC_SEQ_CST);
    ring->full = __atomic_load_n(&from->full, __ATOMIC_SEQ_CST);

    for (i = 0; i < BLOOM_PARTS_MAX; i++) {
        ring->opened[i] = __atomic_load_n(&from->opened[i], __ATOMIC_RELAXED);
        ring->closed[i] = __atomic_load_n(&from->closed[i], __ATOMIC_RELAXED);
    }
}
