
/*
 * A run reads its segments to count, mark, size and write keys, one bounded
 * step at a time, and then replaces them.
 */

#include "ngx_bloom_compact.h"
#include "ngx_bloom_compact_keys.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_reader.h"
#include "ngx_bloom_replace.h"

#include <sys/random.h>


/* From how many bytes on; a load reads about so many in a second. */
#ifndef NGX_BLOOM_COMPACT_MIN
#define NGX_BLOOM_COMPACT_MIN   (64 * 1024 * 1024)
#endif

/* Bytes of the journal in a run: its keys have a bit each. */
#define NGX_BLOOM_COMPACT_MAX   (4 * (uint64_t) BLOOM_SEGMENT_MAX)

/* Bytes of the journal in a step, and written between synchronisations. */
#define NGX_BLOOM_COMPACT_STEP  (256 * 1024)
#define NGX_BLOOM_COMPACT_SYNC  (4 * 1024 * 1024)

/* Records so far apart in time become one; ms. */
#define NGX_BLOOM_COMPACT_APART  (60 * 1000)

#define NGX_BLOOM_COMPACT_BUF   (2 * BLOOM_RECORD_MAX)


typedef enum {
    NGX_BLOOM_COMPACT_COUNTS = 0,
    NGX_BLOOM_COMPACT_MARKS,
    NGX_BLOOM_COMPACT_SIZES,
    NGX_BLOOM_COMPACT_WRITES,
    NGX_BLOOM_COMPACT_REPLACES
} ngx_bloom_compact_e;


struct ngx_bloom_compact_s {
    ngx_bloom_state_t         *state;
    ngx_str_t                  name;     /* of the zone, for the log */
    ngx_bloom_compact_e        does;
    uint64_t                   begun;    /* ms since 1970 */

    /* of the journal */
    uint64_t                   begin;
    uint64_t                   end;      /* E; it grows while it is counted */
    uint64_t                   limit;    /* which E does not pass */
    uint64_t                   tail;     /* as it was at the run's begin */
    uint64_t                   sequence; /* of the first record behind E */

    ngx_bloom_reader_t         reader;   /* window NULL: none is open */
    ngx_bloom_compact_keys_t   keys;

    /* of records that are made; their lengths alone at first */
    bloom_segment_t            segment;
    bloom_record_maker_t       maker;
    uint64_t                   oldest;   /* of the times in it */
    uint64_t                   newest;
    uint64_t                   records;
    uint64_t                   len;      /* of all of them */
    u_char                    *buf;
    size_t                     full;     /* bytes of it to be written */
    uint64_t                   synced;   /* of len */
    ngx_fd_t                   fd;
    u_char                     tmp[NGX_MAX_PATH];
};


static ngx_int_t ngx_bloom_compact_read(ngx_bloom_compact_t *compact);
static ngx_int_t ngx_bloom_compact_pass(ngx_bloom_compact_t *compact,
    ngx_bloom_compact_e does);
static ngx_int_t ngx_bloom_compact_next(ngx_bloom_compact_t *compact);
static ngx_int_t ngx_bloom_compact_counted(ngx_bloom_compact_t *compact);
static ngx_int_t ngx_bloom_compact_marked(ngx_bloom_compact_t *compact);
static ngx_int_t ngx_bloom_compact_pack(ngx_bloom_compact_t *compact,
    bloom_record_t *record);
static ngx_int_t ngx_bloom_compact_flush(ngx_bloom_compact_t *compact);
static ngx_int_t ngx_bloom_compact_write(ngx_bloom_compact_t *compact);
static ngx_int_t ngx_bloom_compact_sized(ngx_bloom_compact_t *compact);
static ngx_int_t ngx_bloom_compact_written(ngx_bloom_compact_t *compact);
static ngx_int_t ngx_bloom_compact_replace(ngx_bloom_compact_t *compact);
static ngx_int_t ngx_bloom_compact_fails(ngx_bloom_compact_t *compact,
    ngx_uint_t level, ngx_err_t err, const char *why);
static ngx_int_t ngx_bloom_compact_no_memory(ngx_bloom_compact_t *compact);


/* In this process. */
static ngx_uint_t  ngx_bloom_compact_runs;


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
    uint64_t              begin, limit;
    ngx_bloom_end_t       end;
    ngx_bloom_compact_t  *compact;
    ngx_bloom_control_t  *control;

    control = state->control;

    begin = control->begin;
    end = ngx_bloom_state_end(state);

    /*
     * What nobody appends to, nobody has to follow and is on disk; a record
     * behind it says how those before are numbered.
     */

    limit = ngx_min(end.base, control->synced);
    limit = ngx_min(limit, control->instance[state->instance].applied);

    if (limit <= begin || end.tail <= end.base + BLOOM_SEGMENT_HEADER
        || limit - begin < ngx_bloom_compact_min()
        || (limit - begin) / 2 < control->compacted
        || ngx_bloom_compact_runs || generation == 0
        || !ngx_bloom_replace_allowed(state, begin))
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
    compact->begin = begin;
    compact->end = begin;
    compact->limit = ngx_min(limit, begin + NGX_BLOOM_COMPACT_MAX);
    compact->tail = end.tail;
    compact->fd = NGX_INVALID_FILE;

    ngx_bloom_compact_runs = 1;

    if (getrandom(compact->keys.secret, BLOOM_HASH_KEY_LEN, 0) == -1) {
        goto failed;
    }

    if (ngx_bloom_compact_keys_begin(&compact->keys) != NGX_OK) {
        (void) ngx_bloom_compact_no_memory(compact);
        goto failed;
    }

    if (ngx_bloom_compact_pass(compact, NGX_BLOOM_COMPACT_COUNTS)
        != NGX_AGAIN)
    {
        goto failed;
    }

    return compact;

failed:

    ngx_bloom_compact_end(compact);

    return NULL;
}


ngx_int_t
ngx_bloom_compact_step(ngx_bloom_compact_t *compact)
{
    ngx_int_t  rc;

    if (!ngx_bloom_replace_allowed(compact->state, compact->begin)) {
        return NGX_DONE;                    /* another run may begin later */
    }

    if (compact->does == NGX_BLOOM_COMPACT_REPLACES) {
        return ngx_bloom_compact_replace(compact);
    }

    rc = ngx_bloom_compact_read(compact);

    return rc == NGX_OK ? ngx_bloom_compact_next(compact) : rc;
}


void
ngx_bloom_compact_end(ngx_bloom_compact_t *compact)
{
    if (compact->reader.window != NULL) {
        ngx_bloom_reader_close(&compact->reader);
    }

    ngx_bloom_io_close(&compact->fd);

    if (compact->tmp[0] != '\0') {
        (void) ngx_bloom_io_remove(compact->tmp);
    }

    ngx_bloom_compact_keys_end(&compact->keys);
    free(compact->buf);
    free(compact);

    ngx_bloom_compact_runs = 0;
}


/* Begins a pass over the journal.  Returns NGX_AGAIN, or NGX_DONE if the run
 * ends. */
static ngx_int_t
ngx_bloom_compact_pass(ngx_bloom_compact_t *compact, ngx_bloom_compact_e does)
{
    if (compact->reader.window != NULL) {
        ngx_bloom_reader_close(&compact->reader);
    }

    if (ngx_bloom_reader_open(&compact->reader, compact->state, compact->begin,
                              compact->tail)
        != NGX_OK)
    {
        return ngx_bloom_compact_fails(compact, NGX_LOG_ERR, ngx_errno,
                                       "no memory to read it");
    }

    if (compact->begin == 0) {
        compact->reader.sequence = 1;
    }

    compact->keys.ordinal = 0;
    compact->does = does;

    return NGX_AGAIN;
}


/* Reads on.  Returns NGX_OK at a pass's end, NGX_AGAIN before, NGX_DONE if the
 * run ends. */
static ngx_int_t
ngx_bloom_compact_read(ngx_bloom_compact_t *compact)
{
    uint64_t             until;
    ngx_int_t            rc;
    bloom_record_t       record;
    ngx_bloom_reader_t  *reader;

    reader = &compact->reader;
    until = reader->position + NGX_BLOOM_COMPACT_STEP;

    do {
        rc = ngx_bloom_reader_next(reader, &record);

        if (rc == NGX_ERROR) {
            return ngx_bloom_compact_fails(compact, NGX_LOG_ERR, reader->err,
                                           (char *) reader->error);
        }

        if (rc == NGX_DONE || reader->lost) {

            /* what is broken stays as it is, so that loads see it */

            return ngx_bloom_compact_fails(compact, NGX_LOG_NOTICE, 0,
                                           "it is damaged");
        }

        if (compact->does == NGX_BLOOM_COMPACT_COUNTS) {

            if (reader->next > compact->limit) {
                compact->sequence = record.sequence;
                return NGX_OK;
            }

            compact->end = reader->next;

        } else if (reader->segment.base >= compact->end) {
            return NGX_OK;
        }

        switch (compact->does) {

        case NGX_BLOOM_COMPACT_COUNTS:
            rc = ngx_bloom_compact_keys_count(&compact->keys, &record);
            break;

        case NGX_BLOOM_COMPACT_MARKS:
            rc = ngx_bloom_compact_keys_mark(&compact->keys, &record);
            break;

        default: /* it sizes or writes */
            rc = ngx_bloom_compact_pack(compact, &record);
            break;
        }

        switch (rc) {

        case NGX_AGAIN:
            return ngx_bloom_compact_pass(compact, NGX_BLOOM_COMPACT_MARKS);

        case NGX_ERROR:
            return ngx_bloom_compact_no_memory(compact);

        case NGX_DONE:
            return NGX_DONE;
        }

    } while (reader->position < until);

    return NGX_AGAIN;
}


/* Ends a pass.  Returns the same as ngx_bloom_compact_step(). */
static ngx_int_t
ngx_bloom_compact_next(ngx_bloom_compact_t *compact)
{
    switch (compact->does) {

    case NGX_BLOOM_COMPACT_COUNTS:
        return ngx_bloom_compact_counted(compact);

    case NGX_BLOOM_COMPACT_MARKS:
        return ngx_bloom_compact_marked(compact);

    case NGX_BLOOM_COMPACT_SIZES:
        return ngx_bloom_compact_sized(compact);

    default: /* NGX_BLOOM_COMPACT_WRITES */
        return ngx_bloom_compact_written(compact);
    }
}


static ngx_int_t
ngx_bloom_compact_counted(ngx_bloom_compact_t *compact)
{
    uint64_t  bytes;

    bytes = ngx_bloom_compact_keys_estimate(&compact->keys);

    if (compact->keys.keys == 0) {
        return NGX_DONE;                         /* no segment is synced yet */
    }

    if (bytes > (compact->end - compact->begin) / 2) {
        return ngx_bloom_compact_fails(compact, NGX_LOG_INFO, 0,
                                       "it would not get much shorter");
    }

    if (ngx_bloom_compact_keys_mark_begin(&compact->keys) != NGX_OK) {
        return ngx_bloom_compact_no_memory(compact);
    }

    return ngx_bloom_compact_pass(compact, NGX_BLOOM_COMPACT_MARKS);
}


static ngx_int_t
ngx_bloom_compact_marked(ngx_bloom_compact_t *compact)
{
    ngx_int_t  rc;

    rc = ngx_bloom_compact_keys_marked(&compact->keys);

    if (rc == NGX_AGAIN) {
        return ngx_bloom_compact_pass(compact, NGX_BLOOM_COMPACT_MARKS);
    }

    if (rc == NGX_OK) {
        compact->buf = malloc(NGX_BLOOM_COMPACT_BUF);
    }

    if (compact->buf == NULL) {
        return ngx_bloom_compact_no_memory(compact);
    }

    bloom_record_begin(&compact->maker, compact->buf, BLOOM_RECORD_MAX);

    return ngx_bloom_compact_pass(compact, NGX_BLOOM_COMPACT_SIZES);
}


/* Puts those keys of a record that stay into the one that is made. */
static ngx_int_t
ngx_bloom_compact_pack(ngx_bloom_compact_t *compact, bloom_record_t *record)
{
    size_t                 len;
    uint64_t               ordinal;
    bloom_key_t            key;
    bloom_record_t         walk;
    const uint8_t         *p;
    bloom_record_maker_t  *maker;

    maker = &compact->maker;
    walk = *record;
    ordinal = compact->keys.ordinal;
    len = 0;

    for (p = walk.keys; bloom_record_key(&walk, &key) == 1; p = walk.keys) {
        if (ngx_bloom_compact_keys_stays(&compact->keys, ordinal++)) {
            len += walk.keys - p;
        }
    }

    if (len == 0) {
        compact->keys.ordinal = ordinal;
        return NGX_OK;
    }

    if (maker->count != 0
        && (len > maker->room - maker->len
            || record->time > compact->oldest + NGX_BLOOM_COMPACT_APART)
        && ngx_bloom_compact_flush(compact) != NGX_OK)
    {
        return NGX_DONE;
    }

    if (maker->count == 0) {
        compact->oldest = record->time;
    }

    compact->newest = ngx_max(compact->newest, record->time);

    for (ordinal = compact->keys.ordinal; bloom_record_key(record, &key) == 1;
         ordinal++)
    {
        if (ngx_bloom_compact_keys_stays(&compact->keys, ordinal)) {
            (void) bloom_record_put(maker, &key);
        }
    }

    compact->keys.ordinal = ordinal;

    return NGX_OK;
}


/* Ends the record that is made. */
static ngx_int_t
ngx_bloom_compact_flush(ngx_bloom_compact_t *compact)
{
    size_t                 size;
    bloom_record_maker_t  *maker;

    maker = &compact->maker;

    if (maker->count == 0) {
        return NGX_OK;
    }

    if (compact->does == NGX_BLOOM_COMPACT_WRITES) {
        size = bloom_record_seal(maker, &compact->segment,
                                 compact->segment.base + BLOOM_SEGMENT_HEADER
                                 + compact->len,
                                 compact->segment.sequence + compact->records,
                                 compact->newest);
        compact->full += size;

    } else {
        size = (maker->len + 7) & ~(size_t) 7;
    }

    compact->len += size;
    compact->records++;

    if (compact->full > NGX_BLOOM_COMPACT_BUF - BLOOM_RECORD_MAX
        && ngx_bloom_compact_write(compact) != NGX_OK)
    {
        return NGX_ERROR;
    }

    bloom_record_begin(maker, compact->buf + compact->full, BLOOM_RECORD_MAX);

    return NGX_OK;
}


static ngx_int_t
ngx_bloom_compact_write(ngx_bloom_compact_t *compact)
{
    ngx_int_t  rc;

    rc = ngx_bloom_io_write(compact->fd, compact->buf, compact->full,
                            BLOOM_SEGMENT_HEADER + compact->len
                            - compact->full);

    compact->full = 0;

    /* all at the end would take too long */

    if (rc == NGX_OK
        && compact->len - compact->synced >= NGX_BLOOM_COMPACT_SYNC)
    {
        compact->synced = compact->len;
        rc = ngx_bloom_io_sync(compact->fd);
    }

    if (rc != NGX_OK) {
        (void) ngx_bloom_compact_fails(compact, NGX_LOG_ERR, ngx_errno,
                                       "a segment cannot be written");
    }

    return rc;
}


static ngx_int_t
ngx_bloom_compact_sized(ngx_bloom_compact_t *compact)
{
    int                 err;
    uint64_t            size;
    bloom_segment_t    *segment;

    (void) ngx_bloom_compact_flush(compact);

    size = ngx_max(BLOOM_SEGMENT_HEADER + compact->len, BLOOM_SEGMENT_MIN);

    if (size > (compact->end - compact->begin) / 4 * 3) {
        return ngx_bloom_compact_fails(compact, NGX_LOG_INFO, 0,
                                       "it would not get much shorter");
    }

    if (size > BLOOM_SEGMENT_MAX) {
        return ngx_bloom_compact_fails(compact, NGX_LOG_NOTICE, 0,
                                       "it has more different keys than fit "
                                       "into a segment; load an image that "
                                       "has them, built with --as-of");
    }

    segment = &compact->segment;

    segment->base = compact->end - size;
    segment->size = size;
    segment->sequence = compact->sequence - compact->records;
    segment->created = ngx_bloom_time();

    ngx_bloom_state_name(compact->state, compact->tmp,
                         "save.compact.%P.tmp", ngx_pid);

    compact->fd = ngx_bloom_io_open(compact->tmp, O_RDWR|O_CREAT|O_TRUNC);

    if (compact->fd != NGX_INVALID_FILE) {

        do {
            err = posix_fallocate(compact->fd, 0, size);
        } while (err == NGX_EINTR);

    } else {
        err = ngx_errno;
    }

    if (err == 0
        && getrandom(segment->salt, BLOOM_SEGMENT_SALT_LEN, 0) == -1)
    {
        err = ngx_errno;
    }

    if (err != 0) {
        return ngx_bloom_compact_fails(compact, NGX_LOG_ERR, err,
                                       "a segment cannot be made");
    }

    compact->len = 0;
    compact->records = 0;
    compact->newest = 0;

    return ngx_bloom_compact_pass(compact, NGX_BLOOM_COMPACT_WRITES);
}


static ngx_int_t
ngx_bloom_compact_written(ngx_bloom_compact_t *compact)
{
    u_char  header[BLOOM_SEGMENT_HEADER];

    if (ngx_bloom_compact_flush(compact) != NGX_OK
        || (compact->full != 0 && ngx_bloom_compact_write(compact) != NGX_OK))
    {
        return NGX_DONE;
    }

    /* the header last: before it, the file is no segment to anybody */

    bloom_segment_encode(&compact->segment, header);

    if (ngx_bloom_io_write(compact->fd, header, BLOOM_SEGMENT_HEADER, 0)
        != NGX_OK
        || ngx_bloom_io_sync(compact->fd) != NGX_OK)
    {
        return ngx_bloom_compact_fails(compact, NGX_LOG_ERR, ngx_errno,
                                       "a segment cannot be written");
    }

    compact->does = NGX_BLOOM_COMPACT_REPLACES;

    return NGX_AGAIN;
}


static ngx_int_t
ngx_bloom_compact_replace(ngx_bloom_compact_t *compact)
{
    ngx_int_t         rc;
    bloom_segment_t  *segment;

    segment = &compact->segment;

    if (compact->sequence - segment->sequence != compact->records
        || compact->len > segment->size - BLOOM_SEGMENT_HEADER)
    {
        return NGX_DONE;
    }

    rc = ngx_bloom_replace(compact->state, compact->tmp, compact->begin,
                           segment->base, compact->end);

    if (rc == NGX_DECLINED) {
        return NGX_DONE;
    }

    if (rc != NGX_OK) {
        return ngx_bloom_compact_fails(compact, NGX_LOG_ERR, ngx_errno,
                                       "its segments cannot be replaced");
    }

    compact->tmp[0] = '\0';
    compact->state->control->compacted = segment->size;

    ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                  "bloom zone \"%V\": %uL bytes of the journal became %uL: of "
                  "%uL keys %uL were different, in %uL records now; it took "
                  "%uL ms", &compact->name, compact->end - compact->begin,
                  segment->size, compact->keys.keys, compact->keys.distinct,
                  compact->records, ngx_bloom_time() - compact->begun);

    return NGX_DONE;
}


/* Ends the run, and puts the next one off until there is twice as much.
 * Returns NGX_DONE. */
static ngx_int_t
ngx_bloom_compact_fails(ngx_bloom_compact_t *compact, ngx_uint_t level,
    ngx_err_t err, const char *why)
{
    compact->state->control->compacted = compact->tail - compact->begin;

    ngx_log_error(level, ngx_cycle->log, err,
                  "bloom zone \"%V\": the journal is not compacted: %s",
                  &compact->name, why);

    return NGX_DONE;
}


static ngx_int_t
ngx_bloom_compact_no_memory(ngx_bloom_compact_t *compact)
{
    return ngx_bloom_compact_fails(compact, NGX_LOG_ERR, ngx_errno,
                                   "no memory for it");
}
