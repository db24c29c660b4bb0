/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * growth fills a filter far beyond its first capacity:
 *
 *     growth KIND CAPACITY RATE TIMES ABSENT
 *
 * KIND is "layers", this project's way to grow, with room for TIMES times the
 * capacity; "links", RedisBloom's published algorithm (expansion 2, tightening
 * 0.5, and a filter without rounding up); or "one", a filter that has room for
 * all keys from the beginning.
 *
 * At 1, 2, 4, 8 ... TIMES times the capacity, it prints a line of JSON: the
 * bytes of the filter, how many of ABSENT keys are found, and the nanoseconds
 * of a lookup of an absent and of a present key.  Hashing is not included, and
 * all filters have the same hash function.
 */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bloom_growth.h"
#include "bloom_hash.h"
#include "bloom_layout.h"

#define LOOKUPS  (1 << 16)


typedef struct {
    bloom_geometry_t  geometry;          /* with the parts in use */
    bloom_hasher_t    hasher;
    uint64_t         *words;
    uint64_t          capacity;          /* of the first part */
    uint64_t          keys;              /* in the last part */
    uint64_t          bits_set;          /* in the last part */
    uint32_t          planned;           /* layers */
    double            fpr;               /* of the last link */
    int               links;
} filter_t;


static void *
allocate(size_t size)
{
    void  *p;

    p = aligned_alloc(4096, (size + 4095) / 4096 * 4096);

    if (p == NULL) {
        fprintf(stderr, "growth: not enough memory\n");
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


/* Adds a link as SBChain_AddLink() and bloom_init() of RedisBloom do.  Its
 * first link has half the rate, and each further one half of the one before. */
static void
add_link(filter_t *f)
{
    double             per_key;
    bloom_link_t      *link;
    bloom_geometry_t  *g;

    g = &f->geometry;
    link = &g->link[g->links];

    f->fpr /= 2;
    per_key = -log(f->fpr) / (M_LN2 * M_LN2);

    link->bits = (uint64_t) ((double) (f->capacity << g->links) * per_key);
    link->bits = (link->bits + 63) / 64 * 64;
    link->k = (uint32_t) ceil(M_LN2 * per_key);

    g->links++;
    g->k = link->k;
    g->bits += bloom_geometry_whole_lines(link->bits);
    f->keys = 0;
}


static void
make(filter_t *f, const char *kind, uint64_t capacity, double fpr,
    uint64_t times)
{
    int               rc;
    double            base;
    filter_t          whole;
    bloom_geometry_t  one;

    memset(f, 0, sizeof(filter_t));

    f->hasher.kind = BLOOM_HASH_MURMUR3;
    f->capacity = capacity;
    f->fpr = fpr;
    rc = 0;

    if (strcmp(kind, "links") == 0) {
        f->links = 1;
        f->geometry.layout = BLOOM_LAYOUT_LINKS;
        whole = *f;

        while ((((uint64_t) 1 << whole.geometry.links) - 1) < times) {
            add_link(&whole);
        }

        f->words = allocate(bloom_geometry_bytes(&whole.geometry));
        add_link(f);
        return;
    }

    if (strcmp(kind, "one") == 0) {
        f->capacity = capacity * times;
        base = fpr;

    } else {
        f->planned = bloom_growth_layers(&f->geometry, capacity,
                                         capacity * times);
        base = f->planned ? fpr / 2 : fpr;
    }

    rc = bloom_geometry_size(&one, BLOOM_LAYOUT_BLOCKED, f->capacity, base);

    if (rc == 0) {
        rc = bloom_growth_extend(&one, f->capacity, f->planned);
    }

    if (rc != 0) {
        fprintf(stderr, "growth: no such filter\n");
        exit(1);
    }

    f->geometry = one;
    f->geometry.layers = 0;
    f->words = allocate(bloom_geometry_bytes(&one));
}


static void
add(filter_t *f, uint64_t x)
{
    bloom_geometry_t  *g;

    g = &f->geometry;

    if (f->links) {

        if (bloom_layout_test(g, f->words, hash_of(f, x))) {
            return;
        }

        if (f->keys == f->capacity << (g->links - 1)) {
            add_link(f);
        }

        (void) bloom_layout_add(g, f->words, hash_of(f, x));
        f->keys++;
        return;
    }

    f->bits_set += (uint64_t) bloom_layout_add_atomic(g, f->words,
                                                      hash_of(f, x));

    if (g->layers < f->planned && x % 32 == 0
        && bloom_growth_is_full(g, f->capacity, f->bits_set))
    {
        g->layers++;
        f->bits_set = 0;
    }
}


/* Returns the nanoseconds of a lookup of random keys from `from` to `to`, the
 * least of some turns. */
static double
measure(const filter_t *f, uint64_t from, uint64_t to)
{
    double           ns, least;
    unsigned         turn, i;
    uint64_t         found, state;
    bloom_hash_t    *hash;
    struct timespec  begin, end;

    hash = allocate(LOOKUPS * sizeof(bloom_hash_t));
    state = 1;
    found = 0;
    least = INFINITY;

    for (turn = 0; turn < 9; turn++) {

        for (i = 0; i < LOOKUPS; i++) {
            state = state * 6364136223846793005 + 1442695040888963407;
            hash[i] = hash_of(f, from + (state >> 20) % (to - from));
        }

        clock_gettime(CLOCK_MONOTONIC, &begin);

        for (i = 0; i < LOOKUPS; i++) {
            found += (uint64_t) bloom_layout_test(&f->geometry, f->words,
                                                  hash[i]);
        }

        clock_gettime(CLOCK_MONOTONIC, &end);

        ns = ((double) (end.tv_sec - begin.tv_sec) * 1e9
              + (double) (end.tv_nsec - begin.tv_nsec)) / LOOKUPS;
        least = ns < least ? ns : least;
    }

    if (found > (uint64_t) 9 * LOOKUPS) {
        exit(1);                         /* the result has to be used */
    }

    free(hash);

    return least;
}


int
main(int argc, char **argv)
{
    double    fpr, absent_ns, present_ns;
    uint64_t  capacity, times, absent, next, x, i, found, missing;
    filter_t  f;

    if (argc != 6) {
        fprintf(stderr, "usage: growth layers|links|one CAPACITY RATE TIMES"
                " ABSENT\n");
        return 2;
    }

    capacity = strtoull(argv[2], NULL, 10);
    fpr = strtod(argv[3], NULL);
    times = strtoull(argv[4], NULL, 10);
    absent = strtoull(argv[5], NULL, 10);

    make(&f, argv[1], capacity, fpr, times);

    for (x = 0, next = 1; next <= times; next *= 2) {

        for ( /* void */ ; x < capacity * next; x++) {
            add(&f, x);
        }

        for (found = 0, i = 0; i < absent; i++) {
            found += (uint64_t) bloom_layout_test(
                         &f.geometry, f.words,
                         hash_of(&f, ((uint64_t) 1 << 60) + i));
        }

        for (missing = 0, i = 0; i < x; i += 97) {
            missing += !bloom_layout_test(&f.geometry, f.words,
                                          hash_of(&f, i));
        }

        if (missing != 0) {
            fprintf(stderr, "growth: %" PRIu64 " keys are lost\n", missing);
            return 1;
        }

        absent_ns = measure(&f, (uint64_t) 1 << 61, (uint64_t) 1 << 62);
        present_ns = measure(&f, 0, x);

        printf("{\"name\":\"%s\",\"times\":%" PRIu64 ",\"keys\":%" PRIu64
               ",\"parts\":%" PRIu32 ",\"bytes\":%" PRIu64 ",\"fpr\":%.9g,"
               "\"absent_ns\":%.3f,\"present_ns\":%.3f}\n",
               argv[1], next, x, bloom_geometry_parts(&f.geometry),
               bloom_geometry_bytes(&f.geometry),
               (double) found / (double) absent, absent_ns, present_ns);
    }

    free(f.words);

    return 0;
}
