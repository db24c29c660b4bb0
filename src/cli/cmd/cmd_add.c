/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * `ngx-bloom add` adds keys to an existing image.
 *
 * It reads the image, adds the keys in memory, and replaces the file with a new
 * image.  Other additions to the same image wait until that is done.  If
 * another program replaces the image meanwhile, nothing is added.
 */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "bloom_census.h"
#include "cli.h"
#include "command.h"
#include "image_json.h"
#include "image_read.h"
#include "image_write.h"
#include "key_options.h"
#include "key_report.h"
#include "progress.h"
#include "units.h"
#include "visible.h"


typedef struct {
    uint64_t            as_of;           /* 0: not given */
    bloom_source_t      source;          /* len 0: not given */
    int                 json;
    key_options_t   from;

    store_counts_t    counts;
    image_read_t        old;
    uint64_t            added;           /* keys whose bits were not set */
    uint64_t            removed;         /* number of removed keys, and of
                                            other exceptions, before */
    int                 others;          /* there were other exceptions */
    double              error;           /* standard error of items */
    double              fpr;             /* with the keys added */
    int                 written;
} add_t;


static const option_t  options[] = {
    OPTIONS_AS_OF(add_t,
      "state that with these keys the image is complete as of that time, "
      OPTIONS_TIME "; it must not be earlier than the time that the image "
      "states (default: that time)"),
    OPTIONS_SOURCE(add_t,
      "state that with these keys the image has all changes of that source up "
      "to the position, which must not be earlier than the one that the image "
      "states (default: that position)"),
    OPTIONS_GROUP(key_options, offsetof(add_t, from)),
    OPTIONS_JSON(add_t),
    { 0 }
};


static int
read_image(add_t *add, const char *path)
{
    char  text[UNITS_LEN], position[BLOOM_POSITION_TEXT_MAX];

    if (image_read_alone(&add->old, path) != CLI_OK) {
        return CLI_ERROR;
    }

    if (add->old.image.geometry.layout == BLOOM_LAYOUT_FUSE) {
        cli_error("%s: has layout fuse, which takes no more keys; build it "
                  "again from all keys, or add these keys to the zone of nginx",
                  path);
        return CLI_ERROR;
    }

    if (add->as_of != 0 && add->as_of < add->old.image.as_of) {
        cli_error("%s: is already complete as of %s, which is later than "
                  "--as-of; leave out --as-of", path,
                  format_time(text, add->old.image.as_of));
        return CLI_ERROR;
    }

    if (add->source.len != 0 && add->old.image.source.len != 0
        && (!bloom_source_is(&add->old.image.source, add->source.name,
                             add->source.len)
            || bloom_position_cmp(add->source.position,
                                  add->old.image.source.position)
               < 0))
    {
        (void) bloom_position_write(add->old.image.source.position, position);
        cli_error("%s: already has the changes of %.*s up to position %s, "
                  "which is later than --source, or of another source; leave "
                  "out --source", path, (int) add->old.image.source.len,
                  add->old.image.source.name, position);
        return CLI_ERROR;
    }

    return image_read_all(&add->old) == CLI_OK ? CLI_OK : CLI_ERROR;
}


/* Counts the keys added to an imported filter, which are inserted at
 * once. */
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

    image = &add->old.image;
    census = image_read_census(image, add->old.words);
    items = bloom_census_items(&census);
    most = image->items + add->counts.received;

    image->items = items < image->items ? image->items
                   : items > most ? most : items;
    image->flags |= BLOOM_IMAGE_ESTIMATED;
    add->error = bloom_image_items_error(image);
}


/*
 * Inserts the keys.  A key that is absent before is new.  Some of the other
 * keys may be new, too: a new key seems to be present at the filter's
 * false-positive rate f, so absent / (1 - f) keys are new.
 */
static void
insert(add_t *add)
{
    double           fpr;
    uint64_t         distinct, new;
    bloom_image_t   *image;
    bloom_census_t   census;

    image = &add->old.image;

    distinct = keystore_count(add->from.to.store, add->from.intake.threads,
                              &image->geometry, add->old.words,
                              &add->added);

    if (image->flags & BLOOM_IMAGE_ESTIMATED) {
        add->error = bloom_image_items_error(image);
    }

    if (add->added == 0) {
        return;
    }

    new = distinct;

    if (add->added != distinct) {
        census = image_read_census(image, add->old.words);
        fpr = fmin(bloom_census_fpr(&census), 0.999999);

        new = (uint64_t) fmin((double) add->added / (1 - fpr) + 0.5,
                              (double) distinct);

        image->flags |= BLOOM_IMAGE_ESTIMATED;
        add->error = hypot(add->error,
                           sqrt((double) add->added * fpr) / (1 - fpr));
    }

    image->items += new;

    keystore_insert(add->from.to.store, &image->geometry, add->old.words,
                    add->from.intake.threads);
}


/* Estimates the rate from the number of keys; with layers, from the bits,
 * because the number of keys in each part is not known. */
static void
estimate_rate(add_t *add)
{
    bloom_census_t  census;
    bloom_image_t  *image;

    image = &add->old.image;

    if (image->geometry.layers == 0) {
        add->fpr = bloom_image_fpr(image, image->items);

    } else {
        census = image_read_census(image, add->old.words);
        add->fpr = bloom_census_fpr(&census);
    }
}


/* Returns 1 if --source states more than the image does. */
static int
goes_on(const add_t *add)
{
    const bloom_source_t  *source;

    source = &add->old.image.source;

    return add->source.len != 0
           && (source->len == 0
               || bloom_position_cmp(add->source.position, source->position)
                  > 0);
}


static int
add_keys(add_t *add, char **names, int n)
{
    int                 rc, imported;
    output_t            out;
    bloom_image_t      *image;
    exception_kinds_t   kinds;
    key_options_t      *from;

    from = &add->from;
    image = &add->old.image;
    imported = (image->flags & BLOOM_IMAGE_IMPORTED) != 0;

    if (output_open(&out, add->old.path) != 0) {
        return CLI_ERROR;
    }

    output_made_of(&out, &add->old.st);

    from->to.words = imported ? add->old.words : NULL;
    add->removed = image->exceptions;
    kinds = removed_keys_kinds(&add->old.removed);
    add->others = kinds.excepted + kinds.feedback != 0;

    if (add->removed != 0) {
        from->to.removed = &add->old.removed.set;
        from->to.present = add->old.words;
    }

    rc = key_options_begin(from, image, &out, &names, &n);

    if (rc == CLI_OK) {
        rc = key_options_read(from, names, n, &add->counts);
    }

    if (rc == CLI_OK && imported) {
        count_imported(add);

    } else if (rc == CLI_OK) {
        insert(add);
    }

    if (rc == CLI_OK) {
        rc = key_options_write_exceptions(from, &add->counts);
    }

    /* a key that was present as a false positive may be excepted in a zone,
     * which forgets it when it loads an image with another build id */

    if (rc == CLI_OK
        && (add->counts.received != 0 || add->as_of > image->as_of
            || goes_on(add)))
    {
        if (add->as_of != 0) {
            image->as_of = add->as_of;
        }

        if (add->source.len != 0) {
            bloom_image_set_source(image, &add->source);
        }

        rc = image_write(&out, image, add->old.words, add->old.origin,
                         &add->old.removed);
        add->written = 1;

        if (rc == CLI_OK && !from->intake.quiet) {
            image_write_warn_secret(image, &out);
        }
    }

    output_discard(&out);

    return rc;
}


static void
report(const add_t *add, double seconds)
{
    char                  rate[IMAGE_WRITE_RATE_LEN];
    bloom_json_writer_t   json;
    uint64_t              added;
    const char           *path;
    exception_kinds_t     kinds;
    const bloom_image_t  *image;

    image = &add->old.image;
    path = add->old.path;
    added = add->added + add->counts.lifted;

    if (add->json) {
        kinds = removed_keys_kinds(&add->old.removed);

        json_begin(&json, 0);
        image_json(&json, path, image, &kinds, add->error, add->fpr);
        bloom_json_put_bool(&json, "written", add->written);
        bloom_json_put_count(&json, "added", added);
        bloom_json_put_count(&json, "lifted", add->counts.lifted);
        bloom_json_put_count(&json, "already_present",
                             add->counts.received - added);
        key_report_json(&json, &add->from, &add->counts, seconds);
        json_end(&json);
        return;
    }

    if (add->from.intake.quiet) {
        return;
    }

    visible_name(path);
    printf(": %" PRIu64 " key%s, %" PRIu64 " added",
           add->counts.received, CLI_S(add->counts.received), added);

    if (add->removed != 0) {
        printf(" (of which %" PRIu64 " had been %s)", add->counts.lifted,
               add->others ? "exceptions" : "removed");
    }

    printf(", %" PRIu64, image->items);

    if (add->error != 0) {
        printf(" +- %.0f", ceil(add->error));
    }

    printf(" distinct, capacity %" PRIu64 ", %s%s\n",
           bloom_image_capacity(image),
           image_write_show_rate(rate, image, add->fpr),
           add->written ? "" : "; the image is unchanged");

    key_report(&add->from, &add->counts, 0, path);
}


static int
run(char **operands, int n, void *values)
{
    int          rc;
    add_t       *add = values;
    progress_t   clock;

    if (n == 0) {
        return cli_misuse("no image is named");
    }

    if (key_options_check(&add->from) != CLI_OK) {
        return CLI_ERROR;
    }

    progress_begin(&clock, 1);

    rc = read_image(add, operands[0]);

    if (rc == CLI_OK) {
        rc = add_keys(add, operands + 1, n - 1);
    }

    if (rc == CLI_OK) {
        rc = key_options_commit_exceptions(&add->counts, add->old.path);
    }

    if (rc == CLI_OK) {
        estimate_rate(add);

        if (!add->from.intake.quiet) {
            image_write_warn_full(&add->old.image, add->fpr,
                                  add->old.image.geometry.layers != 0
                                  ? "rebuild the image from all keys, or load "
                                    "it into a zone with a larger max_keys= "
                                    "and add keys there"
                                  : "rebuild the image with a larger -n");
        }

        report(add, progress_end(&clock));
    }

    key_options_end(&add->from, &add->counts);
    image_read_free(&add->old);

    return rc;
}


static add_t  values = { .from = KEY_OPTIONS_DEFAULTS(0), .old = { .fd = -1 } };

static const command_member_t  members[] = {
    { NULL, "all members that info has for an image, and:" },
    { "written",
      "true if a new image was written, false if there was no key to add" },
    { "added", "the number of distinct keys that were absent before" },
    { "lifted",
      "the number of these keys that had been removed or were exceptions, "
      "and are no longer" },
    { "already_present",
      "the number of other keys, which were present before or came twice" },
    KEY_REPORT_MEMBERS,
    { 0 }
};

const command_t  cmd_add = {
    .name = "add",
    .does = "add keys to an image",
    .synopsis = "[OPTION...] IMAGE [KEYFILE...]",
    .about =
        "Adds keys to an image. The keys come from files or, if no file is "
        "named or its name is \"-\", from standard input. Files are read as by "
        "\"ngx-bloom build\", and keys are converted to the image's key form. "
        "A new image replaces the old one, whole or not at all, also if all "
        "keys were present already: nginx may have excepted some of them as "
        "false positives, and forgets that when it loads a new image. A "
        "removed key that is added is no longer removed, and an exception of "
        "--except is no longer an exception. Other good keys of --except may "
        "be found in an image with more keys; to prevent that, build it again "
        "with --except.\n\n"
        "Several additions to the same image wait for each other. If another "
        "program replaces the image meanwhile, nothing is added and the exit "
        "status is 2: try again.\n\n"
        "The number of distinct keys in the new image is exact if it was "
        "exact before and all keys to add were absent; otherwise it is "
        "estimated. If it exceeds the image's capacity, a warning tells which "
        "false-positive rate to expect.\n\n"
        "An image with layers, copied from a zone that grows, gets no further "
        "layer: its keys are added to the last one. To let it grow, load it "
        "into a zone with max_keys= and add the keys there.",
    .options = options,
    .values = &values,
    .members = members,
    .examples = "ngx-bloom add ids.bloom new-ids.txt\n"
                "echo 4711 | ngx-bloom add ids.bloom\n",
    .run = run
};
