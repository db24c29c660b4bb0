/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file looks candidates up among the hashes of a build, and then in the
 * lists themselves, which it reads again.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "good_conflicts.h"
#include "visible.h"


/* Marks of a hash. */
#define MARK_STORED  1                   /* the keystore has it */
#define MARK_SEEN    2                   /* a list that was read again has a key
                                            with it */

/* Memory is prefetched for the hash that is this far ahead. */
#define PREFETCH     16


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


void
good_conflicts_begin(good_keys_t *good, char **lists, int n)
{
    int  i;

    good->lists = cli_alloc((size_t) n * sizeof(struct stat));

    for (i = 0; i < n; i++) {
        look_at(&good->lists[i], lists[i]);
    }
}


/* Returns what the keystore keeps of the hash of a key. */
static bloom_hash_t
hash_of(const good_search_t *search, const bloom_key_t *key)
{
    return keystore_kept(search->from->to.store,
                         bloom_hash(&search->image->hasher, key->data,
                                    key->len));
}


/* Returns the marks of a hash, or NULL if no candidate has it. */
static uint8_t *
marks_of(const good_search_t *search, bloom_hash_t hash)
{
    uint32_t  first;

    first = *hash_table_find(&search->table, &search->hash[0].h1, 2, hash.h1,
                             hash.h2);

    return first != 0 ? &search->marks[first - 1] : NULL;
}


static void
add_mark(uint8_t *marks, uint8_t mark)
{
    if ((__atomic_load_n(marks, __ATOMIC_RELAXED) & mark) == 0) {
        (void) __atomic_fetch_or(marks, mark, __ATOMIC_RELAXED);
    }
}


static void
mark_stored(void *data, const bloom_hash_t *hash, size_t n)
{
    size_t          i, home;
    uint8_t        *marks;
    good_search_t  *search = data;

    for (i = 0; i < n; i++) {

        if (i + PREFETCH < n) {
            home = hash_table_home(&search->table, hash[i + PREFETCH].h1,
                                   hash[i + PREFETCH].h2);
            __builtin_prefetch(&search->table.slot[home]);
        }

        marks = marks_of(search, hash[i]);

        if (marks != NULL) {
            add_mark(marks, MARK_STORED);
        }
    }
}


/* Finds out which candidates have a hash that is in the keystore.  Returns how
 * many. */
static size_t
find_stored(good_search_t *search)
{
    size_t        i, n, stored;
    uint32_t     *slot;
    bloom_key_t   key;

    n = search->found.n;

    search->hash = cli_alloc(n * sizeof(bloom_hash_t));
    search->marks = cli_alloc(n);
    memset(search->marks, 0, n);
    hash_table_clear(&search->table, 4 * n);

    for (i = 0; i < n; i++) {
        key = key_set_text(&search->found, &search->found.key[i]);
        search->hash[i] = hash_of(search, &key);

        slot = hash_table_find(&search->table, &search->hash[0].h1, 2,
                               search->hash[i].h1, search->hash[i].h2);

        if (*slot == 0) {
            *slot = (uint32_t) (i + 1);
        }
    }

    keystore_each(search->from->to.store, search->from->intake.threads,
                  mark_stored, search);

    for (i = 0, stored = 0; i < n; i++) {
        stored += (*marks_of(search, search->hash[i]) & MARK_STORED) != 0;
    }

    return stored;
}


/* Looks a key of a list up among the candidates. */
static const char *
seek_key(void *own, const bloom_key_t *key, size_t n, const place_t *at)
{
    uint8_t        *marks;
    place_t        *place;
    good_search_t  *search = own;
    key_set_key_t  *found;

    (void) n;                            /* 1, as the sink does not take many */

    if (search->from->to.left_out != NULL
        && left_out_has(search->from->to.left_out, key))
    {
        return NULL;
    }

    marks = marks_of(search, hash_of(search, key));

    if (marks == NULL) {
        return NULL;
    }

    add_mark(marks, MARK_SEEN);

    found = key_set_find(&search->found, key);

    if (found == NULL) {
        return NULL;
    }

    place = &search->place[found - search->found.key];

    pthread_mutex_lock(&search->lock);

    if (place->line == 0 || place_cmp(at, place) < 0) {
        *place = *at;
    }

    pthread_mutex_unlock(&search->lock);

    return NULL;
}


/* Reads those lists again that are regular files, and sees which of them has a
 * candidate.  Stores whether all lists could be read as they were before. */
static int
read_lists(good_search_t *search, char **lists, int n, int *all)
{
    int              i, rc;
    intake_t         intake;
    intake_sink_t    sink;
    intake_counts_t  counts;

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

    intake = search->from->intake;
    intake.again = 1;

    memset(&sink, 0, sizeof(sink));
    sink.take = seek_key;
    sink.data = search;

    memset(&counts, 0, sizeof(counts));
    rc = intake_read(&intake, &sink, search->again, (int) search->nagain,
                     &counts);
    intake_free(&counts);

    for (i = 0; i < n; i++) {
        *all = *all && is_unchanged(&search->good->lists[i], lists[i]);
    }

    return rc;
}


/* Returns 1 if a list has a candidate, or may have it: unless all lists were
 * read again, and have another key with its hash. */
static int
is_conflict(const good_search_t *search, size_t i, int all)
{
    uint8_t  marks;

    marks = *marks_of(search, search->hash[i]);

    if ((marks & MARK_STORED) == 0) {
        return 0;
    }

    return search->place[i].line != 0 || !all || (marks & MARK_SEEN) == 0;
}


static int
by_place(const void *one, const void *two)
{
    int                   before;
    const key_set_key_t  *a = *(key_set_key_t *const *) one;
    const key_set_key_t  *b = *(key_set_key_t *const *) two;

    before = place_cmp(&a->place, &b->place);

    return before != 0 ? before : a < b ? -1 : a > b;
}


/* Keeps the first conflicts as examples. */
static void
keep_examples(good_search_t *search, key_set_key_t **conflict)
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
        example->file = good->names[conflict[i]->place.file];
        example->line = conflict[i]->place.line;
        (void) keyform_show(example->expression, &expression);
        strcpy(example->key, search->shown[at] != NULL ? search->shown[at]
                                                       : example->expression);

        if (search->place[at].line != 0) {
            example->list = search->again[search->place[at].file];
            example->list_line = search->place[at].line;
        }
    }
}


int
good_conflicts_find(good_search_t *search, char **lists, int n)
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


/* Returns a text that says where a conflict is.  `is` says what becomes of the
 * good key.  The caller frees the text. */
static char *
describe(const good_keys_conflict_t *example, const key_options_t *from,
    const char *is)
{
    int    len;
    char  *text;

    if (example->list != NULL) {
        len = asprintf(&text, "%s: line %" PRIu64 ": \"%s\" %s, but %s, %s %"
                       PRIu64 ", has \"%s\"", example->file, example->line,
                       example->key, is, example->list,
                       from->intake.split == BLOOM_SPLIT_NUL ? "key" : "line",
                       example->list_line, example->expression);

    } else {
        len = asprintf(&text, "%s: line %" PRIu64 ": \"%s\" %s, but a list has "
                       "\"%s\"", example->file, example->line, example->key, is,
                       example->expression);
    }

    if (len == -1) {
        cli_no_memory(0);
    }

    return text;
}


int
good_conflicts_refuse(const good_search_t *search, const char *output)
{
    char               *text;
    size_t              i;
    const good_keys_t  *good;

    good = search->good;

    for (i = 0; i < good->examples; i++) {
        text = describe(&good->example[i], search->from, "must not be found");
        cli_error("%s", text);
        free(text);
    }

    if (good->conflicts > good->examples) {
        cli_error("%" PRIu64 " more conflict%s%s", good->conflicts
                  - good->examples, CLI_S(good->conflicts - good->examples),
                  search->full ? ", and perhaps others" : "");
    }

    cli_error("%s: not written: %" PRIu64 " key%s of the lists match%s good "
              "keys of --except; leave %s out with --without, correct the file "
              "of --except, or use --except-wins", output,
              good->conflicts, CLI_S(good->conflicts),
              good->conflicts == 1 ? "es" : "",
              good->conflicts == 1 ? "it" : "them");

    return CLI_ERROR;
}


void
good_conflicts_report(const good_keys_t *good, const key_options_t *from)
{
    char    *text;
    size_t   i;

    for (i = 0; i < good->examples; i++) {
        text = describe(&good->example[i], from, "is not found");
        visible_print(stdout, text, strlen(text));
        putchar('\n');
        free(text);
    }

    if (good->conflicts > good->examples) {
        printf("%" PRIu64 " more conflict%s\n",
               good->conflicts - good->examples,
               CLI_S(good->conflicts - good->examples));
    }
}


void
good_conflicts_free(good_search_t *search)
{
    free(search->again);
    free(search->place);
    free(search->hash);
    free(search->marks);
    hash_table_free(&search->table);
}
