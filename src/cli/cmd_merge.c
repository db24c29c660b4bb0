
/*
 * ngx-bloom merge: one image that has the keys of several.
 */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "bloom_census.h"
#include "cli.h"
#include "json.h"
#include "image_read.h"
#include "image_write.h"
#include "units.h"


/* What the images are together. */
typedef struct {
    loaded_t       *loaded;              /* of each */
    int             n;                   /* that are open */
    bloom_image_t   image;               /* of all */
    uint64_t        least;               /* of distinct keys there can be */
    uint64_t        most;
    bloom_census_t  census;
    uint8_t        *origin;
} merge_t;


static void
usage(void)
{
    printf(
"Usage: ngx-bloom merge -o FILE [OPTION...] IMAGE IMAGE...\n"
"\n"
"Makes one image of several: it has the keys of all.  They must agree in layout,\n"
"size, hash and seed, and how keys are written; build them with --like.\n"
"\n"
"How many distinct keys it has is estimated from its bits, unless only one of\n"
"the images has any.  Capacity and rate are those of the first image.  It is\n"
"complete as of the earliest time that the images state, if they all state one.\n"
"\n"
"  -o, --output FILE   the image; written whole or not at all; may be one of\n"
"                      those merged\n"
"  -q, --quiet         print nothing but errors\n"
"      --json          print the result as JSON\n"
"  -h, --help          show this\n"
"\n"
"Examples:\n"
"  ngx-bloom build -o ids.bloom -n 10m ids.txt\n"
"  ngx-bloom build -o new.bloom --like ids.bloom new.txt\n"
"  ngx-bloom merge -o ids.bloom ids.bloom new.bloom\n");
}


static void
take_header(merge_t *merge, const bloom_image_t *image)
{
    if (image->items > merge->least) {
        merge->least = image->items;
    }

    if (__builtin_add_overflow(merge->most, image->items, &merge->most)) {
        merge->most = UINT64_MAX;
    }

    if (image->as_of < merge->image.as_of) {
        merge->image.as_of = image->as_of;
    }

    merge->image.flags |= image->flags;
}


/*
 * Opens all images and sees that they agree.  One that the result is to replace
 * is opened as for an addition: what was added to it meanwhile would be lost.
 */
static int
open_images(merge_t *merge, output_t *out, char **paths, int n)
{
    int            rc;
    loaded_t      *first, *other;
    const char    *what;
    struct rlimit  files;

    /* each of them is open until all are merged */

    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void) setrlimit(RLIMIT_NOFILE, &files);
    }

    first = merge->loaded;

    while (merge->n < n) {
        other = &merge->loaded[merge->n];

        if (!out->fixed && output_is(out, paths[merge->n])) {
            rc = load_alone(paths[merge->n], other);

            if (rc == CLI_OK) {
                output_made_of(out, &other->st);
            }

        } else {
            rc = load_header(paths[merge->n], other);
        }

        if (rc != CLI_OK) {
            return rc;
        }

        if (merge->n++ == 0) {
            merge->image = first->image;
            rc = load_origin(first, &merge->origin);

            if (rc != CLI_OK) {
                return rc;
            }
        }

        what = bloom_image_differs(&first->image, &other->image);

        if (what != NULL) {
            cli_error("%s: cannot be merged with %s, from which it differs in "
                      "%s; build it again with \"--like %s\"",
                      other->path, first->path, what, first->path);
            return CLI_ERROR;
        }

        take_header(merge, &other->image);
    }

    return CLI_OK;
}


/* A chunk of all images; `dst` and `other` have room for one each. */
static int
merge_chunk(merge_t *merge, uint64_t chunk, uint64_t *dst, uint64_t *other)
{
    int       i, rc;
    uint64_t  words;

    words = bloom_image_chunk_size(&merge->image, chunk) / sizeof(uint64_t);
    rc = load_chunk(&merge->loaded[0], dst);

    for (i = 1; i < merge->n && rc == CLI_OK; i++) {
        rc = load_chunk(&merge->loaded[i], other);

        if (rc == CLI_OK) {
            bloom_layout_merge(dst, other, words);
        }
    }

    if (rc == CLI_OK && merge->least != merge->most) {
        bloom_census(&merge->census, &merge->image.geometry, dst, words);
    }

    return rc;
}


/* Estimates how many distinct keys there are. */
static void
count_items(merge_t *merge)
{
    uint64_t        items;
    bloom_image_t  *image;

    image = &merge->image;

    if (merge->least == merge->most) {
        image->items = merge->most;
        return;
    }

    items = bloom_census_items(&merge->census, &image->geometry);

    image->items = items < merge->least ? merge->least
                   : items > merge->most ? merge->most : items;
    image->flags |= BLOOM_IMAGE_ESTIMATED;
}


static void
report(const merge_t *merge, const char *path, int n, int json)
{
    char                  bytes[UNITS_LEN], rate[UNITS_LEN];
    double                error, fpr;
    json_t                object;
    const bloom_image_t  *image;

    image = &merge->image;
    fpr = bloom_geometry_fpr(&image->geometry, image->items);
    error = (image->flags & BLOOM_IMAGE_ESTIMATED)
            ? bloom_geometry_items_error(&image->geometry, image->items) : 0;

    if (json) {
        json_begin(&object, 0);
        json_text(&object, "file", path);
        json_count(&object, "bytes", bloom_image_file_size(image));
        json_count(&object, "images", (uint64_t) n);
        json_count(&object, "items", image->items);
        json_bool(&object, "items_estimated", error != 0);
        json_number(&object, "items_error", error);
        json_count(&object, "capacity", image->capacity);
        json_number(&object, "fpr", image->fpr);
        json_number(&object, "expected_fpr", fpr);
        json_hex(&object, "build_id", image->build_id,
                 BLOOM_IMAGE_BUILD_ID_LEN);
        json_end(&object);
        return;
    }

    printf("%s: %d images, %" PRIu64, path, n, image->items);

    if (error != 0) {
        printf(" +- %.0f", ceil(error));
    }

    printf(" distinct, %s, %s, false-positive rate %s\n",
           bloom_geometry_layout_name(image->geometry.layout),
           format_bytes(bytes, bloom_image_file_size(image)),
           format_rate(rate, fpr));
}


/* Writes the image of all, chunk by chunk. */
static int
merge_all(merge_t *merge, output_t *out)
{
    int       rc;
    void     *dst, *other;
    store_t   store;
    uint64_t  i;

    dst = cli_alloc(BLOOM_IMAGE_CHUNK);
    other = cli_alloc(BLOOM_IMAGE_CHUNK);

    rc = store_begin(&store, out, &merge->image);

    for (i = 0; rc == CLI_OK && i < bloom_image_chunks(&merge->image); i++) {
        rc = merge_chunk(merge, i, dst, other);

        if (rc == CLI_OK) {
            rc = store_chunk(&store, dst);
        }
    }

    count_items(merge);

    rc = store_end(&store, merge->origin, rc != CLI_OK);

    free(dst);
    free(other);

    return rc;
}


int
cmd_merge(int argc, char **argv)
{
    int          c, n, rc, quiet, json;
    merge_t      merge;
    output_t     out;
    const char  *output;

    enum { JSON = 256 };

    static const struct option  names[] = {
        { "output", required_argument, NULL, 'o' },
        { "quiet",  no_argument,       NULL, 'q' },
        { "json",   no_argument,       NULL, JSON },
        { "help",   no_argument,       NULL, 'h' },
        { NULL, 0, NULL, 0 }
    };

    output = NULL;
    quiet = 0;
    json = 0;

    while ((c = cli_option(argc, argv, ":o:qh", names)) != -1) {

        switch (c) {

        case 'o':
            output = optarg;
            break;

        case 'q':
            quiet = 1;
            break;

        case JSON:
            json = 1;
            break;

        case 'h':
            usage();
            return CLI_OK;

        default:
            return CLI_ERROR;
        }
    }

    n = argc - optind;

    if (output == NULL) {
        return cli_misuse("-o FILE is missing: where the image goes");
    }

    if (n < 2) {
        return cli_misuse("name two images or more to merge");
    }

    if (output_open(&out, output) != 0) {
        return CLI_ERROR;
    }

    memset(&merge, 0, sizeof(merge));

    merge.loaded = cli_alloc((size_t) n * sizeof(*merge.loaded));

    rc = open_images(&merge, &out, argv + optind, n);

    if (rc == CLI_OK) {
        rc = merge_all(&merge, &out);
    }

    if (rc == CLI_OK) {
        if (!quiet) {
            store_warn_full(&merge.image,
                            "build the first image again, with an "
                            "-n for the keys of all, and the others like it");
        }

        if (json || !quiet) {
            report(&merge, output, n, json);
        }
    }

    output_discard(&out);
    free(merge.origin);

    while (merge.n != 0) {
        load_free(&merge.loaded[--merge.n]);
    }

    free(merge.loaded);

    return rc == CLI_OK ? CLI_OK : CLI_ERROR;
}
