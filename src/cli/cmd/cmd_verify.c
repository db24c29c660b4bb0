/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * `ngx-bloom verify` checks every byte of images against their checksums, and
 * shows the fill ratio, the false-positive rate and the number of keys that it
 * computes from the bits.
 */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "command.h"
#include "guards.h"
#include "bloom_census.h"
#include "image_json.h"
#include "image_read.h"
#include "json.h"
#include "units.h"
#include "visible.h"


typedef struct {
    guards_t  guards;
    int       quiet;
    int       json;
    int       several;                   /* images */
} verify_t;

typedef struct {
    bloom_census_t     census;
    exception_kinds_t  kinds;
} findings_t;


static const option_t  options[] = {
    OPTIONS_GROUP(guards_options, offsetof(verify_t, guards)),
    OPTIONS_GROUP(guards_key_options, offsetof(verify_t, guards)),
    OPTIONS_GROUP(guards_age_options, offsetof(verify_t, guards)),
    OPTIONS_QUIET(verify_t),
    { 0, "json", NULL, offsetof(verify_t, json), options_take_flag,
      "print JSON; with several images, an object per line" },
    { 0 }
};


/* Reads the chunks of an image and counts their bits. */
static int
read_chunks(image_read_t *read, bloom_census_t *census)
{
    int        rc;
    void      *chunk;
    uint64_t   i;

    chunk = cli_alloc(BLOOM_IMAGE_CHUNK);

    memset(census, 0, sizeof(*census));
    rc = CLI_OK;

    for (i = 0; i < bloom_image_chunks(&read->image); i++) {
        rc = image_read_chunk(read, chunk);

        if (rc != CLI_OK) {
            break;
        }

        bloom_census(census, &read->image.geometry, chunk,
                     bloom_image_chunk_size(&read->image, i)
                     / sizeof(uint64_t));
    }

    free(chunk);

    return (rc == CLI_OK) ? image_read_removed(read) : rc;
}


/* Reads and checks an image whose header is good. */
static int
examine(verify_t *verify, image_read_t *read, findings_t *findings)
{
    int        rc;
    guards_t  *guards;

    guards = &verify->guards;

    if (guards->must_have == NULL && guards->must_not_have == NULL) {
        rc = read_chunks(read, &findings->census);

    } else {
        rc = image_read_all(read);

        if (rc == CLI_OK) {
            findings->census = image_read_census(&read->image, read->words);
        }
    }

    if (rc != CLI_OK) {
        return rc;
    }

    findings->kinds = removed_keys_kinds(&read->removed);

    rc = guards_check_age(guards, read->path, &read->image);

    if (rc == CLI_OK) {
        rc = guards_check(guards, read->path, &read->image, verify->quiet);
    }

    if (rc == CLI_OK) {
        rc = guards_check_bits(guards, read->path, &read->image,
                               &findings->census);
    }

    if (rc == CLI_OK) {
        rc = guards_check_keys(guards, read->path, &read->image, read->words,
                               &read->removed.set);
    }

    return rc;
}


static void
print_json(const verify_t *verify, const image_read_t *read, int rc,
    const findings_t *findings)
{
    bloom_json_writer_t  json;

    static const char  *const results[] = { "ok", "damaged", "unreadable" };

    json_begin(&json, verify->several);

    bloom_json_put_text(&json, "file", read->path);

    if (verify->guards.error[0] != '\0') {
        bloom_json_put_text(&json, "result", "refused");
        bloom_json_put_text(&json, "error", verify->guards.error);

    } else if (rc != CLI_OK) {
        bloom_json_put_text(&json, "result", results[rc]);
        bloom_json_put_text(&json, "error", read->error);

    } else {
        bloom_json_put_text(&json, "result", results[rc]);
        bloom_json_put_count(&json, "items", read->image.items);
        bloom_json_put_count(&json, "estimated_items",
                             bloom_census_items(&findings->census));
        bloom_json_put_number(&json, "estimated_items_error",
                              bloom_census_items_error(&findings->census));
        image_json_fill(&json, read->image.geometry.layout,
                        bloom_census_fill(&findings->census));
        bloom_json_put_number(&json, "estimated_fpr",
                              bloom_census_fpr(&findings->census));
        bloom_json_put_number(&json, "promised_fpr",
                              bloom_image_promised(&read->image));
        image_json_parts(&json, &read->image, &findings->census);
        image_json_kinds(&json, &findings->kinds);
    }

    json_end(&json);
}


static void
print_kind(uint64_t n, const char *kind)
{
    if (n != 0) {
        printf(", %" PRIu64 " %s key%s", n, kind, CLI_S(n));
    }
}


static void
print_text(const image_read_t *read, const findings_t *findings)
{
    char                   fill[UNITS_LEN], rate[UNITS_LEN];
    const bloom_census_t  *census;

    census = &findings->census;

    visible_name(read->path);
    printf(": ok, %" PRIu64 " item%s", read->image.items,
           CLI_S(read->image.items));

    if (read->image.geometry.layout != BLOOM_LAYOUT_FUSE) {
        printf(", %s of the bits set",
               format_rate(fill, bloom_census_fill(census)));
    }

    printf(", false-positive rate %s",
           format_rate(rate, bloom_census_fpr(census)));

    if (read->image.geometry.layers != 0) {
        printf(", at most %s with %" PRIu64 " items in the base and %" PRIu32
               " layer%s", format_rate(rate, bloom_image_promised(&read->image)),
               bloom_image_capacity(&read->image), read->image.geometry.layers,
               CLI_S(read->image.geometry.layers));
    }

    if (read->image.geometry.layout != BLOOM_LAYOUT_FUSE
        || read->image.geometry.layers != 0)
    {
        printf(", %" PRIu64 " +- %.0f items estimated from the bits",
               bloom_census_items(census),
               ceil(bloom_census_items_error(census)));
    }

    print_kind(findings->kinds.excepted, "excepted");
    print_kind(findings->kinds.removed, "removed");
    print_kind(findings->kinds.feedback, "feedback");
    putchar('\n');
}


static int
show(image_read_t *read, int rc, void *data)
{
    verify_t    *verify = data;
    findings_t   findings;

    verify->guards.error[0] = '\0';

    if (rc == CLI_OK) {
        rc = examine(verify, read, &findings);
    }

    if (verify->json) {
        print_json(verify, read, rc, &findings);

    } else if (rc == CLI_OK && !verify->quiet) {
        print_text(read, &findings);
    }

    return rc;
}


static int
run(char **operands, int n, void *values)
{
    verify_t  *verify = values;

    if (bloom_guard_limited(&verify->guards.max)
        && verify->guards.replaces == NULL)
    {
        return cli_misuse("--max-loss and --max-growth need --replaces, the "
                          "image to compare with");
    }

    verify->guards.written = 1;
    verify->several = n > 1;

    return image_read_each(operands, n, show, verify);
}


static verify_t  values;

static const command_member_t  members[] = {
    { NULL, "for each image, an object:" },
    { "file", "the name of the image file" },
    { "result",
      "the verdict: ok; damaged, also if the file is not an image; "
      "unreadable; or refused, by an option such as --min-keys" },
    { "error", "unless the result is ok: what is wrong" },
    { NULL, "also, if the result is ok:" },
    { "items", "the number of distinct keys that the header states" },
    { "estimated_items",
      "the number of distinct keys estimated from the bits; in layout fuse, "
      "the number that the header states for the base" },
    { "estimated_items_error", "the standard error of that estimate" },
    { "fill_ratio",
      "the part of the bits that is set, from 0 to 1; null in layout fuse, "
      "where it means nothing" },
    { "estimated_fpr", "the false-positive rate of these bits" },
    { "promised_fpr",
      "the false-positive rate at capacity, with the layers of the image" },
    { "parts",
      "an array of the base and each layer of a filter that has grown; each "
      "has capacity (the number of keys it has room for), bits, k, lines, and, "
      "from its bits, estimated_items, fill_ratio and estimated_fpr" },
    { "excepted",
      "the number of exceptions that --except of build made, which are absent "
      "although their bits are set" },
    { "removed", "the number of removed keys, which are absent, too" },
    { "feedback",
      "the number of exceptions that feedback made, which are absent, too" },
    { 0 }
};

const command_t  cmd_verify = {
    .name = "verify",
    .does = "check every byte of images",
    .synopsis = "[OPTION...] IMAGE...",
    .about =
        "Checks every byte of images against their checksums. For each good "
        "image it prints the fill ratio, the false-positive rate, and an "
        "estimate of the number of keys with its standard error, all "
        "computed from the bits.\n\n"
        "The options that refuse an image are those of build, and the "
        "parameters of the directive bloom_guard that have the same names; only "
        "verify has --not-older-than. --max-loss and --max-growth need "
        "--replaces here. With --min-keys, --max-loss or --max-growth, verify "
        "also refuses an image whose bits contradict the number of keys that "
        "it states. With --must-have and --must-not-have, the whole image is read into memory.",
    .options = options,
    .values = &values,
    .status = "0 all images are good; 1 some file is damaged, is not an image "
              "or is refused; 2 some file cannot be read.",
    .members = members,
    .examples =
        "ngx-bloom verify ids.bloom\n"
        "ngx-bloom verify -q ids.bloom.new && mv ids.bloom.new ids.bloom\n"
        "ngx-bloom verify --max-loss 1% --replaces ids.bloom new.bloom\n"
        "ngx-bloom verify --must-have must.txt new.bloom\n"
        "ngx-bloom verify --not-older-than ids.bloom new.bloom\n",
    .run = run
};
