/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * expiry lets keys expire, in simulated time:
 *
 *     expiry KIND CAPACITY RATE SLICES BURST
 *
 * A life has 1024 ticks, and in each life CAPACITY keys arrive: one after the
 * other, or, if BURST is 1, all of them at its beginning.  KIND is "slices", a
 * zone with expire= whose lives have SLICES slices, or "rotation", the rotating filters of
 * KrakenD (rotate.go of krakend/bloomfilter v2).  A rotation has three filters.
 * A key is added to `current` and `next`, and looked up in `previous` and
 * `current`; every TTL they move on by one.  For a rotation, SLICES is the
 * number of TTLs in a life, 1 or 2.
 *
 * Prints a line of JSON: the least and the greatest number of lives that a key
 * was present (but for the longest 1 %, since some keys are false positives of
 * other slices when they are gone), the bytes reserved and the most that were in use at once, the
 * greatest false-positive rate at any of 64 moments, and the nanoseconds of a
 * lookup of an absent key.
 */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bloom_hash.h"
#include "bloom_layout.h"
#include "bloom_ring.h"

#define LIFE      1024                   /* ticks */
#define LIVES     6
#define SAMPLES   4096
#define LOOKUPS   (1 << 16)


typedef struct {
    int               rotates;
    uint64_t          capacity;
    bloom_hasher_t    hasher;
    bloom_geometry_t  geometry;
    uint64_t         *words;
    size_t            bytes;             /* reserved */

    /* slices */
    uint64_t          slice_capacity;
    uint32_t          slices;
    uint64_t          opened[BLOOM_RING_MAX];        /* tick + 1; 0: empty */
    uint64_t          closed[BLOOM_RING_MAX];
    uint64_t          bits_set[BLOOM_RING_MAX];
    uint32_t          full;              /* live ones closed by fullness */
    uint64_t          was_full;          /* bitmap of these */

    /* rotation: previous, current and next */
    uint64_t         *filter[3];
    uint64_t          ttl;
} filter_t;

typedef struct {
    uint64_t  key;                       /* at the end: ticks that it lived */
    uint64_t  added;
    uint64_t  gone;                      /* 0: it is present */
} sample_t;


static void *
allocate(size_t size)
{
    void  *p;

    p = aligned_alloc(4096, (size + 4095) / 4096 * 4096);

    if (p == NULL) {
        fprintf(stderr, "expiry: not enough memory\n");
        exit(1);
    }

    memset(p, 0, size);

    return p;
}


static bloom_hash_t
hash_of(const filter_t *f, uint64_t x)
{
    uint64_t  key[2];

    key[0] = x * 0x9e3779b97f4a7c15;
    key[1] = x;

    return bloom_hash(&f->hasher, key, sizeof(key));
}


/* The sizes of KrakenD's filters, from M() and K() of its bloomfilter.go. */
static void
size_rotation(bloom_geometry_t *g, uint64_t n, double fpr)
{
    memset(g, 0, sizeof(bloom_geometry_t));

    g->layout = BLOOM_LAYOUT_CLASSIC;
    g->bits = bloom_geometry_whole_lines(
                  (uint64_t) ceil(-((double) n * log(fpr)) / (M_LN2 * M_LN2)));
    g->k = (uint32_t) ceil(M_LN2 * (double) g->bits / (double) n);
}


static void
make(filter_t *f, const char *kind, uint64_t capacity, double fpr,
    uint32_t slices)
{
    size_t    one;
    unsigned  i;

    memset(f, 0, sizeof(filter_t));

    f->hasher.kind = BLOOM_HASH_MURMUR3;
    f->capacity = capacity;
    f->slices = slices;
    f->rotates = strcmp(kind, "rotation") == 0;

    if (f->rotates) {

        /* a filter gets the keys of two TTLs, and two of them are looked up */

        f->ttl = LIFE / slices;
        size_rotation(&f->geometry, capacity * 2 / slices, fpr / 2);

        one = bloom_geometry_bytes(&f->geometry);
        f->bytes = 3 * one;
        f->words = allocate(f->bytes);

        for (i = 0; i < 3; i++) {
            f->filter[i] = f->words + i * (one / sizeof(uint64_t));
        }

        return;
    }

    if (bloom_ring_size(&f->geometry, &f->slice_capacity, capacity, fpr, slices,
                        0)
        != 0)
    {
        fprintf(stderr, "expiry: no such filter\n");
        exit(1);
    }

    f->bytes = bloom_geometry_bytes(&f->geometry);
    f->words = allocate(f->bytes);
}


/* Opens a slice that is not live; see src/zone/ngx_bloom_ring.c. */
static void
turn(filter_t *f, uint64_t now)
{
    uint32_t           i;
    bloom_geometry_t  *g;

    g = &f->geometry;

    for (i = 0; i < g->slices && (g->live & ((uint64_t) 1 << i)); i++) {
        /* void */
    }

    if (i == g->slices) {
        return;
    }

    f->closed[g->open] = now;
    f->opened[i] = 0;
    f->bits_set[i] = 0;
    g->open = i;
    g->live |= (uint64_t) 1 << i;
}


static void
tick_slices(filter_t *f, uint64_t now)
{
    size_t             size;
    uint32_t           i;
    bloom_geometry_t  *g;

    g = &f->geometry;
    size = g->bits / 8;

    if (f->opened[g->open] != 0
        && now + 1 >= f->opened[g->open] + LIFE / f->slices)
    {
        turn(f, now);
    }

    for (i = 0; i < g->slices; i++) {
        if (i != g->open && (g->live & ((uint64_t) 1 << i))
            && now >= f->closed[i] + LIFE)
        {
            g->live &= ~((uint64_t) 1 << i);
            f->full -= (f->was_full >> i) & 1;
            f->was_full &= ~((uint64_t) 1 << i);
            memset((char *) f->words + i * size, 0, size);
        }
    }
}


static void
tick_rotation(filter_t *f, uint64_t now)
{
    uint64_t  *oldest;

    if (now == 0 || now % f->ttl != 0) {
        return;
    }

    oldest = f->filter[0];
    f->filter[0] = f->filter[1];
    f->filter[1] = f->filter[2];
    f->filter[2] = oldest;
    memset(oldest, 0, bloom_geometry_bytes(&f->geometry));
}


static void
add(filter_t *f, uint64_t x, uint64_t now)
{
    uint32_t           old;
    bloom_hash_t       hash;
    bloom_geometry_t  *g;

    g = &f->geometry;
    hash = hash_of(f, x);

    if (f->rotates) {
        (void) bloom_layout_add(g, f->filter[1], hash);
        (void) bloom_layout_add(g, f->filter[2], hash);
        return;
    }

    old = g->open;

    if (f->opened[old] == 0) {
        f->opened[old] = now + 1;
    }

    f->bits_set[old] += (uint64_t) bloom_layout_add_atomic(g, f->words, hash);

    if (x % 16 == 0
        && bloom_ring_is_full(g, f->slice_capacity, f->bits_set[old])
        && f->full + 1 + f->slices < g->slices)
    {
        turn(f, now);
        f->full++;
        f->was_full |= (uint64_t) 1 << old;
    }
}


static int
has(const filter_t *f, bloom_hash_t hash)
{
    if (f->rotates) {
        return bloom_layout_test(&f->geometry, f->filter[0], hash)
               || bloom_layout_test(&f->geometry, f->filter[1], hash);
    }

    return bloom_layout_test(&f->geometry, f->words, hash);
}


static size_t
in_use(const filter_t *f)
{
    return f->rotates ? f->bytes
           : (size_t) __builtin_popcountll(f->geometry.live)
             * (f->geometry.bits / 8);
}


/* Returns the share of `n` keys that were never added that are found. */
static double
rate(const filter_t *f, uint64_t from, uint64_t n)
{
    uint64_t  i, found;

    for (found = 0, i = 0; i < n; i++) {
        found += (uint64_t) has(f, hash_of(f, ~(from + i)));
    }

    return (double) found / (double) n;
}


/* Returns the nanoseconds of a lookup of an absent key, the least of some
 * turns. */
static double
measure(const filter_t *f)
{
    double            ns, least;
    unsigned          i, round;
    uint64_t          found;
    bloom_hash_t     *hash;
    struct timespec   begin, end;

    hash = allocate(LOOKUPS * sizeof(bloom_hash_t));

    for (i = 0; i < LOOKUPS; i++) {
        hash[i] = hash_of(f, ~((uint64_t) i << 20));
    }

    least = 1e9;
    found = 0;

    for (round = 0; round < 5; round++) {
        clock_gettime(CLOCK_MONOTONIC, &begin);

        for (i = 0; i < LOOKUPS; i++) {
            found += (uint64_t) has(f, hash[i]);
        }

        clock_gettime(CLOCK_MONOTONIC, &end);

        ns = ((double) (end.tv_sec - begin.tv_sec) * 1e9
              + (double) (end.tv_nsec - begin.tv_nsec)) / LOOKUPS;
        least = ns < least ? ns : least;
    }

    free(hash);

    return found > LOOKUPS ? -1 : least;
}


static int
by_life(const void *a, const void *b)
{
    uint64_t  x, y;

    x = ((const sample_t *) a)->key;
    y = ((const sample_t *) b)->key;

    return (x > y) - (x < y);
}


int
main(int argc, char **argv)
{
    int                burst;
    double             fpr, worst, one, ns, shortest, longest;
    size_t             most;
    uint64_t           now, i, key, count, every;
    unsigned           n;
    filter_t           f;
    sample_t          *sample;

    if (argc != 6) {
        fprintf(stderr, "usage: expiry KIND CAPACITY RATE SLICES BURST\n");
        return 2;
    }

    fpr = atof(argv[3]);
    burst = atoi(argv[5]);
    make(&f, argv[1], strtoull(argv[2], NULL, 10), fpr,
         (uint32_t) atoi(argv[4]));

    sample = allocate(SAMPLES * sizeof(sample_t));
    every = f.capacity * LIVES / SAMPLES + 1;

    key = 1;
    n = 0;
    worst = 0;
    ns = 0;
    most = 0;

    for (now = 0; now < (LIVES + 4) * LIFE; now++) {

        if (f.rotates) {
            tick_rotation(&f, now);

        } else {
            tick_slices(&f, now);
        }

        count = burst ? (now % LIFE == 0 ? f.capacity : 0)
                      : f.capacity * (now + 1) / LIFE - f.capacity * now / LIFE;

        for (i = 0; now < LIVES * LIFE && i < count; i++, key++) {
            add(&f, key, now);

            if (key % every == 0 && n < SAMPLES && now >= 2 * LIFE) {
                sample[n].key = key;
                sample[n].added = now;
                n++;
            }
        }

        most = in_use(&f) > most ? in_use(&f) : most;

        for (i = 0; i < n; i++) {
            if (sample[i].gone == 0 && !has(&f, hash_of(&f, sample[i].key))) {
                sample[i].gone = now;
            }
        }

        /* moments at all distances from a turn */

        if (now >= 3 * LIFE && now < LIVES * LIFE
            && now % (LIFE * 3 / 64 + 1) == 0)
        {
            one = rate(&f, now << 40, 200000);
            worst = one > worst ? one : worst;
        }

        if (now == (LIVES * LIFE) - 2) {
            ns = measure(&f);
        }
    }

    for (i = 0; i < n; i++) {
        sample[i].key = sample[i].gone - sample[i].added;
    }

    qsort(sample, n, sizeof(sample_t), by_life);

    shortest = (double) sample[0].key / LIFE;
    longest = (double) sample[n - 1 - n / 100].key / LIFE;

    printf("{\"least\": %.3f, \"greatest\": %.3f, \"bytes\": %zu, "
           "\"in_use\": %zu, \"fpr\": %.8f, \"absent_ns\": %.1f}\n",
           shortest, longest, f.bytes, most, worst, ns);

    free(sample);
    free(f.words);

    return 0;
}
