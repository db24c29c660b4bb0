/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file reads blocks of keys in several threads, and passes the keys to a
 * sink.
 */

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "intake.h"
#include "intake_file.h"
#include "keystream.h"
#include "line_ends.h"
#include "list_no_key.h"
#include "progress.h"


/* The data that the threads share. */
typedef struct {
    const intake_t       *intake;
    const intake_sink_t  *sink;
    uint64_t              total;         /* bytes in all files, or 0 */

    pthread_mutex_t       reading;       /* held to read a block; protects the
                                            members below */
    intake_files_t        files;
    progress_t            progress;

    int                   ended;         /* atomic: no further block is read */
    int                   failed;        /* atomic: a file cannot be read */
    uint64_t              keys;          /* atomic: for the progress */

    pthread_mutex_t       lock;          /* protects the counts */
    intake_counts_t       counts;
} work_t;

/* The data of one thread. */
typedef struct {
    work_t           *work;
    void             *own;               /* of the sink */
    keyform_t         keyform;
    list_keys_e       keys;
    int               any;               /* a key of the block can be \N */
    int               names;             /* a key of it is the name of a host */
    uint8_t          *field;             /* of the readers of lists */
    size_t            field_size;
    intake_counts_t   counts;
    uint32_t          end[INTAKE_BATCH];   /* indices of line ends */
    bloom_key_t       batch[INTAKE_BATCH];
} reader_t;


static void
skip(reader_t *reader, const char *why, const place_t *place,
    const bloom_key_t *text)
{
    reader->counts.skipped++;
    reasons_add(&reader->counts.reasons, why, 0, place, text);
}


static void
refuse(reader_t *reader, const char *why, const place_t *place,
    const bloom_key_t *text)
{
    reader->counts.errors++;
    reasons_add(&reader->counts.reasons, why, 1, place, text);
}


/* Returns why an entry that is the name of a host is another text, or NULL: in
 * the form url, such a text would be a URL. */
static const char *
why_no_name(const reader_t *reader, const bloom_key_t *key)
{
    return reader->names && reader->keys != LIST_ANY && !list_is_name(key)
           && !list_is_address(key)
           ? "has a byte that a host cannot have" : NULL;
}


/* Passes the key of an entry on. */
static void
take_key(reader_t *reader, const bloom_key_t *key, const place_t *place)
{
    const char           *why;
    bloom_key_t           canonical;
    const work_t         *work = reader->work;
    const intake_sink_t  *sink;

    sink = work->sink;

    if (!work->intake->any) {
        why = list_no_key(reader->keys, key);

        if (why != NULL) {
            skip(reader, why, place, key);
            return;
        }
    }

    why = why_no_name(reader, key);

    if (why == NULL && !reader->any) {
        why = bloom_not_key(key);
    }

    if (why == NULL
        && (sink->as_given
            || (work->intake->key_form == BLOOM_FORM_RAW
                && key->len <= BLOOM_KEY_MAX)))
    {
        why = sink->take(reader->own, key, 1, place);

    } else if (why == NULL) {
        why = keyform_accept(&reader->keyform, &canonical, key);

        if (why == NULL) {
            why = sink->take(reader->own, &canonical, 1, place);
        }
    }

    if (why != NULL) {
        refuse(reader, why, place, key);
        return;
    }

    reader->counts.keys++;
}


/* Passes an exception of a list on.  `further` says that the record has had
 * another entry. */
static void
take_exception(reader_t *reader, const bloom_key_t *key,
    const place_t *place, const bloom_key_t *record, int further)
{
    const char           *why;
    bloom_key_t           canonical;
    const intake_sink_t  *sink;

    sink = reader->work->sink;

    if (sink->except == NULL) {

        if (!further) {
            skip(reader, "is an exception, which --exceptions FILE collects",
                 place, record);
        }

        return;
    }

    why = why_no_name(reader, key);

    if (why == NULL) {
        why = keyform_accept(&reader->keyform, &canonical, key);
    }

    if (why != NULL) {
        refuse(reader, why, place, key);
        return;
    }

    sink->except(reader->own, &canonical, place);
}


/* Reads the entries of a record. */
static void
read_record(reader_t *reader, const intake_block_t *block,
    const bloom_key_t *record, uint64_t number)
{
    int               further, counted;
    list_line_t       at;
    list_result_e     result;
    place_t    place;
    intake_counts_t  *counts;

    counts = &reader->counts;
    place.file = block->file;
    place.line = number;

    if (record->len + LIST_ROOM > reader->field_size) {
        reader->field_size = 2 * (record->len + LIST_ROOM);
        reader->field = cli_realloc(reader->field, reader->field_size);
    }

    at.line = *record;
    at.keys = reader->keys;
    at.step = 0;
    at.mode = 0;
    at.buf = reader->field;
    at.number = number;
    at.state = block->state;
    at.cancelled = &reader->work->files.cancelled;

    for (further = 0; (result = block->reader->next(&at)) != LIST_END;
         further |= counted)
    {
        counted = 1;

        switch (result) {

        case LIST_KEY:
            take_key(reader, &at.key, &place);
            break;

        case LIST_EXCEPTION:
            take_exception(reader, &at.key, &place, record, further);
            break;

        case LIST_SKIPPED:
            skip(reader, at.why, &place, record);
            break;

        case LIST_BAD:
            refuse(reader, at.why, &place, record);
            break;

        case LIST_EMPTY:
            counts->empty++;
            counted = 0;
            break;

        default: /* LIST_COMMENT */
            counts->comments++;
            counted = 0;
        }
    }

    counts->lines += further;
}


/* Returns 1 if lines are keys as they are, and the sink takes many of them. */
static int
is_plain(const work_t *work)
{
    return work->sink->many && list_format_is_keys(&work->intake->format)
           && (work->sink->as_given
               || work->intake->key_form == BLOOM_FORM_RAW);
}


/* Passes keys on that need no conversion. */
static void
take_batch(reader_t *reader, size_t n)
{
    if (n != 0) {
        (void) reader->work->sink->take(reader->own, reader->batch, n, NULL);
        reader->counts.keys += n;
        reader->counts.lines += n;
    }
}


static void
read_lines(reader_t *reader, const intake_block_t *block)
{
    int             plain, lines;
    size_t          i, n, len, begin, seen, many;
    uint64_t        number;
    bloom_key_t     key;
    const uint8_t  *data;

    plain = is_plain(reader->work);
    lines = reader->work->intake->split == BLOOM_SPLIT_LINES;
    data = block->in.data;
    number = block->line;
    begin = 0;
    seen = 0;

    while (begin < block->in.len) {
        n = line_ends_find(data, &seen, block->in.len, lines ? '\n' : '\0',
                           reader->end, INTAKE_BATCH - 1);

        if (seen == block->in.len
            && (n == 0 ? begin : reader->end[n - 1] + 1u) < block->in.len)
        {
            reader->end[n++] = (uint32_t) block->in.len;   /* the last line */
        }

        for (i = 0, many = 0; i < n;
             begin = reader->end[i++] + 1u, number++)
        {
            len = reader->end[i] - begin;

            if (lines && len != 0 && data[begin + len - 1] == '\r') {
                len--;
            }

            if (plain && len != 0 && len <= BLOOM_KEY_MAX
                && (len != 2 || data[begin] != '\\'))
            {
                /* member by member: a copy would wait for both stores */

                reader->batch[many].data = data + begin;
                reader->batch[many++].len = len;

            } else {
                key.data = data + begin;
                key.len = len;
                read_record(reader, block, &key, number);
            }
        }

        take_batch(reader, many);
    }
}


/* Reads records that may have several lines. */
static void
read_records(reader_t *reader, const intake_block_t *block)
{
    int             open;
    uint64_t        number;
    bloom_key_t     record;
    const uint8_t  *p, *end, *next;

    number = block->line;
    end = block->in.data + block->in.len;

    for (p = block->in.data; p < end; p = next + 1) {
        next = block->reader->end(block->state, p, end, &open);

        record.data = p;
        record.len = (size_t) (next - p);

        read_record(reader, block, &record, number);

        number++;

        if (list_has(&record, '\n')) {
            number += line_ends_count(p, record.len, '\n');
        }
    }
}


static void
read_block(reader_t *reader, const intake_block_t *block)
{
    work_t  *work = reader->work;

    reader->any = work->intake->any || block->reader->any
                  || work->intake->split == BLOOM_SPLIT_NUL;
    reader->names = block->reader->names;

    if (block->reader->end != NULL) {
        read_records(reader, block);

    } else {
        read_lines(reader, block);
    }

    if ((work->sink->pause != NULL && !work->sink->pause(reader->own))
        || (work->intake->strict
            && reader->counts.errors + reader->counts.skipped != 0))
    {
        __atomic_store_n(&work->ended, 1, __ATOMIC_RELAXED);
    }
}


/* Takes the next block, and reads it if no other may be read meanwhile.
 * Returns 1 if the block is to be read, 0 if it was, or -1 if no further block
 * is to be read. */
static int
next_block(reader_t *reader, intake_block_t *block)
{
    int      rc;
    work_t  *work = reader->work;

    pthread_mutex_lock(&work->reading);

    rc = __atomic_load_n(&work->ended, __ATOMIC_RELAXED)
         ? 0 : intake_files_next(&work->files, block);

    if (rc != 1) {
        __atomic_store_n(&work->ended, 1, __ATOMIC_RELAXED);
    }

    if (rc == -1) {
        __atomic_store_n(&work->failed, 1, __ATOMIC_RELAXED);
    }

    if (rc == 1) {
        progress_update(&work->progress, intake_files_done(&work->files),
                        work->total,
                        __atomic_load_n(&work->keys, __ATOMIC_RELAXED));
    }

    if (rc == 1 && block->reader->in_order) {
        read_block(reader, block);
    }

    pthread_mutex_unlock(&work->reading);

    return rc != 1 ? -1 : !block->reader->in_order;
}


/* Adds the counts of a thread, and frees them. */
static void
add_counts(work_t *work, intake_counts_t *counts)
{
    intake_counts_t  *sum;

    pthread_mutex_lock(&work->lock);

    sum = &work->counts;
    sum->keys += counts->keys;
    sum->lines += counts->lines;
    sum->empty += counts->empty;
    sum->comments += counts->comments;
    sum->skipped += counts->skipped;
    sum->errors += counts->errors;
    reasons_merge(&sum->reasons, &counts->reasons);

    pthread_mutex_unlock(&work->lock);

    reasons_free(&counts->reasons);
}


/* The work of a thread: reads blocks until the end. */
static void *
read_blocks(void *data)
{
    int                   rc;
    work_t               *work = data;
    uint64_t              keys;
    reader_t              reader;
    intake_block_t        block;
    const intake_sink_t  *sink;

    sink = work->sink;

    memset(&block, 0, sizeof(block));
    memset(&reader, 0, sizeof(reader));

    reader.work = work;
    reader.own = sink->begin != NULL ? sink->begin(sink->data) : sink->data;
    reader.keys = keyform_list_keys(work->intake->key_form);
    keyform_begin(&reader.keyform, work->intake->key_form);
    keys = 0;

    while ((rc = next_block(&reader, &block)) != -1) {

        if (rc == 1) {
            read_block(&reader, &block);
        }

        __atomic_fetch_add(&work->keys, reader.counts.keys - keys,
                           __ATOMIC_RELAXED);
        keys = reader.counts.keys;
    }

    add_counts(work, &reader.counts);

    if (sink->end != NULL) {
        sink->end(reader.own);
    }

    keyform_free(&reader.keyform);
    free(reader.field);
    intake_block_free(&block);

    return NULL;
}


/* Runs the work in so many threads. */
static void
run(work_t *work, unsigned threads)
{
    unsigned    i;
    pthread_t  *thread;

    thread = cli_alloc(threads * sizeof(*thread));

    for (i = 1; i < threads; i++) {
        cli_thread(&thread[i], read_blocks, work);
    }

    (void) read_blocks(work);

    for (i = 1; i < threads; i++) {
        pthread_join(thread[i], NULL);
    }

    free(thread);
}


int
intake_read(const intake_t *intake, const intake_sink_t *sink, char **names,
    int n, intake_counts_t *counts)
{
    work_t   work;
    int64_t  total;

    total = input_total(names, n);

    if (total == -1) {
        return CLI_ERROR;
    }

    memset(&work, 0, sizeof(work));

    work.intake = intake;
    work.sink = sink;
    work.total = (uint64_t) total;
    intake_files_begin(&work.files, intake, names, (unsigned) n);

    pthread_mutex_init(&work.reading, NULL);
    pthread_mutex_init(&work.lock, NULL);

    progress_begin(&work.progress, intake->quiet || intake->again);
    run(&work, intake->threads);
    progress_end(&work.progress);

    pthread_mutex_destroy(&work.reading);
    pthread_mutex_destroy(&work.lock);

    reasons_sort(&work.counts.reasons);

    *counts = work.counts;
    counts->file = intake_files_end(&work.files);
    counts->files = (unsigned) n;

    return work.failed ? CLI_ERROR : CLI_OK;
}


void
intake_free(intake_counts_t *counts)
{
    free(counts->file);
    reasons_free(&counts->reasons);
    memset(counts, 0, sizeof(*counts));
}


int
intake_refuse(const intake_counts_t *counts, const char *advice)
{
    size_t                    i;
    const char               *why;
    const reasons_example_t  *at, *first;

    for (i = 0, first = NULL, why = NULL; i < counts->reasons.n; i++) {
        at = &counts->reasons.reason[i].example[0];

        if (first == NULL || place_cmp(&at->place, &first->place) < 0) {
            first = at;
            why = counts->reasons.reason[i].why;
        }
    }

    if (first == NULL) {
        return CLI_OK;
    }

    cli_error("%s: line %" PRIu64 ": \"%s\" %.*s; %s",
              counts->file[first->place.file].name, first->place.line,
              first->text, list_bare(why), why, advice);

    return CLI_ERROR;
}


void
intake_complain(const intake_counts_t *counts, bloom_split_e split, int bad)
{
    size_t           i;
    unsigned         k;
    const char      *what;
    const reason_t  *reason;

    what = split == BLOOM_SPLIT_NUL ? "key" : "line";

    for (i = 0; i < counts->reasons.n; i++) {
        reason = &counts->reasons.reason[i];

        if (reason->bad != bad) {
            continue;
        }

        for (k = 0; k < reason->n; k++) {
            cli_error("%s: %s %" PRIu64 ": \"%s\" %s",
                      counts->file[reason->example[k].place.file].name, what,
                      reason->example[k].place.line, reason->example[k].text,
                      reason->why);
        }

        if (reason->count > reason->n) {
            cli_error("%" PRIu64 " more %s%s: %s", reason->count - reason->n,
                      what, CLI_S(reason->count - reason->n), reason->why);
        }
    }
}
