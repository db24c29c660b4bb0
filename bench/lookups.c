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

#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
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
#include "units.h"

#define PATTERN      ((uint64_t) 1 << 20)         /* bytes of random bits */
#define KEY_MAX      4096
#define ROUNDS_MAX   1000
#define WORK_MAX     100000              /* ns */
#define HUGE_PAGE    ((uint64_t) 2 << 20)


typedef enum { ALONE, LOOP, BATCH } way_t;

typedef enum { BASE, LIMIT, LOOKUP, KINDS } kind_t;

static const char *const  ways[] = { "alone", "loop", "batch" };

static const uint32_t  layouts[] = {
    BLOOM_LAYOUT_BLOCKED, BLOOM_LAYOUT_CLASSIC, BLOOM_LAYOUT_FUSE,
    BLOOM_LAYOUT_DOUBLE, BLOOM_LAYOUT_DOUBLE63, BLOOM_LAYOUT_DOUBLE31
};

#define LAYOUTS  (sizeof(layouts) / sizeof(layouts[0]))


typedef struct {
    uint64_t          memory;
    double            fpr;
    uint32_t          layout;
    double            hits;              /* share of keys to be found */
    way_t             way;
    uint64_t          batch;             /* keys at a time */
    int               huge;
    uint64_t          key_len;           /* 0: the hash is at hand */
    uint64_t          work;              /* other work per key, ns */
    double            steps;             /* of work_on() per key */
    uint64_t          lookups;           /* in a turn */
    uint64_t          rounds;
    int               json;

    bloom_hasher_t    hasher;
    bloom_geometry_t  geometry;
    uint64_t          capacity;
    uint64_t         *words;
    uint64_t          size;              /* bytes of them */
    uint64_t          added;             /* keys 0 .. added - 1 are set */
} bench_t;


/* Nanoseconds per key in each turn. */
typedef struct {
    double    ns[KINDS][ROUNDS_MAX];
    uint64_t  present;
} result_t;


static void
usage(void)
{
    printf(
"Usage: build/bench/lookups [OPTION...]\n"
"\n"
"Measures what a lookup costs on this machine, compared with a random cache\n"
"line of the same memory, which is the least that a lookup can cost.\n"
"\n"
"  -m, --memory SIZE    size of the filter, 4k to 1024g (1g)\n"
"  -p, --fpr RATE       false-positive rate, which determines the number of\n"
"                       bits and lines per key (0.001)\n"
"      --layout L       blocked, classic, fuse, double, double63 or double31\n"
"                       (blocked)\n"
"      --hits SHARE     share of keys that are found, 0 to 1; with the layout\n"
"                       fuse it is 0 (0)\n"
"      --way W          alone: the next lookup begins when the last has ended\n"
"                       loop: one after the other; the processor may overlap\n"
"                       batch: several at a time (alone)\n"
"      --batch N        number of keys at a time, up to %d (%d)\n"
"      --vector V       instructions that test a line in a batch: avx512,\n"
"                       avx2 or portable (the best of this processor)\n"
"      --key-length N   make a key of N bytes, 8 to %d, and hash it as a part\n"
"                       of the lookup (0: leave hashing out)\n"
"      --hash H         murmur3 or siphash (murmur3)\n"
"      --work NS        other work per key between lookups or batches, up to\n"
"                       %d ns; it uses no memory, as in a busy server, and\n"
"                       its time is left out (0)\n"
"      --pages P        small (shared memory) or huge (private memory); a\n"
"                       zone may get other pages: see README.md (small)\n"
"  -n, --lookups N      lookups in a turn, %d to 1g (1m)\n"
"  -r, --rounds N       number of turns, up to %d (9)\n"
"      --json           print JSON\n"
"  -h, --help           show this\n"
"\n"
"The time for making the keys is left out.  Ratios are comparable between\n"
"machines, nanoseconds are not.\n"
"\n"
"Examples:\n"
"  build/bench/lookups --hits 0.5\n"
"  build/bench/lookups -m 4g -p 1e-6 --hits 1 --way batch --pages huge\n",
           BLOOM_BATCH, BLOOM_BATCH, KEY_MAX, WORK_MAX, BLOOM_BATCH,
           ROUNDS_MAX);
}


/* Prints what is wrong with the command line, and exits. */
static void __attribute__((noreturn, format(printf, 1, 2)))
refuse(const char *what, ...)
{
    va_list  args;

    fprintf(stderr, "lookups: ");

    va_start(args, what);
    vfprintf(stderr, what, args);
    va_end(args);

    fprintf(stderr, "; see \"lookups --help\"\n");

    exit(2);
}


static void
parse_options(int argc, char **argv, bench_t *bench)
{
    int                    c;
    unsigned               i;
    const char            *batches, *hashed;
    const bloom_simd_t    *vector;

    enum {
        LAYOUT = 256, HITS, WAY, BATCH_SIZE, VECTOR, KEY_LENGTH, HASH, WORK,
        PAGES, JSON
    };

    static const struct option  names[] = {
        { "memory",     required_argument, NULL, 'm' },
        { "fpr",        required_argument, NULL, 'p' },
        { "lookups",    required_argument, NULL, 'n' },
        { "rounds",     required_argument, NULL, 'r' },
        { "layout",     required_argument, NULL, LAYOUT },
        { "hits",       required_argument, NULL, HITS },
        { "way",        required_argument, NULL, WAY },
        { "batch",      required_argument, NULL, BATCH_SIZE },
        { "vector",     required_argument, NULL, VECTOR },
        { "key-length", required_argument, NULL, KEY_LENGTH },
        { "hash",       required_argument, NULL, HASH },
        { "work",       required_argument, NULL, WORK },
        { "pages",      required_argument, NULL, PAGES },
        { "json",       no_argument,       NULL, JSON },
        { "help",       no_argument,       NULL, 'h' },
        { NULL, 0, NULL, 0 }
    };

    batches = NULL;
    hashed = NULL;

    while ((c = getopt_long(argc, argv, ":m:p:n:r:h", names, NULL)) != -1) {

        switch (c) {

        case 'm':
            if (parse_bytes(optarg, &bench->memory) != 0
                || bench->memory < 4096 || bench->memory > BLOOM_BITS_MAX / 8)
            {
                refuse("-m \"%s\": memory is from 4k to 1024g", optarg);
            }

            break;

        case 'p':
            if (parse_rate(optarg, &bench->fpr) != 0
                || bench->fpr < BLOOM_FPR_MIN || bench->fpr > BLOOM_FPR_MAX)
            {
                refuse("-p \"%s\": a rate is from 1e-9 to 0.5", optarg);
            }

            break;

        case 'n':
            if (parse_count(optarg, &bench->lookups) != 0
                || bench->lookups < BLOOM_BATCH
                || bench->lookups > 1000000000)
            {
                refuse("-n \"%s\": lookups of a turn are from %d to 1g",
                       optarg, BLOOM_BATCH);
            }

            break;

        case 'r':
            if (parse_count(optarg, &bench->rounds) != 0 || bench->rounds == 0
                || bench->rounds > ROUNDS_MAX)
            {
                refuse("-r \"%s\": turns are from 1 to %d", optarg, ROUNDS_MAX);
            }

            break;

        case LAYOUT:

            for (i = 0; i < LAYOUTS; i++) {
                if (strcmp(bloom_geometry_layout_name(layouts[i]), optarg) == 0)
                {
                    break;
                }
            }

            if (i == LAYOUTS) {
                refuse("--layout \"%s\": must be blocked, classic, fuse,"
                       " double, double63 or double31", optarg);
            }

            bench->layout = layouts[i];
            break;

        case HITS:
            if (strcmp(optarg, "0") == 0 || strcmp(optarg, "1") == 0) {
                bench->hits = *optarg - '0';
                break;
            }

            if (parse_rate(optarg, &bench->hits) != 0) {
                refuse("--hits \"%s\": a share is from 0 to 1", optarg);
            }

            break;

        case WAY:

            for (i = ALONE; i <= BATCH; i++) {
                if (strcmp(ways[i], optarg) == 0) {
                    break;
                }
            }

            if (i > BATCH) {
                refuse("--way \"%s\": must be alone, loop or batch", optarg);
            }

            bench->way = (way_t) i;
            break;

        case BATCH_SIZE:
            if (parse_count(optarg, &bench->batch) != 0 || bench->batch == 0
                || bench->batch > BLOOM_BATCH)
            {
                refuse("--batch \"%s\": a batch has 1 to %d keys",
                       optarg, BLOOM_BATCH);
            }

            batches = "--batch";
            break;

        case VECTOR:

            for (i = 0; (vector = bloom_simd_list(i)) != NULL; i++) {
                if (strcmp(vector->name, optarg) == 0) {
                    break;
                }
            }

            if (vector == NULL) {
                refuse("--vector \"%s\": must be avx512, avx2 or portable; "
                       "this processor has %s and those after it", optarg,
                       bloom_simd_list(0)->name);
            }

            bloom_simd_use(vector);
            batches = "--vector";
            break;

        case KEY_LENGTH:
            if (parse_count(optarg, &bench->key_len) != 0
                || (bench->key_len != 0 && bench->key_len < 8)
                || bench->key_len > KEY_MAX)
            {
                refuse("--key-length \"%s\": a key has 8 to %d bytes, or 0 for "
                       "none", optarg, KEY_MAX);
            }

            break;

        case HASH:
            bench->hasher.kind = bloom_hasher_parse(optarg, strlen(optarg));

            if (bench->hasher.kind == 0) {
                refuse("--hash \"%s\": must be murmur3 or siphash", optarg);
            }

            hashed = "--hash";
            break;

        case WORK:
            if (parse_count(optarg, &bench->work) != 0
                || bench->work > WORK_MAX)
            {
                refuse("--work \"%s\": work takes 0 to %d nanoseconds a key",
                       optarg, WORK_MAX);
            }

            break;

        case PAGES:
            bench->huge = strcmp(optarg, "huge") == 0;

            if (!bench->huge && strcmp(optarg, "small") != 0) {
                refuse("--pages \"%s\": must be small or huge", optarg);
            }

            break;

        case JSON:
            bench->json = 1;
            break;

        case 'h':
            usage();
            exit(0);

        case ':':
            refuse("option %s needs a value", argv[optind - 1]);

        default:
            refuse("unknown option \"%s\"", argv[optind - 1]);
        }
    }

    if (optind != argc) {
        refuse("unexpected argument \"%s\"", argv[optind]);
    }

    if (bench->layout == BLOOM_LAYOUT_FUSE && bench->hits != 0) {
        refuse("no key can be added to the layout fuse: leave out --hits");
    }

    if (batches != NULL && bench->way != BATCH) {
        refuse("%s is for batches: give --way batch as well", batches);
    }

    if (hashed != NULL && bench->key_len == 0) {
        refuse("%s is for keys that are made: give --key-length as well",
               hashed);
    }
}


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
    char      bytes[UNITS_LEN], rate[UNITS_LEN], lines[32], hash[64], work[64];
    char      many[64];
    double    ratio[ROUNDS_MAX], limit, lookup, middle, share, present;
    json_t    json;
    uint64_t  r;

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
        json_text(&json, "layout", bloom_geometry_layout_name(g->layout));
        json_count(&json, "k", g->k);
        json_count(&json, "lines", g->lines);
        json_count(&json, "bytes", bench->size);
        json_text(&json, "pages", pages);
        json_number(&json, "huge", share);
        json_text(&json, "way", ways[bench->way]);
        json_count(&json, "batch", bench->way == BATCH ? bench->batch : 1);
        json_text(&json, "vector", bloom_simd()->name);
        json_count(&json, "key_length", bench->key_len);
        json_text(&json, "hash", bloom_hasher_name(bench->hasher.kind));
        json_count(&json, "work_ns", bench->work);
        json_number(&json, "hits", bench->hits);
        json_number(&json, "present", present);
        json_count(&json, "lookups", bench->lookups);
        json_count(&json, "rounds", bench->rounds);
        json_number(&json, "limit_ns", limit);
        json_number(&json, "lookup_ns", lookup);
        json_number(&json, "ratio", middle);
        json_number(&json, "ratio_min", ratio[0]);
        json_number(&json, "ratio_max", ratio[bench->rounds - 1]);
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
           bench->lookups, bench->rounds, ways[bench->way],
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

    parse_options(argc, argv, &bench);

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
