/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * `ngx-bloom merge` makes one image that has the keys of several.
 */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "cli.h"
#include "command.h"
#include "guards.h"
#include "bloom_census.h"
#include "image_json.h"
#include "image_read.h"
#include "image_write.h"
#include "units.h"
#include "visible.h"


/* The options, the images to merge, and the result. */
typedef struct {
    const char      *output;
    guards_t         guards;
    int              quiet;
    int              json;

    image_read_t    *images;
    int              n;                  /* images that are open */
    bloom_image_t    image;              /* the result */
    double           fpr;                /* with its keys */
    uint64_t         least;              /* bounds of its distinct keys */
    uint64_t         most;
    bloom_census_t   census;
    removed_keys_t   removed;            /* exceptions of the result */
    int              excepted;           /* an image has exceptions of
                                            --except */
    int              others;             /* an image has exceptions that are not
                                            removed keys */
    uint64_t         lifted;             /* exceptions of an image that the
                                            result has, because another image
                                            has them */
} merge_t;


static const option_t  options[] = {
    { 'o', "output", "FILE", offsetof(merge_t, output), options_take_text,
      "the image to write; it is written whole or not at all, and may be one "
      "of the images to merge",
      .needed = "the image to write" },
    OPTIONS_GROUP(guards_options, offsetof(merge_t, guards)),
    OPTIONS_QUIET(merge_t),
    OPTIONS_JSON(merge_t),
    { 0 }
};


/*
 * Returns NULL if two images can be merged, else what differs.  One may have
 * more layers than the other: they follow what both have.
 */
static const char *
differs(const bloom_image_t *result, const bloom_image_t *other)
{
    bloom_image_t  a, b;

    a = *result;
    b = *other;

    if (a.geometry.layers < b.geometry.layers) {
        b.geometry.layers = a.geometry.layers;

    } else {
        a.geometry.layers = b.geometry.layers;
    }

    return bloom_image_differs(&a, &b);
}


/* The result has the changes that all images have.  Images of different sources
 * have none in common. */
static void
take_source(bloom_image_t *image, const bloom_source_t *other)
{
    if (!bloom_source_is(&image->source, other->name, other->len)) {
        bloom_image_set_source(image, NULL);

    } else if (bloom_position_cmp(other->position, image->source.position) < 0)
    {
        image->source.position = other->position;
    }
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

    take_source(&merge->image, &image->source);

    merge->image.flags |= image->flags;

    if (image->geometry.layers > merge->image.geometry.layers) {
        merge->image.geometry = image->geometry;
        merge->image.capacity = image->capacity;
        merge->image.fpr = image->fpr;
    }
}


/*
 * Opens all images and checks that they agree.  If the output replaces one of
 * them, that image is opened as for an addition; otherwise keys that are added
 * to it meanwhile would be lost.
 */
static int
open_images(merge_t *merge, output_t *out, char **paths, int n)
{
    int             rc;
    const char     *what;
    image_read_t   *first, *other;
    struct rlimit   files;

    /* all images are open at the same time */

    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void) setrlimit(RLIMIT_NOFILE, &files);
    }

    first = merge->images;

    while (merge->n < n) {
        other = &merge->images[merge->n];

        if (!out->fixed && output_is(out, paths[merge->n])) {
            rc = image_read_alone(other, paths[merge->n]);

            if (rc == CLI_OK) {
                output_made_of(out, &other->st);
            }

        } else {
            rc = image_read_header(other, paths[merge->n]);
        }

        if (rc != CLI_OK) {
            return rc;
        }

        if (merge->n++ == 0) {
            merge->image = first->image;
            rc = image_read_origin(first);

            if (rc != CLI_OK) {
                return rc;
            }
        }

        if (first->image.geometry.layout == BLOOM_LAYOUT_FUSE
            || other->image.geometry.layout == BLOOM_LAYOUT_FUSE)
        {
            cli_error("%s: has layout fuse, and such images cannot be merged; "
                      "build one image from all keys",
                      first->image.geometry.layout == BLOOM_LAYOUT_FUSE
                      ? first->path : other->path);
            return CLI_ERROR;
        }

        what = differs(&merge->image, &other->image);

        if (what != NULL) {
            cli_error("%s: cannot be merged with %s: they differ in %s; "
                      "rebuild it with \"--like %s\"",
                      other->path, first->path, what, first->path);
            return CLI_ERROR;
        }

        take_header(merge, &other->image);
    }

    return CLI_OK;
}


/*
 * Keeps only those exceptions of the result that are absent from an image, or
 * exceptions there, too.  Any other key may have been added to the
 * image.
 */
static int
lift_keys(merge_t *merge, image_read_t *image)
{
    int                rc;
    uint8_t            key[BLOOM_KEY_MAX];
    uint64_t           cursor;
    bloom_hash_t       hash;
    bloom_exception_t  removed;

    rc = CLI_OK;
    cursor = 0;

    while (bloom_exceptions_next(&merge->removed.set, &cursor, &removed, key)
           == 1)
    {
        if (bloom_exceptions_has(&image->removed.set, key, removed.key.len)) {
            continue;
        }

        if (image->words == NULL) {
            rc = image_read_words(image);
        }

        if (rc != CLI_OK) {
            break;
        }

        hash = bloom_hash(&image->image.hasher, key, removed.key.len);

        if (bloom_layout_test(&image->image.geometry, image->words, hash)) {
            (void) bloom_exceptions_drop(&merge->removed.set, key,
                                         removed.key.len,
                                         BLOOM_EXCEPTION_KINDS, UINT64_MAX);
            merge->lifted++;
        }
    }

    image_read_words_free(image);

    return rc;
}


/* Finds the exceptions of the result.  Images that may have them are read
 * into memory, one after the other. */
static int
merge_removed(merge_t *merge)
{
    int                i, rc;
    uint64_t           n, size;
    exception_kinds_t  kinds;

    for (i = 0, n = 0, size = 0; i < merge->n; i++) {
        rc = image_read_removed(&merge->images[i]);

        if (rc != CLI_OK) {
            return rc;
        }

        kinds = removed_keys_kinds(&merge->images[i].removed);
        merge->excepted |= kinds.excepted != 0;
        merge->others |= kinds.excepted + kinds.feedback != 0;

        n += merge->images[i].image.exceptions;
        size += merge->images[i].image.exceptions_size;
    }

    removed_keys_create(&merge->removed, n, size);

    for (i = 0; i < merge->n; i++) {
        removed_keys_merge(&merge->removed, &merge->images[i].removed);
    }

    for (i = 0, rc = CLI_OK; i < merge->n && rc == CLI_OK; i++) {
        rc = lift_keys(merge, &merge->images[i]);
    }

    return rc;
}


/* Returns 1 if the number of keys, or their rate, follows from the bits. */
static int
needs_census(const merge_t *merge)
{
    return merge->least != merge->most || merge->image.geometry.layers != 0;
}


/* Merges a chunk of all images into `dst`; `other` is a buffer of its size.  An
 * image with fewer layers ends before the others do. */
static int
merge_chunk(merge_t *merge, uint64_t chunk, uint64_t *dst, uint64_t *other)
{
    int            i, rc;
    size_t         size;
    image_read_t  *from;

    size = bloom_image_chunk_size(&merge->image, chunk);
    memset(dst, 0, size);

    for (i = 0, rc = CLI_OK; i < merge->n && rc == CLI_OK; i++) {
        from = &merge->images[i];

        if (chunk >= bloom_image_chunks(&from->image)) {
            continue;
        }

        rc = image_read_chunk(from, other);

        if (rc == CLI_OK) {
            bloom_layout_merge(dst, other,
                               bloom_image_chunk_size(&from->image, chunk)
                               / sizeof(uint64_t));
        }
    }

    if (rc == CLI_OK && needs_census(merge)) {
        bloom_census(&merge->census, &merge->image.geometry, dst,
                     size / sizeof(uint64_t));
    }

    return rc;
}


/* Estimates the number of distinct keys. */
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

    items = bloom_census_items(&merge->census);

    image->items = items < merge->least ? merge->least
                   : items > merge->most ? merge->most : items;
    image->flags |= BLOOM_IMAGE_ESTIMATED;
}


/* Merges and writes the images chunk by chunk.  Returns CLI_NO if a guard
 * refuses the result. */
static int
merge_all(merge_t *merge, output_t *out)
{
    int             rc, refused;
    void           *dst, *other;
    uint64_t        i;
    image_write_t   write;

    dst = cli_alloc(BLOOM_IMAGE_CHUNK);
    other = cli_alloc(BLOOM_IMAGE_CHUNK);

    rc = image_write_begin(&write, out, &merge->image);

    for (i = 0; rc == CLI_OK && i < bloom_image_chunks(&merge->image); i++) {
        rc = merge_chunk(merge, i, dst, other);

        if (rc == CLI_OK) {
            rc = image_write_chunk(&write, dst);
        }
    }

    count_items(merge);

    /* with layers, how many keys each part has is known from its bits alone */

    merge->fpr = merge->image.geometry.layers == 0
                 ? bloom_image_fpr(&merge->image, merge->image.items)
                 : bloom_census_fpr(&merge->census);

    refused = rc == CLI_OK ? guards_check(&merge->guards, out->name,
                                          &merge->image, merge->quiet)
              : CLI_ERROR;

    rc = image_write_end(&write, merge->images[0].origin, &merge->removed,
                         refused != CLI_OK);

    free(dst);
    free(other);

    return refused != CLI_OK ? refused : rc;
}


/* Warns that keys of --except may be found in the result, which was not tested
 * with them. */
static void
warn_excepted(const merge_t *merge)
{
    if (merge->excepted) {
        cli_warn("%s: good keys of --except may be found in it, as it has more "
                 "keys than the images it is made of; to prevent that, build "
                 "one image from all lists, with --except", merge->output);
    }
}


static void
report(const merge_t *merge)
{
    char                  bytes[UNITS_LEN], rate[IMAGE_WRITE_RATE_LEN];
    double                error;
    bloom_json_writer_t   json;
    exception_kinds_t     kinds;
    const bloom_image_t  *image;

    image = &merge->image;
    kinds = removed_keys_kinds(&merge->removed);
    error = image_json_items_error(image);

    if (merge->json) {
        json_begin(&json, 0);
        image_json(&json, merge->output, image, &kinds, error, merge->fpr);
        bloom_json_put_count(&json, "images", (uint64_t) merge->n);
        bloom_json_put_count(&json, "lifted", merge->lifted);
        json_end(&json);
        return;
    }

    if (merge->quiet) {
        return;
    }

    visible_name(merge->output);
    printf(": %d images, %" PRIu64, merge->n, image->items);

    if (error != 0) {
        printf(" +- %.0f", ceil(error));
    }

    printf(" distinct, %s, %s, %s",
           bloom_geometry_layout_name(image->geometry.layout),
           format_bytes(bytes, bloom_image_file_size(image)),
           image_write_show_rate(rate, image, merge->fpr));

    if (merge->others) {
        printf(", %" PRIu64 " exception%s (%" PRIu64 " excepted, %" PRIu64
               " removed, %" PRIu64 " by feedback), %" PRIu64 " no longer %s "
               "as another image has %s", image->exceptions,
               CLI_S(image->exceptions), kinds.excepted, kinds.removed,
               kinds.feedback, merge->lifted,
               merge->lifted == 1 ? "an exception" : "exceptions",
               merge->lifted == 1 ? "it" : "them");

    } else if (image->exceptions + merge->lifted != 0) {
        printf(", %" PRIu64 " key%s removed, %" PRIu64 " no longer removed as "
               "another image has %s", image->exceptions,
               CLI_S(image->exceptions), merge->lifted,
               merge->lifted == 1 ? "it" : "them");
    }

    putchar('\n');
}


static int
run(char **operands, int n, void *values)
{
    int        rc;
    merge_t   *merge = values;
    output_t   out;

    if (n < 1) {
        return cli_misuse("name the images to merge");
    }

    if (output_open(&out, merge->output) != 0) {
        return CLI_ERROR;
    }

    merge->images = cli_alloc((size_t) n * sizeof(*merge->images));

    rc = open_images(merge, &out, operands, n) == CLI_OK
         && merge_removed(merge) == CLI_OK
         ? merge_all(merge, &out) : CLI_ERROR;

    if (rc == CLI_OK) {
        if (!merge->quiet) {
            image_write_warn_full(&merge->image, merge->fpr,
                                  "rebuild the first image with an -n for all "
                                  "keys, and the others with --like");
            image_write_warn_secret(&merge->image, &out);
            warn_excepted(merge);
        }

        report(merge);
    }

    output_discard(&out);

    while (merge->n != 0) {
        image_read_free(&merge->images[--merge->n]);
    }

    free(merge->images);
    removed_keys_free(&merge->removed);

    return rc;
}


static merge_t  values;

static const command_member_t  members[] = {
    { NULL, "all members that info has for an image, and:" },
    { "images", "the number of images that were merged" },
    { "lifted",
      "the number of removed keys, or other exceptions, of one image that are "
      "present in the new image, because another image has them" },
    { 0 }
};

const command_t  cmd_merge = {
    .name = "merge",
    .does = "make one image from several",
    .synopsis = "-o FILE [OPTION...] IMAGE...",
    .about =
        "Makes one image that has the keys of several images. The images must "
        "have the same layout, size, hash, seed and key form: build them with "
        "--like. Images are read and written piece by piece, so they may be "
        "larger than the memory.\n\n"
        "The number of distinct keys in the new image is estimated from its "
        "bits, unless only one of the images has keys. The new image has the "
        "capacity and rate of the first one. It is complete as of the "
        "earliest time that the images state, if all of them state one.\n\n"
        "An image copied from a zone that grows has layers. It can be merged "
        "with an image that has fewer layers, or none, if both have the same "
        "base and the layers of one are the first ones of the other: the new "
        "image has all layers, and the capacity and rate of the image with "
        "the most. Bases are merged with bases, and layers with layers, so "
        "they may become fuller than their room, although the image as a whole "
        "has room: a warning tells which rate to expect. To avoid that, build "
        "one image from all lists, or add the keys to the zone.\n\n"
        "A removed key of one image stays removed if it is absent from all "
        "others. If another image has the key, or seems to have it, the key is "
        "present in the new image, so that no key is ever lost. To find that "
        "out, this command reads the other images into memory, one after the "
        "other. The same holds for exceptions of --except. The good keys "
        "themselves are not known any more, so some of them may be found in "
        "the new image.",
    .options = options,
    .values = &values,
    .members = members,
    .status = GUARDS_STATUS,
    .examples = "ngx-bloom build -o ids.bloom -n 10m ids.txt\n"
                "ngx-bloom build -o new.bloom --like ids.bloom new.txt\n"
                "ngx-bloom merge -o ids.bloom ids.bloom new.bloom\n",
    .run = run
};
