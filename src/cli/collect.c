/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file reads blocks of keys and hashes them in several threads.
 */

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "collect.h"
#include "keyform.h"
#include "keystream.h"
#include "line_ends.h"
#include "progress.h"


/* A file of keys that was opened. */
typedef struct {
    const char    *name;
    listformat_t   list;                 /* csv: with the file's column */
} keyfile_t;

typedef struct {
    keystream_block_t   in;
    unsigned            file;
    uint64_t            line;            /* number of its first line, from 1 */
} block_t;

/* An invalid line. */
typedef struct {
    unsigned  file;
    uint64_t  line;
    char      text[KEYFORM_SHOWN + 128];
} complaint_t;

/* The data that the threads share. */
typedef struct {
    const collect_options_t  *options;
    char                    **names;
    unsigned                  n;
    uint64_t                  total;     /* bytes in all files, or 0 */
    keyfile_t                *file;      /* n of them */

    pthread_mutex_t           reading;   /* held to read a block; protects the
                                            members below */
    unsigned                  current;   /* index of the file */
    int                       open;
    keystream_t               stream;
    uint64_t                  line;      /* first one of the next block */
    int                       found;     /* csv: the column is known */
    uint64_t                  before;    /* bytes of the files before it */
    int                       ended;
    progress_t                progress;

    pthread_mutex_t           lock;
    complaint_t              *complaint; /* protected by the lock */
    size_t                    complaints;
    size_t                    room;
    int                       failed;    /* atomic: there are too many invalid
                                            lines, or a file cannot be read */

    collect_counts_t          counts;    /* atomic */
} work_t;

#define BATCH  1024                      /* lines, or hashes */

/* The data of one thread. */
typedef struct {
    work_t             *work;
    keystore_writer_t  *writer;
    keyform_t           keyform;
    uint8_t            *field;           /* csv, json: the unquoted key */
    size_t              field_size;
    size_t              n;
    bloom_hash_t        hash[BATCH];     /* not yet passed to the store */
    uint32_t            end[BATCH];      /* indices of line ends */
} hasher_t;


static void
complain(work_t *work, const block_t *block, uint64_t line,
    const bloom_key_t *key, const char *why)
{
    char          shown[KEYFORM_SHOWN];
    complaint_t  *complaint;

    pthread_mutex_lock(&work->lock);

    if (work->complaints == work->room) {
        work->room = 2 * work->room + 16;
        work->complaint = cli_realloc(work->complaint,
                                      work->room * sizeof(complaint_t));
    }

    complaint = &work->complaint[work->complaints++];
    complaint->file = block->file;
    complaint->line = line;

    snprintf(complaint->text, sizeof(complaint->text), "\"%s\" %s",
             keyform_show(shown, key), why);

    if (work->complaints > work->options->max_errors) {
        __atomic_store_n(&work->failed, 1, __ATOMIC_RELAXED);
    }

    pthread_mutex_unlock(&work->lock);
}


/* Passes the hashes to the store, or adds them to the words. */
static void
flush(hasher_t *hasher)
{
    size_t                    i;
    uint64_t                  changed;
    const collect_options_t  *options;

    options = hasher->work->options;

    if (options->words == NULL) {
        keystore_add(hasher->writer, hasher->hash, hasher->n);
        hasher->n = 0;
        return;
    }

    for (i = 0, changed = 0; i < hasher->n; i++) {
        changed += bloom_layout_add_atomic(options->geometry, options->words,
                                           hasher->hash[i])
                   != 0;
    }

    __atomic_fetch_add(&hasher->work->counts.changed, changed,
                       __ATOMIC_RELAXED);
    hasher->n = 0;
}


static inline void
add_key(hasher_t *hasher, const bloom_key_t *key)
{
    const collect_options_t  *options;

    options = hasher->work->options;

    hasher->hash[hasher->n++] = bloom_hash(options->hasher, key->data,
                                           key->len);

    /* with words, a hash may refer to its key, which is valid only now */

    if (hasher->n == BATCH || options->words != NULL) {
        flush(hasher);
    }
}


/* Hashes all keys of a line.  Returns 0, or -1 if the line is invalid. */
static int
hash_line(hasher_t *hasher, const block_t *block, listformat_line_t *line,
    collect_counts_t *counts)
{
    work_t              *work;
    const char          *why;
    bloom_key_t          whole, key, canonical;
    const listformat_t  *list;

    work = hasher->work;
    list = &work->file[block->file].list;
    whole = line->line;

    for ( ;; ) {

        switch (listformat_next(list, line, &key, &why)) {

        case LISTFORMAT_KEY:
            why = keyform_accept(&hasher->keyform, &canonical, &key);

            if (why != NULL) {
                counts->errors++;
                complain(work, block, line->number, &key, why);
                return -1;
            }

            counts->received++;
            add_key(hasher, &canonical);
            break;

        case LISTFORMAT_END:
            return 0;

        case LISTFORMAT_EMPTY:
            counts->empty++;
            return 0;

        case LISTFORMAT_COMMENT:
            counts->comments++;
            return 0;

        case LISTFORMAT_SKIPPED:
            counts->skipped++;
            return 0;

        default: /* LISTFORMAT_BAD */
            counts->errors++;
            complain(work, block, line->number, &whole, why);
            return -1;
        }
    }
}


/* Hashes the keys of a line that has to be parsed or converted, or is empty.
 * Returns 0, or -1 to give up. */
static int
hash_other(hasher_t *hasher, const block_t *block, const bloom_key_t *key,
    uint64_t number, collect_counts_t *counts)
{
    work_t             *work;
    listformat_line_t   line;

    work = hasher->work;

    if (work->options->list.kind >= LISTFORMAT_JSON
        && key->len > hasher->field_size)
    {
        hasher->field_size = 2 * key->len;
        hasher->field = cli_realloc(hasher->field, hasher->field_size);
    }

    line.line = *key;
    line.number = number;
    line.begun = 0;
    line.buf = hasher->field;

    return hash_line(hasher, block, &line, counts) != 0
           && __atomic_load_n(&work->failed, __ATOMIC_RELAXED) ? -1 : 0;
}


static void
hash_block(hasher_t *hasher, const block_t *block)
{
    int                       plain, lines, delimiter;
    size_t                    i, n, begin, seen;
    uint64_t                  number;
    bloom_key_t               key;
    const uint8_t            *data;
    collect_counts_t          counts, *total;
    const collect_options_t  *options;

    memset(&counts, 0, sizeof(counts));

    options = hasher->work->options;
    data = block->in.data;
    lines = options->split == BLOOM_SPLIT_LINES;
    delimiter = lines ? '\n' : '\0';

    /* each line is a key that needs no conversion */

    plain = options->list.kind == LISTFORMAT_KEYS
            && options->key_form == BLOOM_FORM_RAW;

    number = block->line;
    begin = 0;
    seen = 0;

    while (begin < block->in.len) {
        n = line_ends_find(data, &seen, block->in.len, (uint8_t) delimiter,
                           hasher->end, BATCH - 1);

        if (seen == block->in.len
            && (n == 0 ? begin : hasher->end[n - 1] + 1u) < block->in.len)
        {
            hasher->end[n++] = (uint32_t) block->in.len;   /* the last line */
        }

        for (i = 0; i < n; begin = hasher->end[i++] + 1u, number++) {
            key.data = data + begin;
            key.len = hasher->end[i] - begin;

            if (lines && key.len != 0 && key.data[key.len - 1] == '\r') {
                key.len--;
            }

            if (plain && key.len != 0) {
                counts.received++;
                add_key(hasher, &key);

            } else if (hash_other(hasher, block, &key, number, &counts) != 0) {
                goto done;
            }
        }
    }

done:

    flush(hasher);

    total = &hasher->work->counts;

    __atomic_fetch_add(&total->received, counts.received, __ATOMIC_RELAXED);
    __atomic_fetch_add(&total->empty, counts.empty, __ATOMIC_RELAXED);
    __atomic_fetch_add(&total->comments, counts.comments, __ATOMIC_RELAXED);
    __atomic_fetch_add(&total->skipped, counts.skipped, __ATOMIC_RELAXED);
    __atomic_fetch_add(&total->errors, counts.errors, __ATOMIC_RELAXED);
}


static uint64_t
count_lines(const keystream_block_t *block, int delimiter)
{
    size_t    i;
    uint64_t  n;

    for (n = 0, i = 0; i < block->len; i++) {
        n += block->data[i] == delimiter;
    }

    return n;
}


/* Looks for the column of a csv in a block.  Returns 1 if it is known; 0 if it
 * is not known yet; or -1 after a message. */
static int
find_column(keyfile_t *file, const block_t *block)
{
    int             rc;
    char            shown[KEYFORM_SHOWN];
    uint64_t        number;
    const char     *why;
    bloom_key_t     line;
    const uint8_t  *pos;

    pos = block->in.data;

    for (rc = 0, number = block->line;
         rc == 0
         && bloom_key_next(&line, &pos, block->in.data + block->in.len,
                           BLOOM_SPLIT_LINES, block->in.last)
            == 1;
         number++)
    {
        rc = listformat_header(&file->list, &line, number, &why);

        if (rc == -1) {
            cli_error("%s: line %" PRIu64 ": \"%s\" %s; use csv:COLUMN with "
                      "one of its names, or with a number", file->name, number,
                      keyform_show(shown, &line), why);
        }
    }

    return rc;
}


/* Opens the current file.  Returns 0, or -1 after a message. */
static int
open_keyfile(work_t *work)
{
    keyfile_t  *file;

    if (keystream_open(&work->stream, work->names[work->current],
                       work->options->split)
        != 0)
    {
        return -1;
    }

    file = &work->file[work->current];
    file->name = work->stream.name;
    file->list = work->options->list;

    work->open = 1;
    work->line = 1;
    work->found = file->list.kind != LISTFORMAT_CSV;

    return 0;
}


static void
close_keyfile(work_t *work)
{
    work->before += work->stream.offset;
    work->open = 0;
    work->current++;
    keystream_close(&work->stream);
}


/* Reads the next block.  Returns 1; 0 at the end; or -1 after a message. */
static int
next_block(work_t *work, block_t *block)
{
    int                       rc, found;
    const collect_options_t  *options;

    options = work->options;

    for ( ;; ) {

        if (work->current == work->n) {
            return 0;
        }

        if (!work->open && open_keyfile(work) != 0) {
            return -1;
        }

        rc = keystream_next(&work->stream, &block->in, 0);

        if (rc != 0) {
            break;
        }

        close_keyfile(work);
    }

    if (rc == -1) {
        return -1;
    }

    block->file = work->current;
    block->line = work->line;

    if (options->list.kind != LISTFORMAT_KEYS
        || options->key_form >= BLOOM_FORM_HOST)
    {
        work->line += count_lines(&block->in,
                                  options->split == BLOOM_SPLIT_NUL ? '\0'
                                                                    : '\n');
    }

    if (!work->found) {
        found = find_column(&work->file[work->current], block);

        if (found == -1) {
            return -1;
        }

        work->found = found;
    }

    progress_update(&work->progress, work->before + work->stream.offset,
                    work->total, __atomic_load_n(&work->counts.received,
                                                 __ATOMIC_RELAXED));
    return 1;
}


/* The work of a thread: reads blocks and hashes their keys until the end. */
static void *
collect_keys(void *data)
{
    work_t    *work = data;
    int        rc;
    block_t    block;
    hasher_t   hasher;

    memset(&block, 0, sizeof(block));
    memset(&hasher, 0, sizeof(hasher));

    hasher.work = work;
    hasher.writer = keystore_writer(work->options->store);
    keyform_begin(&hasher.keyform, work->options->key_form);

    for ( ;; ) {
        pthread_mutex_lock(&work->reading);

        rc = 0;

        if (!work->ended && !__atomic_load_n(&work->failed, __ATOMIC_RELAXED)) {
            rc = next_block(work, &block);
        }

        if (rc == -1) {
            __atomic_store_n(&work->failed, 1, __ATOMIC_RELAXED);
        }

        if (rc != 1) {
            work->ended = 1;
        }

        pthread_mutex_unlock(&work->reading);

        if (rc != 1) {
            break;
        }

        hash_block(&hasher, &block);
    }

    keystore_writer_close(hasher.writer);
    keyform_free(&hasher.keyform);
    free(hasher.field);
    free(block.in.data);

    return NULL;
}


static int
by_place(const void *one, const void *two)
{
    const complaint_t  *a = one, *b = two;

    if (a->file != b->file) {
        return a->file < b->file ? -1 : 1;
    }

    return a->line < b->line ? -1 : a->line > b->line;
}


/* Prints the invalid lines.  Returns CLI_OK; or CLI_ERROR after a message, if
 * there are more than are allowed. */
static int
judge(const work_t *work)
{
    size_t                    i, n;
    const collect_options_t  *options;

    options = work->options;
    n = work->complaints;

    if (n > options->max_errors) {
        n = options->max_errors + 1;     /* threads may have found more */
    }

    if (work->complaints != 0) {
        qsort(work->complaint, work->complaints, sizeof(complaint_t),
              by_place);
    }

    for (i = 0; i < n; i++) {
        cli_error("%s: %s %" PRIu64 ": %s",
                  work->file[work->complaint[i].file].name,
                  options->split == BLOOM_SPLIT_NUL ? "key" : "line",
                  work->complaint[i].line, work->complaint[i].text);
    }

    if (n <= options->max_errors) {
        return CLI_OK;
    }

    cli_error("there are more invalid %s than --max-errors allows (%" PRIu64
              "); check --from and --key, correct the %s, or use a larger "
              "--max-errors", options->split == BLOOM_SPLIT_NUL
                              ? "keys" : "lines", options->max_errors,
              options->split == BLOOM_SPLIT_NUL ? "keys" : "lines");

    return CLI_ERROR;
}


int
collect(const collect_options_t *options, char **names, int n,
    collect_counts_t *counts)
{
    int         rc;
    work_t      work;
    int64_t     total;
    unsigned    i;
    pthread_t  *thread;

    total = keystream_total(names, n);

    if (total == -1) {
        return CLI_ERROR;
    }

    memset(&work, 0, sizeof(work));

    work.options = options;
    work.names = names;
    work.n = (unsigned) n;
    work.total = (uint64_t) total;

    thread = cli_alloc(options->threads * sizeof(*thread));
    work.file = cli_alloc((size_t) n * sizeof(*work.file));

    pthread_mutex_init(&work.reading, NULL);
    pthread_mutex_init(&work.lock, NULL);

    progress_begin(&work.progress, options->quiet);

    for (i = 1; i < options->threads; i++) {
        cli_thread(&thread[i], collect_keys, &work);
    }

    (void) collect_keys(&work);

    for (i = 1; i < options->threads; i++) {
        pthread_join(thread[i], NULL);
    }

    progress_end(&work.progress);

    rc = judge(&work);

    if (__atomic_load_n(&work.failed, __ATOMIC_RELAXED)) {
        rc = CLI_ERROR;
    }

    if (work.open) {
        keystream_close(&work.stream);
    }

    *counts = work.counts;

    free(work.complaint);
    free(work.file);
    free(thread);

    return rc;
}
