
/*
 * ngx-bloom build: keys in, image out.
 *
 * The main thread reads blocks of whole keys; threads cut and hash them into
 * the keystore.  When all is read the number of distinct keys is known, the
 * filter's size follows from it, and the hashes are inserted.
 */

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "input.h"
#include "json.h"
#include "keystore.h"
#include "load.h"
#include "progress.h"
#include "store.h"
#include "units.h"

#define DEFAULT_FPR  0.001
#define THREADS_MAX  256

/* Seconds by which another machine's clock may be ahead of ours. */
#define CLOCKS_DIFFER  3600


typedef struct {
    const char     *output;
    const char     *like;
    bloom_split_e   split;
    unsigned        threads;
    int             quiet;
    int             json;
    int             allow_empty;
    int             seeded;
    int             sized;               /* -p, -n or --layout was given */
    uint32_t        layout;
    bloom_image_t   image;               /* capacity 0: as many as there are */
} options_t;


/* What the reader and the threads that hash share. */
typedef struct {
    const options_t  *options;
    keystore_t       *store;
    uint64_t         *words;             /* like an imported image: into these
                                            at once; else NULL */

    pthread_mutex_t   lock;
    pthread_cond_t    changed;
    input_block_t    *block;             /* 2 * threads of them */
    unsigned         *free;              /* stacks of indices */
    unsigned         *full;
    unsigned          nfree;
    unsigned          nfull;
    int               ended;

    uint64_t          received;          /* atomic */
    uint64_t          empty;             /* atomic */
} work_t;


static void
usage(void)
{
    printf(
"Usage: ngx-bloom build -o FILE [OPTION...] [KEYFILE...]\n"
"\n"
"Makes an image of the keys in the files, or of standard input (also \"-\").\n"
"Keys are one a line; what gzip compressed is read as it is.  Empty lines are\n"
"skipped, duplicates count once.  How many keys there are need not be known:\n"
"as a rule 16 bytes of memory are used for each distinct key, up to four times\n"
"that where many are given twice, and the filter's own size.\n"
"\n"
"  -o, --output FILE   the image; written whole or not at all\n"
"  -p, --fpr RATE      false-positive rate, 1e-9 to 0.5, or in %% (0.001)\n"
"  -n, --capacity N    room for N keys at that rate, with k, m or g (as many\n"
"                      as there are)\n"
"      --layout L      blocked: one memory access a lookup; classic: 5 to 9 %%\n"
"                      smaller and several accesses (blocked)\n"
"      --hash H        murmur3; siphash where those who choose keys may attack\n"
"                      (murmur3)\n"
"      --key FORM      raw: keys are taken byte for byte (raw)\n"
"      --seed S        murmur3: a number below 2^32; siphash: 32 hexadecimal\n"
"                      digits (at random)\n"
"      --like IMAGE    capacity, rate, layout, hash, seed and key form of that\n"
"                      image, so that both can be merged\n"
"      --as-of TIME    the keys are complete up to then: 2026-01-31T12:00:00Z\n"
"                      or seconds since 1970\n"
"  -0, --null          keys end with a zero byte instead of a line's end\n"
"  -j, --threads N     threads (one a processor)\n"
"      --allow-empty   make an image even if there is no key\n"
"  -q, --quiet         print nothing but errors\n"
"      --json          print the result as JSON\n"
"  -h, --help          show this\n"
"\n"
"Examples:\n"
"  ngx-bloom build -o ids.bloom -p 0.001 ids.txt\n"
"  psql -Atc 'select id from items' | ngx-bloom build -o ids.bloom -p 1e-4\n"
"  ngx-bloom build -o monday.bloom --like week.bloom monday.txt.gz\n");
}


static int
parse_seed(options_t *options, const char *text)
{
    uint64_t         seed;
    bloom_hasher_t  *hasher;

    hasher = &options->image.hasher;

    if (hasher->kind == BLOOM_HASH_SIPHASH) {
        if (parse_hex(text, hasher->key, BLOOM_HASH_KEY_LEN) != 0) {
            return cli_misuse("--seed \"%s\": siphash wants 32 hexadecimal "
                              "digits", text);
        }

        return CLI_OK;
    }

    if (parse_count(text, &seed) != 0 || seed > UINT32_MAX) {
        return cli_misuse("--seed \"%s\": murmur3 wants a number from 0 to "
                          "%" PRIu32, text, UINT32_MAX);
    }

    bloom_hasher_murmur3(hasher, (uint32_t) seed);

    return CLI_OK;
}


/* Takes over all that decides whether two images can be merged. */
static int
take_like(options_t *options)
{
    loaded_t  like;

    if (options->sized || options->seeded || options->image.hasher.kind) {
        return cli_misuse("--like says rate, capacity, layout, hash and seed: "
                          "leave -p, -n, --layout, --hash and --seed out");
    }

    if (load_header(options->like, &like) != CLI_OK) {
        return CLI_ERROR;
    }

    options->image.geometry = like.image.geometry;
    options->image.hasher = like.image.hasher;
    options->image.key_form = like.image.key_form;
    options->image.capacity = like.image.capacity;
    options->image.fpr = like.image.fpr;
    options->image.origin = like.image.origin;
    options->image.flags = like.image.flags & BLOOM_IMAGE_IMPORTED;

    load_free(&like);

    return CLI_OK;
}


/* CLI_OK, CLI_ERROR after a message, or -1 if help was asked for. */
static int
parse_options(options_t *options, int argc, char **argv)
{
    int             c, form;
    char            text[UNITS_LEN];
    long            processors;
    uint64_t        n;
    const char     *seed, *kind;
    bloom_image_t  *image;

    enum { LAYOUT = 256, HASH, KEY, SEED, LIKE, AS_OF, ALLOW_EMPTY, JSON };

    static const struct option  names[] = {
        { "output",      required_argument, NULL, 'o' },
        { "fpr",         required_argument, NULL, 'p' },
        { "capacity",    required_argument, NULL, 'n' },
        { "layout",      required_argument, NULL, LAYOUT },
        { "hash",        required_argument, NULL, HASH },
        { "key",         required_argument, NULL, KEY },
        { "seed",        required_argument, NULL, SEED },
        { "like",        required_argument, NULL, LIKE },
        { "as-of",       required_argument, NULL, AS_OF },
        { "null",        no_argument,       NULL, '0' },
        { "threads",     required_argument, NULL, 'j' },
        { "allow-empty", no_argument,       NULL, ALLOW_EMPTY },
        { "quiet",       no_argument,       NULL, 'q' },
        { "json",        no_argument,       NULL, JSON },
        { "help",        no_argument,       NULL, 'h' },
        { NULL, 0, NULL, 0 }
    };

    memset(options, 0, sizeof(*options));

    image = &options->image;
    image->fpr = DEFAULT_FPR;
    options->layout = BLOOM_LAYOUT_BLOCKED;

    processors = sysconf(_SC_NPROCESSORS_ONLN);
    options->threads = processors < 1 ? 1
                       : processors > THREADS_MAX ? THREADS_MAX
                       : (unsigned) processors;

    seed = NULL;
    kind = NULL;

    while ((c = cli_option(argc, argv, ":o:p:n:0j:qh", names)) != -1) {

        switch (c) {

        case 'o':
            options->output = optarg;
            break;

        case 'p':
            options->sized = 1;

            if (parse_rate(optarg, &image->fpr) != 0
                || image->fpr < BLOOM_FPR_MIN || image->fpr > BLOOM_FPR_MAX)
            {
                return cli_misuse("-p \"%s\": a rate is from 1e-9 to 0.5",
                                  optarg);
            }

            break;

        case 'n':
            options->sized = 1;

            if (parse_count(optarg, &image->capacity) != 0
                || image->capacity == 0
                || image->capacity > BLOOM_CAPACITY_MAX)
            {
                return cli_misuse("-n \"%s\": a capacity is a count from 1 "
                                  "to %" PRIu64 ", with k, m or g", optarg,
                                  BLOOM_CAPACITY_MAX);
            }

            break;

        case LAYOUT:
            options->sized = 1;
            options->layout = bloom_layout_parse(optarg, strlen(optarg));

            if (options->layout == 0) {
                return cli_misuse("--layout \"%s\": there are blocked and "
                                  "classic", optarg);
            }

            break;

        case HASH:
            kind = optarg;
            image->hasher.kind = bloom_hash_parse(optarg, strlen(optarg));

            if (image->hasher.kind == 0) {
                return cli_misuse("--hash \"%s\": there are murmur3 and "
                                  "siphash", optarg);
            }

            break;

        case KEY:
            form = bloom_key_form_parse(optarg, strlen(optarg));

            if (form == -1) {
                return cli_misuse("--key \"%s\": there is raw", optarg);
            }

            image->key_form = (uint32_t) form;
            break;

        case SEED:
            seed = optarg;
            options->seeded = 1;
            break;

        case LIKE:
            options->like = optarg;
            break;

        case AS_OF:
            if (parse_time(optarg, &image->as_of) != 0 || image->as_of == 0) {
                return cli_misuse("--as-of \"%s\": a time is written as "
                                  "2026-01-31T12:00:00Z or as seconds since "
                                  "1970", optarg);
            }

            if (image->as_of / 1000 > (uint64_t) time(NULL) + CLOCKS_DIFFER) {
                return cli_misuse("--as-of \"%s\": %s is in the future, and "
                                  "keys cannot be complete up to then; give "
                                  "the time at which they were read", optarg,
                                  format_time(text, image->as_of));
            }

            break;

        case '0':
            options->split = BLOOM_SPLIT_NUL;
            break;

        case 'j':
            if (parse_count(optarg, &n) != 0 || n == 0 || n > THREADS_MAX) {
                return cli_misuse("-j \"%s\": threads are from 1 to %d",
                                  optarg, THREADS_MAX);
            }

            options->threads = (unsigned) n;
            break;

        case ALLOW_EMPTY:
            options->allow_empty = 1;
            break;

        case 'q':
            options->quiet = 1;
            break;

        case JSON:
            options->json = 1;
            break;

        case 'h':
            usage();
            return -1;

        default:
            return CLI_ERROR;
        }
    }

    if (options->output == NULL) {
        return cli_misuse("-o FILE is missing: where the image goes");
    }

    if (options->like != NULL) {
        return take_like(options);
    }

    if (kind == NULL) {
        image->hasher.kind = BLOOM_HASH_MURMUR3;
    }

    if (seed != NULL) {
        return parse_seed(options, seed);
    }

    store_random(image->hasher.key,
                  image->hasher.kind == BLOOM_HASH_MURMUR3
                  ? sizeof(uint32_t) : BLOOM_HASH_KEY_LEN);

    return CLI_OK;
}


static void
hash_block(work_t *work, keystore_writer_t *writer, const input_block_t *block)
{
    uint64_t        received, empty;
    bloom_key_t     key;
    bloom_hash_t    hash;
    const uint8_t  *pos, *end;

    received = 0;
    empty = 0;

    pos = block->data;
    end = block->data + block->len;

    while (bloom_key_next(&key, &pos, end, work->options->split, block->last)
           == 1)
    {
        if (key.len == 0) {
            empty++;
            continue;
        }

        received++;

        hash = bloom_hash(&work->options->image.hasher, key.data, key.len);

        if (work->words == NULL) {
            keystore_add(writer, hash);

        } else {
            (void) bloom_add_atomic(&work->options->image.geometry,
                                    work->words, hash);
        }
    }

    __atomic_fetch_add(&work->received, received, __ATOMIC_RELAXED);
    __atomic_fetch_add(&work->empty, empty, __ATOMIC_RELAXED);
}


static void *
hash_blocks(void *data)
{
    work_t             *work = data;
    unsigned            i;
    keystore_writer_t  *writer;

    writer = keystore_writer(work->store);

    pthread_mutex_lock(&work->lock);

    for ( ;; ) {

        while (work->nfull == 0 && !work->ended) {
            pthread_cond_wait(&work->changed, &work->lock);
        }

        if (work->nfull == 0) {
            break;
        }

        i = work->full[--work->nfull];

        pthread_mutex_unlock(&work->lock);

        hash_block(work, writer, &work->block[i]);

        pthread_mutex_lock(&work->lock);

        work->free[work->nfree++] = i;
        pthread_cond_broadcast(&work->changed);
    }

    pthread_mutex_unlock(&work->lock);

    keystore_writer_close(writer);

    return NULL;
}


/* Whether keys would be replaced by their image: CLI_OK if not. */
static int
spare_inputs(const output_t *out, char **names, int n)
{
    int  standard;

    for ( /* void */ ; n != 0; n--, names++) {
        standard = strcmp(*names, "-") == 0;

        if (output_is(out, standard ? "/dev/stdin" : *names)) {
            cli_error("%s: is the output too: the image would replace the "
                      "keys; name another output",
                      standard ? "standard input" : *names);
            return CLI_ERROR;
        }
    }

    return CLI_OK;
}


/* Reads all streams into blocks; CLI_OK or CLI_ERROR. */
static int
read_inputs(work_t *work, char **names, int n)
{
    int         rc;
    int64_t     total;
    input_t     input;
    uint64_t    before;
    unsigned    i;
    progress_t  progress;

    total = input_total(names, n);

    if (total == -1) {
        return CLI_ERROR;
    }

    rc = 0;
    before = 0;

    progress_begin(&progress, work->options->quiet);

    for ( /* void */ ; n != 0 && rc == 0; n--, names++) {

        if (input_open(&input, *names, work->options->split) != 0) {
            rc = -1;
            break;
        }

        do {
            pthread_mutex_lock(&work->lock);

            while (work->nfree == 0) {
                pthread_cond_wait(&work->changed, &work->lock);
            }

            i = work->free[--work->nfree];
            pthread_mutex_unlock(&work->lock);

            rc = input_next(&input, &work->block[i], 0);

            pthread_mutex_lock(&work->lock);

            if (rc == 1) {
                work->full[work->nfull++] = i;
                pthread_cond_broadcast(&work->changed);

            } else {
                work->free[work->nfree++] = i;
            }

            pthread_mutex_unlock(&work->lock);

            progress_update(&progress, before + input.offset,
                            (uint64_t) total,
                            __atomic_load_n(&work->received,
                                            __ATOMIC_RELAXED));
        } while (rc == 1);

        before += input.offset;
        input_close(&input);
    }

    progress_end(&progress);

    return rc == 0 ? CLI_OK : CLI_ERROR;
}


/* Reads and hashes: a reader and, beside it, the threads that hash. */
static int
collect(work_t *work, char **names, int n)
{
    int         rc;
    unsigned    i, threads, blocks;
    pthread_t  *thread;

    threads = work->options->threads;
    blocks = 2 * threads;

    thread = cli_alloc(threads * sizeof(*thread));
    work->block = cli_alloc(blocks * sizeof(*work->block));
    work->free = cli_alloc(blocks * sizeof(*work->free));
    work->full = cli_alloc(blocks * sizeof(*work->full));

    memset(work->block, 0, blocks * sizeof(*work->block));

    for (i = 0; i < blocks; i++) {
        work->free[i] = i;
    }

    work->nfree = blocks;

    pthread_mutex_init(&work->lock, NULL);
    pthread_cond_init(&work->changed, NULL);

    for (i = 0; i < threads; i++) {
        cli_thread(&thread[i], hash_blocks, work);
    }

    rc = read_inputs(work, names, n);

    pthread_mutex_lock(&work->lock);
    work->ended = 1;
    pthread_cond_broadcast(&work->changed);
    pthread_mutex_unlock(&work->lock);

    for (i = 0; i < threads; i++) {
        pthread_join(thread[i], NULL);
    }

    for (i = 0; i < blocks; i++) {
        free(work->block[i].data);
    }

    free(work->block);
    free(work->free);
    free(work->full);
    free(thread);

    return rc;
}


/* Chooses the geometry for `distinct` keys, unless --like has. */
static int
choose_size(options_t *options, uint64_t distinct)
{
    bloom_image_t  *image;

    image = &options->image;
    image->items = distinct;

    if (image->capacity == 0) {
        image->capacity = distinct ? distinct : 1;
    }

    if (options->like == NULL
        && bloom_size(&image->geometry, options->layout, image->capacity,
                      image->fpr)
           != 0)
    {
        cli_error("%" PRIu64 " keys at a rate of %g need more than 1 TiB; "
                  "take a higher rate", image->capacity, image->fpr);
        return CLI_ERROR;
    }

    if (!options->quiet) {
        store_warn_full(image, options->like
                               ? "build the image given with --like again, "
                                 "with an -n for the keys of all"
                               : "give a greater -n, or none");
    }

    return CLI_OK;
}


/* Zeros, on huge pages if the system has them. */
static uint64_t *
map_words(uint64_t size)
{
    void  *words;

    words = mmap(NULL, size, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS,
                 -1, 0);

    if (words == MAP_FAILED) {
        cli_no_memory(size);
    }

    (void) madvise(words, size, MADV_HUGEPAGE);

    return words;
}


/* How many distinct keys the words have, of those received: an estimate. */
static uint64_t
estimate(work_t *work, bloom_image_t *image)
{
    uint64_t        items;
    bloom_census_t  census;

    image->flags |= BLOOM_IMAGE_ESTIMATED;

    memset(&census, 0, sizeof(census));
    bloom_census(&census, &image->geometry, work->words,
                 bloom_image_payload_size(image) / sizeof(uint64_t));

    items = bloom_census_items(&census, &image->geometry);

    return items < work->received ? items : work->received;
}


static void
report(const options_t *options, const work_t *work, double seconds)
{
    char                  bytes[UNITS_LEN], rate[UNITS_LEN], text[UNITS_LEN];
    json_t                json;
    double                bits;
    const bloom_image_t  *image;

    image = &options->image;
    bits = (double) image->geometry.bits
           / (double) (image->items ? image->items : 1);

    if (options->json) {
        json_begin(&json, 0);
        json_text(&json, "file", options->output);
        json_count(&json, "bytes", bloom_image_file_size(image));
        json_count(&json, "received", work->received);
        json_count(&json, "items", image->items);
        json_count(&json, "duplicates", work->received - image->items);
        json_count(&json, "empty", work->empty);
        json_count(&json, "capacity", image->capacity);
        json_number(&json, "fpr", image->fpr);
        json_number(&json, "expected_fpr",
                    bloom_geometry_fpr(&image->geometry, image->items));
        json_text(&json, "layout", bloom_layout_name(image->geometry.layout));
        json_text(&json, "hash", bloom_hash_name(image->hasher.kind));
        json_text(&json, "key", bloom_key_form_name(image->key_form));
        json_count(&json, "k", image->geometry.k);
        json_count(&json, "lines", image->geometry.lines);
        json_count(&json, "bits", image->geometry.bits);
        json_number(&json, "bits_per_item", bits);
        json_hex(&json, "build_id", image->build_id,
                 BLOOM_IMAGE_BUILD_ID_LEN);
        json_text(&json, "created", format_time(text, image->created));
        json_number(&json, "seconds", seconds);
        json_end(&json);
        return;
    }

    if (options->quiet) {
        return;
    }

    printf("%s: %" PRIu64 " keys, %" PRIu64 " distinct, %s, %s, "
           "%.1f bits a key, false-positive rate %s\n",
           options->output, work->received, image->items,
           bloom_layout_name(image->geometry.layout),
           format_bytes(bytes, bloom_image_file_size(image)), bits,
           format_rate(rate, bloom_geometry_fpr(&image->geometry,
                                                image->items)));

    if (work->empty != 0) {
        printf("%s: %" PRIu64 " empty key%s skipped\n", options->output,
               work->empty, work->empty == 1 ? " was" : "s were");
    }
}


int
cmd_build(int argc, char **argv)
{
    int         n, rc;
    char      **names, *standard_input[] = { "-" };
    work_t      work;
    output_t    out;
    uint64_t    distinct, *words;
    options_t   options;
    progress_t  clock;

    rc = parse_options(&options, argc, argv);

    if (rc != CLI_OK) {
        return rc == -1 ? CLI_OK : rc;
    }

    names = argv + optind;
    n = argc - optind;

    if (n == 0) {
        names = standard_input;
        n = 1;
    }

    if (output_open(&out, options.output) != 0) {
        return CLI_ERROR;
    }

    if (spare_inputs(&out, names, n) != CLI_OK) {
        output_discard(&out);
        return CLI_ERROR;
    }

    progress_begin(&clock, 1);

    memset(&work, 0, sizeof(work));
    work.options = &options;
    work.store = keystore_create();

    if (options.image.flags & BLOOM_IMAGE_IMPORTED) {
        work.words = map_words(bloom_geometry_bytes(&options.image.geometry));
    }

    rc = collect(&work, names, n);

    if (rc == CLI_OK && work.received == 0 && !options.allow_empty) {
        cli_error("there are no keys in the input; give --allow-empty if "
                  "that is meant");
        rc = CLI_ERROR;
    }

    if (rc == CLI_OK) {
        distinct = work.words != NULL
                   ? estimate(&work, &options.image)
                   : keystore_count(work.store, options.threads);

        rc = choose_size(&options, distinct);
    }

    if (rc == CLI_OK) {
        words = work.words;

        if (words == NULL) {
            words = map_words(bloom_geometry_bytes(&options.image.geometry));

            keystore_insert(work.store, &options.image.geometry, words,
                            options.threads);
        }

        rc = store_image(&out, &options.image, words);

        munmap(words, bloom_geometry_bytes(&options.image.geometry));
    }

    output_discard(&out);

    if (rc == CLI_OK) {
        report(&options, &work, progress_end(&clock));
    }

    keystore_free(work.store);

    return rc;
}
