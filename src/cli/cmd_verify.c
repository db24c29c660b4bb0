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

#include "bloom_census.h"
#include "cli.h"
#include "command.h"
#include "image_read.h"
#include "json.h"
#include "units.h"
#include "visible.h"


typedef struct {
    int       quiet;
    int       json;
    int       several;                   /* images */
} verify_t;

typedef struct {
    double    fill_ratio;
    double    fpr;                       /* of these bits */
    uint64_t  items;                     /* estimated from the bits */
    double    items_error;               /* standard error of items */
} findings_t;


static const option_t  options[] = {
    OPTIONS_QUIET(verify_t),
    { 0, "json", NULL, offsetof(verify_t, json), options_take_flag,
      "print JSON; with several images, an object per line" },
    { 0 }
};


/* Reads the chunks of an image whose header is good. */
static int
examine(image_read_t *read, findings_t *findings)
{
    int                      rc;
    void                    *chunk;
    uint64_t                 i;
    bloom_census_t           census;
    const bloom_geometry_t  *g;

    g = &read->image.geometry;
    chunk = cli_alloc(BLOOM_IMAGE_CHUNK);

    memset(&census, 0, sizeof(census));
    rc = CLI_OK;

    for (i = 0; i < bloom_image_chunks(&read->image); i++) {
        rc = image_read_chunk(read, chunk);

        if (rc != CLI_OK) {
            break;
        }

        bloom_census(&census, g, chunk,
                     bloom_image_chunk_size(&read->image, i)
                     / sizeof(uint64_t));
    }

    free(chunk);

    if (rc == CLI_OK) {
        rc = image_read_removed(read);
    }

    findings->fill_ratio = bloom_census_fill(&census);
    findings->fpr = bloom_census_fpr(&census, g);
    findings->items = bloom_census_items(&census, g);
    findings->items_error = bloom_geometry_items_error(g, findings->items);

    return rc;
}


static void
print_json(const image_read_t *read, int rc, const findings_t *findings,
    int compact)
{
    json_t  json;

    static const char  *const results[] = { "ok", "damaged", "unreadable" };

    json_begin(&json, compact);

    json_text(&json, "file", read->path);
    json_text(&json, "result", results[rc]);

    if (rc != CLI_OK) {
        json_text(&json, "error", read->error);

    } else {
        json_count(&json, "items", read->image.items);
        json_count(&json, "estimated_items", findings->items);
        json_number(&json, "estimated_items_error", findings->items_error);
        json_number(&json, "fill_ratio", findings->fill_ratio);
        json_number(&json, "estimated_fpr", findings->fpr);
        json_count(&json, "removed", read->image.exceptions);
    }

    json_end(&json);
}


static void
print_text(const image_read_t *read, const findings_t *findings)
{
    char  fill[UNITS_LEN], rate[UNITS_LEN];

    visible_name(read->path);
    printf(": ok, %" PRIu64 " item%s, %s of the bits set, false-positive "
           "rate %s, %" PRIu64 " +- %.0f items estimated from the bits",
           read->image.items, CLI_S(read->image.items),
           format_rate(fill, findings->fill_ratio),
           format_rate(rate, findings->fpr),
           findings->items, ceil(findings->items_error));

    if (read->image.exceptions != 0) {
        printf(", %" PRIu64 " removed key%s", read->image.exceptions,
               CLI_S(read->image.exceptions));
    }

    putchar('\n');
}


static int
show(image_read_t *read, int rc, void *data)
{
    verify_t    *verify = data;
    findings_t   findings;

    if (rc == CLI_OK) {
        rc = examine(read, &findings);
    }

    if (verify->json) {
        print_json(read, rc, &findings, verify->several);

    } else if (rc == CLI_OK && !verify->quiet) {
        print_text(read, &findings);
    }

    return rc;
}


static int
run(char **operands, int n, void *values)
{
    verify_t  *verify = values;

    verify->several = n > 1;

    return image_read_each(operands, n, show, verify);
}


static verify_t  values;

static const command_member_t  members[] = {
    { NULL, "for each image, an object:" },
    { "file", "the name of the image file" },
    { "result",
      "the verdict: ok; damaged, also if the file is not an image; or "
      "unreadable" },
    { "error", "unless the result is ok: what is wrong" },
    { NULL, "also, if the result is ok:" },
    { "items", "the number of distinct keys that the header states" },
    { "estimated_items",
      "the number of distinct keys estimated from the bits" },
    { "estimated_items_error", "the standard error of that estimate" },
    { "fill_ratio", "the part of the bits that is set, from 0 to 1" },
    { "estimated_fpr", "the false-positive rate of these bits" },
    { "removed",
      "the number of removed keys, which are absent although their bits are "
      "set" },
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
        "computed from the bits.",
    .options = options,
    .values = &values,
    .status = "0 all images are good; 1 some file is damaged or is not an "
              "image; 2 some file cannot be read.",
    .members = members,
    .examples =
        "ngx-bloom verify ids.bloom\n"
        "ngx-bloom verify -q ids.bloom.new && mv ids.bloom.new ids.bloom\n",
    .run = run
};
