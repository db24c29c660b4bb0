/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A run reads its segments in three kinds of walks, in steps of bounded size,
 * and replaces them at the end.
 */

#include "ngx_bloom_compact.h"
#include "ngx_bloom_compact_keys.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_reader.h"
#include "ngx_bloom_replace.h"
#include "ngx_bloom_state_files.h"

#include <sys/random.h>


/* The journal is compacted from this size on, in bytes.  A load reads about
 * this much in a second. */
#ifndef NGX_BLOOM_COMPACT_MIN
#define NGX_BLOOM_COMPACT_MIN   (64 * 1024 * 1024)
#endif

/* The most bytes in a run.  It bounds the memory: each key has a mark. */
#define NGX_BLOOM_COMPACT_MAX   (4 * (uint64_t) BLOOM_SEGMENT_MAX)

_Static_assert(NGX_BLOOM_COMPACT_MAX / 2 < UINT32_MAX,
               "ngx_bloom_compact_keys_begin() takes that many keys");

/* Bytes read in a step, and bytes written between synchronisations. */
#define NGX_BLOOM_COMPACT_STEP  (256 * 1024)
#define NGX_BLOOM_COMPACT_SYNC  (4 * 1024 * 1024)

#define NGX_BLOOM_COMPACT_MINUTE  (60 * 1000)         /* ms */


typedef enum {
    NGX_BLOOM_COMPACT_MARKS = 0,
    NGX_BLOOM_COMPACT_MEASURES,
    NGX_BLOOM_COMPACT_WRITES
} ngx_bloom_compact_e;


struct ngx_bloom_compact_s {
    ngx_bloom_state_t         *state;
    ngx_str_t                  name;     /* of the zone, for the log */
    ngx_bloom_compact_e        does;
    uint64_t                   begun;    /* ms since 1970 */
    uint64_t                   expired;  /* older records have expired */
    uint64_t                   compacted;    /* control->compacted when the run
                                            has ended */
    ngx_pid_t                  pid;      /* the process of the run */

    /* positions in the journal */
    uint64_t                   begin;
    uint64_t                   end;      /* END */
    uint64_t                   tail;     /* when the run began */
    uint64_t                   sequence; /* of the first record after END */

    ngx_bloom_reader_t         reader;   /* window NULL: not open */
    ngx_bloom_compact_keys_t   keys;

    /* the new segment, and its records so far in this walk */
    bloom_segment_t            segment;
    uint64_t                   records;
    uint64_t                   len;
    uint32_t                   version;  /* that these records need */
    bloom_record_maker_t       maker;    /* the record being composed */
    uint64_t                   time;     /* of its last key */
    ngx_fd_t                   fd;
    u_char                     tmp[NGX_MAX_PATH];    /* "": there is no file */
    u_char                     buf[BLOOM_RECORD_MAX];
};


static ngx_int_t ngx_bloom_compact_walk(ngx_bloom_compact_t *compact,
    ngx_bloom_compact_e does);
static ngx_int_t ngx_bloom_compact_walked(ngx_bloom_compact_t *compact);
static ngx_uint_t ngx_bloom_compact_joins(ngx_bloom_compact_t *compact,
    bloom_record_t *record);
static ngx_int_t ngx_bloom_compact_pack(ngx_bloom_compact_t *compact,
    bloom_record_t *record);
static ngx_int_t ngx_bloom_compact_flush(ngx_bloom_compact_t *compact);
static ngx_int_t ngx_bloom_compact_measured(ngx_bloom_compact_t *compact);
static ngx_int_t ngx_bloom_compact_written(ngx_bloom_compact_t *compact);
static ngx_uint_t ngx_bloom_compact_pays(ngx_bloom_compact_t *compact,
    uint64_t size);
static ngx_int_t ngx_bloom_compact_fails(ngx_bloom_compact_t *compact,
    ngx_uint_t level, ngx_err_t err, const char *why);
static ngx_int_t ngx_bloom_compact_no_memory(ngx_bloom_compact_t *compact);
static void ngx_bloom_compact_exit(void);


/* The run of this process, or NULL. */
static ngx_bloom_compact_t  *ngx_bloom_compact_run;


static uint64_t
ngx_bloom_compact_min(void)
{
#if (NGX_BLOOM_FAULTS)
    if (getenv("NGX_BLOOM_FAULT_COMPACT") != NULL) {
        return strtoull(getenv("NGX_BLOOM_FAULT_COMPACT"), NULL, 10);
    }
#endif

    return NGX_BLOOM_COMPACT_MIN;
}


ngx_bloom_compact_t *
ngx_bloom_compact_begin(ngx_bloom_state_t *state, uint64_t generation,
    ngx_str_t *name)
{
    uint64_t              begin, end, limit;
    ngx_bloom_end_t       last;
    ngx_bloom_compact_t  *compact;
    ngx_bloom_control_t  *control;

    static ngx_uint_t     registered;

    control = state->control;
    begin = control->begin;
    last = ngx_bloom_state_end(state);

    /*
     * Only segments that are full, applied and on disk are compacted.  A record
     * must follow them, because its number determines the new ones.
     */

    limit = ngx_min(last.base, control->synced);
    limit = ngx_min(limit, control->instance[state->instance].applied);

    if (limit <= begin || last.tail <= last.base + BLOOM_SEGMENT_HEADER
        || limit - begin < ngx_bloom_compact_min()
        || (limit - begin) / 2 < control->compacted
        || ngx_bloom_compact_run != NULL || generation == 0
        || !ngx_bloom_replace_allowed(state, begin))
    {
        return NULL;
    }

    /* END is the base of the segment that contains the limit */

    limit = ngx_min(limit, begin + NGX_BLOOM_COMPACT_MAX);

    if (ngx_bloom_segment_find(state, limit, &end) != NGX_OK
        || end <= begin || end > limit)
    {
        return NULL;
    }

    compact = calloc(1, sizeof(ngx_bloom_compact_t));
    if (compact == NULL) {
        return NULL;
    }

    compact->state = state;
    compact->name = *name;
    compact->begun = ngx_bloom_time();
    compact->expired = ngx_bloom_state_expired(state);
    compact->begin = begin;
    compact->end = end;
    compact->tail = last.tail;
    compact->fd = NGX_INVALID_FILE;

    compact->pid = ngx_getpid();

    ngx_bloom_compact_run = compact;

    /* postpone the next run in case this one kills the process; if the process
     * exits, it restores the value */

    compact->compacted = control->compacted;
    control->compacted = last.tail - begin;

    if (!registered) {
        registered = (atexit(ngx_bloom_compact_exit) == 0);
    }

    /* a key takes at least two bytes, its length and one more */

    if (ngx_bloom_compact_keys_begin(&compact->keys, (end - begin) / 2)
        != NGX_OK)
    {
        (void) ngx_bloom_compact_no_memory(compact);
        goto failed;
    }

    if (ngx_bloom_compact_walk(compact, NGX_BLOOM_COMPACT_MARKS) == NGX_AGAIN) {
        return compact;
    }

failed:

    ngx_bloom_compact_end(compact);

    return NULL;
}


void
ngx_bloom_compact_end(ngx_bloom_compact_t *compact)
{
    ngx_bloom_compact_exit();
    ngx_bloom_compact_run = NULL;

    if (compact->reader.window != NULL) {
        ngx_bloom_reader_close(&compact->reader);
    }

    ngx_bloom_io_close(&compact->fd);
    ngx_bloom_compact_keys_end(&compact->keys);
    free(compact);
}


/* Cleans up when the run ends or its process exits. */
static void
ngx_bloom_compact_exit(void)
{
    ngx_bloom_compact_t  *compact;

    compact = ngx_bloom_compact_run;

    if (compact == NULL || compact->pid != ngx_getpid()) {
        return;                             /* a child process exits */
    }

    compact->state->control->compacted = compact->compacted;

    if (compact->tmp[0] != '\0') {
        (void) ngx_bloom_io_remove(compact->state->dir, compact->tmp);
    }
}


/* Begins a walk.  Returns NGX_AGAIN, or NGX_DONE if the run ends. */
static ngx_int_t
ngx_bloom_compact_walk(ngx_bloom_compact_t *compact, ngx_bloom_compact_e does)
{
    if (compact->reader.window != NULL) {
        ngx_bloom_reader_close(&compact->reader);
    }

    if (ngx_bloom_reader_open(&compact->reader, compact->state, compact->begin,
                              compact->tail)
        != NGX_OK)
    {
        return ngx_bloom_compact_no_memory(compact);
    }

    if (compact->begin == 0) {
        compact->reader.sequence = 1;
    }

    compact->does = does;
    compact->keys.ordinal = 0;
    compact->records = 0;
    compact->len = 0;
    compact->version = 1;

    bloom_record_begin(&compact->maker, compact->buf, BLOOM_RECORD_MAX);

    return NGX_AGAIN;
}


ngx_int_t
ngx_bloom_compact_step(ngx_bloom_compact_t *compact)
{
    uint64_t             until;
    ngx_int_t            rc;
    bloom_record_t       record;
    ngx_bloom_reader_t  *reader;

    if (!ngx_bloom_replace_allowed(compact->state, compact->begin)) {
        return NGX_DONE;                    /* another run may begin later */
    }

    reader = &compact->reader;
    until = reader->position + NGX_BLOOM_COMPACT_STEP;

    do {
        rc = ngx_bloom_reader_next(reader, &record);

        if (rc == NGX_ERROR) {
            return ngx_bloom_compact_fails(compact, NGX_LOG_ERR, reader->err,
                                           (char *) reader->error);
        }

        if (rc == NGX_DONE || reader->lost) {

            /* a damaged journal stays as it is, so that loads notice it */

            return ngx_bloom_compact_fails(compact, NGX_LOG_NOTICE, 0,
                                           "it is damaged");
        }

        if (reader->segment.base >= compact->end) {
            compact->sequence = record.sequence;
            return ngx_bloom_compact_walked(compact);
        }

        /*
         * A clear at the beginning has nothing to clear, and goes.  Elsewhere
         * it has not been carried out yet, and needs what is before it.
         */

        if (record.type == BLOOM_RECORD_CLEAR
            && reader->segment.base != compact->begin)
        {
            return ngx_bloom_compact_fails(compact, NGX_LOG_NOTICE, 0,
                                           "it is being cleared");
        }

        if (record.type == BLOOM_RECORD_CHANGES) {

            /* its positions must not be lost */

            return ngx_bloom_compact_fails(compact, NGX_LOG_NOTICE, 0,
                                           "it has changes of a source");
        }

        switch (compact->does == NGX_BLOOM_COMPACT_MARKS
                ? ngx_bloom_compact_keys_mark(&compact->keys, &record)
                : ngx_bloom_compact_pack(compact, &record))
        {

        case NGX_OK:
            break;

        case NGX_AGAIN:
            return ngx_bloom_compact_walk(compact, NGX_BLOOM_COMPACT_MARKS);

        case NGX_ERROR:
            return ngx_bloom_compact_no_memory(compact);

        default: /* NGX_DONE */
            return NGX_DONE;
        }

    } while (reader->position < until);

    return NGX_AGAIN;
}


/*
 * Returns 1 if keys of a record may become part of the record being composed.
 * An addition may get a later time, so that more images are taken to lack it.
 * A removal must not, or it would apply to an image that is newer than it.  Nor
 * must an addition that expires: its key would live too long.
 */
static ngx_uint_t
ngx_bloom_compact_joins(ngx_bloom_compact_t *compact, bloom_record_t *record)
{
    if (record->type != compact->maker.type
        || record->type == BLOOM_RECORD_RESTORE)
    {
        return 0;
    }

    if (record->type != BLOOM_RECORD_ADD || compact->state->expire != 0) {
        return record->time == compact->time;
    }

    return record->time / NGX_BLOOM_COMPACT_MINUTE
           == compact->time / NGX_BLOOM_COMPACT_MINUTE
           && record->time >= compact->time;
}


/* Adds the keys of a record that stay to the record being composed.  Returns
 * NGX_OK, or NGX_DONE if the run ends. */
static ngx_int_t
ngx_bloom_compact_pack(ngx_bloom_compact_t *compact, bloom_record_t *record)
{
    bloom_key_t  key;

    if (!ngx_bloom_compact_joins(compact, record)
        && ngx_bloom_compact_flush(compact) != NGX_OK)
    {
        return NGX_DONE;
    }

    compact->maker.type = record->type;
    compact->maker.kinds = record->kinds;

    while (bloom_record_key(record, &key) == 1) {

        if (!ngx_bloom_compact_keys_stays(&compact->keys)
            || record->time < compact->expired)
        {
            continue;
        }

        if (bloom_record_put(&compact->maker, &key) != 0) {

            if (ngx_bloom_compact_flush(compact) != NGX_OK) {
                return NGX_DONE;
            }

            compact->maker.type = record->type;
            (void) bloom_record_put(&compact->maker, &key);
        }

        compact->time = record->time;
    }

    if (record->type == BLOOM_RECORD_RESTORE) {
        compact->time = record->time;
    }

    return NGX_OK;
}


/* Completes the record being composed, if it says anything.  Returns NGX_OK, or
 * NGX_DONE if the run ends. */
static ngx_int_t
ngx_bloom_compact_flush(ngx_bloom_compact_t *compact)
{
    size_t    size;
    uint64_t  offset;

    if (compact->maker.count == 0
        && compact->maker.type != BLOOM_RECORD_RESTORE)
    {
        return NGX_OK;
    }

    offset = BLOOM_SEGMENT_HEADER + compact->len;

    size = bloom_record_seal(&compact->maker, &compact->segment,
                             compact->segment.base + offset,
                             compact->segment.sequence + compact->records,
                             compact->time);

    if (compact->does == NGX_BLOOM_COMPACT_WRITES
        && (ngx_bloom_io_write(compact->fd, compact->buf, size, offset)
            != NGX_OK

            /* one synchronisation at the end would take too long */

            || ((offset + size) / NGX_BLOOM_COMPACT_SYNC
                != offset / NGX_BLOOM_COMPACT_SYNC
                && ngx_bloom_io_sync(compact->fd) != NGX_OK)))
    {
        return ngx_bloom_compact_fails(compact, NGX_LOG_ERR, ngx_errno,
                                       "a segment cannot be written");
    }

    compact->len += size;
    compact->records++;
    compact->version = ngx_max(compact->version,
                               bloom_record_version(compact->maker.type));

    bloom_record_begin(&compact->maker, compact->buf, BLOOM_RECORD_MAX);

    return NGX_OK;
}


/* Continues after a walk, with the next walk or the end of the run.  Returns
 * what ngx_bloom_compact_step() returns. */
static ngx_int_t
ngx_bloom_compact_walked(ngx_bloom_compact_t *compact)
{
    ngx_int_t                  rc;
    ngx_bloom_compact_keys_t  *keys;

    if (ngx_bloom_compact_flush(compact) != NGX_OK) {
        return NGX_DONE;
    }

    if (compact->does == NGX_BLOOM_COMPACT_MEASURES) {
        return ngx_bloom_compact_measured(compact);
    }

    if (compact->does == NGX_BLOOM_COMPACT_WRITES) {
        return ngx_bloom_compact_written(compact);
    }

    keys = &compact->keys;

    /* the first share is a fair sample of all keys */

    if (keys->share == 0
        && !ngx_bloom_compact_pays(compact, keys->bytes * keys->shares))
    {
        return NGX_DONE;
    }

    rc = ngx_bloom_compact_keys_next(keys);

    if (rc == NGX_ERROR) {
        return ngx_bloom_compact_no_memory(compact);
    }

    return ngx_bloom_compact_walk(compact, rc == NGX_AGAIN
                                           ? NGX_BLOOM_COMPACT_MARKS
                                           : NGX_BLOOM_COMPACT_MEASURES);
}


static ngx_int_t
ngx_bloom_compact_measured(ngx_bloom_compact_t *compact)
{
    uint64_t          size;
    bloom_segment_t  *segment;

    size = ngx_max(BLOOM_SEGMENT_HEADER + compact->len, BLOOM_SEGMENT_MIN);

    segment = &compact->segment;
    segment->size = size;

    if (!ngx_bloom_segment_compacted(segment)) {
        size += 8;
    }

    if (!ngx_bloom_compact_pays(compact, size)) {
        return NGX_DONE;
    }

    segment->version = compact->version;
    segment->base = compact->end - size;
    segment->size = size;
    segment->sequence = compact->sequence - compact->records;
    segment->created = ngx_bloom_time();

    if (ngx_bloom_state_files_temporary(compact->state, "compact", "tmp",
                                        compact->tmp)
        == NGX_OK)
    {
        compact->fd = ngx_bloom_io_open(compact->state->dir, compact->tmp,
                                        O_RDWR|O_CREAT|O_TRUNC);
    }

    if (compact->fd == NGX_INVALID_FILE
        || ftruncate(compact->fd, size) == -1
        || getrandom(segment->salt, BLOOM_SEGMENT_SALT_LEN, 0) == -1)
    {
        return ngx_bloom_compact_fails(compact, NGX_LOG_ERR, ngx_errno,
                                       "a segment cannot be created");
    }

    return ngx_bloom_compact_walk(compact, NGX_BLOOM_COMPACT_WRITES);
}


static ngx_int_t
ngx_bloom_compact_written(ngx_bloom_compact_t *compact)
{
    u_char            header[BLOOM_SEGMENT_HEADER];
    ngx_int_t         rc;
    bloom_segment_t  *segment;

    segment = &compact->segment;

    /* a last check: the segments are going to be removed */

    if (segment->sequence + compact->records != compact->sequence
        || compact->len > segment->size - BLOOM_SEGMENT_HEADER)
    {
        return ngx_bloom_compact_fails(compact, NGX_LOG_ALERT, 0,
                                       "its segments have changed");
    }

    /* the header is written last: it makes the file a segment */

    bloom_segment_encode(segment, header);

    if (ngx_bloom_io_write(compact->fd, header, BLOOM_SEGMENT_HEADER, 0)
        != NGX_OK
        || ngx_bloom_io_sync(compact->fd) != NGX_OK)
    {
        return ngx_bloom_compact_fails(compact, NGX_LOG_ERR, ngx_errno,
                                       "a segment cannot be written");
    }

    rc = ngx_bloom_replace(compact->state, compact->tmp, compact->begin,
                           segment->base, compact->end);

    /* a new helper may have removed the file as a leftover; it compacts the
     * journal itself */

    if (rc == NGX_DECLINED || (rc != NGX_OK && ngx_errno == NGX_ENOENT)) {
        return NGX_DONE;
    }

    if (rc != NGX_OK) {
        return ngx_bloom_compact_fails(compact, NGX_LOG_ERR, ngx_errno,
                                       "its segments cannot be replaced");
    }

    compact->tmp[0] = '\0';
    compact->compacted = segment->size;

    ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                  "bloom zone \"%V\": the journal was compacted from %uL to "
                  "%uL bytes: %uL key%s, %uL of them distinct, in %uL "
                  "record%s; it took %uL ms", &compact->name,
                  compact->end - compact->begin,
                  segment->size, compact->keys.ordinal,
                  ngx_bloom_plural(compact->keys.ordinal),
                  compact->keys.distinct, compact->records,
                  ngx_bloom_plural(compact->records),
                  ngx_bloom_time() - compact->begun);

    return NGX_DONE;
}


/* Returns 1 if a new segment of that size is worth it; else ends the run and
 * returns 0. */
static ngx_uint_t
ngx_bloom_compact_pays(ngx_bloom_compact_t *compact, uint64_t size)
{
    if (size > (compact->end - compact->begin) / 4 * 3
        || compact->records >= compact->sequence)
    {
        (void) ngx_bloom_compact_fails(compact, NGX_LOG_INFO, 0,
                                       "it would not become much shorter");
        return 0;
    }

    if (size > BLOOM_SEGMENT_MAX) {
        (void) ngx_bloom_compact_fails(compact, NGX_LOG_NOTICE, 0,
                                       "its distinct keys do not fit into one "
                                       "segment; load an image that has them, "
                                       "built with --as-of");
        return 0;
    }

    return 1;
}


/* Ends the run without success, which postpones the next one until the journal
 * is twice as long.  Returns NGX_DONE. */
static ngx_int_t
ngx_bloom_compact_fails(ngx_bloom_compact_t *compact, ngx_uint_t level,
    ngx_err_t err, const char *why)
{
    compact->compacted = compact->tail - compact->begin;

    ngx_log_error(level, ngx_cycle->log, err,
                  "bloom zone \"%V\": the journal is not compacted: %s",
                  &compact->name, why);

    return NGX_DONE;
}


static ngx_int_t
ngx_bloom_compact_no_memory(ngx_bloom_compact_t *compact)
{
    return ngx_bloom_compact_fails(compact, NGX_LOG_ERR, ngx_errno,
                                   "there is no memory for it");
}
