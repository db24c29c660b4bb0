
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

#include "bloom_census.h"
#include "cli.h"
#include "key_options.h"
#include "json.h"
#include "keyform.h"
#include "image_read.h"
#include "options.h"
#include "progress.h"
#include "image_write.h"
#include "units.h"

#define DEFAULT_FPR  0.001


typedef struct {
    const char         *output;
    const char         *like;
    collect_options_t   from;
    int                 json;
    int                 allow_empty;
    int                 seeded;
    int                 key_given;
    int                 sized;           /* -p, -n or --layout was given */
    uint32_t            layout;
    bloom_image_t       image;           /* capacity 0: as many as there are */
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
"that where many are given twice, and the filter's own size; what exceeds\n"
"--memory goes to a temporary file.\n"
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
INTAKE_USAGE
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
                          bloom_form_name(options->image.key_form),
                          options->like,
                          bloom_form_name(like.image.key_form));
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


/*
 * The two halves of MurmurHash3 x64 128 depend on each other where the seed is
 * the length of a key of at most 8 bytes: the second one starts at 0 then.
 */
static void
warn_weak_seed(const options_t *options, const char *seed)
{
    const uint8_t  *key;

    key = options->image.hasher.key;     /* the number, little-endian */

    if (options->image.hasher.kind == BLOOM_HASH_MURMUR3
        && options->layout == BLOOM_LAYOUT_CLASSIC
        && key[0] >= 1 && key[0] <= 8 && !(key[1] | key[2] | key[3]))
    {
        cli_warn("--seed %s: in a classic filter with this seed, keys of %d "
                 "byte%s are found more often than promised; take a number "
                 "above 8, or leave --seed out", seed, key[0],
                 key[0] == 1 ? "" : "s");
    }
}


/* CLI_OK, CLI_ERROR after a message, or -1 if help was asked for. */
static int
parse_options(options_t *options, int argc, char **argv)
{
    int             c, rc, form;
    const char     *seed, *kind;
    bloom_image_t  *image;

    enum { LAYOUT = 256, HASH, KEY, SEED, LIKE, AS_OF, ALLOW_EMPTY,
           JSON };

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
        INTAKE_NAMES,
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
    intake_begin(&options->from);

    seed = NULL;
    kind = NULL;

    while ((c = cli_option(argc, argv, ":o:p:n:" INTAKE_LETTERS "qh", names))
           != -1)
    {

        switch (c) {

        case 'o':
            options->output = optarg;
            break;

        case 'p':
            options->sized = 1;

            if (option_fpr(optarg, &image->fpr) != CLI_OK) {
                return CLI_ERROR;
            }

            break;

        case 'n':
            options->sized = 1;

            if (option_capacity(optarg, &image->capacity) != CLI_OK) {
                return CLI_ERROR;
            }

            break;

        case LAYOUT:
            options->sized = 1;

            if (option_layout(optarg, &options->layout) != CLI_OK) {
                return CLI_ERROR;
            }

            break;

        case HASH:
            kind = optarg;

            if (option_hash(optarg, &image->hasher) != CLI_OK) {
                return CLI_ERROR;
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
            if (intake_as_of(optarg, &image->as_of) != CLI_OK) {
                return CLI_ERROR;
            }

            break;

        case ALLOW_EMPTY:
            options->allow_empty = 1;
            break;

        case 'q':
            options->from.quiet = 1;
            break;

        case JSON:
            options->json = 1;
            break;

        case 'h':
            usage();
            return -1;

        default:
            rc = intake_option(&options->from, c);

            if (rc != CLI_OK) {
                return CLI_ERROR;
            }
        }
    }

    if (options->output == NULL) {
        return cli_misuse("-o FILE is missing: where the image goes");
    }

    if (intake_check(&options->from) != CLI_OK) {
        return CLI_ERROR;
    }

    if (options->like != NULL) {
        return take_like(options);
    }

    if (kind == NULL) {
        image->hasher.kind = BLOOM_HASH_MURMUR3;
    }

    if (seed != NULL) {
        rc = option_seed(seed, &image->hasher);

        if (rc == CLI_OK) {
            warn_weak_seed(options, seed);
        }

        return rc;
    }

    store_random(image->hasher.key,
                  image->hasher.kind == BLOOM_HASH_MURMUR3
                  ? sizeof(uint32_t) : BLOOM_HASH_KEY_LEN);

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
        && bloom_geometry_size(&image->geometry, options->layout,
                               image->capacity, image->fpr)
           != 0)
    {
        cli_error("%" PRIu64 " keys at a rate of %g need more than 1 TiB; "
                  "take a higher rate", image->capacity, image->fpr);
        return CLI_ERROR;
    }

    if (!options->from.quiet) {
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


static void
report(const options_t *options, const collect_counts_t *counts,
    uint64_t spilled, double seconds)
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
        json_text(&json, "layout",
                  bloom_geometry_layout_name(image->geometry.layout));
        json_text(&json, "hash", bloom_hasher_name(image->hasher.kind));
        json_text(&json, "key", bloom_form_name(image->key_form));
        json_count(&json, "k", image->geometry.k);
        json_count(&json, "lines", image->geometry.lines);
        json_count(&json, "bits", image->geometry.bits);
        json_number(&json, "bits_per_item", bits);
        json_hex(&json, "build_id", image->build_id,
                 BLOOM_IMAGE_BUILD_ID_LEN);
        json_count(&json, "temporary", spilled);
        json_text(&json, "created", format_time(text, image->created));
        json_number(&json, "seconds", seconds);
        json_end(&json);
        return;
    }

    if (options->from.quiet) {
        return;
    }

    printf("%s: %" PRIu64 " keys, %" PRIu64 " distinct, %s, %s, "
           "%.1f bits a key, false-positive rate %s\n",
           options->output, counts->received, image->items,
           bloom_geometry_layout_name(image->geometry.layout),
           format_bytes(bytes, bloom_image_file_size(image)), bits,
           format_rate(rate, bloom_geometry_fpr(&image->geometry,
                                                image->items)));

    intake_report(&options->from, counts, options->output);
}


int
cmd_build(int argc, char **argv)
{
    int                 n, rc;
    char              **names, *directory, *standard_input[] = { "-" };
    output_t            out;
    uint64_t            distinct, *words;
    options_t           options;
    progress_t          clock;
    collect_counts_t    counts;
    collect_options_t  *from;

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

    if (intake_spare(&out, names, n, "the keys") != CLI_OK) {
        output_discard(&out);
        return CLI_ERROR;
    }

    progress_begin(&clock, 1);

    directory = output_directory(&out);

    from = &options.from;
    from->key_form = options.image.key_form;
    from->hasher = &options.image.hasher;
    from->geometry = &options.image.geometry;
    from->store = keystore_create(from->memory,
                                  from->temporary ? from->temporary
                                                  : directory);

    if (options.image.flags & BLOOM_IMAGE_IMPORTED) {
        from->words = map_words(bloom_geometry_bytes(from->geometry));
    }

    rc = collect(from, names, n, &counts);

    if (rc == CLI_OK && counts.received == 0 && !options.allow_empty) {
        cli_error("there are no keys in the input; give --allow-empty if "
                  "that is meant");
        rc = CLI_ERROR;
    }

    if (rc == CLI_OK) {
        distinct = from->words != NULL
                   ? estimate(&options.image, from->words, counts.received)
                   : keystore_count(from->store, from->threads, NULL, NULL,
                                    NULL);

        rc = choose_size(&options, distinct);
    }

    if (rc == CLI_OK) {
        words = from->words;

        if (words == NULL) {
            words = map_words(bloom_geometry_bytes(&options.image.geometry));

            keystore_insert(from->store, &options.image.geometry, words,
                            from->threads);
        }

        rc = store_image(&out, &options.image, words);

        munmap(words, bloom_geometry_bytes(&options.image.geometry));
    }

    output_discard(&out);

    if (rc == CLI_OK) {
        report(&options, &counts, keystore_spilled(from->store),
               progress_end(&clock));
    }

    keystore_free(from->store);
    free(directory);

    return rc;
}
