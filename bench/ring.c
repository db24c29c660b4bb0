/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * ring measures lookups of absent keys in rings of slices:
 *
 *     ring small|huge BYTES ROUNDS SLICES...
 *
 * All filters lie in the same BYTES of memory, on small or huge pages, with a
 * quarter of the bits set: one filter with one line for each key; two of half
 * the size, where the lookup in the second one begins when the first one has
 * answered; and for each number of SLICES a ring of so many live ones, which
 * also have one line for each key.
 *
 * Prints a line of JSON for each filter and round, in turns: the nanoseconds of
 * a lookup that begins when the one before it has answered, as lookups of
 * requests do (alone); of lookups that need not wait (many); and of a key in a
 * batch of 64 (batch).  Hashing is not included.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "bloom_layout.h"

#define LOOKUPS    (1 << 16)
#define HUGE_PAGE  ((size_t) 1 << 21)
#define TWO        0                     /* stands for a number of slices */


typedef struct {
    bloom_geometry_t   geometry;
    uint64_t          *words;
    uint64_t          *second;           /* words of the second filter */
    uint64_t           found;
} filter_t;

typedef void (*way_t)(filter_t *f, const bloom_hash_t *hash);


/* Returns memory with a quarter of its bits set. */
static uint64_t *
allocate(size_t size, int huge)
{
    char      *map;
    size_t     i;
    uint64_t  *words, x, y;

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
        y = x = x * 6364136223846793005 + 1442695040888963407;
        y = (y ^ y >> 29) * 0xbf58476d1ce4e5b9;
        x = x * 6364136223846793005 + 1442695040888963407;
        words[i] = (y ^ y >> 32) & ((x ^ x >> 29) * 0x94d049bb133111eb);
    }

    return words;
}


static filter_t
make(uint64_t *words, size_t size, unsigned slices)
{
    filter_t  f;

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

    printf("{\"name\":\"%s\",\"slices\":%u,\"alone_ns\":%.3f,\"many_ns\":%.3f,"
           "\"batch_ns\":%.3f,\"found\":%" PRIu64 "}\n", name, slices, ns[0],
           ns[1], ns[2], f->found);
}


int
main(int argc, char **argv)
{
    int        i;
    size_t     size;
    unsigned   round, rounds, slices;
    uint64_t   seed, *words;
    filter_t   f;

    if (argc < 5) {
        fprintf(stderr, "usage: ring small|huge BYTES ROUNDS SLICES...\n");
        return 2;
    }

    size = strtoull(argv[2], NULL, 10) / HUGE_PAGE * HUGE_PAGE;
    rounds = (unsigned) strtoul(argv[3], NULL, 10);
    words = allocate(size, strcmp(argv[1], "huge") == 0);
    seed = 1;

    for (round = 0; round < rounds; round++) {
        f = make(words, size, 1);
        f.geometry.slices = 0;
        print(&f, "one", 0, &seed);

        f = make(words, size, TWO);
        print(&f, "two", 0, &seed);

        for (i = 4; i < argc; i++) {
            slices = (unsigned) strtoul(argv[i], NULL, 10);
            f = make(words, size, slices);

            if (slices == 0 || !bloom_geometry_valid(&f.geometry)) {
                fprintf(stderr, "ring: no such ring of %s slices\n", argv[i]);
                return 1;
            }

            print(&f, "ring", slices, &seed);
        }
    }

    return 0;
}
