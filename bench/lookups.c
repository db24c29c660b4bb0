/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * lookups measures what lookups in a filter cost on this machine, compared with
 * the least that its memory allows.  --help lists the options.
 *
 * Three measurements take turns: making the keys (base), fetching a random
 * cache line for each key (limit), and looking each key up (lookup).  The
 * program reports limit minus base, lookup minus base, and their ratio within a
 * turn.
 *
 * With --work all three do other work in between.  That work uses no memory,
 * but it takes time, in which other programs push page tables out of a shared
 * cache.  So a random line costs more if lines are read less often.
 *
 * The filter has random bits, as many as a full filter would have set, and the
 * keys that are to be found.  No key can be added to a fuse filter, so none is
 * found; that makes no difference, since all of its lookups read as much.
 */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bloom_layout.h"
#include "bloom_layout_foreign.h"
#include "bloom_murmur3.h"
#include "bloom_simd.h"
#include "http.h"
#include "json.h"
#include "lookups_options.h"
#include "units.h"

#define PATTERN      ((uint64_t) 1 << 20)         /* bytes of random bits */
#define HUGE_PAGE    ((uint64_t) 2 << 20)


/* Nanoseconds per key in each turn. */
typedef struct {
    double    ns[KINDS][ROUNDS_MAX];
    uint64_t  present;
} result_t;


/* ---- keys ---- */

/* Makes key x, the same at each call. */
static inline bloom_hash_t
key_hash(uint64_t x)
{
    bloom_hash_t  hash;

    hash.h1 = bloom_murmur3_mix(x * 0x9e3779b97f4a7c15 + 1);
    hash.h2 = bloom_murmur3_mix(x * 0xd1342543de82ef95 + 3);

    return hash;
}


/* Returns the number of the i-th key to look up: with the probability `hits`
 * one that is in the filter, otherwise one that is not. */
static inline uint64_t
key_number(const bench_t *bench, uint64_t i, uint64_t limit)
{
    uint64_t  x;

    x = bloom_murmur3_mix(i);

    if ((x & 0xffffffff) < limit) {
        return (x >> 32) * bench->added >> 32;
    }

    return (uint64_t) 1 << 48 | i;
}


/* Hashes a key of key_len bytes. */
static inline bloom_hash_t
bytes_hash(const bench_t *bench, uint64_t x, uint8_t *key)
{
    memcpy(key, &x, sizeof(x));

    return bloom_hash(&bench->hasher, key, bench->key_len);
}


/* ---- memory ---- */

static uint64_t
random_next(uint64_t *state)
{
    return bloom_murmur3_mix(*state += 0x9e3779b97f4a7c15);
}


/* Returns a word in which each bit is set with the probability `share`, rounded
 * to 1/256. */
static uint64_t
random_word(uint64_t *state, double share)
{
    unsigned  i, digits;
    uint64_t  word;

    digits = (unsigned) (share * 256);

    for (word = 0, i = 0; i < 8; i++, digits >>= 1) {
        word = (digits & 1) ? word | random_next(state)
                            : word & random_next(state);
    }

    return word;
}


/* Returns the share of the memory that is on huge pages, 0 to 1, as the kernel
 * reports it. */
static double
huge_share(const bench_t *bench)
{
    int                  here;
    char                 line[256];
    FILE                *maps;
    double               kib;
    uintptr_t            begin, end;
    unsigned long long   n;

    maps = fopen("/proc/self/smaps", "r");

    if (maps == NULL) {
        return NAN;
    }

    here = 0;
    kib = 0;

    while (fgets(line, sizeof(line), maps) != NULL) {

        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &begin, &end) == 2) {
            here = (uintptr_t) bench->words < end
                   && (uintptr_t) bench->words + bench->size > begin;

        } else if (here && (sscanf(line, "AnonHugePages: %llu", &n) == 1
                            || sscanf(line, "ShmemPmdMapped: %llu", &n) == 1))
        {
            kib += (double) n;
        }
    }

    fclose(maps);

    kib /= (double) bench->size / 1024;

    return kib < 1 ? kib : 1;
}


/* Maps the words: shared memory on small pages as a zone has, or private memory
 * on huge pages, since shared huge pages depend on the system's settings. */
static void
map_words(bench_t *bench)
{
    void      *map;
    uint64_t   size;

    bench->size = bloom_geometry_bytes(&bench->geometry);
    size = bench->size + (bench->huge ? HUGE_PAGE : 0);

    map = mmap(NULL, size, PROT_READ|PROT_WRITE,
               MAP_ANONYMOUS | (bench->huge ? MAP_PRIVATE : MAP_SHARED),
               -1, 0);

    if (map == MAP_FAILED) {
        die("lookups: %" PRIu64 " bytes of memory cannot be had; give a "
            "smaller -m", size);
    }

    if (bench->huge) {
        map = (void *) (((uintptr_t) map + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1));
        (void) madvise(map, bench->size, MADV_HUGEPAGE);

    } else {
        (void) madvise(map, bench->size, MADV_NOHUGEPAGE);
    }

    bench->words = map;
}


/* Sets each bit with the probability that it has in a full filter, and then the
 * bits of the keys that are to be found. */
static void
fill(bench_t *bench)
{
    double         share;
    uint8_t        key[KEY_MAX];
    uint64_t       i, n, done, state;
    bloom_hash_t   hash[BLOOM_BATCH];

    share = bench->layout == BLOOM_LAYOUT_FUSE
            ? 0.5
            : 1 - exp(-(double) bench->geometry.k * (double) bench->capacity
                      / (double) bench->geometry.bits);

    n = bench->size < PATTERN ? bench->size : PATTERN;

    for (state = 1, i = 0; i < n / 8; i++) {
        bench->words[i] = random_word(&state, share);
    }

    for (done = n; done < bench->size; done += n) {
        n = bench->size - done < PATTERN ? bench->size - done : PATTERN;
        memcpy((uint8_t *) bench->words + done, bench->words, n);
    }

    bench->added = (bench->hits == 0) ? 0 : bench->lookups * bench->rounds;

    if (bench->added > bench->capacity / 16 + 1) {
        bench->added = bench->capacity / 16 + 1;
    }

    memset(key, 'k', sizeof(key));

    for (done = 0; done < bench->added; done += n) {
        n = bench->added - done < BLOOM_BATCH ? bench->added - done
                                              : BLOOM_BATCH;

        for (i = 0; i < n; i++) {
            hash[i] = bench->key_len ? bytes_hash(bench, done + i, key)
                                     : key_hash(done + i);
        }

        bloom_layout_add_many(&bench->geometry, bench->words, hash, n);
    }
}


/* ---- turns ---- */

/* Does work that uses no memory.  Each step depends on the previous one. */
static inline void
work_on(uint64_t steps)
{
    uint64_t  x;

    for (x = steps; steps != 0; steps--) {
        x = bloom_murmur3_mix(x);
        __asm__ volatile ("" : "+r" (x));
    }
}


/* Returns how many steps take a nanosecond: the most of several attempts, so
 * that other load on the machine does not count. */
static double
work_rate(void)
{
    double    best, took;
    uint64_t  start;
    unsigned  i;

    const uint64_t  steps = 200000;

    for (best = 0, i = 0; i < 10; i++) {
        start = now();
        work_on(steps);
        took = (double) (now() - start);

        if (took > 0 && (double) steps / took > best) {
            best = (double) steps / took;
        }
    }

    return best;
}


/* Waits until all previous instructions are done, memory loads included. */
static inline void
wait_for_all(void)
{
#if defined(__x86_64__)
    __asm__ volatile ("lfence" ::: "memory");
#elif defined(__aarch64__)
    __asm__ volatile ("dsb sy; isb" ::: "memory");
#else
    __sync_synchronize();
#endif
}


static inline const uint64_t *
random_line(const bench_t *bench, bloom_hash_t hash)
{
    uint64_t  line;

    line = (uint64_t) (((unsigned __int128) hash.h1
                        * (bench->size / (BLOOM_LINE_BITS / 8))) >> 64);

    return bench->words + line * BLOOM_LINE_WORDS;
}


/* Does a turn of one kind.  Stores in *present how many keys the lookups found;
 * the other kinds store what they have read, so that the compiler keeps it. */
static double
turn(const bench_t *bench, kind_t kind, uint64_t first, uint64_t *present)
{
    double         ns;
    uint8_t        key[KEY_MAX];
    uint64_t       i, j, n, x, limit, found, batch, start;
    bloom_hash_t   hash[BLOOM_BATCH];

    memset(key, 'k', sizeof(key));

    limit = (uint64_t) (bench->hits * 4294967296.0);
    batch = (bench->way == BATCH || (bench->way == LOOP && kind == LIMIT))
            ? bench->batch : 1;
    found = 0;

    start = now();

    for (i = 0; i < bench->lookups; i += n) {

        n = bench->lookups - i < batch ? bench->lookups - i : batch;

        for (j = 0; j < n; j++) {
            x = key_number(bench, first + i + j, limit);

            /* limit and base make the key as well, but do not hash it */

            hash[j] = (bench->key_len && kind == LOOKUP)
                      ? bytes_hash(bench, x, key) : key_hash(x);
        }

        switch (kind) {

        case BASE:
            for (j = 0; j < n; j++) {
                found ^= hash[j].h1;
                __asm__ volatile ("" :: "r" (hash[j].h2));
            }

            break;

        case LIMIT:
            if (n != 1) {
                for (j = 0; j < n; j++) {
                    __builtin_prefetch(random_line(bench, hash[j]), 0);
                }
            }

            for (j = 0; j < n; j++) {
                found ^= *random_line(bench, hash[j]);
            }

            break;

        default:
            if (bench->way == BATCH) {
                found += (uint64_t) __builtin_popcountll(
                             bloom_layout_test_batch(&bench->geometry,
                                                     bench->words,
                                                     hash, (unsigned) n));

            } else {
                found += (uint64_t) bloom_layout_test(&bench->geometry,
                                                      bench->words, hash[0]);
            }
        }

        if (bench->way == ALONE) {
            wait_for_all();
        }

        work_on((uint64_t) (bench->steps * (double) n));
    }

    ns = (double) (now() - start);
    *present = found;

    return ns / (double) bench->lookups;
}


static void
run(const bench_t *bench, result_t *result)
{
    uint64_t  r, i, first, found;

    result->present = 0;

    /* one turn of each to warm up */

    for (i = 0, first = 0; i < KINDS; i++) {
        (void) turn(bench, (kind_t) i, first, &found);
    }

    for (r = 0; r < bench->rounds; r++) {

        for (i = 0; i < KINDS; i++) {
            first += bench->lookups;

            result->ns[i][r] = turn(bench, (kind_t) i, first, &found);

            if (i == LOOKUP) {
                result->present += found;
            }
        }
    }
}


/* ---- results ---- */

static int
compare(const void *a, const void *b)
{
    double  x = *(const double *) a, y = *(const double *) b;

    return (x > y) - (x < y);
}


/* Sorts values.  Returns the median. */
static double
median(double *values, uint64_t n)
{
    qsort(values, n, sizeof(double), compare);

    return (values[(n - 1) / 2] + values[n / 2]) / 2;
}


static void
print(const bench_t *bench, result_t *result)
{
    char                 bytes[UNITS_LEN], rate[UNITS_LEN], lines[32];
    char                 hash[64], work[64], many[64];
    double               ratio[ROUNDS_MAX], limit, lookup, middle;
    double               share, present;
    bloom_json_writer_t  json;
    uint64_t             r;

    const char              *pages;
    const bloom_geometry_t  *g = &bench->geometry;

    for (r = 0; r < bench->rounds; r++) {
        result->ns[LIMIT][r] -= result->ns[BASE][r];
        result->ns[LOOKUP][r] -= result->ns[BASE][r];
        ratio[r] = result->ns[LOOKUP][r] / result->ns[LIMIT][r];
    }

    middle = median(ratio, bench->rounds);
    limit = median(result->ns[LIMIT], bench->rounds);
    lookup = median(result->ns[LOOKUP], bench->rounds);
    present = (double) result->present
              / (double) (bench->rounds * bench->lookups);
    share = huge_share(bench);
    pages = bench->huge ? "huge" : "small";

    if (bench->json) {
        json_begin(&json, 0);
        bloom_json_put_text(&json, "layout",
                            bloom_geometry_layout_name(g->layout));
        bloom_json_put_count(&json, "k", g->k);
        bloom_json_put_count(&json, "lines", g->lines);
        bloom_json_put_count(&json, "bytes", bench->size);
        bloom_json_put_text(&json, "pages", pages);
        bloom_json_put_number(&json, "huge", share);
        bloom_json_put_text(&json, "way", lookups_ways[bench->way]);
        bloom_json_put_count(&json, "batch",
                             bench->way == BATCH ? bench->batch : 1);
        bloom_json_put_text(&json, "vector", bloom_simd()->name);
        bloom_json_put_count(&json, "key_length", bench->key_len);
        bloom_json_put_text(&json, "hash",
                            bloom_hasher_name(bench->hasher.kind));
        bloom_json_put_count(&json, "work_ns", bench->work);
        bloom_json_put_number(&json, "hits", bench->hits);
        bloom_json_put_number(&json, "present", present);
        bloom_json_put_count(&json, "lookups", bench->lookups);
        bloom_json_put_count(&json, "rounds", bench->rounds);
        bloom_json_put_number(&json, "limit_ns", limit);
        bloom_json_put_number(&json, "lookup_ns", lookup);
        bloom_json_put_number(&json, "ratio", middle);
        bloom_json_put_number(&json, "ratio_min", ratio[0]);
        bloom_json_put_number(&json, "ratio_max", ratio[bench->rounds - 1]);
        json_end(&json);

        return;
    }

    snprintf(lines, sizeof(lines), " in %" PRIu32 " line%s", g->lines,
             g->lines == 1 ? "" : "s");
    snprintf(hash, sizeof(hash), "%s of %" PRIu64 " bytes",
             bloom_hasher_name(bench->hasher.kind), bench->key_len);
    snprintf(many, sizeof(many), " of %" PRIu64 ", %s", bench->batch,
             bloom_simd()->name);
    snprintf(work, sizeof(work), ", %" PRIu64 " ns of other work a key",
             bench->work);

    printf("filter   %s, k %" PRIu32 "%s, %s on %s pages (%.0f %% huge)\n"
           "lookups  %" PRIu64 " a turn, %" PRIu64 " turns, %s%s, hash %s%s\n"
           "present  %s\n\n"
           "limit    %.1f ns (a random line%s)\n"
           "lookup   %.1f ns\n"
           "ratio    %.2f (%.2f to %.2f)\n",
           bloom_geometry_layout_name(g->layout), g->k, g->lines ? lines : "",
           format_bytes(bytes, bench->size), pages, 100 * share,
           bench->lookups, bench->rounds, lookups_ways[bench->way],
           bench->way == BATCH ? many : ", one at a time",
           bench->key_len ? hash : "at hand", bench->work ? work : "",
           format_rate(rate, present), limit,
           bench->way == ALONE ? "" : ", many at once", lookup, middle,
           ratio[0], ratio[bench->rounds - 1]);

    if (ratio[0] <= 0 || limit <= 0) {
        printf("\nNoise exceeds the result of some turns, so that times are "
               "negative.  Increase\n-n or -r, or decrease --work.\n");
    }
}


int
main(int argc, char **argv)
{
    bench_t    bench;
    uint32_t   layout;
    result_t  *result;

    memset(&bench, 0, sizeof(bench));

    bench.memory = (uint64_t) 1 << 30;
    bench.fpr = 1e-3;
    bench.layout = BLOOM_LAYOUT_BLOCKED;
    bench.batch = BLOOM_BATCH;
    bench.lookups = 1000000;
    bench.rounds = 9;
    bench.hasher.kind = BLOOM_HASH_MURMUR3;

    lookups_options(argc, argv, &bench);

    /* imported filters have the size of classic ones */

    layout = bloom_geometry_is_foreign(bench.layout) ? BLOOM_LAYOUT_CLASSIC
                                                     : bench.layout;

    bench.capacity = bloom_geometry_size_capacity(&bench.geometry, layout,
                                                  bench.memory, bench.fpr);

    if (bench.capacity == 0) {
        refuse("-m and -p: not even one key fits");
    }

    bench.geometry.layout = bench.layout;

    map_words(&bench);

    result = malloc(sizeof(*result));

    if (result == NULL) {
        die("lookups: there is not enough memory for the result");
    }

    if (bench.work != 0) {
        bench.steps = (double) bench.work * work_rate();
    }

    fill(&bench);
    run(&bench, result);
    print(&bench, result);

    free(result);
    (void) munmap(bench.words, bench.size);

    if (fflush(stdout) != 0) {
        die("lookups: cannot write to standard output");
    }

    return 0;
}
