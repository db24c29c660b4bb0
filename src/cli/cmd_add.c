
/*
 * ngx-bloom add: keys into an image that is there.
 *
 * The image is read, the keys are added to it in memory, and a new image takes
 * its place.  Who adds to the same image meanwhile waits for that; if someone
 * else puts another one there, nothing is added.
 */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bloom_census.h"
#include "cli.h"
#include "key_options.h"
#include "json.h"
#include "image_read.h"
#include "progress.h"
#include "image_write.h"
#include "units.h"


typedef struct {
    const char         *path;
    uint64_t            as_of;           /* 0: not given */
    int                 json;
    collect_options_t   from;
    collect_counts_t    counts;
    loaded_t            loaded;
    uint8_t            *origin;
    uint64_t            added;           /* keys that were absent before */
    double              error;           /* standard error of items */
    int                 written;
} add_t;


static void
usage(void)
{
    printf(
"Usage: ngx-bloom add [OPTION...] IMAGE [KEYFILE...]\n"
"\n"
"Adds the keys in the files, or of standard input (also \"-\"), to an image, as\n"
"\"ngx-bloom build\" reads them.  A new image takes the place of the old one, whole\n"
"or not at all; if all keys were present before, the old one is left as it is.\n"
"Several additions wait for each other.  If something else replaces the image\n"
"meanwhile, nothing is added, and that is an error: add the keys again.\n"
"\n"
"How many distinct keys it has then is exact, if all keys that are new were\n"
"absent before; otherwise it is estimated.  Adding more keys than the image has\n"
"room for is warned of: it then answers present more often than promised.\n"
"\n"
"      --as-of TIME    with these keys, all are there up to then:\n"
"                      2026-01-31T12:00:00Z or seconds since 1970 (as the image\n"
"                      says)\n"
INTAKE_USAGE
"  -q, --quiet         print nothing but errors\n"
"      --json          print the result as JSON\n"
"  -h, --help          show this\n"
"\n"
"Examples:\n"
"  ngx-bloom add ids.bloom new-ids.txt\n"
"  echo 4711 | ngx-bloom add ids.bloom\n");
}


/* CLI_OK, CLI_ERROR after a message, or -1 if help was asked for. */
static int
parse_options(add_t *add, int argc, char **argv)
{
    int  c, rc;

    enum { AS_OF = 256, JSON };

    static const struct option  names[] = {
        { "as-of",       required_argument, NULL, AS_OF },
        INTAKE_NAMES,
        { "quiet",       no_argument,       NULL, 'q' },
        { "json",        no_argument,       NULL, JSON },
        { "help",        no_argument,       NULL, 'h' },
        { NULL, 0, NULL, 0 }
    };

    memset(add, 0, sizeof(*add));
    add->loaded.fd = -1;
    intake_begin(&add->from);

    while ((c = cli_option(argc, argv, ":" INTAKE_LETTERS "qh", names)) != -1) {

        switch (c) {

        case AS_OF:
            if (intake_as_of(optarg, &add->as_of) != CLI_OK) {
                return CLI_ERROR;
            }

            break;

        case 'q':
            add->from.quiet = 1;
            break;

        case JSON:
            add->json = 1;
            break;

        case 'h':
            usage();
            return -1;

        default:
            rc = intake_option(&add->from, c);

            if (rc != CLI_OK) {
                return CLI_ERROR;
            }
        }
    }

    if (optind == argc) {
        return cli_misuse("name the image to which keys shall be added");
    }

    add->path = argv[optind++];

    return intake_check(&add->from);
}


static int
load(add_t *add)
{
    int             rc;
    char            text[UNITS_LEN];
    bloom_image_t  *image;

    rc = load_alone(add->path, &add->loaded);

    if (rc != CLI_OK) {
        return CLI_ERROR;
    }

    image = &add->loaded.image;

    if (add->as_of != 0 && add->as_of < image->as_of) {
        cli_error("%s: is complete up to %s, which is later than --as-of; "
                  "leave it out", add->path, format_time(text, image->as_of));
        return CLI_ERROR;
    }

    rc = load_origin(&add->loaded, &add->origin);

    if (rc == CLI_OK) {
        rc = load_words(&add->loaded);
    }

    return rc == CLI_OK ? CLI_OK : CLI_ERROR;
}


static bloom_census_t
take_census(const add_t *add)
{
    bloom_census_t  census;

    memset(&census, 0, sizeof(census));
    bloom_census(&census, &add->loaded.image.geometry, add->loaded.words,
                 bloom_image_payload_size(&add->loaded.image)
                 / sizeof(uint64_t));

    return census;
}


/* An imported filter's keys are in it already. */
static void
count_imported(add_t *add)
{
    uint64_t         items, most;
    bloom_image_t   *image;
    bloom_census_t   census;

    add->added = add->counts.changed;

    if (add->added == 0) {
        return;
    }

    image = &add->loaded.image;
    census = take_census(add);
    items = bloom_census_items(&census, &image->geometry);
    most = image->items + add->counts.received;

    image->items = items < image->items ? image->items
                   : items > most ? most : items;
    image->flags |= BLOOM_IMAGE_ESTIMATED;
    add->error = bloom_geometry_items_error(&image->geometry, image->items);
}


/*
 * Inserts the keys.  Those that are absent before are new for sure.  Of the
 * others some may be new as well: a new key seems to be present with the
 * filter's false-positive rate f, so there are absent / (1 - f) new ones.
 */
static void
insert(add_t *add)
{
    double           fpr;
    uint64_t         distinct, new;
    bloom_image_t   *image;
    bloom_census_t   census;

    image = &add->loaded.image;

    distinct = keystore_count(add->from.store, add->from.threads,
                              &image->geometry, add->loaded.words,
                              &add->added);

    if (image->flags & BLOOM_IMAGE_ESTIMATED) {
        add->error = bloom_geometry_items_error(&image->geometry,
                                                image->items);
    }

    if (add->added == 0) {
        return;
    }

    new = distinct;

    if (add->added != distinct) {
        census = take_census(add);
        fpr = fmin(bloom_census_fpr(&census, &image->geometry), 0.999999);

        new = (uint64_t) fmin((double) add->added / (1 - fpr) + 0.5,
                              (double) distinct);

        image->flags |= BLOOM_IMAGE_ESTIMATED;
        add->error = hypot(add->error,
                           sqrt((double) add->added * fpr) / (1 - fpr));
    }

    image->items += new;

    keystore_insert(add->from.store, &image->geometry, add->loaded.words,
                    add->from.threads);
}


static int
add_keys(add_t *add, char **names, int n)
{
    int             rc, imported;
    char           *directory;
    output_t        out;
    bloom_image_t  *image;

    if (output_open(&out, add->path) != 0) {
        return CLI_ERROR;
    }

    output_made_of(&out, &add->loaded.st);

    image = &add->loaded.image;
    imported = (image->flags & BLOOM_IMAGE_IMPORTED) != 0;
    directory = output_directory(&out);

    add->from.key_form = image->key_form;
    add->from.hasher = &image->hasher;
    add->from.geometry = &image->geometry;
    add->from.words = imported ? add->loaded.words : NULL;
    add->from.store = keystore_create(add->from.memory,
                                      add->from.temporary ? add->from.temporary
                                                          : directory);

    rc = intake_spare(&out, names, n, "the keys");

    if (rc == CLI_OK) {
        rc = collect(&add->from, names, n, &add->counts);
    }

    if (rc == CLI_OK && imported) {
        count_imported(add);

    } else if (rc == CLI_OK) {
        insert(add);
    }

    if (rc == CLI_OK && (add->added != 0 || add->as_of > image->as_of)) {

        if (add->as_of != 0) {
            image->as_of = add->as_of;
        }

        rc = store_imported(&out, image, add->loaded.words, add->origin);
        add->written = 1;

    } else if (rc == CLI_OK && output_check(&out) != 0) {

        /* it is in the old image that all were present */

        rc = CLI_ERROR;
    }

    output_discard(&out);
    free(directory);

    return rc;
}


static void
report(const add_t *add, double seconds)
{
    char                     rate[UNITS_LEN], text[UNITS_LEN];
    double                   fpr;
    json_t                   json;
    const bloom_image_t     *image;
    const collect_counts_t  *counts;

    image = &add->loaded.image;
    counts = &add->counts;
    fpr = bloom_geometry_fpr(&image->geometry, image->items);

    if (add->json) {
        json_begin(&json, 0);
        json_text(&json, "file", add->path);
        json_bool(&json, "written", add->written);
        json_count(&json, "received", counts->received);
        json_count(&json, "added", add->added);
        json_count(&json, "known", counts->received - add->added);
        json_count(&json, "empty", counts->empty);
        json_count(&json, "comments", counts->comments);
        json_count(&json, "skipped", counts->skipped);
        json_count(&json, "errors", counts->errors);
        json_count(&json, "items", image->items);
        json_bool(&json, "items_estimated",
                  (image->flags & BLOOM_IMAGE_ESTIMATED) != 0);
        json_number(&json, "items_error", add->error);
        json_count(&json, "capacity", image->capacity);
        json_number(&json, "fpr", image->fpr);
        json_number(&json, "expected_fpr", fpr);
        json_hex(&json, "build_id", image->build_id,
                 BLOOM_IMAGE_BUILD_ID_LEN);
        json_text(&json, "created", format_time(text, image->created));

        if (image->as_of != 0) {
            json_text(&json, "as_of", format_time(text, image->as_of));

        } else {
            json_null(&json, "as_of");
        }

        json_count(&json, "temporary", keystore_spilled(add->from.store));
        json_number(&json, "seconds", seconds);
        json_end(&json);
        return;
    }

    if (add->from.quiet) {
        return;
    }

    printf("%s: %" PRIu64 " keys, %" PRIu64 " added, %" PRIu64, add->path,
           counts->received, add->added, image->items);

    if (add->error != 0) {
        printf(" +- %.0f", ceil(add->error));
    }

    printf(" distinct of %" PRIu64 ", false-positive rate %s%s\n",
           image->capacity, format_rate(rate, fpr),
           add->written ? "" : "; it is as it was");

    intake_report(&add->from, counts, add->path);
}


int
cmd_add(int argc, char **argv)
{
    int          n, rc;
    char       **names, *standard_input[] = { "-" };
    add_t        add;
    progress_t   clock;

    rc = parse_options(&add, argc, argv);

    if (rc != CLI_OK) {
        return rc == -1 ? CLI_OK : rc;
    }

    names = argv + optind;
    n = argc - optind;

    if (n == 0) {
        names = standard_input;
        n = 1;
    }

    progress_begin(&clock, 1);

    rc = load(&add);

    if (rc == CLI_OK) {
        rc = add_keys(&add, names, n);
    }

    if (rc == CLI_OK) {
        if (!add.from.quiet) {
            store_warn_full(&add.loaded.image,
                            "build it again, with an -n for the keys to come");
        }

        report(&add, progress_end(&clock));
    }

    if (add.from.store != NULL) {
        keystore_free(add.from.store);
    }

    free(add.origin);
    load_free(&add.loaded);

    return rc == CLI_OK ? CLI_OK : CLI_ERROR;
}
