
/*
 * ngx-bloom analyze: what the literature measures, of our own filters.
 *
 * A filter is filled in steps to one and a half times its capacity; after each
 * step it is asked for keys that are not in it.  That is done in several runs,
 * each with a seed and keys of its own, and set beside the rate that sizing
 * expects.
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bloom_bytes.h"
#include "bloom_layout.h"
#include "bloom_murmur3.h"
#include "cli.h"
#include "json.h"
#include "options.h"
#include "output.h"
#include "progress.h"
#include "units.h"

#define RUNS_MAX   1000
#define STEPS_MAX  1000


/* What one run finds after one step. */
typedef struct {
    uint64_t  found;                     /* of the absent keys asked */
    uint64_t  ones;                      /* bits set */
} sample_t;

/* All runs after one step. */
typedef struct {
    uint64_t  items;
    double    expected;                  /* rates: */
    double    mean;
    double    deviation;                 /* standard deviation of a run */
    double    lowest;
    double    highest;
    double    fill;                      /* mean share of bits set */
    double    estimate;                  /* mean of items as they are estimated
                                            from the bits */
} row_t;

typedef struct {
    const char        *output;           /* NULL: standard output */
    const char        *terminal;         /* gnuplot's; NULL: CSV */
    uint64_t           capacity;
    uint64_t           asked;            /* at each step of each run */
    uint64_t           seed;
    double             fpr;
    unsigned           runs;
    unsigned           steps;            /* up to the capacity */
    unsigned           rows;             /* and beyond */
    unsigned           threads;
    int                quiet;
    int                json;
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
"Measures filters: fills one in steps to one and a half times its capacity and,\n"
"after each, asks for keys that are not in it; does so in several runs, each\n"
"with a seed and keys of its own; and sets the rate of wrong answers beside the\n"
"one that is expected.  The same options give the same figures, whatever -j is.\n"
"\n"
"  -o, --output FILE   CSV, or a picture by gnuplot, as its name ends: .csv,\n"
"                      .svg or .png (CSV to standard output)\n"
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
"      --json          print the rows as JSON, an object a line\n"
"  -h, --help          show this\n"
"\n"
"A row of the CSV has the items, the expected rate, the mean of the runs, their\n"
"standard deviation, the lowest, the highest, the share of bits set, and the\n"
"items that are estimated from those bits.\n"
"\n"
"Examples:\n"
"  ngx-bloom analyze -o blocked.svg\n"
"  ngx-bloom analyze -n 1m -p 1e-4 --asked 10m --layout classic -o classic.csv\n");
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


/* By the name's end. */
static int
parse_output(analysis_t *a, const char *name)
{
    const char  *end;

    end = strrchr(name, '.');
    a->output = name;

    if (strcmp(name, "-") == 0) {
        a->output = NULL;

    } else if (end != NULL && strcmp(end, ".svg") == 0) {
        a->terminal = "svg size 900,560 dynamic noenhanced background 'white'";

    } else if (end != NULL && strcmp(end, ".png") == 0) {
        a->terminal = "pngcairo size 900,560 noenhanced background 'white'";

    } else if (end == NULL || strcmp(end, ".csv") != 0) {
        return cli_misuse("-o \"%s\": what it will be is told by its end: "
                          ".csv, .svg or .png", name);
    }

    return CLI_OK;
}


/* CLI_OK, CLI_ERROR after a message, or -1 if help was asked for. */
static int
parse_options(analysis_t *a, int argc, char **argv)
{
    int       c, rc;
    uint64_t  runs, steps;
    uint32_t  layout;

    enum { LAYOUT = 256, HASH, SEED, RUNS, STEPS, ASKED, JSON };

    static const struct option  names[] = {
        { "output",   required_argument, NULL, 'o' },
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

    while ((c = cli_option(argc, argv, ":o:n:p:j:qh", names)) != -1) {

        rc = CLI_OK;

        switch (c) {

        case 'o':
            rc = parse_output(a, optarg);
            break;

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

        case JSON:
            a->json = 1;
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
        return cli_misuse("\"%s\" is no option; a file is named by -o",
                          argv[optind]);
    }

    if (a->json && a->output != NULL) {
        return cli_misuse("--json prints to standard output: leave -o %s out",
                          a->output);
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
        sample->ones = bloom_layout_count_ones(words, bytes / sizeof(uint64_t));
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
sum_up(const analysis_t *a, unsigned row, row_t *sum)
{
    double           rate, squares;
    unsigned         run;
    const sample_t  *sample;

    memset(sum, 0, sizeof(*sum));
    sum->items = items_of(a, row);
    sum->expected = bloom_geometry_fpr(&a->geometry, sum->items);
    sum->lowest = 1;

    for (run = 0; run < a->runs; run++) {
        sample = &a->samples[(size_t) run * a->rows + row];
        rate = (double) sample->found / (double) a->asked;

        sum->mean += rate / a->runs;
        sum->lowest = rate < sum->lowest ? rate : sum->lowest;
        sum->highest = rate > sum->highest ? rate : sum->highest;
        sum->fill += (double) sample->ones / (double) a->geometry.bits
                     / a->runs;
        sum->estimate += (double) bloom_geometry_items(&a->geometry,
                                                       sample->ones)
                         / a->runs;
    }

    squares = 0;

    for (run = 0; run < a->runs; run++) {
        sample = &a->samples[(size_t) run * a->rows + row];
        rate = (double) sample->found / (double) a->asked - sum->mean;
        squares += rate * rate;
    }

    sum->deviation = sqrt(squares / (a->runs - 1));
}


static void
print_rows(const analysis_t *a, FILE *out)
{
    row_t     sum;
    unsigned  row;

    for (row = 0; row < a->rows; row++) {
        sum_up(a, row, &sum);

        fprintf(out, "%" PRIu64 ",%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g\n",
                sum.items, sum.expected, sum.mean, sum.deviation, sum.lowest,
                sum.highest, sum.fill, sum.estimate);
    }
}


static void
print_csv(const analysis_t *a, FILE *out)
{
    fprintf(out, "items,expected,mean,deviation,lowest,highest,fill,"
                 "estimate\n");
    print_rows(a, out);
}


static void
print_json(const analysis_t *a)
{
    row_t     sum;
    json_t    json;
    unsigned  row;

    for (row = 0; row < a->rows; row++) {
        sum_up(a, row, &sum);

        json_begin(&json, 1);
        json_count(&json, "items", sum.items);
        json_number(&json, "expected", sum.expected);
        json_number(&json, "mean", sum.mean);
        json_number(&json, "deviation", sum.deviation);
        json_number(&json, "lowest", sum.lowest);
        json_number(&json, "highest", sum.highest);
        json_number(&json, "fill", sum.fill);
        json_number(&json, "estimate", sum.estimate);
        json_end(&json);
    }
}


/* A script for gnuplot, with the rows in it. */
static void
print_plot(const analysis_t *a, FILE *out)
{
    char  rate[UNITS_LEN];

    fprintf(out, "$rows << END\n");
    print_rows(a, out);
    fprintf(out,
            "END\n"
            "set datafile separator ','\n"
            "set terminal %s font 'sans-serif,14'\n"
            "set title '%s filter with %s, made for %" PRIu64 " keys at %s'\n"
            "set xlabel 'keys in the filter, of those it is made for'\n"
            "set ylabel 'false-positive rate'\n"
            "set key left top Left reverse\n"
            "set format '%%g %%%%'\n"
            "set xrange [0:%.17g]\n"
            "set yrange [0:*]\n"
            "set grid lc '#dddddd'\n"
            "set arrow from 100, graph 0 to 100, graph 1 nohead dashtype 2 "
            "lc '#666666'\n"
            "full(n) = 100.0 * n / %" PRIu64 "\n"
            "least(y) = y < 0 ? 0 : 100 * y\n"
            "plot $rows using (full($1)):(least($3 - $4)):(least($3 + $4)) "
            "with filledcurves lc '#b3d1ea' "
            "title 'a run: standard deviation', "
            "$rows using (full($1)):(least($2)) with lines lw 2 lc '#333333' "
            "title 'expected', "
            "$rows using (full($1)):(least($3)) with points pt 7 ps 0.6 "
            "lc '#1f6fb2' title 'measured: %u runs, %" PRIu64 " absent keys each', "
            "%.17g with lines dashtype 2 lc '#c03028' title 'target'\n",
            a->terminal, bloom_geometry_layout_name(a->geometry.layout),
            bloom_hasher_name(a->hasher.kind), a->capacity,
            format_rate(rate, a->fpr),
            100 * (double) items_of(a, a->rows - 1) / (double) a->capacity,
            a->capacity, a->runs, a->asked, 100 * a->fpr);
}


/* Passes on all that comes; to nobody if `out` is NULL. */
static int
pass_on(int in, output_t *out)
{
    ssize_t  n;
    uint8_t  buf[16384];

    for ( ;; ) {
        n = read(in, buf, sizeof(buf));

        if (n == -1 && errno == EINTR) {
            continue;
        }

        if (n == -1) {
            cli_error("what gnuplot draws cannot be read: %s", strerror(errno));
            return -1;
        }

        if (n == 0) {
            return 0;
        }

        if (out != NULL && output_write(out, buf, (size_t) n) != 0) {
            return -1;
        }
    }
}


/*
 * Runs it with that input; its exit status, -1 if it cannot be run, or its
 * output not be written, having said so.  It does not itself notice that a disk
 * is full, so it writes through a pipe.
 */
static int
run_gnuplot(const char *argument, int in, output_t *out)
{
    int    rc, status, ends[2];
    pid_t  pid;

    enum { NOT_FOUND = 127 };

    (void) fflush(NULL);

    if (pipe2(ends, O_CLOEXEC) == -1) {
        cli_error("cannot run gnuplot: %s", strerror(errno));
        return -1;
    }

    pid = fork();

    if (pid == 0) {
        if (dup2(in, STDIN_FILENO) != -1 && dup2(ends[1], STDOUT_FILENO) != -1)
        {
            execlp("gnuplot", "gnuplot", argument, (char *) NULL);
        }

        _exit(NOT_FOUND);
    }

    (void) close(ends[1]);

    rc = pid == -1 ? 0 : pass_on(ends[0], out);

    (void) close(ends[0]);

    if (pid == -1 || waitpid(pid, &status, 0) == -1) {
        cli_error("cannot run gnuplot: %s", strerror(errno));
        return -1;
    }

    if (rc != 0) {
        return -1;
    }

    if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_FOUND) {
        cli_error("pictures are drawn by gnuplot, which is not found: install "
                  "it (Debian: gnuplot-nox), or have CSV (-o FILE.csv)");
        return -1;
    }

    if (!WIFEXITED(status)) {
        cli_error("gnuplot was ended by signal %d", WTERMSIG(status));
        return -1;
    }

    return WEXITSTATUS(status);
}


/* Before the work is done: CLI_OK if there is gnuplot. */
static int
find_gnuplot(void)
{
    int    rc;
    FILE  *nowhere;

    nowhere = fopen("/dev/null", "r");

    if (nowhere == NULL) {
        cli_error("/dev/null: %s", strerror(errno));
        return CLI_ERROR;
    }

    rc = run_gnuplot("--version", fileno(nowhere), NULL);
    fclose(nowhere);

    return rc == -1 ? CLI_ERROR : CLI_OK;
}


static int
draw(const analysis_t *a, output_t *out)
{
    int    rc;
    FILE  *script;

    script = tmpfile();

    if (script == NULL) {
        cli_error("cannot make a temporary file: %s", strerror(errno));
        return CLI_ERROR;
    }

    print_plot(a, script);

    if (fflush(script) != 0 || ferror(script)) {
        cli_error("cannot write a temporary file: %s", strerror(errno));
        fclose(script);
        return CLI_ERROR;
    }

    rewind(script);
    rc = run_gnuplot("-", fileno(script), out);
    fclose(script);

    if (rc > 0) {
        cli_error("gnuplot failed with %d; the same figures as CSV: "
                  "-o FILE.csv", rc);
    }

    return rc == 0 ? CLI_OK : CLI_ERROR;
}


static int
write_csv(const analysis_t *a, output_t *out)
{
    int     rc;
    char   *text;
    FILE   *memory;
    size_t  len;

    text = NULL;
    memory = open_memstream(&text, &len);

    if (memory == NULL) {
        cli_no_memory(STEPS_MAX);
    }

    print_csv(a, memory);

    if (fclose(memory) != 0) {
        cli_no_memory(STEPS_MAX);
    }

    rc = output_write(out, text, len) == 0 ? CLI_OK : CLI_ERROR;
    free(text);

    return rc;
}


static int
write_result(const analysis_t *a, output_t *out)
{
    if (a->json) {
        print_json(a);
        return CLI_OK;
    }

    if (a->output == NULL) {
        print_csv(a, stdout);
        return CLI_OK;
    }

    if ((a->terminal == NULL ? write_csv(a, out) : draw(a, out)) != CLI_OK) {
        output_discard(out);
        return CLI_ERROR;
    }

    return output_commit(out) == 0 ? CLI_OK : CLI_ERROR;
}


/* What all was for. */
static void
print_summary(const analysis_t *a)
{
    char   target[UNITS_LEN], expected[UNITS_LEN], mean[UNITS_LEN],
           deviation[UNITS_LEN];
    row_t  sum;

    sum_up(a, a->steps - 1, &sum);

    fprintf(stderr, "%s: with %" PRIu64 " keys, as many as it is made for: "
            "measured %s (deviation of a run %s), expected %s, target %s\n",
            bloom_geometry_layout_name(a->geometry.layout), a->capacity,
            format_rate(mean, sum.mean), format_rate(deviation, sum.deviation),
            format_rate(expected, sum.expected), format_rate(target, a->fpr));
}


int
cmd_analyze(int argc, char **argv)
{
    int         rc;
    output_t    out;
    analysis_t  a;

    memset(&a, 0, sizeof(a));

    rc = parse_options(&a, argc, argv);

    if (rc != CLI_OK) {
        return rc == -1 ? CLI_OK : rc;
    }

    if (a.terminal != NULL && find_gnuplot() != CLI_OK) {
        return CLI_ERROR;
    }

    if (a.output != NULL && output_open(&out, a.output) != 0) {
        return CLI_ERROR;
    }

    run_all(&a);
    rc = write_result(&a, &out);

    if (rc == CLI_OK && !a.quiet) {
        print_summary(&a);
    }

    free(a.samples);

    return rc;
}
