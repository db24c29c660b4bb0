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
#include "list_csv.h"
#include "list_guess.h"
#include "progress.h"
#include "visible.h"


typedef struct {
    keystream_block_t   in;
    unsigned            file;
    uint64_t            line;            /* number of its first line, from 1 */
} block_t;

/* The data that the threads share. */
typedef struct {
    const collect_options_t  *options;
    char                    **names;
    unsigned                  n;
    uint64_t                  total;     /* bytes in all files, or 0 */
    collect_file_t           *file;      /* n of them */

    pthread_mutex_t           reading;   /* held to read a block; protects the
                                            members below */
    unsigned                  current;   /* index of the file */
    int                       open;
    keystream_t               stream;
    uint64_t                  line;      /* first one of the next block */
    int                       begun;     /* the reader of the file has begun */
    void                     *state;     /* of the reader, for the file */
    uint64_t                  before;    /* bytes of the files before it */
    int                       ended;
    progress_t                progress;

    int                       failed;    /* atomic: a file cannot be read */
    uint64_t                  received;  /* atomic: keys, for the progress */

    pthread_mutex_t           lock;      /* protects the members below */
    collect_counts_t          counts;
} work_t;

#define BATCH  1024                      /* lines, or hashes */

/* The data of one thread. */
typedef struct {
    work_t             *work;
    keystore_writer_t  *writer;
    keyform_t           keyform;
    list_keys_e         keys;
    uint8_t            *field;           /* of the readers of lists */
    size_t              field_size;
    collect_counts_t    counts;
    size_t              n;
    bloom_hash_t        hash[BATCH];     /* not yet passed to the store */
    uint32_t            end[BATCH];      /* indices of line ends */
} hasher_t;


/* Keeps an exception of a list.  Returns NULL, or why it is invalid. */
static const char *
keep_exception(hasher_t *hasher, const block_t *block, uint64_t number,
    const bloom_key_t *key)
{
    const char   *why;
    bloom_key_t   canonical;

    why = keyform_accept(&hasher->keyform, &canonical, key);

    if (why == NULL) {
        exceptions_add(&hasher->counts.exceptions, block->file, number,
                       &canonical);
    }

    return why;
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

    hasher->counts.changed += changed;
    hasher->n = 0;
}


static inline void
add_key(hasher_t *hasher, const bloom_key_t *key)
{
    const collect_options_t  *options = hasher->work->options;

    hasher->hash[hasher->n++] = bloom_hash(options->hasher, key->data,
                                           key->len);

    /* with words, a hash may refer to its key, which is valid only now */

    if (hasher->n == BATCH || options->words != NULL) {
        flush(hasher);
    }
}


/* Takes a key from the removed ones. */
static void
lift_key(hasher_t *hasher, const bloom_key_t *key)
{
    const collect_options_t  *options = hasher->work->options;

    if (bloom_exceptions_drop(options->removed, key->data, key->len,
                              BLOOM_EXCEPTION_KINDS, UINT64_MAX)
        && bloom_layout_test(options->geometry, options->present,
                             bloom_hash(options->hasher, key->data, key->len)))
    {
        hasher->counts.lifted++;
    }
}


/* Adds a canonical key, unless --without leaves it out. */
static void
take_key(hasher_t *hasher, const bloom_key_t *key)
{
    left_out_t  *left_out;

    left_out = hasher->work->options->left_out;

    if (left_out != NULL && left_out_has(left_out, key)) {
        hasher->counts.left_out++;
        return;
    }

    hasher->counts.received++;

    if (hasher->work->options->removed != NULL) {
        lift_key(hasher, key);
    }

    add_key(hasher, key);

    if (hasher->work->options->key_form == BLOOM_FORM_URL) {
        letter_case_see(&hasher->counts.letters, key);
    }
}


/* Takes a key of a record.  Returns NULL, or why it is invalid. */
static const char *
accept_key(hasher_t *hasher, const bloom_key_t *key, unsigned file,
    uint64_t line)
{
    const char               *why;
    bloom_key_t               canonical;
    const collect_options_t  *options;

    options = hasher->work->options;

    if (options->each != NULL) {
        why = options->each(options->each_data, &hasher->keyform, key, file,
                            line);
        hasher->counts.received += (why == NULL);

        return why;
    }

    why = keyform_accept(&hasher->keyform, &canonical, key);

    if (why == NULL) {
        take_key(hasher, &canonical);
    }

    return why;
}


/* Hashes the keys of a record that has to be parsed or converted, or is
 * empty. */
static void
hash_record(hasher_t *hasher, block_t *block, const bloom_key_t *record,
    uint64_t number)
{
    int                  entry, counted;
    const char          *why;
    list_line_t          at;
    list_result_e        result;
    collect_counts_t    *counts;
    const list_format_t  *list;

    counts = &hasher->counts;
    list = &hasher->work->file[block->file].list;

    if (!list_format_is_keys(list)
        && record->len + LIST_ROOM > hasher->field_size)
    {
        hasher->field_size = 2 * (record->len + LIST_ROOM);
        hasher->field = cli_realloc(hasher->field, hasher->field_size);
    }

    at.line = *record;
    at.keys = hasher->keys;
    at.step = 0;
    at.mode = 0;
    at.buf = hasher->field;
    at.state = hasher->work->state;
    at.number = number;

    for (entry = 0;
         (result = list->reader->next(&at)) != LIST_END;
         /* void */ )
    {
        counted = 1;

        switch (result) {

        case LIST_KEY:
            why = accept_key(hasher, &at.key, block->file, number);

            if (why == NULL) {
                break;
            }

            counts->errors++;
            reasons_add(&counts->reasons, why, 1, block->file, number,
                        &at.key);
            break;

        case LIST_EXCEPTION:
            if (hasher->work->options->exceptions == NULL) {

                if (!entry) {            /* or it has further keys */
                    counts->skipped++;
                    reasons_add(&counts->reasons, "is an exception, which "
                                "--exceptions FILE collects", 0, block->file,
                                number, record);
                }

                break;
            }

            why = keep_exception(hasher, block, number, &at.key);

            if (why != NULL) {
                counts->errors++;
                reasons_add(&counts->reasons, why, 1, block->file, number,
                            &at.key);
            }

            break;

        case LIST_SKIPPED:
            counts->skipped++;
            reasons_add(&counts->reasons, at.why, 0, block->file, number,
                        record);
            break;

        case LIST_BAD:
            counts->errors++;
            reasons_add(&counts->reasons, at.why, 1, block->file, number,
                        record);
            break;

        case LIST_EMPTY:
            counts->empty++;
            counted = 0;
            break;

        default: /* LIST_COMMENT */
            counts->comments++;
            counted = 0;
        }

        entry |= counted;
    }

    counts->lines += entry;
}


static void
hash_lines(hasher_t *hasher, block_t *block)
{
    int                       plain, lines, delimiter;
    size_t                    i, n, begin, seen;
    uint64_t                  number, received;
    bloom_key_t               key;
    const uint8_t            *data;
    const collect_options_t  *options;

    options = hasher->work->options;
    data = block->in.data;
    lines = options->split == BLOOM_SPLIT_LINES;
    delimiter = lines ? '\n' : '\0';

    /* each line is a key that needs no conversion, and only has to be hashed */

    plain = list_format_is_keys(&options->list)
            && options->key_form == BLOOM_FORM_RAW
            && options->left_out == NULL && options->removed == NULL
            && options->each == NULL;

    number = block->line;
    begin = 0;
    seen = 0;
    received = 0;

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

            if (plain && key.len != 0 && key.len <= BLOOM_KEY_MAX) {
                received++;
                add_key(hasher, &key);

            } else {
                hash_record(hasher, block, &key, number);
            }
        }
    }

    hasher->counts.received += received;
    hasher->counts.lines += received;
}


/* Hashes the keys of records that may have several lines. */
static void
hash_records(hasher_t *hasher, block_t *block)
{
    int                   open;
    uint64_t              number;
    bloom_key_t           record;
    const uint8_t        *p, *end, *next;
    const list_format_t   *list;

    list = &hasher->work->file[block->file].list;
    number = block->line;
    end = block->in.data + block->in.len;

    for (p = block->in.data; p < end; p = next + 1) {
        next = list->reader->end(hasher->work->state, p, end, &open);

        record.data = p;
        record.len = (size_t) (next - p);

        hash_record(hasher, block, &record, number);

        number++;

        if (list_has(&record, '\n')) {
            number += line_ends_count(p, record.len, '\n');
        }
    }
}


static void
hash_block(hasher_t *hasher, block_t *block)
{
    if (hasher->work->file[block->file].list.reader->end != NULL) {
        hash_records(hasher, block);

    } else {
        hash_lines(hasher, block);
    }

    flush(hasher);
}


/* Finds out which format the current file has, from its first block.  Returns
 * 0, or -1 after a message. */
static int
guess_format(work_t *work, const keystream_block_t *block)
{
    char             why[LIST_GUESS_WHY];
    const char      *format;
    collect_file_t  *file;

    file = &work->file[work->current];
    format = list_guess(block->data, block->len, why);

    if (format == NULL) {
        cli_error("%s: %s; check the file, or name its format with --from",
                  file->name, why);
        return -1;
    }

    (void) list_format_parse(&file->list, format);

    if (work->options->each != NULL) {
        return 0;
    }

    fprintf(stderr, "ngx-bloom %s: ", cli_command);
    visible_print(stderr, file->name, strlen(file->name));
    fprintf(stderr, ": is read with --from %s\n", format);

    return 0;
}


/* Prepares the reader for the current file.  Returns 0, or -1 after a
 * message. */
static int
begin_file(work_t *work, const keystream_block_t *block)
{
    char                   why[LIST_WHY];
    list_begin_t           with;
    collect_file_t        *file;
    const list_reader_t   *reader;

    file = &work->file[work->current];

    if (file->list.reader == NULL && guess_format(work, block) != 0) {
        return -1;
    }

    work->begun = 1;
    reader = file->list.reader;
    work->state = cli_realloc(work->state, reader->state + 1);
    memset(work->state, 0, reader->state);

    with.column = file->list.column;
    with.keys = keyform_list_keys(work->options->key_form);
    with.data = block->data;
    with.len = block->len;
    with.why = why;

    if (reader->begin != NULL && reader->begin(work->state, &with) != 0) {
        cli_error("%s: %s", file->name, why);
        return -1;
    }

    return 0;
}


/* Finds the end of the last whole record of a block. */
static int
divide_block(void *data, const keystream_block_t *block, size_t *whole)
{
    int                   open;
    work_t               *work = data;
    const uint8_t        *p, *end, *next;
    collect_file_t       *file;
    const list_reader_t  *reader;

    file = &work->file[work->current];

    if (!work->begun && begin_file(work, block) != 0) {
        return -1;
    }

    open = 0;
    reader = file->list.reader;
    end = block->data + block->len;

    if (reader->end == NULL) {
        next = block->len != 0
               ? memrchr(block->data, work->options->split == BLOOM_SPLIT_NUL
                                      ? '\0' : '\n', block->len)
               : NULL;
        *whole = next != NULL ? (size_t) (next + 1 - block->data) : 0;
        return 0;
    }

    for (p = block->data; p < end; p = next + 1) {
        next = reader->end(work->state, p, end, &open);

        if (next == end) {
            break;
        }
    }

    *whole = (size_t) (p - block->data);

    if (open && (block->last || *whole == 0)) {
        cli_error("%s: line %" PRIu64 ": %s begin here and do not end%s; "
                  "correct the file", file->name,
                  work->line + line_ends_count(block->data, *whole, '\n'),
                  reader == &list_csv ? "quotes" : "parentheses",
                  block->last ? "" : " within 1 MiB");
        return -1;
    }

    return 0;
}


/* Opens the current file.  Returns 0, or -1 after a message. */
static int
open_keyfile(work_t *work)
{
    collect_file_t  *file;

    if (keystream_open(&work->stream, work->names[work->current],
                       work->options->split)
        != 0)
    {
        return -1;
    }

    file = &work->file[work->current];
    file->name = work->stream.input.name;
    file->list = work->options->list;
    work->stream.how = list_format_how(&file->list, work->options->split);
    work->stream.divide = divide_block;
    work->stream.divide_data = work;

    work->open = 1;
    work->line = 1;
    work->begun = 0;

    return 0;
}


static void
close_keyfile(work_t *work)
{
    work->before += work->stream.input.offset;
    work->open = 0;
    work->current++;
    keystream_close(&work->stream);
}


/* Reads the next block.  Returns 1; 0 at the end; or -1 after a message. */
static int
next_block(work_t *work, block_t *block)
{
    int                       rc;
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

    if (!list_format_is_keys(&options->list)
        || options->key_form >= BLOOM_FORM_HOST || options->each != NULL)
    {
        work->line += line_ends_count(block->in.data, block->in.len,
                                      options->split == BLOOM_SPLIT_NUL
                                      ? '\0' : '\n');
    }

    progress_update(&work->progress, work->before + work->stream.input.offset,
                    work->total, __atomic_load_n(&work->received,
                                                 __ATOMIC_RELAXED));
    return 1;
}


/* Adds the counts of a thread, and frees them. */
static void
add_counts(work_t *work, collect_counts_t *counts)
{
    collect_counts_t  *sum;

    pthread_mutex_lock(&work->lock);

    sum = &work->counts;
    sum->received += counts->received;
    sum->left_out += counts->left_out;
    letter_case_add(&sum->letters, &counts->letters);
    sum->changed += counts->changed;
    sum->lifted += counts->lifted;
    sum->lines += counts->lines;
    sum->empty += counts->empty;
    sum->comments += counts->comments;
    sum->skipped += counts->skipped;
    sum->errors += counts->errors;
    reasons_merge(&sum->reasons, &counts->reasons);

    exceptions_move(&sum->exceptions, &counts->exceptions);

    pthread_mutex_unlock(&work->lock);

    reasons_free(&counts->reasons);
}


/* Returns 1 if no further block is to be read. */
static int
is_stopped(const collect_options_t *options)
{
    return options->stop != NULL
           && __atomic_load_n(options->stop, __ATOMIC_RELAXED);
}


/* The work of a thread: reads blocks and hashes their keys until the end. */
static void *
collect_keys(void *data)
{
    work_t    *work = data;
    int        rc, in_order;
    block_t    block;
    uint64_t   received;
    hasher_t   hasher;

    memset(&block, 0, sizeof(block));
    memset(&hasher, 0, sizeof(hasher));

    hasher.work = work;
    hasher.writer = keystore_writer(work->options->store);
    hasher.keys = keyform_list_keys(work->options->key_form);
    keyform_begin(&hasher.keyform, work->options->key_form);
    received = 0;

    for ( ;; ) {
        pthread_mutex_lock(&work->reading);

        rc = 0;

        if (!work->ended && !__atomic_load_n(&work->failed, __ATOMIC_RELAXED)
            && !is_stopped(work->options))
        {
            rc = next_block(work, &block);
        }

        if (rc == -1) {
            __atomic_store_n(&work->failed, 1, __ATOMIC_RELAXED);
        }

        if (rc != 1) {
            work->ended = 1;
        }

        in_order = rc == 1 && work->file[block.file].list.reader->in_order;

        if (in_order) {
            hash_block(&hasher, &block);
        }

        pthread_mutex_unlock(&work->reading);

        if (rc != 1) {
            break;
        }

        if (!in_order) {
            hash_block(&hasher, &block);
        }

        if (work->options->stop != NULL
            && hasher.counts.errors + hasher.counts.skipped != 0)
        {
            __atomic_store_n(work->options->stop, 1, __ATOMIC_RELAXED);
        }

        __atomic_fetch_add(&work->received, hasher.counts.received - received,
                           __ATOMIC_RELAXED);
        received = hasher.counts.received;
    }

    add_counts(work, &hasher.counts);

    keystore_writer_close(hasher.writer);
    keyform_free(&hasher.keyform);
    free(hasher.field);
    free(block.in.data);

    return NULL;
}


/* Prints the first lines of each reason, to standard error. */
static void
complain(const work_t *work, int bad)
{
    size_t           i;
    unsigned         k;
    const char      *what;
    const reason_t  *reason;

    what = work->options->split == BLOOM_SPLIT_NUL ? "key" : "line";

    for (i = 0; i < work->counts.reasons.n; i++) {
        reason = &work->counts.reasons.reason[i];

        if (reason->bad != bad) {
            continue;
        }

        for (k = 0; k < reason->n; k++) {
            cli_error("%s: %s %" PRIu64 ": \"%s\" %s",
                      work->file[reason->example[k].file].name, what,
                      reason->example[k].line, reason->example[k].text,
                      reason->why);
        }

        if (reason->count > reason->n) {
            cli_error("%" PRIu64 " more %s%s: %s", reason->count - reason->n,
                      what, CLI_S(reason->count - reason->n), reason->why);
        }
    }
}


/* Prints the invalid lines.  Returns CLI_OK; or CLI_ERROR after a message, if
 * more lines were left out than the limits allow. */
static int
judge(const work_t *work)
{
    char                      limit[LINE_LIMIT_SHOWN];
    const char               *lines;
    const collect_counts_t   *counts;
    const collect_options_t  *options;

    options = work->options;
    counts = &work->counts;
    lines = options->split == BLOOM_SPLIT_NUL ? "keys" : "lines";

    complain(work, 1);

    if (line_limit_exceeded(&options->max_errors, counts->errors,
                               counts->lines))
    {
        cli_error("there are more invalid %s than --max-errors allows (%s); %"
                  PRIu64 " of %" PRIu64 " are invalid: check --from and --form, "
                  "correct the %s, or use a larger --max-errors", lines,
                  line_limit_show(limit, &options->max_errors),
                  counts->errors, counts->lines, lines);
        return CLI_ERROR;
    }

    if (line_limit_exceeded(&options->max_skipped, counts->skipped,
                               counts->lines))
    {
        complain(work, 0);
        cli_error("more lines are skipped than --max-skipped allows (%s); %"
                  PRIu64 " of %" PRIu64 " are skipped: check --from and --form, "
                  "or use a larger --max-skipped",
                  line_limit_show(limit, &options->max_skipped),
                  counts->skipped, counts->lines);
        return CLI_ERROR;
    }

    return CLI_OK;
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

    total = input_total(names, n);

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
    memset(work.file, 0, (size_t) n * sizeof(*work.file));

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

    reasons_sort(&work.counts.reasons);

    rc = CLI_ERROR;

    if (!__atomic_load_n(&work.failed, __ATOMIC_RELAXED)) {
        rc = options->each == NULL ? judge(&work) : CLI_OK;
    }

    if (rc == CLI_OK && !options->quiet) {
        letter_case_warn(&work.counts.letters);

        if (options->left_out != NULL) {
            left_out_warn(options->left_out);
        }
    }

    if (work.open) {
        keystream_close(&work.stream);
    }

    *counts = work.counts;
    counts->file = work.file;
    counts->files = work.n;

    free(work.state);
    free(thread);

    return rc;
}


void
collect_free(collect_counts_t *counts)
{
    exceptions_free(&counts->exceptions);
    free(counts->file);
    reasons_free(&counts->reasons);
    memset(counts, 0, sizeof(*counts));
}
