/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * `ngx-bloom info` shows the headers of images, or their removed keys.
 */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bloom_exceptions_image.h"
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
    int       null;                      /* keys end with a zero byte, not LF */
    int       several;                   /* images */
    int       shown;
    uint64_t  printed;                   /* number of keys */
} info_t;


static const option_t  options[] = {
    { 0, "removed", NULL, offsetof(info_t, removed), options_take_flag,
      "print only the removed keys, one per line, in no particular order; if a "
      "key contains a line end, print an error and no keys" },
    { '0', "null", NULL, offsetof(info_t, null), options_take_flag,
      "with --removed: end each key with a zero byte instead of a line end; "
      "build, add and test read that with -0; if a key contains a zero byte, "
      "print an error and no keys" },
    { 0, "json", NULL, offsetof(info_t, json), options_take_flag,
      "print JSON; with several images, an object per line; with --removed, an "
      "object for each key, which build and add read with --from json" },
    { 0 }
};


static void
print_text(const char *path, const bloom_image_t *image)
{
    char                     text[UNITS_LEN];
    const bloom_geometry_t  *g;

    g = &image->geometry;

    printf("file            ");
    visible_name(path);
    printf("\nsize            %s (%" PRIu64 " bytes)\n",
           format_bytes(text, bloom_image_file_size(image)),
           bloom_image_file_size(image));
    printf("format version  %" PRIu32 "\n", bloom_image_version(image));
    printf("build id        %s\n",
           format_hex(text, image->build_id, BLOOM_IMAGE_BUILD_ID_LEN));
    printf("created         %s\n", format_time(text, image->created));
    printf("complete as of  %s\n", image->as_of != 0
                                   ? format_time(text, image->as_of)
                                   : "not stated");

    printf("layout          %s, %" PRIu64 " bits, k %" PRIu32,
           bloom_geometry_layout_name(g->layout), g->bits, g->k);

    if (g->lines != 0) {
        printf(", lines %" PRIu32, g->lines);
    }

    if (g->layout == BLOOM_LAYOUT_LINKS) {
        printf(", links %" PRIu32, g->links);
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
    printf("items           %" PRIu64, image->items);

    if (image->flags & BLOOM_IMAGE_ESTIMATED) {
        printf(", estimated, +- %.0f", ceil(image_json_items_error(image)));
    }

    printf("\nestimated rate  %s with these items\n",
           format_rate(text, bloom_geometry_fpr(g, image->items)));

    if (image->exceptions != 0) {
        printf("removed         %" PRIu64 " key%s\n", image->exceptions,
               CLI_S(image->exceptions));
    }
}


static int
show(image_read_t *read, int rc, void *data)
{
    info_t  *info = data;
    json_t   json;

    if (rc != CLI_OK) {
        return CLI_ERROR;
    }

    if (info->json) {
        json_begin(&json, info->several);
        image_json(&json, read->path, &read->image,
                   image_json_items_error(&read->image));
        json_end(&json);

    } else {
        printf("%s", info->shown++ ? "\n" : "");
        print_text(read->path, &read->image);
    }

    return CLI_OK;
}


static void
print_key(info_t *info, const bloom_exception_t *removed)
{
    char    time[UNITS_LEN];
    json_t  json;

    if (!info->json) {
        key_print(&removed->key, info->null, info->printed++ == 0);
        return;
    }

    json_begin(&json, 1);
    json_key(&json, &removed->key);

    if (removed->time != 0) {
        json_text(&json, "time", format_time(time, removed->time));

    } else {
        json_null(&json, "time");
    }

    json_end(&json);
}


/* Calls `each` for the removed keys of an image until it returns another result
 * than CLI_OK. */
static int
each_removed(image_read_t *read, int rc, info_t *info,
    int (*each)(image_read_t *read, const bloom_exception_t *removed,
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
        rc = each(read, &exception, info);
    }

    free(data);

    return rc;
}


static int
check_removed(image_read_t *read, const bloom_exception_t *removed,
    info_t *info)
{
    char         shown[KEYFORM_SHOWN];
    const char  *why;

    why = info->json ? NULL : key_print_refused(&removed->key, info->null);

    if (why == NULL) {
        return CLI_OK;
    }

    cli_error("%s: the removed key \"%s\" %s", read->path,
              keyform_show(shown, &removed->key), why);

    return CLI_ERROR;
}


static int
print_removed(image_read_t *read, const bloom_exception_t *removed,
    info_t *info)
{
    (void) read;

    print_key(info, removed);

    return CLI_OK;
}


static int
check_keys(image_read_t *read, int rc, void *data)
{
    return each_removed(read, rc, data, check_removed);
}


static int
print_keys(image_read_t *read, int rc, void *data)
{
    return each_removed(read, rc, data, print_removed);
}


static int
run(char **operands, int n, void *values)
{
    int      rc;
    info_t  *info = values;

    info->several = n > 1;

    if (info->null && !info->removed) {
        return cli_misuse("-0 ends removed keys with a zero byte: use it with "
                          "--removed, or leave it out");
    }

    if (info->null && info->json) {
        return cli_misuse("-0 and --json are two forms of the output; leave "
                          "one out");
    }

    if (!info->removed) {
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
    { "layout",
      "the layout: blocked or classic; an imported filter has another one" },
    { "bits", "the number of bits in the filter" },
    { "k", "the number of bits that a key sets" },
    { "lines",
      "layout blocked: the number of cache lines that a key's bits are in; 0 "
      "in other layouts" },
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
    { "key_form", "the key form: raw, lower, host or url" },
    { "capacity",
      "the number of keys that the image has room for at the rate \"fpr\"" },
    { "fpr", "the false-positive rate at capacity" },
    { "items", "the number of distinct keys" },
    { "items_estimated",
      "true if \"items\" is an estimate, false if it is exact" },
    { "items_error", "the standard error of \"items\"; 0 if it is exact" },
    { "bits_per_item",
      "\"bits\" divided by \"items\", or by 1 if there are no items" },
    { "removed",
      "the number of removed keys: they are absent although \"items\" counts "
      "them" },
    { "estimated_fpr", "the false-positive rate with this number of items" },
    { NULL, "with --removed, for each removed key:" },
    { "key", "the key; each byte that is not valid UTF-8 is shown as U+FFFD" },
    { "key_hex",
      "only if the key is not valid UTF-8: its bytes as hexadecimal digits" },
    { "time", "the time when the key was removed; null if it is not known" },
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
        "shown. This command reads and checks the headers only; \"ngx-bloom "
        "verify\" checks every byte.\n\n"
        "Removed keys are keys that were removed from an nginx zone. An image "
        "of the zone lists them, because its bits cannot be cleared. They are "
        "absent until they are added again.",
    .options = options,
    .values = &values,
    .members = members,
    .examples = "ngx-bloom info ids.bloom\n"
                "ngx-bloom info --json ids.bloom | jq .items\n"
                "ngx-bloom info --removed ids.bloom\n",
    .run = run
};
