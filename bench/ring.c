/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * ring measures lookups of absent keys in rings of slices:
 *
 *     ring small|huge BYTES ROUNDS SLICES[@FPR]...
 *
 * All filters lie in the same BYTES of memory, on small or huge pages: one filter
 * with one line for each key; two of half the size, where the lookup in the
 * second one begins when the first one has answered; and for each number of
 * SLICES a ring of so many live ones.  Without FPR, slices have one line for
 * each key, too.  With FPR, a key has as many lines and bits in a slice as in a
 * zone with fpr=FPR and one slice less than SLICES.
 *
 * 17/32 of all bits are set, at random: full slices of a zone with fpr=0.001 have
 * 53 %, and those of lower rates have fewer.  So the first line of 0.6 % of the
 * absent keys matches in a slice, and the next line is read.
 *
 * Prints a line of JSON for each filter and round, in turns: the nanoseconds of
 * a lookup that begins when the one before it has answered, as lookups of
 * requests do (alone); of lookups that need not wait (many); and of a key in a
 * batch of 64 (batch).  Hashing is not included.
 */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "bloom_layout.h"
#include "bloom_ring.h"

#define LOOKUPS    (1 << 16)
#define HUGE_PAGE  ((size_t) 1 << 21)
#define TWO        0                     /* stands for a number of slices */


typedef struct {
    bloom_geometry_t   geometry;
    uint64_t          *words;
    uint64_t          *second;           /* words of the second filter */
    double             fill;             /* share of bits set in full slices */
    uint64_t           found;
} filter_t;

typedef void (*way_t)(filter_t *f, const bloom_hash_t *hash);


static uint64_t
random_word(uint64_t *x)
{
    uint64_t  y;

    y = *x += 0x9e3779b97f4a7c15;
    y = (y ^ y >> 30) * 0xbf58476d1ce4e5b9;
    y = (y ^ y >> 27) * 0x94d049bb133111eb;

    return y ^ y >> 31;
}


/* Returns memory with 17/32 of its bits set. */
static uint64_t *
allocate(size_t size, int huge)
{
    char      *map;
    size_t     i;
    uint64_t  *words, x, rare;

    map = mmap(NULL, size + HUGE_PAGE, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (map == MAP_FAILED) {
        fprintf(stderr, "ring: not enough memory\n");
        exit(1);
    }

    map += HUGE_PAGE - (uintptr_t) map % HUGE_PAGE;
    (void) madvise(map, size, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    words = (uint64_t *) map;

    for (x = 1, i = 0; i < size / 8; i++) {
        rare = random_word(&x) & random_word(&x) & random_word(&x)
               & random_word(&x);
        words[i] = random_word(&x) | rare;           /* 1/2 + 1/2 * 1/16 */
    }

    return words;
}


static filter_t
make(uint64_t *words, size_t size, unsigned slices, double fpr)
{
    uint64_t          keys;
    filter_t          f;
    bloom_geometry_t  ring;

    memset(&f, 0, sizeof(f));

    f.words = words;
    f.geometry.layout = BLOOM_LAYOUT_BLOCKED;
    f.geometry.k = 8;
    f.geometry.lines = 1;

    if (slices == TWO) {
        f.geometry.bits = size / 128 * 512;
        f.second = words + f.geometry.bits / 64;
        return f;
    }

    f.geometry.bits = ((size / 64 / slices - 1) | 1) * 512;
    f.geometry.slices = (uint16_t) slices;

    if (fpr != 0) {
        if (bloom_ring_size(&ring, &keys, 1000000, fpr, slices - 1, 0) != 0) {
            f.geometry.slices = 0;
            return f;
        }

        f.geometry.k = ring.k;
        f.geometry.lines = ring.lines;
        f.fill = 1 - exp(-(double) keys * ring.k / (double) ring.bits);
    }

    f.geometry.live = ((uint64_t) 1 << slices) - 1;

    return f;
}


static int
test(const filter_t *f, bloom_hash_t hash)
{
    int  found;

    found = bloom_layout_test(&f->geometry, f->words, hash);

    if (f->second != NULL) {
        hash.h1 = hash.h1 * 0x9e3779b97f4a7c15 + (uint64_t) found;
        found = bloom_layout_test(&f->geometry, f->second, hash);
    }

    return found;
}


static void
alone(filter_t *f, const bloom_hash_t *hash)
{
    unsigned      i;
    bloom_hash_t  one;

    for (i = 0; i < LOOKUPS; i++) {
        one = hash[i];
        one.h1 += f->found;              /* wait for the answer before */
        f->found += (uint64_t) test(f, one);
    }
}


static void
many(filter_t *f, const bloom_hash_t *hash)
{
    unsigned  i;

    for (i = 0; i < LOOKUPS; i++) {
        f->found += (uint64_t) test(f, hash[i]);
    }
}


static void
batch(filter_t *f, const bloom_hash_t *hash)
{
    unsigned  i;

    for (i = 0; i < LOOKUPS; i += BLOOM_BATCH) {
        f->found += bloom_layout_test_batch(&f->geometry, f->words, hash + i,
                                            BLOOM_BATCH);

        if (f->second != NULL) {
            f->found += bloom_layout_test_batch(&f->geometry, f->second,
                                                hash + i, BLOOM_BATCH);
        }
    }
}


/* Returns the nanoseconds of a lookup. */
static double
measure(filter_t *f, way_t way, uint64_t *seed)
{
    unsigned              i;
    uint64_t              x;
    struct timespec       begin, end;

    static bloom_hash_t   hash[LOOKUPS];

    for (i = 0; i < LOOKUPS; i++) {
        *seed += 0x9e3779b97f4a7c15;
        x = (*seed ^ *seed >> 30) * 0xbf58476d1ce4e5b9;
        hash[i].h1 = x ^ x >> 27;
        hash[i].h2 = hash[i].h1 * 0x94d049bb133111eb;
    }

    clock_gettime(CLOCK_MONOTONIC, &begin);
    way(f, hash);
    clock_gettime(CLOCK_MONOTONIC, &end);

    return ((double) (end.tv_sec - begin.tv_sec) * 1e9
            + (double) (end.tv_nsec - begin.tv_nsec)) / LOOKUPS;
}


static void
print(filter_t *f, const char *name, unsigned slices, uint64_t *seed)
{
    double  ns[3];

    ns[0] = measure(f, alone, seed);
    ns[1] = measure(f, many, seed);
    ns[2] = measure(f, batch, seed);

    printf("{\"name\":\"%s\",\"slices\":%u,\"lines\":%u,\"fill\":%.3f,"
           "\"alone_ns\":%.3f,\"many_ns\":%.3f,\"batch_ns\":%.3f,"
           "\"found\":%" PRIu64 "}\n", name, slices,
           (unsigned) f->geometry.lines, f->fill, ns[0], ns[1], ns[2],
           f->found);
}


int
main(int argc, char **argv)
{
    int        i;
    char      *end;
    size_t     size;
    double     fpr;
    unsigned   round, rounds, slices;
    uint64_t   seed, *words;
    filter_t   f;

    if (argc < 5) {
        fprintf(stderr, "usage: ring small|huge BYTES ROUNDS SLICES[@FPR]...\n");
        return 2;
    }

    size = strtoull(argv[2], NULL, 10) / HUGE_PAGE * HUGE_PAGE;
    rounds = (unsigned) strtoul(argv[3], NULL, 10);
    words = allocate(size, strcmp(argv[1], "huge") == 0);
    seed = 1;

    for (round = 0; round < rounds; round++) {
        f = make(words, size, 1, 0);
        f.geometry.slices = 0;
        print(&f, "one", 0, &seed);

        f = make(words, size, TWO, 0);
        print(&f, "two", 0, &seed);

        for (i = 4; i < argc; i++) {
            slices = (unsigned) strtoul(argv[i], &end, 10);
            fpr = (*end == '@') ? strtod(end + 1, NULL) : 0;
            f = make(words, size, slices, fpr);

            if (slices == 0 || f.geometry.slices != slices
                || !bloom_geometry_valid(&f.geometry))
            {
                fprintf(stderr, "ring: no such ring of %s slices\n", argv[i]);
                return 1;
            }

            print(&f, argv[i], slices, &seed);
        }
    }

    return 0;
}
