/* SPDX-License-Identifier: BSD-2-Clause */

/* libbloom (Debian libbloom-dev) as bench/filter.c describes it. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <bloom.h>

#define KEY_LEN  16


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


int
main(int argc, char **argv)
{
    int            hits;
    char           line[64];
    double         start;
    uint8_t        key[KEY_LEN], *keys;
    uint64_t       i, n, count, state, found;
    struct bloom   bloom;

    if (argc != 3) {
        return 2;
    }

    n = strtoull(argv[1], NULL, 10);

    if (bloom_init(&bloom, (int) n, strtod(argv[2], NULL)) != 0) {
        fprintf(stderr, "libbloom: no filter of %s keys\n", argv[1]);
        return 2;
    }

    for (i = 0; i < n; i++) {
        make_key(key, i);
        bloom_add(&bloom, key, KEY_LEN);
    }

    printf("%" PRIu64 "\n", (uint64_t) bloom.bits);
    fflush(stdout);

    keys = NULL;
    state = 1;

    while (fgets(line, sizeof(line), stdin) != NULL) {

        if (sscanf(line, "%d %" SCNu64, &hits, &count) != 2
            || (keys = realloc(keys, count * KEY_LEN)) == NULL)
        {
            return 2;
        }

        for (i = 0; i < count; i++) {
            state = state * 6364136223846793005 + 1442695040888963407;
            make_key(keys + i * KEY_LEN,
                     hits ? (state >> 33) % n : n + (state >> 33));
        }

        start = now();

        for (found = 0, i = 0; i < count; i++) {
            found += bloom_check(&bloom, keys + i * KEY_LEN, KEY_LEN) == 1;
        }

        printf("%.3f %" PRIu64 "\n", (now() - start) / (double) count, found);
        fflush(stdout);
    }

    return 0;
}
