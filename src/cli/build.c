
/*
 * ngx-bloom build: keys in, image out.
 *
 * When all keys are in the keystore, the number of distinct ones is known, the
 * filter's size follows from it, and their hashes are inserted.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "collect.h"
#include "json.h"
#include "keyform.h"
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
    list_t          list;
    uint64_t        max_errors;
    unsigned        threads;
    int             quiet;
    int             json;
    int             allow_empty;
    int             seeded;
    int             key_given;
    int             sized;               /* -p, -n or --layout was given */
    uint32_t        layout;
    bloom_image_t   image;               /* capacity 0: as many as there are */
} options_t;


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
"      --key FORM      how keys are written: raw, byte for byte; lower, in\n"
"                      lower case; host, names and addresses; url, as Safe\n"
"                      Browsing has them (raw)\n"
"      --seed S        murmur3: a number below 2^32; siphash: 32 hexadecimal\n"
"                      digits (at random)\n"
"      --like IMAGE    capacity, rate, layout, hash, seed and key form of that\n"
"                      image, so that both can be merged\n"
"      --as-of TIME    the keys are complete up to then: 2026-01-31T12:00:00Z\n"
"                      or seconds since 1970\n"
"      --from LIST     lines: keys with comments; hosts: a hosts file;\n"
"                      adblock-domains: ||domain^ lines; csv:COLUMN: a column,\n"
"                      by name or number (every line is a key)\n"
"      --max-errors N  leave out up to N lines that cannot be read (0)\n"
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
"  ngx-bloom build -o monday.bloom --like week.bloom monday.txt.gz\n"
"  ngx-bloom build -o bad.bloom --key host --from hosts /etc/hosts.block\n"
"  ngx-bloom build -o bad.bloom --key url --from csv:url feed.csv\n");
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

    if (options->key_given && options->image.key_form != like.image.key_form) {
        (void) cli_misuse("--key \"%s\": keys of %s are %s, as --like says; "
                          "leave --key out",
                          bloom_key_form_name(options->image.key_form),
                          options->like,
                          bloom_key_form_name(like.image.key_form));
        load_free(&like);
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

    enum { LAYOUT = 256, HASH, KEY, SEED, LIKE, AS_OF, FROM, MAX_ERRORS,
           ALLOW_EMPTY, JSON };

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
        { "from",        required_argument, NULL, FROM },
        { "max-errors",  required_argument, NULL, MAX_ERRORS },
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
            form = keyform_parse(optarg);

            if (form == -1) {
                return CLI_ERROR;
            }

            options->key_given = 1;
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

        case FROM:
            if (list_parse(&options->list, optarg) != 0) {
                return CLI_ERROR;
            }

            break;

        case MAX_ERRORS:
            if (parse_count(optarg, &options->max_errors) != 0) {
                return cli_misuse("--max-errors \"%s\": lines to leave out "
                                  "are a count", optarg);
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

    if (options->split == BLOOM_SPLIT_NUL && options->list.kind != LIST_KEYS) {
        return cli_misuse("--from is for lists of lines, and -0 for keys that "
                          "end with a zero byte: give one of them");
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
estimate(bloom_image_t *image, const uint64_t *words, uint64_t received)
{
    uint64_t        items;
    bloom_census_t  census;

    image->flags |= BLOOM_IMAGE_ESTIMATED;

    memset(&census, 0, sizeof(census));
    bloom_census(&census, &image->geometry, words,
                 bloom_image_payload_size(image) / sizeof(uint64_t));

    items = bloom_census_items(&census, &image->geometry);

    return items < received ? items : received;
}


/* ", 3 comments" to standard output; without the comma at the beginning. */
static const char *
print_count(const char *before, uint64_t n, const char *what)
{
    if (n == 0) {
        return before;
    }

    printf("%s%" PRIu64 " %s%s", before, n, what, n == 1 ? "" : "s");

    return ", ";
}


static void
report_skipped(const options_t *options, const collect_counts_t *counts)
{
    uint64_t     n;
    const char  *before;

    n = counts->empty + counts->comments + counts->skipped + counts->errors;

    if (n == 0) {
        return;
    }

    printf("%s: ", options->output);

    before = print_count("", counts->empty, options->list.kind == LIST_KEYS
                                            ? "empty key" : "empty line");
    before = print_count(before, counts->comments, "comment");
    before = print_count(before, counts->skipped, "other line");
    (void) print_count(before, counts->errors, "unreadable line");

    printf(" %s skipped\n", n == 1 ? "was" : "were");
}


static void
report(const options_t *options, const collect_counts_t *counts,
    double seconds)
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
        json_count(&json, "received", counts->received);
        json_count(&json, "items", image->items);
        json_count(&json, "duplicates", counts->received - image->items);
        json_count(&json, "empty", counts->empty);
        json_count(&json, "comments", counts->comments);
        json_count(&json, "skipped", counts->skipped);
        json_count(&json, "errors", counts->errors);
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
           options->output, counts->received, image->items,
           bloom_layout_name(image->geometry.layout),
           format_bytes(bytes, bloom_image_file_size(image)), bits,
           format_rate(rate, bloom_geometry_fpr(&image->geometry,
                                                image->items)));

    report_skipped(options, counts);
}


int
cmd_build(int argc, char **argv)
{
    int         n, rc;
    char      **names, *standard_input[] = { "-" };
    output_t    out;
    uint64_t    distinct, *words;
    options_t   options;
    progress_t  clock;

    collect_counts_t   counts;
    collect_options_t  from;

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

    from.split = options.split;
    from.list = options.list;
    from.key_form = options.image.key_form;
    from.hasher = &options.image.hasher;
    from.threads = options.threads;
    from.max_errors = options.max_errors;
    from.quiet = options.quiet;
    from.store = keystore_create();

    from.geometry = &options.image.geometry;
    from.words = NULL;

    if (options.image.flags & BLOOM_IMAGE_IMPORTED) {
        from.words = map_words(bloom_geometry_bytes(from.geometry));
    }

    rc = collect(&from, names, n, &counts);

    if (rc == CLI_OK && counts.received == 0 && !options.allow_empty) {
        cli_error("there are no keys in the input; give --allow-empty if "
                  "that is meant");
        rc = CLI_ERROR;
    }

    if (rc == CLI_OK) {
        distinct = from.words != NULL
                   ? estimate(&options.image, from.words, counts.received)
                   : keystore_count(from.store, options.threads);

        rc = choose_size(&options, distinct);
    }

    if (rc == CLI_OK) {
        words = from.words;

        if (words == NULL) {
            words = map_words(bloom_geometry_bytes(&options.image.geometry));

            keystore_insert(from.store, &options.image.geometry, words,
                            options.threads);
        }

        rc = store_image(&out, &options.image, words);

        munmap(words, bloom_geometry_bytes(&options.image.geometry));
    }

    output_discard(&out);

    if (rc == CLI_OK) {
        report(&options, &counts, progress_end(&clock));
    }

    keystore_free(from.store);

    return rc;
}
