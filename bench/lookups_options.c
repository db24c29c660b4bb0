/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file has the help of lookups, and checks its options.
 */

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bloom_simd.h"
#include "lookups_options.h"
#include "units.h"


const char *const  lookups_ways[] = { "alone", "loop", "batch" };

static const uint32_t  layouts[] = {
    BLOOM_LAYOUT_BLOCKED, BLOOM_LAYOUT_CLASSIC, BLOOM_LAYOUT_FUSE,
    BLOOM_LAYOUT_DOUBLE, BLOOM_LAYOUT_DOUBLE63, BLOOM_LAYOUT_DOUBLE31
};

#define LAYOUTS  (sizeof(layouts) / sizeof(layouts[0]))


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


void
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


void
lookups_options(int argc, char **argv, bench_t *bench)
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
                if (strcmp(lookups_ways[i], optarg) == 0) {
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
