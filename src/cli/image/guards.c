/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file compares an image with limits, with the header of an older image,
 * and with files of keys.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bloom_form.h"
#include "bloom_guard.h"
#include "cli.h"
#include "guards.h"
#include "image_lookup.h"
#include "image_read.h"
#include "intake.h"
#include "list_no_key.h"
#include "units.h"


/* What is looked up: keys of one file. */
typedef struct {
    guards_t             *guards;
    const char           *name;          /* of the image */
    const char           *option;
    const char           *path;
    int                   wanted;        /* 1: the image must have them */
    const bloom_image_t  *image;
    const uint64_t       *words;
    const bloom_exceptions_t  *removed;
    keyform_t             keyform;
    uint64_t              line;
    uint64_t              keys;
    uint64_t              bytes;         /* of these keys */
    int                   rc;            /* of the keys so far */
} samples_t;


/* Takes "1%", "500" or "off".  Returns as `take` of an option does. */
static int
take_limit(const option_t *option, const char *text, bloom_guard_limit_t *limit,
    double most, const char *must)
{
    limit->kind = BLOOM_GUARD_ANY;

    if (strcmp(text, "off") == 0
        || bloom_guard_limit_parse(limit, text, strlen(text), most) == 0)
    {
        return CLI_OK;
    }

    return options_wrong(option, text, "%s", must);
}


static int
take_loss(const option_t *option, const char *text, void *to)
{
    return take_limit(option, text, to, BLOOM_GUARD_LOSS_MAX,
                      "must be a percentage such as 1%, up to 100%, a number "
                      "of keys such as 500, or off");
}


static int
take_growth(const option_t *option, const char *text, void *to)
{
    return take_limit(option, text, to, BLOOM_GUARD_GROWTH_MAX,
                      "must be a percentage such as 50%, a number of keys such "
                      "as 10k, or off");
}


const option_t  guards_options[] = {
    { 0, "min-keys", "N", offsetof(guards_t, min_keys), options_take_count,
      "refuse an image with fewer distinct keys than N, with k, m or g",
      .is = "a number of keys", 0, BLOOM_CAPACITY_MAX },
    { 0, "max-loss", "N", offsetof(guards_t, max.loss), take_loss,
      "refuse an image whose number of distinct keys is more than N below that "
      "of the image that it replaces, or whose key form differs; N is a "
      "percentage of the old number such as 1%, or a number of keys such as "
      "500; off allows every loss (default: off)" },
    { 0, "max-growth", "N", offsetof(guards_t, max.growth), take_growth,
      "refuse an image whose number of distinct keys is more than N above that "
      "of the image that it replaces, or whose key form differs; N is a "
      "percentage of the old number such as 50%, or a number of keys such as "
      "10k; off allows every growth (default: off)" },
    { 0, "replaces", "IMAGE", offsetof(guards_t, replaces), options_take_text,
      "the image with which --max-loss and --max-growth compare; for a script "
      "that writes the new image beside the old one and renames it later "
      "(default of build: the file of -o)" },
    { 0 }
};

const option_t  guards_key_options[] = {
    { 0, "must-have", "FILE", offsetof(guards_t, must_have), options_take_text,
      "refuse an image that lacks a key of FILE, which has one key on each "
      "line and at most 16 MiB; lines that begin with # or ! are comments, and "
      "so is the rest of a line after \" #\"" },
    { 0, "must-not-have", "FILE", offsetof(guards_t, must_not_have),
      options_take_text,
      "refuse an image in which a lookup of a key of FILE finds the key" },
    { 0 }
};

const option_t  guards_age_options[] = {
    { 0, "not-older-than", "IMAGE", offsetof(guards_t, not_older),
      options_take_text,
      "refuse an image that is complete as of an earlier time than IMAGE, "
      "which must exist; an image without that time counts as of when it was "
      "written; of images as of the same time, refuse another image that was "
      "not written later; if both images state the same source, refuse an "
      "earlier position, too" },
    { 0 }
};


/* Prints why an image is refused, and keeps it in guards->error. */
static void __attribute__((format(printf, 3, 4)))
refuse(guards_t *guards, const char *name, const char *fmt, ...)
{
    va_list  args;

    va_start(args, fmt);
    (void) vsnprintf(guards->error, sizeof(guards->error), fmt, args);
    va_end(args);

    cli_error("%s: %s", name, guards->error);
}


/* Returns how a message about what an image has begins. */
static const char *
has(const guards_t *guards)
{
    return guards->written ? "refused: it has" : "not written: it would have";
}


static const char *
not(const guards_t *guards)
{
    return guards->written ? "refused" : "not written";
}


/* Returns CLI_OK, or CLI_NO after a message. */
static int
compare(guards_t *guards, const char *name, const bloom_image_t *image,
    const bloom_image_t *old)
{
    const char            *option;
    bloom_guard_excess_t   excess;

    if (image->key_form != old->key_form) {
        refuse(guards, name, "%s the key form %s, and the image that it "
               "replaces has %s, so keys that are found now would not be "
               "found; correct --form or, if the change is right, leave out "
               "--max-loss and --max-growth", has(guards),
               bloom_form_name(image->key_form),
               bloom_form_name(old->key_form));
        return CLI_NO;
    }

    if (!bloom_guard_exceeds(&guards->max, old->items, image->items, &excess)) {
        return CLI_OK;
    }

    option = excess.loss ? "--max-loss" : "--max-growth";

    refuse(guards, name, "%s %" PRIu64 " distinct key%s, %s of the image that "
           "it replaces, and %s allows %s; check the input, or use %s off if "
           "the change is right", has(guards), image->items,
           CLI_S(image->items), excess.change, option, excess.allowed, option);

    return CLI_NO;
}


int
guards_check(guards_t *guards, const char *name, const bloom_image_t *image,
    int quiet)
{
    int            rc;
    const char    *path;
    struct stat    st;
    image_read_t   old;

    if (image->items < guards->min_keys) {
        refuse(guards, name, "%s %" PRIu64 " distinct key%s, and --min-keys "
               "demands %" PRIu64 "; check the input", has(guards),
               image->items, CLI_S(image->items), guards->min_keys);
        return CLI_NO;
    }

    if (!bloom_guard_limited(&guards->max)) {
        return CLI_OK;
    }

    path = guards->replaces != NULL ? guards->replaces : name;

    if (stat(path, &st) == -1 && errno == ENOENT) {

        if (!quiet) {
            cli_warn("%s: does not exist, so --max-loss and --max-growth "
                     "compare the new image with nothing", path);
        }

        return CLI_OK;
    }

    if (image_read_header(&old, path) != CLI_OK) {
        refuse(guards, name, "%s: it cannot be compared with %s; repair or "
               "remove that file, or leave out --max-loss and --max-growth",
               not(guards), path);
        return CLI_ERROR;
    }

    rc = compare(guards, name, image, &old.image);

    image_read_free(&old);

    return rc;
}


int
guards_check_bits(guards_t *guards, const char *name,
    const bloom_image_t *image, const bloom_census_t *census)
{
    int       differs;
    uint32_t  i;
    uint64_t  items, bits_set[BLOOM_PARTS_MAX];

    if (guards->min_keys == 0 && !bloom_guard_limited(&guards->max)) {
        return CLI_OK;
    }

    for (i = 0; i < census->parts; i++) {
        bits_set[i] = census->part[i].bits_set;
    }

    if (image->geometry.layers == 0) {
        bits_set[0] = census->bits_set;
    }

    differs = bloom_guard_contradicts(image, bits_set, &items);

    if (differs == 0) {
        return CLI_OK;
    }

    refuse(guards, name, "%s: it states %" PRIu64 " distinct key%s, and its "
           "bits are those of %s, about %" PRIu64 "; build it again, or leave "
           "out --min-keys, --max-loss and --max-growth", not(guards),
           image->items, CLI_S(image->items), differs < 0 ? "fewer" : "more",
           items);

    return CLI_NO;
}


/* Returns why a key can be in no image of the form, or NULL: a line of a list
 * in another format would be looked up, and never be found. */
static const char *
why_no_key(samples_t *samples, const bloom_key_t *key)
{
    const char   *why;
    bloom_key_t   canonical;

    why = key->len > BLOOM_KEY_MAX ? BLOOM_KEY_TOO_LONG : bloom_not_key(key);

    if (why == NULL) {
        why = list_no_key(keyform_list_keys(samples->keyform.form), key);
    }

    return why != NULL ? why
           : keyform_accept(&samples->keyform, &canonical, key);
}


/* Looks up the key of a line.  Returns CLI_OK; CLI_NO or CLI_ERROR after a
 * message. */
static int
check_key(samples_t *samples, const bloom_key_t *key)
{
    char             shown[KEYFORM_SHOWN], found[KEYFORM_SHOWN];
    guards_t        *guards;
    const char      *why;
    image_lookup_t   lookup;

    guards = samples->guards;
    samples->keys++;

    why = why_no_key(samples, key);

    keyform_show(shown, key);

    if (why != NULL) {
        refuse(guards, samples->name, "%s: \"%s\" %.*s; correct line %" PRIu64
               " of %s %s", not(guards), shown, list_bare(why), why,
               samples->line, samples->option, samples->path);
        return CLI_ERROR;
    }

    image_lookup(&lookup, samples->image, samples->words, samples->removed,
                 &samples->keyform, key);

    if (samples->wanted && lookup.expression == NULL) {
        refuse(guards, samples->name, "%s: it lacks the key \"%s\" of line %"
               PRIu64 " of %s %s; check the input", not(guards), shown,
               samples->line, samples->option, samples->path);
        return CLI_NO;
    }

    if (!samples->wanted && lookup.expression != NULL) {
        refuse(guards, samples->name, "%s: it has the key \"%s\"%s%s%s of line "
               "%" PRIu64 " of %s %s; take it out of the input or, if it is "
               "not there, build the image again, with another seed",
               not(guards), shown, lookup.form.n > 1 ? ", by \"" : "",
               lookup.form.n > 1 ? keyform_show(found, lookup.expression) : "",
               lookup.form.n > 1 ? "\"," : "", samples->line,
               samples->option, samples->path);
        return CLI_NO;
    }

    return CLI_OK;
}


static int
too_large(const samples_t *samples)
{
    refuse(samples->guards, samples->name, "%s: %s %s has more than 16 MiB, "
           "which nginx does not accept; keep only samples in it",
           not(samples->guards), samples->option, samples->path);

    return CLI_ERROR;
}


static const char *
take(void *own, const bloom_key_t *key, size_t n, const place_t *place)
{
    samples_t  *samples = own;

    (void) n;                            /* 1, as the sink does not take many */

    if (samples->rc != CLI_OK) {
        return NULL;
    }

    samples->line = place->line;
    samples->bytes += key->len + 1;
    samples->rc = samples->bytes > BLOOM_GUARD_FILE_MAX ? too_large(samples)
                  : check_key(samples, key);

    return NULL;
}


/* Ends the reading after a message. */
static int
go_on(void *own)
{
    const samples_t  *samples = own;

    return samples->rc == CLI_OK;
}


/* Looks up the keys of a file, which has the lines that nginx would read.
 * Returns as check_key() does. */
static int
check_file(samples_t *samples)
{
    int              rc;
    char            *name;
    intake_t         intake;
    struct stat      st;
    intake_sink_t    sink;
    intake_counts_t  counts;

    if (stat(samples->path, &st) == 0 && S_ISREG(st.st_mode)
        && st.st_size > BLOOM_GUARD_FILE_MAX)
    {
        return too_large(samples);
    }

    memset(&intake, 0, sizeof(intake));
    intake.format = list_format_lines;
    intake.key_form = BLOOM_FORM_RAW;    /* as given, and any text */
    intake.threads = 1;
    intake.quiet = 1;
    intake.any = 1;

    memset(&sink, 0, sizeof(sink));
    sink.take = take;
    sink.pause = go_on;
    sink.data = samples;
    sink.as_given = 1;

    name = (char *) samples->path;
    memset(&counts, 0, sizeof(counts));
    rc = intake_read(&intake, &sink, &name, 1, &counts);
    intake_free(&counts);

    if (rc != CLI_OK) {
        refuse(samples->guards, samples->name, "%s: %s %s cannot be read",
               not(samples->guards), samples->option, samples->path);
        return CLI_ERROR;
    }

    if (samples->keys == 0) {
        refuse(samples->guards, samples->name, "%s: %s %s has no key; write "
               "one into it, or leave out the option", not(samples->guards),
               samples->option, samples->path);
        return CLI_ERROR;
    }

    return samples->rc;
}


int
guards_check_keys(guards_t *guards, const char *name,
    const bloom_image_t *image, const uint64_t *words,
    const bloom_exceptions_t *removed)
{
    int        i, rc;
    samples_t  samples;

    const struct {
        const char  *option;
        const char  *path;
        int          wanted;
    } files[] = {
        { "--must-have", guards->must_have, 1 },
        { "--must-not-have", guards->must_not_have, 0 },
    };

    rc = CLI_OK;

    for (i = 0; i < 2 && rc == CLI_OK; i++) {

        if (files[i].path == NULL) {
            continue;
        }

        memset(&samples, 0, sizeof(samples));
        samples.guards = guards;
        samples.name = name;
        samples.option = files[i].option;
        samples.path = files[i].path;
        samples.wanted = files[i].wanted;
        samples.image = image;
        samples.words = words;
        samples.removed = removed;

        keyform_begin(&samples.keyform, image->key_form);
        rc = check_file(&samples);
        keyform_free(&samples.keyform);
    }

    return rc;
}


/* Orders images by the time as of which they are complete, by the position of
 * their source, and then by the time when they were written: two builds of the
 * same lists differ if an exception or an own entry changed.  Returns CLI_OK, or
 * CLI_NO after a message. */
static int
compare_age(guards_t *guards, const char *name, const bloom_image_t *image,
    const bloom_image_t *old)
{
    char                   time[UNITS_LEN], old_time[UNITS_LEN];
    char                   written[UNITS_LEN], old_written[UNITS_LEN];
    char                   position[BLOOM_POSITION_TEXT_MAX];
    char                   old_position[BLOOM_POSITION_TEXT_MAX];
    uint64_t               of, old_of;
    const bloom_source_t  *source;

    of = image->as_of != 0 ? image->as_of : image->created;
    old_of = old->as_of != 0 ? old->as_of : old->created;

    if (of < old_of) {
        refuse(guards, name, "%s: it is of %s, earlier than %s, which is of "
               "%s; get a newer image, or leave out --not-older-than if the "
               "older image is right", not(guards), format_time(time, of),
               guards->not_older, format_time(old_time, old_of));
        return CLI_NO;
    }

    source = &image->source;

    if (source->len != 0
        && bloom_source_is(&old->source, source->name, source->len)
        && bloom_position_cmp(source->position, old->source.position) < 0)
    {
        (void) bloom_position_write(source->position, position);
        (void) bloom_position_write(old->source.position, old_position);

        refuse(guards, name, "%s: it has the changes of source %.*s up to "
               "position %s, and %s has them up to %s; get a newer image, or "
               "leave out --not-older-than if the older image is right",
               not(guards), (int) source->len, source->name, position,
               guards->not_older, old_position);
        return CLI_NO;
    }

    if (of > old_of || image->created > old->created
        || memcmp(image->build_id, old->build_id, BLOOM_IMAGE_BUILD_ID_LEN)
           == 0)
    {
        return CLI_OK;
    }

    refuse(guards, name, "%s: it is of %s, as %s is, and was written at %s, "
           "not later than that image, which was written at %s; get a newer "
           "image, or leave out --not-older-than if the older image is right",
           not(guards), format_time(time, of), guards->not_older,
           format_time(written, image->created),
           format_time(old_written, old->created));

    return CLI_NO;
}


int
guards_check_age(guards_t *guards, const char *name,
    const bloom_image_t *image)
{
    int           rc;
    image_read_t  old;

    if (guards->not_older == NULL) {
        return CLI_OK;
    }

    if (image_read_header(&old, guards->not_older) != CLI_OK) {
        refuse(guards, name, "%s: --not-older-than cannot compare it with %s; "
               "name an image that exists and is good, or leave out the "
               "option", not(guards), guards->not_older);
        return CLI_ERROR;
    }

    rc = compare_age(guards, name, image, &old.image);

    image_read_free(&old);

    return rc;
}
