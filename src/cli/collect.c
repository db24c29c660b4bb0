
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "collect.h"
#include "input.h"
#include "keyform.h"
#include "progress.h"


/* A file, as far as its lines need to know. */
typedef struct {
    const char  *name;
    list_t       list;                   /* csv: with its column */
} source_t;

typedef struct {
    input_block_t    in;
    unsigned         source;
    uint64_t         line;               /* number of its first, from 1 */
} block_t;

/* A line that has no key where it should. */
typedef struct {
    unsigned  source;
    uint64_t  line;
    char      text[KEYFORM_SHOWN + 128];
} complaint_t;

/* What the reader and the threads that hash share. */
typedef struct {
    const collect_options_t  *options;
    source_t                 *source;

    pthread_mutex_t           lock;
    pthread_cond_t            changed;
    block_t                  *block;     /* 2 * threads of them */
    unsigned                 *free;      /* stacks of indices */
    unsigned                 *full;
    unsigned                  nfree;
    unsigned                  nfull;
    int                       ended;

    complaint_t              *complaint; /* under the lock */
    size_t                    complaints;
    size_t                    room;
    int                       failed;    /* atomic: there are too many */

    collect_counts_t          counts;    /* atomic */
} work_t;

/* What a thread has for itself. */
typedef struct {
    work_t             *work;
    keystore_writer_t  *writer;
    keyform_t           keyform;
    uint8_t            *field;           /* csv: unquoted */
    size_t              field_size;
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
    complaint->source = block->source;
    complaint->line = line;

    snprintf(complaint->text, sizeof(complaint->text), "\"%s\" %s",
             keyform_show(shown, key), why);

    if (work->complaints > work->options->max_errors) {
        __atomic_store_n(&work->failed, 1, __ATOMIC_RELAXED);
    }

    pthread_mutex_unlock(&work->lock);
}


static void
add_key(hasher_t *hasher, const bloom_key_t *key)
{
    bloom_hash_t              hash;
    const collect_options_t  *options;

    options = hasher->work->options;
    hash = bloom_hash(options->hasher, key->data, key->len);

    if (options->words == NULL) {
        keystore_add(hasher->writer, hash);

    } else {
        (void) bloom_add_atomic(options->geometry, options->words, hash);
    }
}


/* All keys of a line; 0, or -1 if one of them cannot be read. */
static int
hash_line(hasher_t *hasher, const block_t *block, list_line_t *line,
    collect_counts_t *counts)
{
    work_t        *work;
    const char    *why;
    bloom_key_t    whole, key, canonical;
    const list_t  *list;

    work = hasher->work;
    list = &work->source[block->source].list;
    whole = line->line;

    for ( ;; ) {

        switch (list_next(list, line, &key, &why)) {

        case LIST_KEY:
            why = keyform_canonical(&hasher->keyform, &canonical, &key);

            if (why != NULL) {
                counts->errors++;
                complain(work, block, line->number, &key, why);
                return -1;
            }

            counts->received++;
            add_key(hasher, &canonical);
            break;

        case LIST_END:
            return 0;

        case LIST_EMPTY:
            counts->empty++;
            return 0;

        case LIST_COMMENT:
            counts->comments++;
            return 0;

        case LIST_SKIPPED:
            counts->skipped++;
            return 0;

        default: /* LIST_BAD */
            counts->errors++;
            complain(work, block, line->number, &whole, why);
            return -1;
        }
    }
}


static void
hash_block(hasher_t *hasher, const block_t *block)
{
    int                plain;
    work_t            *work;
    uint64_t           number;
    list_line_t        line;
    bloom_key_t        key;
    const uint8_t     *pos, *end;
    collect_counts_t   counts, *total;

    memset(&counts, 0, sizeof(counts));

    work = hasher->work;
    pos = block->in.data;
    end = block->in.data + block->in.len;

    /* nothing to be done for a line but to hash it: a fifth fewer instructions */

    plain = work->options->list.kind == LIST_KEYS
            && work->options->key_form == BLOOM_KEY_RAW;

    for (number = block->line;
         bloom_key_next(&key, &pos, end, work->options->split, block->in.last)
         == 1;
         number++)
    {
        if (plain && key.len != 0) {
            counts.received++;
            add_key(hasher, &key);
            continue;
        }

        if (work->options->list.kind == LIST_CSV
            && key.len > hasher->field_size)
        {
            hasher->field_size = 2 * key.len;
            hasher->field = cli_realloc(hasher->field, hasher->field_size);
        }

        line.line = key;
        line.number = number;
        line.begun = 0;
        line.buf = hasher->field;

        if (hash_line(hasher, block, &line, &counts) != 0
            && __atomic_load_n(&work->failed, __ATOMIC_RELAXED))
        {
            break;
        }
    }

    total = &work->counts;

    __atomic_fetch_add(&total->received, counts.received, __ATOMIC_RELAXED);
    __atomic_fetch_add(&total->empty, counts.empty, __ATOMIC_RELAXED);
    __atomic_fetch_add(&total->comments, counts.comments, __ATOMIC_RELAXED);
    __atomic_fetch_add(&total->skipped, counts.skipped, __ATOMIC_RELAXED);
    __atomic_fetch_add(&total->errors, counts.errors, __ATOMIC_RELAXED);
}


static void *
hash_blocks(void *data)
{
    work_t    *work = data;
    hasher_t   hasher;
    unsigned   i;

    memset(&hasher, 0, sizeof(hasher));

    hasher.work = work;
    hasher.writer = keystore_writer(work->options->store);
    keyform_begin(&hasher.keyform, work->options->key_form);

    pthread_mutex_lock(&work->lock);

    for ( ;; ) {

        while (work->nfull == 0 && !work->ended) {
            pthread_cond_wait(&work->changed, &work->lock);
        }

        if (work->nfull == 0) {
            break;
        }

        i = work->full[--work->nfull];

        pthread_mutex_unlock(&work->lock);

        if (!__atomic_load_n(&work->failed, __ATOMIC_RELAXED)) {
            hash_block(&hasher, &work->block[i]);
        }

        pthread_mutex_lock(&work->lock);

        work->free[work->nfree++] = i;
        pthread_cond_broadcast(&work->changed);
    }

    pthread_mutex_unlock(&work->lock);

    keystore_writer_close(hasher.writer);
    keyform_free(&hasher.keyform);
    free(hasher.field);

    return NULL;
}


static uint64_t
count_lines(const input_block_t *block, int delimiter)
{
    size_t    i;
    uint64_t  n;

    for (n = 0, i = 0; i < block->len; i++) {
        n += block->data[i] == delimiter;
    }

    return n;
}


/* csv: 1 if the column is known, 0 if not yet, -1 having said why not. */
static int
find_column(source_t *source, const block_t *block)
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
        rc = list_header(&source->list, &line, number, &why);

        if (rc == -1) {
            cli_error("%s: line %" PRIu64 ": \"%s\" %s; give csv:COLUMN one of "
                      "its names, or a number", source->name, number,
                      keyform_show(shown, &line), why);
        }
    }

    return rc;
}


/* Reads a stream into blocks; 0, or -1 having said why not. */
static int
read_input(work_t *work, input_t *input, unsigned source,
    progress_t *progress, uint64_t before, uint64_t total)
{
    int                       rc, found, numbered;
    block_t                  *block;
    unsigned                  i;
    uint64_t                  line, lines;
    const collect_options_t  *options;

    options = work->options;
    line = 1;
    found = options->list.kind != LIST_CSV;
    numbered = options->list.kind != LIST_KEYS
               || options->key_form >= BLOOM_KEY_HOST;

    do {
        pthread_mutex_lock(&work->lock);

        while (work->nfree == 0) {
            pthread_cond_wait(&work->changed, &work->lock);
        }

        i = work->free[--work->nfree];
        pthread_mutex_unlock(&work->lock);

        block = &work->block[i];
        block->source = source;
        block->line = line;

        rc = input_next(input, &block->in, 0);
        lines = 0;

        if (rc == 1 && numbered) {
            lines = count_lines(&block->in, options->split == BLOOM_SPLIT_NUL
                                            ? '\0' : '\n');
        }

        if (rc == 1 && !found) {
            found = find_column(&work->source[source], block);
            rc = found == -1 ? -1 : 1;
        }

        pthread_mutex_lock(&work->lock);

        if (rc == 1) {
            work->full[work->nfull++] = i;
            pthread_cond_broadcast(&work->changed);

        } else {
            work->free[work->nfree++] = i;
        }

        pthread_mutex_unlock(&work->lock);

        line += lines;

        progress_update(progress, before + input->offset, total,
                        __atomic_load_n(&work->counts.received,
                                        __ATOMIC_RELAXED));

    } while (rc == 1 && !__atomic_load_n(&work->failed, __ATOMIC_RELAXED));

    return rc == -1 ? -1 : 0;
}


/* Reads all streams; CLI_OK or CLI_ERROR. */
static int
read_inputs(work_t *work, char **names, int n)
{
    int         i, rc;
    int64_t     total;
    input_t     input;
    uint64_t    before;
    progress_t  progress;

    total = input_total(names, n);

    if (total == -1) {
        return CLI_ERROR;
    }

    rc = 0;
    before = 0;

    progress_begin(&progress, work->options->quiet);

    for (i = 0; i < n && rc == 0; i++) {

        if (input_open(&input, names[i], work->options->split) != 0) {
            rc = -1;
            break;
        }

        work->source[i].name = input.name;
        work->source[i].list = work->options->list;

        rc = read_input(work, &input, (unsigned) i, &progress, before,
                        (uint64_t) total);

        before += input.offset;
        input_close(&input);
    }

    progress_end(&progress);

    return rc == 0 ? CLI_OK : CLI_ERROR;
}


static int
by_place(const void *one, const void *two)
{
    const complaint_t  *a = one, *b = two;

    if (a->source != b->source) {
        return a->source < b->source ? -1 : 1;
    }

    return a->line < b->line ? -1 : a->line > b->line;
}


/* Says what could not be read; CLI_ERROR if that is too much. */
static int
judge(const work_t *work)
{
    size_t                    i, n;
    const collect_options_t  *options;

    options = work->options;
    n = work->complaints;

    if (n > options->max_errors) {
        n = options->max_errors + 1;     /* threads may have seen some more */
    }

    if (work->complaints != 0) {
        qsort(work->complaint, work->complaints, sizeof(complaint_t),
              by_place);
    }

    for (i = 0; i < n; i++) {
        cli_error("%s: %s %" PRIu64 ": %s",
                  work->source[work->complaint[i].source].name,
                  options->split == BLOOM_SPLIT_NUL ? "key" : "line",
                  work->complaint[i].line, work->complaint[i].text);
    }

    if (n <= options->max_errors) {
        return CLI_OK;
    }

    cli_error("more lines than --max-errors (%" PRIu64 ") cannot be read: see "
              "whether --from and --key are right, correct the lines, or give "
              "a greater --max-errors", options->max_errors);

    return CLI_ERROR;
}


int
collect(const collect_options_t *options, char **names, int n,
    collect_counts_t *counts)
{
    int         rc;
    work_t      work;
    unsigned    i, threads, blocks;
    pthread_t  *thread;

    memset(&work, 0, sizeof(work));

    work.options = options;
    threads = options->threads;
    blocks = 2 * threads;

    thread = cli_alloc(threads * sizeof(*thread));
    work.source = cli_alloc((size_t) n * sizeof(*work.source));
    work.block = cli_alloc(blocks * sizeof(*work.block));
    work.free = cli_alloc(blocks * sizeof(*work.free));
    work.full = cli_alloc(blocks * sizeof(*work.full));

    memset(work.block, 0, blocks * sizeof(*work.block));

    for (i = 0; i < blocks; i++) {
        work.free[i] = i;
    }

    work.nfree = blocks;

    pthread_mutex_init(&work.lock, NULL);
    pthread_cond_init(&work.changed, NULL);

    for (i = 0; i < threads; i++) {
        cli_thread(&thread[i], hash_blocks, &work);
    }

    rc = read_inputs(&work, names, n);

    pthread_mutex_lock(&work.lock);
    work.ended = 1;
    pthread_cond_broadcast(&work.changed);
    pthread_mutex_unlock(&work.lock);

    for (i = 0; i < threads; i++) {
        pthread_join(thread[i], NULL);
    }

    if (judge(&work) != CLI_OK) {
        rc = CLI_ERROR;
    }

    *counts = work.counts;

    for (i = 0; i < blocks; i++) {
        free(work.block[i].in.data);
    }

    free(work.complaint);
    free(work.block);
    free(work.free);
    free(work.full);
    free(work.source);
    free(thread);

    return rc;
}
