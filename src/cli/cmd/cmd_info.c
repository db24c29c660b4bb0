/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * `ngx-bloom info` shows the headers of images, or their exceptions, such as
 * removed keys.
 */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bloom_exceptions_image.h"
#include "bloom_fuse.h"
#include "bloom_growth.h"
#include "bloom_scheme.h"
#include "cli.h"
#include "command.h"
#include "image_json.h"
#include "image_read.h"
#include "key_print.h"
#include "keyform.h"
#include "units.h"
#include "visible.h"


typedef struct {
    int       json;
    int       removed;                   /* print only the removed keys */
    int       exceptions;                /* print only the exceptions */
    int       null;                      /* keys end with a zero byte, not LF */
    int       several;                   /* images */
    int       shown;
    uint64_t  printed;                   /* number of keys */
} info_t;


/* The names of the kinds of exceptions. */
static const struct {
    unsigned     kind;
    const char  *name;
} kind_names[] = {
    { BLOOM_EXCEPTION_BUILT, "excepted" },
    { BLOOM_EXCEPTION_REMOVED, "removed" },
    { BLOOM_EXCEPTION_FEEDBACK, "feedback" },
};

#define KINDS  (sizeof(kind_names) / sizeof(kind_names[0]))


static const option_t  options[] = {
    { 0, "removed", NULL, offsetof(info_t, removed), options_take_flag,
      "print only the removed keys, one per line, in no particular order; if a "
      "key contains a line end, print an error and no keys" },
    { 0, "exceptions", NULL, offsetof(info_t, exceptions), options_take_flag,
      "print only the exceptions, which are absent although their bits are "
      "set: on each line one or more kinds, with commas, a space, and the key; "
      "if a key contains a line end, print an error and no keys\n"
      "excepted: made by --except of build\n"
      "removed: a removed key\n"
      "feedback: a false positive that a backend reported" },
    { '0', "null", NULL, offsetof(info_t, null), options_take_flag,
      "with --removed or --exceptions: end each key with a zero byte instead "
      "of a line end; build, add and test read that of --removed with -0; if a "
      "key contains a zero byte, print an error and no keys" },
    { 0, "json", NULL, offsetof(info_t, json), options_take_flag,
      "print JSON; with several images, an object per line; with --removed "
      "or --exceptions, an object for each key, which build and add read with "
      "--from json" },
    { 0 }
};


static void
print_kind(const char *what, uint64_t n)
{
    if (n != 0) {
        printf("%-16s%" PRIu64 " key%s\n", what, n, CLI_S(n));
    }
}


/* Prints a line for each layer, and what the base and the layers promise
 * together. */
static void
print_layers(const bloom_image_t *image)
{
    char                  text[UNITS_LEN];
    uint32_t              i;
    const bloom_layer_t  *layer;

    for (i = 0; i < image->geometry.layers; i++) {
        layer = &image->geometry.layer[i];

        printf("layer %-10" PRIu32 "%" PRIu64 " keys, blocked, %" PRIu64
               " bits, k %" PRIu32 ", lines %" PRIu32 "\n", i + 1,
               bloom_growth_room(&image->geometry, image->capacity, i + 1),
               layer->bits, layer->k,
               layer->lines);
    }

    if (image->geometry.layers != 0) {
        printf("with layers     %" PRIu64 " keys at a false-positive rate of "
               "%s\n", bloom_image_capacity(image),
               format_rate(text, bloom_image_promised(image)));
    }
}


/* Prints the slots of a fuse base. */
static void
print_fuse(const bloom_geometry_t *g)
{
    uint64_t  slots;

    slots = bloom_fuse_slots(&g->fuse) << g->fuse.shard_bits;

    printf(", %" PRIu64 " slots of %" PRIu32 " bit%s", slots - g->fuse.wide,
           g->fuse.width, CLI_S(g->fuse.width));

    if (g->fuse.wide != 0) {
        printf(" and %" PRIu64 " of %" PRIu32, g->fuse.wide,
               g->fuse.width + 1);
    }
}


static void
print_text(const char *path, const bloom_image_t *image,
    const exception_kinds_t *kinds)
{
    char                     text[UNITS_LEN];
    char                     position[BLOOM_POSITION_TEXT_MAX];
    const bloom_geometry_t  *g;

    g = &image->geometry;

    printf("file            ");
    visible_name(path);
    printf("\nsize            %s (%" PRIu64 " bytes)\n",
           format_bytes(text, bloom_image_file_size(image)),
           bloom_image_file_size(image));
    printf("format version  %" PRIu32 "\n", (uint32_t) BLOOM_IMAGE_VERSION);
    printf("build id        %s\n",
           format_hex(text, image->build_id, BLOOM_IMAGE_BUILD_ID_LEN));
    printf("created         %s\n", format_time(text, image->created));
    printf("complete as of  %s\n", image->as_of != 0
                                   ? format_time(text, image->as_of)
                                   : "not stated");

    if (image->source.len != 0) {
        (void) bloom_position_write(image->source.position, position);
        printf("source          %.*s, up to position %s\n",
               (int) image->source.len, image->source.name, position);
    }

    printf("layout          %s, %" PRIu64 " bits, k %" PRIu32,
           bloom_geometry_layout_name(g->layout), g->bits, g->k);

    if (g->lines != 0) {
        printf(", lines %" PRIu32, g->lines);
    }

    if (g->layout == BLOOM_LAYOUT_LINKS) {
        printf(", links %" PRIu32, g->links);
    }

    if (g->layout == BLOOM_LAYOUT_FUSE) {
        print_fuse(g);
    }

    printf("\nhash            %s, ", bloom_hasher_name(image->hasher.kind));

    if (image->hasher.kind == BLOOM_HASH_SIPHASH) {
        printf("key secret\n");

    } else {
        printf("seed %" PRIu32 "\n", bloom_hasher_seed(&image->hasher));
    }

    if (image->flags & BLOOM_IMAGE_IMPORTED) {
        printf("imported        from %s, scheme %s, keys hashed as %s\n",
               bloom_image_origin_name(image->origin),
               bloom_scheme_name(g->layout, image->hasher.kind),
               bloom_hasher_funnel_name(bloom_hasher_funnel(&image->hasher)));
    }

    printf("key form        %s\n", bloom_form_name(image->key_form));
    printf("capacity        %" PRIu64 " keys at a false-positive rate of %s\n",
           image->capacity, format_rate(text, image->fpr));

    if (g->layout == BLOOM_LAYOUT_FUSE) {
        printf("room            %" PRIu64 " key%s, added to a zone, %s in its "
               "first layer\n", g->fuse.room, CLI_S(g->fuse.room),
               g->fuse.room == 1 ? "is" : "are");
    }

    print_layers(image);
    printf("items           %" PRIu64, image->items);

    if (image->flags & BLOOM_IMAGE_ESTIMATED) {
        printf(", estimated, +- %.0f", ceil(image_json_items_error(image)));
    }

    printf("\nestimated rate  %s with these items\n",
           format_rate(text, bloom_image_fpr(image, image->items)));

    print_kind("excepted", kinds->excepted);
    print_kind("removed", kinds->removed);
    print_kind("feedback", kinds->feedback);
}


/* Counts the kinds of the exceptions in an image. */
static int
count_kinds(image_read_t *read, exception_kinds_t *kinds)
{
    uint8_t            *data;
    const uint8_t      *p;
    bloom_exception_t   exception;

    if (image_read_exceptions(read, &data) != CLI_OK) {
        return CLI_ERROR;
    }

    for (p = data; data != NULL
                   && bloom_exception_read(&p, data
                                               + read->image.exceptions_size,
                                           &exception) == 1; /* void */ )
    {
        removed_keys_count_kinds(kinds, exception.kinds);
    }

    free(data);

    return CLI_OK;
}


static int
show(image_read_t *read, int rc, void *data)
{
    info_t              *info = data;
    bloom_json_writer_t  json;
    exception_kinds_t    kinds;

    memset(&kinds, 0, sizeof(kinds));

    if (rc != CLI_OK || count_kinds(read, &kinds) != CLI_OK) {
        return CLI_ERROR;
    }

    if (info->json) {
        json_begin(&json, info->several);
        image_json(&json, read->path, &read->image, &kinds,
                   image_json_items_error(&read->image),
                   bloom_image_fpr(&read->image, read->image.items));
        json_end(&json);

    } else {
        printf("%s", info->shown++ ? "\n" : "");
        print_text(read->path, &read->image, &kinds);
    }

    return CLI_OK;
}


/* Prints the kinds of an exception, and its key. */
static void
print_exception(info_t *info, const bloom_exception_t *exception)
{
    size_t       i;
    const char  *before;

    for (i = 0, before = ""; i < KINDS; i++) {
        if ((exception->kinds & kind_names[i].kind) != 0) {
            printf("%s%s", before, kind_names[i].name);
            before = ",";
        }
    }

    putchar(' ');
    key_print(&exception->key, info->null, 0);
}


static void
print_json(const info_t *info, const bloom_exception_t *exception)
{
    size_t               i;
    bloom_json_writer_t  json;

    json_begin(&json, 1);
    json_key(&json, &exception->key);

    if (info->exceptions) {
        bloom_json_put_array(&json, "kinds");

        for (i = 0; i < KINDS; i++) {
            if ((exception->kinds & kind_names[i].kind) != 0) {
                bloom_json_put_text(&json, NULL, kind_names[i].name);
            }
        }

        bloom_json_put_end(&json);
    }

    bloom_json_put_time(&json, "time", exception->time);
    json_end(&json);
}


/* Calls `each` for the exceptions of an image, or only the removed keys, until
 * it returns another result than CLI_OK. */
static int
each_key(image_read_t *read, int rc, info_t *info,
    int (*each)(image_read_t *read, const bloom_exception_t *exception,
        info_t *info))
{
    uint8_t            *data;
    const uint8_t      *p;
    bloom_exception_t   exception;

    if (rc != CLI_OK || image_read_exceptions(read, &data) != CLI_OK) {
        return CLI_ERROR;
    }

    for (p = data; rc == CLI_OK && data != NULL
                   && bloom_exception_read(&p, data
                                               + read->image.exceptions_size,
                                           &exception) == 1; /* void */ )
    {
        if (info->exceptions
            || (exception.kinds & BLOOM_EXCEPTION_REMOVED) != 0)
        {
            rc = each(read, &exception, info);
        }
    }

    free(data);

    return rc;
}


static int
check_key(image_read_t *read, const bloom_exception_t *exception, info_t *info)
{
    char         shown[KEYFORM_SHOWN];
    const char  *why;

    why = info->json ? NULL : key_print_refused(&exception->key, info->null);

    if (why == NULL) {
        return CLI_OK;
    }

    cli_error("%s: the %s \"%s\" %s", read->path,
              info->exceptions ? "exception" : "removed key",
              keyform_show(shown, &exception->key), why);

    return CLI_ERROR;
}


static int
print_key(image_read_t *read, const bloom_exception_t *exception, info_t *info)
{
    (void) read;

    if (info->json) {
        print_json(info, exception);

    } else if (info->exceptions) {
        print_exception(info, exception);

    } else {
        key_print(&exception->key, info->null, info->printed++ == 0);
    }

    return CLI_OK;
}


static int
check_keys(image_read_t *read, int rc, void *data)
{
    return each_key(read, rc, data, check_key);
}


static int
print_keys(image_read_t *read, int rc, void *data)
{
    return each_key(read, rc, data, print_key);
}


static int
run(char **operands, int n, void *values)
{
    int      rc;
    info_t  *info = values;

    info->several = n > 1;

    if (info->removed && info->exceptions) {
        return cli_misuse("--removed and --exceptions cannot be used together: "
                          "the exceptions include the removed keys");
    }

    if (info->null && !info->removed && !info->exceptions) {
        return cli_misuse("-0 ends keys with a zero byte: use it with "
                          "--removed or --exceptions, or leave it out");
    }

    if (info->null && info->json) {
        return cli_misuse("-0 and --json are two forms of the output; leave "
                          "one out");
    }

    if (!info->removed && !info->exceptions) {
        return image_read_each(operands, n, show, info);
    }

    /* print no key unless all can be printed */

    rc = image_read_each(operands, n, check_keys, info);

    return rc == CLI_OK ? image_read_each(operands, n, print_keys, info) : rc;
}


static info_t  values;

static const command_member_t  members[] = {
    { NULL, "for each image, an object:" },
    { "file", "the name of the image file" },
    { "size_bytes", "the size of the image file in bytes" },
    { "version", "the version of the image format" },
    { "build_id",
      "32 hexadecimal digits, which are random and new in every image that is "
      "written" },
    { "created", "the time when the image was written" },
    { "as_of",
      "the time up to which the keys are complete; null if it is not stated" },
    { "source",
      "the name of the source whose changes the image has; null if it is not "
      "stated" },
    { "source_position",
      "the position in that source up to which the image has its changes; null "
      "if it is not stated" },
    { "layout",
      "the layout: blocked, classic or fuse; an imported filter has another "
      "one" },
    { "bits",
      "the number of bits in the filter; if it has layers, in its base" },
    { "k",
      "the number of bits that a key sets, in the base; layout fuse: the "
      "number of slots that a key has" },
    { "lines",
      "layout blocked: the number of cache lines that a key's bits are in; 0 "
      "in other layouts" },
    { "slots", "layout fuse only: the number of slots in the filter" },
    { "slot_bits", "layout fuse only: the number of bits of a slot" },
    { "wide_slots",
      "layout fuse only: the number of slots that have one bit more" },
    { "shards", "layout fuse only: the number of shards, which have as many "
      "slots each" },
    { "room",
      "layout fuse only: the number of keys that the first layer has room for, "
      "which a zone adds; \"capacity\" is the sum of this number and the keys "
      "in the base" },
    { "hash",
      "the hash: murmur3 or siphash; an imported filter has another one" },
    { "seed", "the seed of the hash; null for siphash, whose key is a secret" },
    { "from", "imported images only: the format of the source" },
    { "scheme",
      "imported images only: how the source places the bits of a key" },
    { "funnel",
      "imported images only: how the source hashes a key: bytes, utf16, long "
      "or int" },
    { "links",
      "imported images only: the number of filters that the source has "
      "chained" },
    { "form", "the key form: raw, lower, host or url" },
    { "capacity",
      "the number of keys that the image has room for at the rate \"fpr\"; if "
      "it has layers, that its base has room for" },
    { "fpr", "the false-positive rate at capacity, without layers" },
    { "items", "the number of distinct keys" },
    { "items_estimated",
      "true if \"items\" is an estimate, false if it is exact" },
    { "items_error", "the standard error of \"items\"; 0 if it is exact" },
    { "bits_per_item",
      "the bits of all parts divided by \"items\", or by 1 if there are no "
      "items" },
    { "excepted",
      "the number of exceptions that --except of build made: they are absent "
      "although their bits are set" },
    { "removed",
      "the number of removed keys: they are absent although \"items\" counts "
      "them" },
    { "feedback",
      "the number of exceptions that feedback made: a backend reported a "
      "false positive" },
    { "estimated_fpr",
      "the false-positive rate with this number of items; if the image has "
      "layers, info assumes that they were filled one after the other, and "
      "add and merge compute it from the bits" },
    { "max_items",
      "the number of keys that the base and the layers have room for" },
    { "promised_fpr", "the false-positive rate up to that number of keys" },
    { "layers",
      "the number of layers by which the filter has grown; 0 unless the image "
      "was copied from a zone with max_keys=" },
    { "parts",
      "an array of the base and each layer; each has capacity (the number of "
      "keys it has room for), bits, k and lines" },
    { NULL, "with --removed or --exceptions, for each key:" },
    { "key", "the key; each byte that is not valid UTF-8 is shown as U+FFFD" },
    { "key_hex",
      "only if the key is not valid UTF-8: its bytes as hexadecimal digits" },
    { "kinds",
      "with --exceptions: why the key is absent: an array of excepted, removed "
      "and feedback" },
    { "time",
      "the time when the key was removed or became an exception; null if it is "
      "not known" },
    { 0 }
};

const command_t  cmd_info = {
    .name = "info",
    .does = "show the headers of images",
    .synopsis = "[OPTION...] IMAGE...",
    .about =
        "Shows the headers of images: layout, hash, number of keys, capacity, "
        "the time when the image was written, and the time up to which its "
        "keys are complete. The key of a siphash image is a secret and is not "
        "shown. This command reads and checks the headers and the exceptions "
        "only; \"ngx-bloom verify\" checks every byte.\n\n"
        "An image copied from a zone that grows (max_keys=) has layers: further "
        "filters behind the first one, the base, each for twice as many keys "
        "as the one before. \"ngx-bloom verify --json\" shows how full each "
        "is.\n\n"
        "Removed keys are keys that were removed from an nginx zone. An image "
        "of the zone lists them, because its bits cannot be cleared. They are "
        "absent until they are added again. An exception that --except of "
        "build made, or that feedback made, is absent, too.",
    .options = options,
    .values = &values,
    .members = members,
    .examples = "ngx-bloom info ids.bloom\n"
                "ngx-bloom info --json ids.bloom | jq .items\n"
                "ngx-bloom info --removed ids.bloom\n"
                "ngx-bloom info --exceptions bad.bloom\n",
    .run = run
};
