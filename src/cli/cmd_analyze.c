
/*
 * ngx-bloom analyze measures the false-positive rate of a filter while it fills,
 * and prints it beside the rate that sizing estimates.
 *
 * It fills a filter in steps to one and a half times its capacity and asks,
 * after each step, for keys that are not in the filter.  It does so in several
 * runs, each with a seed and keys of its own.
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
#include "json.h"
#include "options.h"
#include "progress.h"
#include "units.h"

#define RUNS_MAX   1000
#define STEPS_MAX  1000


typedef enum { TABLE, CSV, JSON_LINES } form_t;

/* What one run finds after one step. */
typedef struct {
    uint64_t  found;                     /* of the absent keys asked */
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
    uint64_t           asked;            /* at each step of each run */
    uint64_t           seed;
    double             fpr;
    unsigned           runs;
    unsigned           steps;            /* up to the capacity */
    unsigned           rows;             /* and beyond */
    unsigned           threads;
    int                quiet;
    form_t             form;
    bloom_hasher_t     hasher;           /* its kind; each run has its key */
    bloom_geometry_t   geometry;

    sample_t          *samples;          /* [run][row] */
    atomic_uint        next;             /* run that no thread has taken */
    pthread_mutex_t    lock;             /* of what follows */
    progress_t         progress;
    uint64_t           done;             /* rows */
} analysis_t;


static void
usage(void)
{
    printf(
"Usage: ngx-bloom analyze [OPTION...]\n"
"\n"
"Measures the false-positive rate of a filter while it fills: adds keys in steps\n"
"to one and a half times its capacity and, after each step, asks for keys that\n"
"are not in it.  Several runs do so, each with a seed and keys of its own.  The\n"
"same options give the same figures, whatever -j is.\n"
"\n"
"  -n, --capacity N    keys that the filter is made for, with k, m or g (100k)\n"
"  -p, --fpr RATE      rate that it is made for, 1e-9 to 0.5, or in %% (0.001)\n"
"      --layout L      blocked or classic (blocked)\n"
"      --hash H        murmur3 or siphash (murmur3)\n"
"      --seed S        a number below 2^32, from which the seeds and the keys of\n"
"                      all runs follow (1)\n"
"      --runs N        runs, 2 to 1000 (10)\n"
"      --steps N       steps up to the capacity, to 1000; half as many follow\n"
"                      (20)\n"
"      --asked N       absent keys asked after each step (200k)\n"
"  -j, --threads N     threads, each with a filter (one a processor)\n"
"  -q, --quiet         print nothing but errors and the rows\n"
"      --csv           print the rows as CSV, with a header\n"
"      --json          print the rows as JSON, an object a line\n"
"  -h, --help          show this\n"
"\n"
"A row has the number of items, the rate that sizing estimates, the mean of the\n"
"rates that the runs measured, their standard deviation, the lowest and the\n"
"highest of them, the share of bits set, and the number of items estimated from\n"
"those bits.\n"
"\n"
"Examples:\n"
"  ngx-bloom analyze\n"
"  ngx-bloom analyze -n 1m -p 1e-4 --asked 10m --layout classic --csv\n");
}


/* A value of an option from `least` to `most`. */
static int
parse_number(const char *name, const char *text, uint64_t least, uint64_t most,
    uint64_t *n)
{
    if (parse_count(text, n) != 0 || *n < least || *n > most) {
        return cli_misuse("%s \"%s\": a count from %" PRIu64 " to %" PRIu64,
                          name, text, least, most);
    }

    return CLI_OK;
}


/* CLI_OK, CLI_ERROR after a message, or -1 if help was asked for. */
static int
parse_options(analysis_t *a, int argc, char **argv)
{
    int       c, rc, csv, json;
    uint64_t  runs, steps;
    uint32_t  layout;

    enum { LAYOUT = 256, HASH, SEED, RUNS, STEPS, ASKED, CSV_ROWS, JSON };

    static const struct option  names[] = {
        { "capacity", required_argument, NULL, 'n' },
        { "fpr",      required_argument, NULL, 'p' },
        { "layout",   required_argument, NULL, LAYOUT },
        { "hash",     required_argument, NULL, HASH },
        { "seed",     required_argument, NULL, SEED },
        { "runs",     required_argument, NULL, RUNS },
        { "steps",    required_argument, NULL, STEPS },
        { "asked",    required_argument, NULL, ASKED },
        { "threads",  required_argument, NULL, 'j' },
        { "quiet",    no_argument,       NULL, 'q' },
        { "csv",      no_argument,       NULL, CSV_ROWS },
        { "json",     no_argument,       NULL, JSON },
        { "help",     no_argument,       NULL, 'h' },
        { NULL, 0, NULL, 0 }
    };

    a->capacity = 100000;
    a->fpr = 0.001;
    a->asked = 200000;
    a->seed = 1;
    a->hasher.kind = BLOOM_HASH_MURMUR3;
    a->threads = option_default_threads();
    layout = BLOOM_LAYOUT_BLOCKED;
    runs = 10;
    steps = 20;
    csv = 0;
    json = 0;

    while ((c = cli_option(argc, argv, ":n:p:j:qh", names)) != -1) {

        rc = CLI_OK;

        switch (c) {

        case 'n':
            rc = option_capacity(optarg, &a->capacity);
            break;

        case 'p':
            rc = option_fpr(optarg, &a->fpr);
            break;

        case LAYOUT:
            rc = option_layout(optarg, &layout);
            break;

        case HASH:
            rc = option_hash(optarg, &a->hasher);
            break;

        case SEED:
            rc = parse_number("--seed", optarg, 0, UINT32_MAX, &a->seed);
            break;

        case RUNS:
            rc = parse_number("--runs", optarg, 2, RUNS_MAX, &runs);
            break;

        case STEPS:
            rc = parse_number("--steps", optarg, 2, STEPS_MAX, &steps);
            break;

        case ASKED:
            rc = parse_number("--asked", optarg, 1, BLOOM_CAPACITY_MAX,
                              &a->asked);
            break;

        case 'j':
            rc = option_threads(optarg, &a->threads);
            break;

        case 'q':
            a->quiet = 1;
            break;

        case CSV_ROWS:
            csv = 1;
            break;

        case JSON:
            json = 1;
            break;

        case 'h':
            usage();
            return -1;

        default:
            return CLI_ERROR;
        }

        if (rc != CLI_OK) {
            return rc;
        }
    }

    if (optind != argc) {
        return cli_misuse("\"%s\" is no option", argv[optind]);
    }

    if (csv && json) {
        return cli_misuse("--csv and --json exclude each other");
    }

    if (a->capacity < steps) {
        return cli_misuse("-n %" PRIu64 " --steps %" PRIu64 ": there are fewer "
                          "keys than steps", a->capacity, steps);
    }

    if (bloom_geometry_size(&a->geometry, layout, a->capacity, a->fpr) != 0) {
        cli_error("%" PRIu64 " items at a rate of %g need more than 1 TiB in "
                  "layout %s; take fewer or a higher rate", a->capacity,
                  a->fpr, bloom_geometry_layout_name(layout));
        return CLI_ERROR;
    }

    a->form = csv ? CSV : json ? JSON_LINES : TABLE;
    a->runs = (unsigned) runs;
    a->steps = (unsigned) steps;
    a->rows = (unsigned) (steps + steps / 2);

    return CLI_OK;
}


static uint64_t
items_of(const analysis_t *a, unsigned row)
{
    unsigned __int128  items;

    items = (unsigned __int128) a->capacity * (row + 1) / a->steps;

    return (uint64_t) items;
}


/* Hashes of the keys of these numbers: different numbers, different keys. */
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

    /* no small numbers: where it is the length of the keys, MurmurHash3 gives
     * two halves that are one */

    seed = bloom_murmur3_mix(a->seed + run);

    if (a->hasher.kind == BLOOM_HASH_MURMUR3) {
        bloom_hasher_murmur3(hasher, (uint32_t) (seed >> 32));
        return;
    }

    hasher->kind = a->hasher.kind;
    bloom_put64(hasher->key, seed);
    bloom_put64(hasher->key + 8, bloom_murmur3_mix(~seed));
}


/*
 * Keys are made of numbers: those added of the ones from `base` on, those asked
 * for of the ones half of all numbers away, so that none of them was added.
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
        sample->bits_set = bloom_layout_count_ones(words,
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
    pthread_t  threads[OPTION_THREADS_MAX];

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
    json_t  json;

    json_begin(&json, 1);
    json_count(&json, "items", row->items);
    json_number(&json, "estimated_fpr", row->estimated_fpr);
    json_number(&json, "measured_fpr", row->measured_fpr);
    json_number(&json, "deviation", row->deviation);
    json_number(&json, "lowest", row->lowest);
    json_number(&json, "highest", row->highest);
    json_number(&json, "fill_ratio", row->fill_ratio);
    json_number(&json, "estimated_items", row->estimated_items);
    json_end(&json);
}


static void
print_heading(form_t form)
{
    if (form == TABLE) {
        printf("%10s %10s %9s %9s %9s %9s %8s %9s\n", "", "estimated",
               "measured", "deviation", "lowest", "highest", "fill",
               "estimated");
        printf("%10s %10s %9s %9s %9s %9s %8s %9s\n", "items", "fpr, %",
               "fpr, %", "%", "%", "%", "ratio, %", "items");

    } else if (form == CSV) {
        printf("items,estimated_fpr,measured_fpr,deviation,lowest,highest,"
               "fill_ratio,estimated_items\n");
    }
}


static void
print_rows(const analysis_t *a)
{
    row_t     row;
    unsigned  i;

    print_heading(a->form);

    for (i = 0; i < a->rows; i++) {
        sum_up(a, i, &row);

        switch (a->form) {

        case CSV:
            print_csv_row(&row);
            break;

        case JSON_LINES:
            print_json_row(&row);
            break;

        default:
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

    fprintf(stderr, "%s: with %" PRIu64 " keys, as many as it is made for: "
            "measured %s (deviation of a run %s), estimated %s, target %s\n",
            bloom_geometry_layout_name(a->geometry.layout), a->capacity,
            format_rate(measured, row.measured_fpr),
            format_rate(deviation, row.deviation),
            format_rate(estimated, row.estimated_fpr),
            format_rate(target, a->fpr));
}


int
cmd_analyze(int argc, char **argv)
{
    int         rc;
    analysis_t  a;

    memset(&a, 0, sizeof(a));

    rc = parse_options(&a, argc, argv);

    if (rc != CLI_OK) {
        return rc == -1 ? CLI_OK : rc;
    }

    run_all(&a);
    print_rows(&a);

    if (!a.quiet) {
        print_summary(&a);
    }

    free(a.samples);

    return CLI_OK;
}
