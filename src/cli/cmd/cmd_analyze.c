/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * `ngx-bloom analyze` measures the false-positive rate of a filter while it
 * fills, and prints it next to the rate that sizing estimates.
 *
 * It fills a filter in steps to one and a half times its capacity and looks up
 * absent keys after each step.  It repeats this in several runs, each with its
 * own seed and keys.
 */

#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bloom_bytes.h"
#include "bloom_layout.h"
#include "bloom_murmur3.h"
#include "cli.h"
#include "command.h"
#include "json.h"
#include "progress.h"
#include "units.h"

#define RUNS_MAX   1000
#define STEPS_MAX  1000


/* What one run finds after one step. */
typedef struct {
    uint64_t  found;                     /* absent keys that are present */
    uint64_t  bits_set;
} sample_t;

/* A row of the result: what all runs found after one step. */
typedef struct {
    uint64_t  items;
    double    estimated_fpr;             /* by sizing */
    double    measured_fpr;              /* mean of the runs */
    double    deviation;                 /* standard deviation of a run */
    double    lowest;                    /* rate of a run */
    double    highest;
    double    fill_ratio;                /* mean of the runs */
    double    estimated_items;           /* from the bits; mean of the runs */
} row_t;

typedef struct {
    uint64_t           capacity;
    uint64_t           asked;            /* keys after each step of each run */
    uint64_t           seed;
    double             fpr;
    unsigned           runs;
    unsigned           steps;            /* up to the capacity */
    unsigned           rows;             /* all steps */
    unsigned           threads;
    uint32_t           layout;
    uint32_t           hash;
    int                quiet;
    int                csv;
    int                json;

    bloom_geometry_t   geometry;

    sample_t          *samples;          /* [run][row] */
    atomic_uint        next;             /* first run that no thread has */
    pthread_mutex_t    lock;             /* protects the members below */
    progress_t         progress;
    uint64_t           done;             /* rows */
} analysis_t;


static int take_layout(const option_t *option, const char *text, void *to);

static const option_t  options[] = {
    OPTIONS_CAPACITY(analysis_t,
      "the capacity of the filter in keys, with k, m or g (default: 100k)"),
    OPTIONS_FPR(analysis_t,
      "the false-positive rate at capacity, from 1e-9 to 0.5, or in % "
      "(default: 0.001)"),
    { 0, "layout", "NAME", offsetof(analysis_t, layout), take_layout,
      "the layout, blocked or classic (default: blocked)" },
    OPTIONS_HASH(analysis_t),
    { 0, "seed", "N", offsetof(analysis_t, seed), options_take_count,
      "a number below 2^32 that determines the seeds and keys of all runs "
      "(default: 1)",
      .is = "a number", 0, UINT32_MAX },
    { 0, "runs", "N", offsetof(analysis_t, runs), options_take_number,
      "the number of runs, from 2 to 1000 (default: 10)",
      .is = "a number", 2, RUNS_MAX },
    { 0, "steps", "N", offsetof(analysis_t, steps), options_take_number,
      "the number of steps up to the capacity, from 2 to 1000; half as many "
      "follow after it (default: 20)",
      .is = "a number", 2, STEPS_MAX },
    { 0, "asked", "N", offsetof(analysis_t, asked), options_take_count,
      "the number of absent keys that are looked up after each step of each "
      "run; it is too small to measure rates below about 50 / N (default: "
      "200k)",
      .is = "a number of keys", 1, BLOOM_CAPACITY_MAX },
    OPTIONS_THREADS(analysis_t, threads,
      "the number of threads, each with a filter of its own (default: one per "
      "processor)"),
    { 'q', "quiet", NULL, offsetof(analysis_t, quiet), options_take_flag,
      "print only errors and the rows" },
    { 0, "csv", NULL, offsetof(analysis_t, csv), options_take_flag,
      "print the rows as CSV, with a header" },
    { 0, "json", NULL, offsetof(analysis_t, json), options_take_flag,
      "print the rows as JSON, an object per line" },
    { 0 }
};


static uint64_t
items_of(const analysis_t *a, unsigned row)
{
    unsigned __int128  items;

    items = (unsigned __int128) a->capacity * (row + 1) / a->steps;

    return (uint64_t) items;
}


/* Computes the hashes of the keys with these numbers; different numbers have
 * different keys. */
static void
hash_keys(const bloom_hasher_t *hasher, bloom_hash_t *hash, uint64_t first,
    unsigned n)
{
    uint8_t   key[8];
    unsigned  i;

    for (i = 0; i < n; i++) {
        bloom_put64(key, bloom_murmur3_mix(first + i));
        hash[i] = bloom_hash(hasher, key, sizeof(key));
    }
}


static void
add_keys(const analysis_t *a, const bloom_hasher_t *hasher, uint64_t *words,
    uint64_t first, uint64_t end)
{
    unsigned      i, n;
    bloom_hash_t  hash[BLOOM_BATCH];

    for ( /* void */ ; first < end; first += n) {
        n = end - first < BLOOM_BATCH ? (unsigned) (end - first) : BLOOM_BATCH;

        hash_keys(hasher, hash, first, n);

        for (i = 0; i < n; i++) {
            (void) bloom_layout_add(&a->geometry, words, hash[i]);
        }
    }
}


static uint64_t
count_found(const analysis_t *a, const bloom_hasher_t *hasher,
    const uint64_t *words, uint64_t first, uint64_t end)
{
    unsigned      n;
    uint64_t      found, present;
    bloom_hash_t  hash[BLOOM_BATCH];

    for (found = 0; first < end; first += n) {
        n = end - first < BLOOM_BATCH ? (unsigned) (end - first) : BLOOM_BATCH;

        hash_keys(hasher, hash, first, n);

        present = bloom_layout_test_batch(&a->geometry, words, hash, n);
        found += (uint64_t) __builtin_popcountll(present);
    }

    return found;
}


static void
set_hasher(const analysis_t *a, unsigned run, bloom_hasher_t *hasher)
{
    uint64_t  seed;

    /* no small seeds: if the seed is the length of the keys, the two halves of
     * MurmurHash3 are equal */

    seed = bloom_murmur3_mix(a->seed + run);

    if (a->hash == BLOOM_HASH_MURMUR3) {
        bloom_hasher_murmur3(hasher, (uint32_t) (seed >> 32));
        return;
    }

    hasher->kind = a->hash;
    bloom_put64(hasher->key, seed);
    bloom_put64(hasher->key + 8, bloom_murmur3_mix(~seed));
}


/*
 * Runs once.  Keys are made from numbers: the keys that are added from `base`
 * on, and the keys that are looked up from half of all numbers further on, so
 * that none of them was added.
 */
static void
measure(analysis_t *a, unsigned run, uint64_t *words)
{
    size_t           bytes;
    unsigned         row;
    uint64_t         added, items, absent, base;
    sample_t        *sample;
    bloom_hasher_t   hasher;

    bytes = (size_t) bloom_geometry_bytes(&a->geometry);
    memset(words, 0, bytes);

    set_hasher(a, run, &hasher);

    base = bloom_murmur3_mix(~(a->seed + run));
    absent = base + ((uint64_t) 1 << 63);
    added = 0;

    for (row = 0; row < a->rows; row++) {
        sample = &a->samples[(size_t) run * a->rows + row];
        items = items_of(a, row);

        add_keys(a, &hasher, words, base + added, base + items);
        added = items;

        sample->found = count_found(a, &hasher, words, absent,
                                    absent + a->asked);
        sample->bits_set = bloom_layout_bits_set(words,
                                                 bytes / sizeof(uint64_t));
        absent += a->asked;

        pthread_mutex_lock(&a->lock);
        a->done++;
        progress_update(&a->progress, a->done, (uint64_t) a->runs * a->rows,
                        a->done * a->asked);
        pthread_mutex_unlock(&a->lock);
    }
}


static void *
take_runs(void *data)
{
    size_t       bytes;
    unsigned     run;
    uint64_t    *words;
    analysis_t  *a;

    a = data;
    bytes = (size_t) bloom_geometry_bytes(&a->geometry);
    words = aligned_alloc(64, bytes);

    if (words == NULL) {
        cli_no_memory(bytes);
    }

    while ((run = atomic_fetch_add(&a->next, 1)) < a->runs) {
        measure(a, run, words);
    }

    free(words);

    return NULL;
}


static void
run_all(analysis_t *a)
{
    unsigned   i, n;
    pthread_t  threads[OPTIONS_THREADS_MAX];

    a->samples = cli_alloc((size_t) a->runs * a->rows * sizeof(sample_t));
    pthread_mutex_init(&a->lock, NULL);
    progress_begin(&a->progress, a->quiet);

    n = a->threads < a->runs ? a->threads : a->runs;

    for (i = 0; i < n; i++) {
        cli_thread(&threads[i], take_runs, a);
    }

    for (i = 0; i < n; i++) {
        pthread_join(threads[i], NULL);
    }

    (void) progress_end(&a->progress);
}


static void
sum_up(const analysis_t *a, unsigned at, row_t *row)
{
    double           rate, squares;
    unsigned         run;
    const sample_t  *sample;

    memset(row, 0, sizeof(*row));
    row->items = items_of(a, at);
    row->estimated_fpr = bloom_geometry_fpr(&a->geometry, row->items);
    row->lowest = 1;

    for (run = 0; run < a->runs; run++) {
        sample = &a->samples[(size_t) run * a->rows + at];
        rate = (double) sample->found / (double) a->asked;

        row->measured_fpr += rate / a->runs;
        row->lowest = rate < row->lowest ? rate : row->lowest;
        row->highest = rate > row->highest ? rate : row->highest;
        row->fill_ratio += (double) sample->bits_set
                           / (double) a->geometry.bits / a->runs;
        row->estimated_items += (double) bloom_geometry_items(&a->geometry,
                                                              sample->bits_set)
                                / a->runs;
    }

    squares = 0;

    for (run = 0; run < a->runs; run++) {
        sample = &a->samples[(size_t) run * a->rows + at];
        rate = (double) sample->found / (double) a->asked - row->measured_fpr;
        squares += rate * rate;
    }

    row->deviation = sqrt(squares / (a->runs - 1));
}


/* Prints a row of the table, with rates in percent. */
static void
print_table_row(const row_t *row)
{
    printf("%10" PRIu64 " %10.3g %9.3g %9.3g %9.3g %9.3g %8.3g %9.0f\n",
           row->items, 100 * row->estimated_fpr, 100 * row->measured_fpr,
           100 * row->deviation, 100 * row->lowest, 100 * row->highest,
           100 * row->fill_ratio, row->estimated_items);
}


static void
print_csv_row(const row_t *row)
{
    printf("%" PRIu64 ",%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g\n", row->items,
           row->estimated_fpr, row->measured_fpr, row->deviation, row->lowest,
           row->highest, row->fill_ratio, row->estimated_items);
}


static void
print_json_row(const row_t *row)
{
    bloom_json_writer_t  json;

    json_begin(&json, 1);
    bloom_json_put_count(&json, "items", row->items);
    bloom_json_put_number(&json, "estimated_fpr", row->estimated_fpr);
    bloom_json_put_number(&json, "measured_fpr", row->measured_fpr);
    bloom_json_put_number(&json, "deviation", row->deviation);
    bloom_json_put_number(&json, "lowest", row->lowest);
    bloom_json_put_number(&json, "highest", row->highest);
    bloom_json_put_number(&json, "fill_ratio", row->fill_ratio);
    bloom_json_put_number(&json, "estimated_items", row->estimated_items);
    json_end(&json);
}


static void
print_heading(const analysis_t *a)
{
    if (a->csv) {
        printf("items,estimated_fpr,measured_fpr,deviation,lowest,highest,"
               "fill_ratio,estimated_items\n");

    } else if (!a->json) {
        printf("%10s %10s %9s %9s %9s %9s %8s %9s\n", "", "estimated",
               "measured", "deviation", "lowest", "highest", "fill",
               "estimated");
        printf("%10s %10s %9s %9s %9s %9s %8s %9s\n", "items", "fpr, %",
               "fpr, %", "%", "%", "%", "ratio, %", "items");
    }
}


static void
print_rows(const analysis_t *a)
{
    row_t     row;
    unsigned  i;

    print_heading(a);

    for (i = 0; i < a->rows; i++) {
        sum_up(a, i, &row);

        if (a->csv) {
            print_csv_row(&row);

        } else if (a->json) {
            print_json_row(&row);

        } else {
            print_table_row(&row);
        }
    }
}


/* Prints the row at capacity, which is what most readers look for. */
static void
print_summary(const analysis_t *a)
{
    char   target[UNITS_LEN], estimated[UNITS_LEN], measured[UNITS_LEN],
           deviation[UNITS_LEN];
    row_t  row;

    sum_up(a, a->steps - 1, &row);

    fprintf(stderr, "%s: false-positive rate at the capacity of %" PRIu64
            " keys: measured %s (standard deviation of a run %s), estimated "
            "%s, target %s\n",
            bloom_geometry_layout_name(a->geometry.layout), a->capacity,
            format_rate(measured, row.measured_fpr),
            format_rate(deviation, row.deviation),
            format_rate(estimated, row.estimated_fpr),
            format_rate(target, a->fpr));
}


static int
take_layout(const option_t *option, const char *text, void *to)
{
    uint32_t  *layout = to;

    *layout = bloom_geometry_layout_parse(text, strlen(text));

    if (*layout == 0) {
        return options_wrong(option, text, "must be blocked or classic");
    }

    if (*layout == BLOOM_LAYOUT_FUSE) {
        return options_wrong(option, text, "such a filter does not fill, and "
                             "its rate does not depend on the number of its "
                             "keys; build an image and see \"ngx-bloom "
                             "verify\"");
    }

    return CLI_OK;
}


static int
run(char **operands, int n, void *values)
{
    analysis_t  *a = values;

    if (n != 0) {
        return cli_misuse("unexpected argument \"%s\"", operands[0]);
    }

    if (a->csv && a->json) {
        return cli_misuse("--csv and --json cannot be used together");
    }

    if (a->capacity < a->steps) {
        return cli_misuse("-n %" PRIu64 " is less than --steps %u; use more "
                          "keys or fewer steps", a->capacity, a->steps);
    }

    if (bloom_geometry_size(&a->geometry, a->layout, a->capacity, a->fpr)
        != 0)
    {
        cli_error("a filter in layout %s for %" PRIu64 " keys at a rate of %g "
                  "needs more than 1 TiB; use a smaller -n or a larger -p",
                  bloom_geometry_layout_name(a->layout), a->capacity, a->fpr);
        return CLI_ERROR;
    }

    a->rows = a->steps + a->steps / 2;

    if (a->threads == 0) {
        a->threads = options_processors();
    }

    run_all(a);
    print_rows(a);

    if (!a->quiet) {
        print_summary(a);
    }

    free(a->samples);

    return CLI_OK;
}


static analysis_t  values = {
    .capacity = 100000,
    .fpr = 0.001,
    .layout = BLOOM_LAYOUT_BLOCKED,
    .hash = BLOOM_HASH_MURMUR3,
    .asked = 200000,
    .seed = 1,
    .runs = 10,
    .steps = 20
};

static const command_member_t  members[] = {
    { NULL, "for each row, an object per line:" },
    { "items", "the number of keys in the filter" },
    { "estimated_fpr", "the false-positive rate that sizing estimates" },
    { "measured_fpr", "the mean of the rates that the runs measured" },
    { "deviation", "the standard deviation of these rates" },
    { "lowest", "the lowest of these rates" },
    { "highest", "the highest of these rates" },
    { "fill_ratio",
      "the part of the bits that is set, from 0 to 1: the mean of the runs" },
    { "estimated_items",
      "the number of keys estimated from the bits: the mean of the runs" },
    { 0 }
};

const command_t  cmd_analyze = {
    .name = "analyze",
    .does = "measure false-positive rates while a filter fills",
    .synopsis = "[OPTION...]",
    .about =
        "Measures the false-positive rate of a filter while it fills. The "
        "command adds keys in steps up to one and a half times the capacity, "
        "and looks up absent keys after each step. It repeats this in several "
        "runs with different seeds and keys. The same options always give the "
        "same results, with any -j.\n\n"
        "It prints a row for each step: the number of items, the estimated "
        "false-positive rate, the mean of the rates that the runs measured, "
        "their standard deviation, the lowest and the highest of them, the "
        "fill ratio, and the number of items estimated from it.",
    .options = options,
    .values = &values,
    .members = members,
    .examples =
        "ngx-bloom analyze\n"
        "ngx-bloom analyze -n 1m -p 1e-4 --asked 10m --layout classic --csv\n",
    .run = run
};
