/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * filter looks keys up in this project's filter.  It has the command line of
 * the programs in bench/others, with which lookups.pl compares it:
 *
 *     PROGRAM N RATE
 *
 * It adds keys 0 .. N-1, of 16 bytes each, to a filter for N keys at RATE, and
 * prints the size of the filter in bits.  Then, for each line "HITS COUNT" on
 * standard input, it makes COUNT keys, which are in the filter if HITS is 1 and
 * are not if it is 0.  It looks up each key, and prints the nanoseconds per
 * lookup, hashing included, and how many keys were found.
 *
 * This program also takes lines "HITS COUNT batch", for 64 keys at a time.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bloom_layout.h"

#define KEY_LEN  16


typedef struct {
    bloom_geometry_t  geometry;
    bloom_hasher_t    hasher;
    uint64_t         *words;
    uint8_t          *keys;              /* of one turn */
} filter_t;


/* Makes key x: two words that are easy for none of the filters' hashes. */
static void
make_key(uint8_t *key, uint64_t x)
{
    uint64_t  words[2] = { x, x * 0x9e3779b97f4a7c15 };

    memcpy(key, words, KEY_LEN);
}


static double
now(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);

    return (double) ts.tv_sec * 1e9 + (double) ts.tv_nsec;
}


static uint64_t
look_up(const filter_t *f, uint64_t count, int batch)
{
    unsigned      n, j;
    uint64_t      i, found;
    bloom_hash_t  hash[BLOOM_BATCH];

    for (found = 0, i = 0; i < count; i += n) {
        n = batch && count - i > BLOOM_BATCH ? BLOOM_BATCH : 1;

        for (j = 0; j < n; j++) {
            hash[j] = bloom_hash(&f->hasher, f->keys + (i + j) * KEY_LEN,
                                 KEY_LEN);
        }

        if (n == 1) {
            found += (uint64_t) bloom_layout_test(&f->geometry, f->words,
                                                  hash[0]);

        } else {
            found += (uint64_t) __builtin_popcountll(
                         bloom_layout_test_batch(&f->geometry, f->words, hash,
                                                 n));
        }
    }

    return found;
}


int
main(int argc, char **argv)
{
    int           hits;
    char          line[64], how[16];
    double        start;
    uint8_t       key[KEY_LEN];
    uint64_t      i, n, count, state, found;
    filter_t      f;
    bloom_hash_t  hash;

    if (argc != 3) {
        fprintf(stderr, "usage: filter N RATE\n");
        return 2;
    }

    memset(&f, 0, sizeof(f));
    n = strtoull(argv[1], NULL, 10);
    bloom_hasher_murmur3(&f.hasher, 7);

    if (bloom_geometry_size(&f.geometry, BLOOM_LAYOUT_BLOCKED, n,
                            strtod(argv[2], NULL))
        != 0)
    {
        fprintf(stderr, "filter: no filter of %s keys at %s\n", argv[1],
                argv[2]);
        return 2;
    }

    f.words = aligned_alloc(64, bloom_geometry_bytes(&f.geometry));

    if (f.words == NULL) {
        perror("filter");
        return 2;
    }

    memset(f.words, 0, bloom_geometry_bytes(&f.geometry));

    for (i = 0; i < n; i++) {
        make_key(key, i);
        hash = bloom_hash(&f.hasher, key, KEY_LEN);
        bloom_layout_add_many(&f.geometry, f.words, &hash, 1);
    }

    printf("%" PRIu64 "\n", f.geometry.bits);
    fflush(stdout);

    state = 1;

    while (fgets(line, sizeof(line), stdin) != NULL) {

        *how = '\0';

        if (sscanf(line, "%d %" SCNu64 " %15s", &hits, &count, how) < 2) {
            fprintf(stderr, "filter: no \"HITS COUNT\": %s", line);
            return 2;
        }

        f.keys = realloc(f.keys, count * KEY_LEN);

        if (f.keys == NULL) {
            perror("filter");
            return 2;
        }

        for (i = 0; i < count; i++) {
            state = state * 6364136223846793005 + 1442695040888963407;
            make_key(f.keys + i * KEY_LEN,
                     hits ? (state >> 33) % n : n + (state >> 33));
        }

        start = now();
        found = look_up(&f, count, strcmp(how, "batch") == 0);

        printf("%.3f %" PRIu64 "\n", (now() - start) / (double) count, found);
        fflush(stdout);
    }

    return 0;
}
