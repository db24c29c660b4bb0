/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file compares an image that is about to be written with --min-keys, and
 * with the header of the image that it replaces.
 */

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bloom_form.h"
#include "cli.h"
#include "guards.h"
#include "image_read.h"
#include "units.h"

#define CHANGE_MAX  1000000              /* percent */

/* Far below the change of one key in the largest filter. */
#define ROUNDING    1e-14


/* Takes "20%" or "off". */
static int
take_change(const option_t *option, const char *text, void *to)
{
    double  *change = to;

    *change = 0;

    if (strcmp(text, "off") == 0
        || (parse_percent(text, change) == 0 && *change > 0
            && *change <= CHANGE_MAX / 100))
    {
        return CLI_OK;
    }

    return options_wrong(option, text, "must be a percentage such as 20%%, or "
                         "off");
}


const option_t  guards_options[] = {
    { 0, "min-keys", "N", offsetof(guards_t, min_keys), options_take_count,
      "refuse to write an image with fewer distinct keys than N, with k, m or "
      "g", .is = "a number of keys", 0, BLOOM_CAPACITY_MAX },
    { 0, "max-change", "PERCENT", offsetof(guards_t, max_change), take_change,
      "refuse to write an image that has another key form than the image that "
      "it replaces, or whose number of distinct keys differs from that image's "
      "by more than PERCENT, such as 20%; off allows every change (default: "
      "off)" },
    { 0, "replaces", "IMAGE", offsetof(guards_t, replaces), options_take_text,
      "the image with which --max-change compares; for a script that writes "
      "the new image beside the old one and renames it later (default: the "
      "file of -o)" },
    { 0 }
};


/* Returns CLI_OK, or CLI_NO after a message. */
static int
compare(const guards_t *guards, const output_t *out,
    const bloom_image_t *image, const bloom_image_t *old)
{
    char    allowed[UNITS_LEN], change[UNITS_LEN];
    double  differs;

    if (image->key_form != old->key_form) {
        cli_error("%s: not written: it would have the key form %s, and the "
                  "image that it replaces has %s, so keys that are found now "
                  "would not be found; correct --key, or use --max-change off "
                  "if the change is right", out->name,
                  bloom_form_name(image->key_form),
                  bloom_form_name(old->key_form));
        return CLI_NO;
    }

    if (old->items == 0) {
        return CLI_OK;
    }

    differs = fabs((double) image->items - (double) old->items)
              / (double) old->items;

    if (differs <= guards->max_change * (1 + ROUNDING)) {
        return CLI_OK;
    }

    cli_error("%s: not written: it would have %" PRIu64 " distinct key%s, %s "
              "%s than the %" PRIu64 " of the image that it replaces, and "
              "--max-change allows %s; check the input, or use --max-change "
              "off if the change is right", out->name, image->items,
              CLI_S(image->items), format_rate(change, differs),
              image->items < old->items ? "fewer" : "more", old->items,
              format_rate(allowed, guards->max_change));

    return CLI_NO;
}


int
guards_check(const guards_t *guards, const output_t *out,
    const bloom_image_t *image, int quiet)
{
    int            rc;
    const char    *path;
    struct stat    st;
    image_read_t   old;

    if (image->items < guards->min_keys) {
        cli_error("%s: not written: it would have %" PRIu64 " distinct key%s, "
                  "and --min-keys demands %" PRIu64 "; check the input",
                  out->name, image->items, CLI_S(image->items),
                  guards->min_keys);
        return CLI_NO;
    }

    if (guards->max_change == 0) {
        return CLI_OK;
    }

    path = guards->replaces != NULL ? guards->replaces : out->name;

    if (stat(path, &st) == -1 && errno == ENOENT) {

        if (!quiet) {
            cli_warn("%s: does not exist, so --max-change compares the new "
                     "image with nothing", path);
        }

        return CLI_OK;
    }

    if (image_read_header(&old, path) != CLI_OK) {
        cli_error("%s: not written: --max-change cannot compare it with %s; "
                  "repair or remove that file, or use --max-change off",
                  out->name, path);
        return CLI_ERROR;
    }

    rc = compare(guards, out, image, &old.image);

    image_read_free(&old);

    return rc;
}
