/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file finds the good keys that a finished filter takes for present, and
 * tells false positives from keys that a list has.
 */

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bloom_exceptions_image.h"
#include "bloom_layout.h"
#include "cli.h"
#include "good_keys.h"
#include "hash_index.h"
#include "key_options.h"
#include "key_set.h"
#include "keystream.h"
#include "units.h"
#include "visible.h"


/* Marks of a hash in the index. */
#define MARK_STORED  2                   /* the keystore has it */
#define MARK_SEEN    4                   /* a list that was read again has a key
                                            with it */

/* Exceptions that take less are never called large. */
#define BYTES_SMALL  4096


/* Where a list has a candidate. */
typedef struct {
    uint64_t    line;                    /* 0: it has not been seen */
    unsigned    file;
} place_t;

/* The data that the threads share. */
typedef struct {
    good_keys_t              *good;
    const collect_options_t  *from;
    const bloom_image_t      *image;
    const uint64_t           *words;

    pthread_mutex_t           lock;      /* protects the members below */
    key_set_t                 found;     /* candidates */
    char                    **shown;     /* for each: the good key; NULL: it is
                                            the candidate itself */
    size_t                    shown_room;
    uint64_t                  bytes;     /* that all candidates would take */
    uint64_t                  matched;
    int                       stop;      /* atomic: a key is invalid, or there
                                            is no room for more candidates */
    int                       full;      /* no room */

    hash_index_t              index;     /* of the candidates' hashes */

    char                    **again;     /* the lists that can be read again */
    unsigned                  nagain;
    place_t                  *place;     /* of each candidate */
} search_t;


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
      "key of FILE is found in any case; an exception of a parent domain "
      "covers all that its entry covers" },
    { 0 }
};


/* Keeps the state of a list; of other files than regular ones, a mode of 0. */
static void
look_at(struct stat *st, const char *name)
{
    if (strcmp(name, "-") == 0 || stat(name, st) != 0
        || !S_ISREG(st->st_mode))
    {
        memset(st, 0, sizeof(*st));
    }
}


/* Returns 1 if a list is a regular file that has not changed. */
static int
is_unchanged(const struct stat *st, const char *name)
{
    struct stat  now;

    look_at(&now, name);

    return st->st_mode != 0 && now.st_mode != 0
           && now.st_dev == st->st_dev && now.st_ino == st->st_ino
           && now.st_size == st->st_size
           && now.st_mtim.tv_sec == st->st_mtim.tv_sec
           && now.st_mtim.tv_nsec == st->st_mtim.tv_nsec
           && now.st_ctim.tv_sec == st->st_ctim.tv_sec
           && now.st_ctim.tv_nsec == st->st_ctim.tv_nsec;
}


/* Checks that a file of good keys can be read, so that a build does not fail at
 * its end. */
static int
check_file(const collect_options_t *from, char *name)
{
    keystream_t  stream;
    struct stat  st, other;

    if (strcmp(name, "-") == 0) {
        return cli_misuse("--except \"-\": must be a file; standard input has "
                          "the keys of the image");
    }

    if (keystream_total(&name, 1) == -1) {
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
good_keys_begin(good_keys_t *good, const collect_options_t *from,
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

    good->lists = cli_alloc((size_t) n * sizeof(struct stat));

    for (i = 0; i < n; i++) {
        look_at(&good->lists[i], lists[i]);
    }

    return CLI_OK;
}


/* Keeps the good key of a candidate, unless it is the candidate itself. */
static void
show_key(search_t *search, size_t i, const bloom_key_t *key,
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
add_candidate(search_t *search, const bloom_key_t *key,
    const bloom_key_t *expression, unsigned file, uint64_t line)
{
    size_t             i, n;
    bloom_exception_t  exception;

    n = search->found.n;

    if (!key_set_add(&search->found, expression, file, line, &i)) {
        return;
    }

    show_key(search, i, key, expression);

    if (i < n) {
        return;
    }

    exception.key = *expression;
    search->bytes += bloom_exception_size(&exception);

    if (search->bytes > BLOOM_IMAGE_EXCEPTIONS_MAX) {
        search->full = 1;
        __atomic_store_n(&search->stop, 1, __ATOMIC_RELAXED);
    }
}


/* Looks a good key up in the filter by all of its expressions. */
static const char *
test_key(void *data, keyform_t *keyform, const bloom_key_t *key, unsigned file,
    uint64_t line)
{
    unsigned              i, n;
    search_t             *search = data;
    const char           *why;
    bloom_form_t          form;
    bloom_hash_t          hash[BLOOM_FORM_EXPRESSIONS];
    const bloom_image_t  *image;

    image = search->image;
    why = keyform_expand(keyform, &form, key);

    if (why != NULL) {
        return why;
    }

    for (i = 0; i < form.n; i++) {

        if (form.expression[i].len > BLOOM_EXCEPTION_KEY_MAX) {
            return "is longer than 65535 bytes";
        }

        hash[i] = bloom_hash(&image->hasher, form.expression[i].data,
                             form.expression[i].len);
    }

    for (i = 0, n = 0; i < form.n; i++) {
        i += bloom_layout_test_any(&image->geometry, search->words, hash + i,
                                   form.n - i);

        if (i == form.n) {
            break;
        }

        if (n++ == 0) {
            pthread_mutex_lock(&search->lock);
        }

        add_candidate(search, key, &form.expression[i], file, line);
    }

    if (n != 0) {
        search->matched++;
        pthread_mutex_unlock(&search->lock);
    }

    return NULL;
}


/* Prints the first invalid line, if there is one. */
static int
check_lines(const collect_counts_t *counts)
{
    size_t                    i;
    const char               *why;
    const reasons_example_t  *at, *first;

    for (i = 0, first = NULL, why = NULL; i < counts->reasons.n; i++) {
        at = &counts->reasons.reason[i].example[0];

        if (first == NULL || at->file < first->file
            || (at->file == first->file && at->line < first->line))
        {
            first = at;
            why = counts->reasons.reason[i].why;
        }
    }

    if (first == NULL) {
        return CLI_OK;
    }

    cli_error("%s: line %" PRIu64 ": \"%s\" %s; correct the file of --except",
              counts->file[first->file].name, first->line, first->text, why);

    return CLI_ERROR;
}


/* Finds the candidates. */
static int
read_good_keys(search_t *search)
{
    int                 rc;
    good_keys_t        *good;
    collect_counts_t    counts;
    collect_options_t   options;

    good = search->good;

    options = *search->from;
    options.split = BLOOM_SPLIT_LINES;
    options.exceptions = NULL;
    options.left_out = NULL;
    options.each = test_key;
    options.each_data = search;
    options.stop = &search->stop;

    (void) listformat_parse(&options.list, "lines");
    memset(&counts, 0, sizeof(counts));

    rc = collect(&options, good->names, good->n, &counts);

    if (rc == CLI_OK) {
        rc = check_lines(&counts);
    }

    good->received = counts.received;
    good->matched = search->matched;

    collect_free(&counts);

    return rc;
}


static bloom_hash_t
hash_of(const search_t *search, size_t i)
{
    bloom_key_t  key;

    key = key_set_text(&search->found, &search->found.key[i]);

    return bloom_hash(&search->image->hasher, key.data, key.len);
}


static void
mark_stored(void *data, const bloom_hash_t *hash, size_t n)
{
    search_t  *search = data;

    hash_index_mark(&search->index, hash, n, MARK_STORED);
}


/* Finds out which candidates have a hash that is in the keystore.  Returns how
 * many. */
static size_t
find_stored(search_t *search)
{
    size_t  i, stored;

    hash_index_create(&search->index, search->found.n);

    for (i = 0; i < search->found.n; i++) {
        hash_index_add(&search->index, hash_of(search, i));
    }

    keystore_each(search->from->store, search->from->threads, mark_stored,
                  search);

    for (i = 0, stored = 0; i < search->found.n; i++) {
        stored += (hash_index_marks(&search->index, hash_of(search, i))
                   & MARK_STORED)
                  != 0;
    }

    return stored;
}


/* Looks a key of a list up among the candidates. */
static const char *
seek_key(void *data, keyform_t *keyform, const bloom_key_t *key, unsigned file,
    uint64_t line)
{
    place_t        *place;
    search_t       *search = data;
    const char     *why;
    bloom_key_t     canonical;
    bloom_hash_t    hash;
    key_set_key_t  *found;

    why = keyform_accept(keyform, &canonical, key);

    if (why != NULL) {
        return why;
    }

    if (search->from->left_out != NULL
        && left_out_has(search->from->left_out, &canonical))
    {
        return NULL;
    }

    hash = bloom_hash(&search->image->hasher, canonical.data, canonical.len);

    if (hash_index_marks(&search->index, hash) == 0) {
        return NULL;
    }

    hash_index_mark(&search->index, &hash, 1, MARK_SEEN);

    found = key_set_find(&search->found, &canonical);

    if (found == NULL) {
        return NULL;
    }

    place = &search->place[found - search->found.key];

    pthread_mutex_lock(&search->lock);

    if (place->line == 0 || file < place->file
        || (file == place->file && line < place->line))
    {
        place->file = file;
        place->line = line;
    }

    pthread_mutex_unlock(&search->lock);

    return NULL;
}


/* Reads those lists again that are regular files, and sees which of them has a
 * candidate.  Stores whether all lists could be read as they were before. */
static int
read_lists(search_t *search, char **lists, int n, int *all)
{
    int                 i, rc;
    collect_counts_t    counts;
    collect_options_t   options;

    *all = 1;
    search->again = cli_alloc((size_t) n * sizeof(char *));

    for (i = 0; i < n; i++) {
        if (is_unchanged(&search->good->lists[i], lists[i])) {
            search->again[search->nagain++] = lists[i];

        } else {
            *all = 0;
        }
    }

    search->place = cli_alloc(search->found.n * sizeof(place_t));
    memset(search->place, 0, search->found.n * sizeof(place_t));

    if (search->nagain == 0) {
        return CLI_OK;
    }

    options = *search->from;
    options.exceptions = NULL;
    options.left_out = NULL;
    options.each = seek_key;
    options.each_data = search;

    memset(&counts, 0, sizeof(counts));
    rc = collect(&options, search->again, (int) search->nagain, &counts);
    collect_free(&counts);

    for (i = 0; i < n; i++) {
        *all = *all && is_unchanged(&search->good->lists[i], lists[i]);
    }

    return rc;
}


/* Returns 1 if a list has a candidate, or may have it: unless all lists were
 * read again, and have another key with its hash. */
static int
is_conflict(const search_t *search, size_t i, int all)
{
    uint32_t  marks;

    marks = hash_index_marks(&search->index, hash_of(search, i));

    if ((marks & MARK_STORED) == 0) {
        return 0;
    }

    return search->place[i].line != 0 || !all || (marks & MARK_SEEN) == 0;
}


static int
by_place(const void *one, const void *two)
{
    const key_set_key_t  *a = *(key_set_key_t *const *) one;
    const key_set_key_t  *b = *(key_set_key_t *const *) two;

    if (a->file != b->file) {
        return a->file < b->file ? -1 : 1;
    }

    if (a->line != b->line) {
        return a->line < b->line ? -1 : 1;
    }

    return a < b ? -1 : a > b;
}


/* Keeps the first conflicts as examples. */
static void
keep_examples(search_t *search, key_set_key_t **conflict)
{
    size_t                 i, at;
    good_keys_t           *good;
    bloom_key_t            expression;
    good_keys_conflict_t  *example;

    good = search->good;
    good->examples = good->conflicts < GOOD_KEYS_EXAMPLES
                     ? (size_t) good->conflicts : GOOD_KEYS_EXAMPLES;

    if (good->examples == 0) {
        return;
    }

    qsort(conflict, (size_t) good->conflicts, sizeof(*conflict), by_place);
    good->example = cli_alloc(good->examples * sizeof(*good->example));

    for (i = 0; i < good->examples; i++) {
        example = &good->example[i];
        at = (size_t) (conflict[i] - search->found.key);
        expression = key_set_text(&search->found, conflict[i]);

        memset(example, 0, sizeof(*example));
        example->file = good->names[conflict[i]->file];
        example->line = conflict[i]->line;
        (void) keyform_show(example->expression, &expression);
        strcpy(example->key, search->shown[at] != NULL ? search->shown[at]
                                                       : example->expression);

        if (search->place[at].line != 0) {
            example->list = search->again[search->place[at].file];
            example->list_line = search->place[at].line;
        }
    }
}


/* Finds the conflicts among the candidates, and marks them as found. */
static int
find_conflicts(search_t *search, char **lists, int n)
{
    int              all, rc;
    size_t           i, stored;
    good_keys_t     *good;
    key_set_key_t  **conflict;

    good = search->good;

    if (search->found.n == 0) {
        return CLI_OK;
    }

    stored = find_stored(search);

    if (stored == 0) {
        return CLI_OK;
    }

    rc = read_lists(search, lists, n, &all);

    if (rc != CLI_OK) {
        return rc;
    }

    conflict = cli_alloc(stored * sizeof(*conflict));

    for (i = 0; i < search->found.n; i++) {
        if (is_conflict(search, i, all)) {
            search->found.key[i].found = 1;
            conflict[good->conflicts++] = &search->found.key[i];
        }
    }

    keep_examples(search, conflict);
    free(conflict);

    return CLI_OK;
}


/* Names the conflicts. */
static int
refuse(const search_t *search, const char *output)
{
    size_t                       i;
    const char                  *what;
    const good_keys_t           *good;
    const good_keys_conflict_t  *example;

    good = search->good;
    what = search->from->split == BLOOM_SPLIT_NUL ? "key" : "line";

    for (i = 0; i < good->examples; i++) {
        example = &good->example[i];

        if (example->list != NULL) {
            cli_error("%s: line %" PRIu64 ": \"%s\" must not be found, but %s, "
                      "%s %" PRIu64 ", has \"%s\"", example->file,
                      example->line, example->key, example->list, what,
                      example->list_line, example->expression);

        } else {
            cli_error("%s: line %" PRIu64 ": \"%s\" must not be found, but a "
                      "list has \"%s\"", example->file, example->line,
                      example->key, example->expression);
        }
    }

    if (good->conflicts > good->examples) {
        cli_error("%" PRIu64 " more conflict%s%s", good->conflicts
                  - good->examples, CLI_S(good->conflicts - good->examples),
                  search->full ? ", and perhaps others" : "");
    }

    cli_error("%s: not written: the lists have %" PRIu64 " key%s by which good "
              "keys of --except are found; leave %s out with --without, "
              "correct the file of --except, or use --except-wins", output,
              good->conflicts, CLI_S(good->conflicts),
              good->conflicts == 1 ? "it" : "them");

    return CLI_ERROR;
}


/* Makes exceptions of all candidates. */
static int
make_exceptions(search_t *search, const char *output)
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
warn_large(const search_t *search)
{
    char      many[UNITS_LEN], filter[UNITS_LEN];
    uint64_t  payload;

    payload = bloom_image_payload_size(search->image);

    if (search->bytes > payload && search->bytes > BYTES_SMALL
        && !search->from->quiet)
    {
        cli_warn("%zu exceptions take %s, and the filter %s; with a lower -p "
                 "there are fewer", search->found.n,
                 format_bytes(many, search->bytes),
                 format_bytes(filter, payload));
    }
}


/* Decides about the candidates. */
static int
judge(search_t *search, const char *output, char **lists, int n)
{
    if (find_conflicts(search, lists, n) != CLI_OK) {
        return CLI_ERROR;
    }

    if (search->good->conflicts != 0 && !search->good->wins) {
        return refuse(search, output);
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
good_keys_find(good_keys_t *good, const collect_options_t *from,
    const bloom_image_t *image, const uint64_t *words, const char *output,
    char **lists, int n)
{
    int        rc;
    size_t     i;
    search_t   search;

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
    free(search.again);
    free(search.place);
    hash_index_free(&search.index);
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
good_keys_json(json_t *json, const good_keys_t *good,
    const bloom_image_t *image)
{
    size_t                       i;
    json_t                       object;
    const good_keys_conflict_t  *example;

    json_count(json, "good_keys", good->received);
    json_count(json, "good_keys_matched", good->matched);
    json_count(json, "exceptions_bytes", image->exceptions_size);
    json_count(json, "conflicts", good->conflicts);
    json_array(json, "conflict_examples");

    for (i = 0; i < good->examples; i++) {
        example = &good->example[i];

        json_object(&object, i == 0);
        json_text(&object, "file", example->file);
        json_count(&object, "line", example->line);
        json_text(&object, "key", example->key);
        json_text(&object, "expression", example->expression);

        if (example->list != NULL) {
            json_text(&object, "list", example->list);
            json_count(&object, "list_line", example->list_line);

        } else {
            json_null(&object, "list");
            json_null(&object, "list_line");
        }

        json_object_end();
    }

    json_array_end();
}


void
good_keys_report(const good_keys_t *good, const bloom_image_t *image,
    const char *file)
{
    char  bytes[UNITS_LEN];

    if (good->n == 0) {
        return;
    }

    visible_name(file);
    printf(": %" PRIu64 " good key%s, of which the filter matched %" PRIu64
           "; %" PRIu64 " exception%s, %s", good->received,
           CLI_S(good->received), good->matched, image->exceptions,
           CLI_S(image->exceptions),
           format_bytes(bytes, image->exceptions_size));

    if (good->conflicts != 0) {
        printf(", %" PRIu64 " of which %s in the lists", good->conflicts,
               good->conflicts == 1 ? "is" : "are");
    }

    putchar('\n');
}
