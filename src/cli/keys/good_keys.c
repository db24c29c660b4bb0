/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file finds the good keys that a finished filter takes for present, and
 * makes exceptions of them.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bloom_exceptions_image.h"
#include "bloom_hash.h"
#include "bloom_layout.h"
#include "cli.h"
#include "good_conflicts.h"
#include "good_keys.h"
#include "key_options.h"
#include "keystream.h"
#include "list_line.h"
#include "units.h"
#include "visible.h"


/* Exceptions that take less are never called large. */
#define BYTES_SMALL  4096


/* Takes one file more; `to` is the first member. */
static int
take_file(const option_t *option, const char *text, void *to)
{
    good_keys_t  *good = to;

    (void) option;

    good->names = cli_realloc(good->names,
                              (size_t) (good->n + 1) * sizeof(char *));
    good->names[good->n++] = (char *) text;

    return CLI_OK;
}


const option_t  good_keys_options[] = {
    { 0, "except", "FILE", offsetof(good_keys_t, names), take_file,
      "keys that must not be found, in the spelling that requests have; the "
      "file is read as with --from lines, and may be large. Each key is looked "
      "up in the finished filter as nginx does it; what is found although no "
      "list has it becomes an exception of the image, so that no key of FILE "
      "is a false positive. If a list has what is found, the command names "
      "both lines and writes nothing. Repeat the option for several files" },
    { 0, "except-wins", NULL, offsetof(good_keys_t, wins), options_take_flag,
      "with --except: what a list has becomes an exception, too, so that no "
      "key of FILE is found; such an entry of a list then has no effect, for "
      "other keys either" },
    { 0 }
};


/* Checks that a file of good keys can be read, so that a build does not fail at
 * its end. */
static int
check_file(const key_options_t *from, char *name)
{
    keystream_t  stream;
    struct stat  st, other;

    if (strcmp(name, "-") == 0) {
        return cli_misuse("--except \"-\": must be a file; standard input has "
                          "the keys of the image");
    }

    if (input_total(&name, 1) == -1) {
        return CLI_ERROR;
    }

    if (stat(name, &st) != 0
        || !(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
    {
        return CLI_OK;                   /* a pipe is read once */
    }

    if (from->exceptions != NULL && stat(from->exceptions, &other) == 0
        && other.st_dev == st.st_dev && other.st_ino == st.st_ino)
    {
        return cli_misuse("--exceptions \"%s\": is also a file of --except; "
                          "name another file", from->exceptions);
    }

    if (keystream_open(&stream, name, BLOOM_SPLIT_LINES) != 0) {
        return CLI_ERROR;
    }

    keystream_close(&stream);

    return CLI_OK;
}


int
good_keys_begin(good_keys_t *good, const key_options_t *from,
    const bloom_image_t *image, const output_t *out, char **lists, int n)
{
    int  i;

    if (good->n == 0) {
        return !good->wins ? CLI_OK
               : cli_misuse("--except-wins needs --except FILE, the good keys");
    }

    if (image->flags & BLOOM_IMAGE_IMPORTED) {
        return cli_misuse("--except cannot be used if --like names an imported "
                          "filter; leave one of them out");
    }

    if (key_options_spare(out, good->names, good->n, "the good keys")
        != CLI_OK)
    {
        return CLI_ERROR;
    }

    for (i = 0; i < good->n; i++) {
        if (check_file(from, good->names[i]) != CLI_OK) {
            return CLI_ERROR;
        }
    }

    good_conflicts_begin(good, lists, n);

    return CLI_OK;
}


/* Keeps the good key of a candidate, unless it is the candidate itself. */
static void
show_key(good_search_t *search, size_t i, const bloom_key_t *key,
    const bloom_key_t *expression)
{
    char    text[KEYFORM_SHOWN];
    size_t  room;

    if (i >= search->shown_room) {
        room = 2 * (i + 1);
        search->shown = cli_realloc(search->shown, room * sizeof(char *));
        memset(search->shown + search->shown_room, 0,
               (room - search->shown_room) * sizeof(char *));
        search->shown_room = room;
    }

    free(search->shown[i]);
    search->shown[i] = NULL;

    if (key->len != expression->len
        || memcmp(key->data, expression->data, key->len) != 0)
    {
        search->shown[i] = cli_alloc(strlen(keyform_show(text, key)) + 1);
        strcpy(search->shown[i], text);
    }
}


/* Adds an expression that the filter takes for present. */
static void
add_candidate(good_search_t *search, const bloom_key_t *key,
    const bloom_key_t *expression, const place_t *place)
{
    size_t             i, n;
    bloom_exception_t  exception;

    n = search->found.n;

    if (!key_set_add(&search->found, expression, place, &i)) {
        return;
    }

    show_key(search, i, key, expression);

    if (i < n) {
        return;
    }

    exception.key = *expression;
    search->bytes += bloom_exception_size(&exception);

    if (search->bytes > BLOOM_IMAGE_EXCEPTIONS_MAX) {
        __atomic_store_n(&search->full, 1, __ATOMIC_RELAXED);
    }
}


/* The data of a thread. */
typedef struct {
    good_search_t  *search;
    keyform_t       keyform;
} tester_t;


static void *
begin(void *data)
{
    tester_t  *tester;

    tester = cli_alloc(sizeof(*tester));
    tester->search = data;
    keyform_begin(&tester->keyform, tester->search->image->key_form);

    return tester;
}


static void
end(void *own)
{
    tester_t  *tester = own;

    keyform_free(&tester->keyform);
    free(tester);
}


/* Returns 1 for a key with a byte that keys of the forms host and url hardly
 * have, and that lines of lists in other formats do. */
static int
is_odd(const bloom_key_t *key)
{
    size_t  i;

    for (i = 0; i < key->len; i++) {
        if (key->data[i] <= ' ' || key->data[i] == '|' || key->data[i] == '^'
            || key->data[i] == '<' || key->data[i] == '"')
        {
            return 1;
        }
    }

    return 0;
}


/* Looks a good key up in the filter by all of its expressions. */
static const char *
test_key(void *own, const bloom_key_t *key, size_t many,
    const place_t *place)
{
    unsigned              i, n;
    const char           *why;
    tester_t             *tester = own;
    bloom_key_t           canonical;
    bloom_form_t          form;
    bloom_hash_t          hash[BLOOM_FORM_EXPRESSIONS];
    good_search_t        *search = tester->search;
    const bloom_image_t  *image;

    (void) many;                         /* 1, as the sink does not take many */

    image = search->image;
    why = is_odd(key) ? keyform_accept(&tester->keyform, &canonical, key)
                      : NULL;

    if (why == NULL) {
        why = keyform_expand(&tester->keyform, &form, key);
    }

    if (why != NULL) {
        return why;
    }

    for (i = 0; i < form.n; i++) {

        if (form.expression[i].len > BLOOM_KEY_MAX) {
            return BLOOM_KEY_TOO_LONG;
        }
    }

    bloom_hash_many(hash, &image->hasher, form.expression, form.n);

    for (i = 0, n = 0; i < form.n; i++) {
        i += bloom_layout_test_any(&image->geometry, search->words, hash + i,
                                   form.n - i);

        if (i == form.n) {
            break;
        }

        if (n++ == 0) {
            pthread_mutex_lock(&search->lock);
        }

        add_candidate(search, key, &form.expression[i], place);
    }

    if (n != 0) {
        search->matched++;
        pthread_mutex_unlock(&search->lock);
    }

    return NULL;
}


/* Ends the reading if there is no room for further candidates. */
static int
go_on(void *own)
{
    const tester_t  *tester = own;

    return !__atomic_load_n(&tester->search->full, __ATOMIC_RELAXED);
}


/* Finds the candidates. */
static int
read_good_keys(good_search_t *search)
{
    int               rc;
    intake_t          intake;
    good_keys_t      *good;
    intake_sink_t     sink;
    intake_counts_t   counts;

    good = search->good;

    intake = search->from->intake;
    intake.split = BLOOM_SPLIT_LINES;
    intake.format = list_format_lines;
    intake.strict = 1;

    memset(&sink, 0, sizeof(sink));
    sink.begin = begin;
    sink.take = test_key;
    sink.pause = go_on;
    sink.end = end;
    sink.data = search;
    sink.as_given = 1;

    memset(&counts, 0, sizeof(counts));
    rc = intake_read(&intake, &sink, good->names, good->n, &counts);

    if (rc == CLI_OK) {
        rc = intake_refuse(&counts, "correct the file of --except");
    }

    if (rc == CLI_OK && counts.keys == 0) {
        cli_warn("%s: has no good key, so --except has no effect; check how "
                 "the file was made", good->names[0]);
    }

    good->received = counts.keys;
    good->matched = search->matched;

    intake_free(&counts);

    return rc;
}


/* Makes exceptions of all candidates. */
static int
make_exceptions(good_search_t *search, const char *output)
{
    size_t             i;
    struct timespec    now;
    bloom_exception_t  exception;

    clock_gettime(CLOCK_REALTIME, &now);

    exception.kinds = BLOOM_EXCEPTION_BUILT;
    exception.position = 0;
    exception.time = (uint64_t) now.tv_sec * 1000
                     + (uint64_t) now.tv_nsec / 1000000;

    removed_keys_create(&search->good->exceptions, search->found.n,
                        search->found.len);

    for (i = 0; i < search->found.n; i++) {
        exception.key = key_set_text(&search->found, &search->found.key[i]);

        if (bloom_exceptions_put(&search->good->exceptions.set, &exception)
            != 1)
        {
            cli_error("%s: not written: there is no room for all exceptions; "
                      "repeat the command, or use a lower -p", output);
            return CLI_ERROR;
        }
    }

    return CLI_OK;
}


/* Warns if the exceptions take more than the filter. */
static void
warn_large(const good_search_t *search)
{
    char      many[UNITS_LEN], filter[UNITS_LEN];
    uint64_t  payload;

    payload = bloom_image_payload_size(search->image);

    if (search->bytes > payload && search->bytes > BYTES_SMALL
        && !search->from->intake.quiet)
    {
        cli_warn("%zu exceptions take %s, and the filter %s; with a lower -p "
                 "there are fewer", search->found.n,
                 format_bytes(many, search->bytes),
                 format_bytes(filter, payload));
    }
}


/* Decides about the candidates. */
static int
judge(good_search_t *search, const char *output, char **lists, int n)
{
    if (good_conflicts_find(search, lists, n) != CLI_OK) {
        return CLI_ERROR;
    }

    if (search->good->conflicts != 0 && !search->good->wins) {
        return good_conflicts_refuse(search, output);
    }

    if (search->full) {
        cli_error("%s: not written: the exceptions of --except would take more "
                  "than %" PRIu64 " MiB; use a lower -p", output,
                  BLOOM_IMAGE_EXCEPTIONS_MAX >> 20);
        return CLI_ERROR;
    }

    if (make_exceptions(search, output) != CLI_OK) {
        return CLI_ERROR;
    }

    warn_large(search);

    return CLI_OK;
}


int
good_keys_find(good_keys_t *good, const key_options_t *from,
    const bloom_image_t *image, const uint64_t *words, const char *output,
    char **lists, int n)
{
    int            rc;
    size_t         i;
    good_search_t  search;

    if (good->n == 0) {
        return CLI_OK;
    }

    memset(&search, 0, sizeof(search));

    search.good = good;
    search.from = from;
    search.image = image;
    search.words = words;

    pthread_mutex_init(&search.lock, NULL);
    key_set_create(&search.found);

    rc = read_good_keys(&search);

    if (rc == CLI_OK) {
        rc = judge(&search, output, lists, n);
    }

    for (i = 0; i < search.shown_room; i++) {
        free(search.shown[i]);
    }

    free(search.shown);
    good_conflicts_free(&search);
    key_set_free(&search.found);
    pthread_mutex_destroy(&search.lock);

    return rc;
}


void
good_keys_free(good_keys_t *good)
{
    removed_keys_free(&good->exceptions);
    free(good->names);
    free(good->lists);
    free(good->example);
    memset(good, 0, sizeof(*good));
}


void
good_keys_json(bloom_json_writer_t *json, const good_keys_t *good,
    const bloom_image_t *image)
{
    size_t                       i;
    const good_keys_conflict_t  *example;

    bloom_json_put_count(json, "good_keys", good->received);
    bloom_json_put_count(json, "good_keys_matched", good->matched);
    bloom_json_put_count(json, "exceptions_bytes", image->exceptions_size);
    bloom_json_put_count(json, "conflicts", good->conflicts);
    bloom_json_put_array(json, "conflict_examples");

    for (i = 0; i < good->examples; i++) {
        example = &good->example[i];

        bloom_json_put_object(json, NULL);
        bloom_json_put_text(json, "file", example->file);
        bloom_json_put_count(json, "line", example->line);
        bloom_json_put_text(json, "key", example->key);
        bloom_json_put_text(json, "expression", example->expression);
        bloom_json_put_text(json, "list", example->list);

        if (example->list != NULL) {
            bloom_json_put_count(json, "list_line", example->list_line);

        } else {
            bloom_json_put_null(json, "list_line");
        }

        bloom_json_put_end(json);
    }

    bloom_json_put_end(json);
}


void
good_keys_report(const good_keys_t *good, const key_options_t *from,
    const bloom_image_t *image, const char *file)
{
    char  bytes[UNITS_LEN];

    if (good->n == 0) {
        return;
    }

    visible_name(file);
    printf(": %" PRIu64 " good key%s, of which the filter matched %" PRIu64
           "; %" PRIu64 " exception%s", good->received,
           CLI_S(good->received), good->matched, image->exceptions,
           CLI_S(image->exceptions));

    if (good->conflicts != 0) {
        printf(" (%" PRIu64 " in the lists)", good->conflicts);
    }

    printf(", %s\n", format_bytes(bytes, image->exceptions_size));

    good_conflicts_report(good, from);
}
