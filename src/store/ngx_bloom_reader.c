/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A reader keeps a window of one segment in memory, which moves forward as
 * records are read.
 */

#include "ngx_bloom_reader.h"
#include "ngx_bloom_base_file.h"
#include "ngx_bloom_io.h"


#define NGX_BLOOM_READER_WINDOW  (1024 * 1024)


static ngx_int_t ngx_bloom_reader_find(ngx_bloom_reader_t *reader,
    bloom_record_t *record, size_t *found);
static ngx_int_t ngx_bloom_reader_continues(ngx_bloom_reader_t *reader,
    const bloom_record_t *record, size_t found);
static void ngx_bloom_reader_advance(ngx_bloom_reader_t *reader,
    const bloom_record_t *record, size_t found);
static ngx_int_t ngx_bloom_reader_segment(ngx_bloom_reader_t *reader);
static ngx_int_t ngx_bloom_reader_fill(ngx_bloom_reader_t *reader, size_t len);
static uint64_t ngx_bloom_reader_behind(ngx_bloom_reader_t *reader);
static ngx_uint_t ngx_bloom_reader_void(ngx_bloom_reader_t *reader,
    const bloom_record_t *record);
static ngx_int_t ngx_bloom_reader_damage(ngx_bloom_reader_t *reader,
    const bloom_record_t *record);
static ngx_uint_t ngx_bloom_reader_durable(const bloom_segment_t *segment,
    uint64_t position, uint64_t sequence, const u_char *buf, size_t len);
static void ngx_bloom_reader_damaged(ngx_bloom_reader_t *reader,
    const char *what);
static void ngx_bloom_reader_lost(ngx_bloom_reader_t *reader, uint64_t time);
static ngx_uint_t ngx_bloom_reader_is(const bloom_point_t *point,
    const ngx_bloom_end_t *end);
static ngx_int_t ngx_bloom_reader_newer(ngx_bloom_reader_t *reader,
    bloom_record_t *record);
static ngx_int_t ngx_bloom_reader_no_segment(ngx_bloom_reader_t *reader,
    uint64_t base);
static ngx_int_t ngx_bloom_reader_fails(ngx_bloom_reader_t *reader,
    const char *what, ngx_err_t err);


ngx_int_t
ngx_bloom_reader_open(ngx_bloom_reader_t *reader, ngx_bloom_state_t *state,
    const bloom_point_t *point, const ngx_bloom_end_t *end)
{
    bloom_base_t          base;
    ngx_bloom_control_t  *control;

    control = state->control;

    ngx_memzero(reader, sizeof(ngx_bloom_reader_t));

    reader->state = state;
    reader->position = point->position;
    reader->sequence = point->sequence;
    reader->next = point->position;
    reader->now = ngx_bloom_state_time(state);

    reader->end.tail = point->position;
    reader->end.sequence = point->sequence;
    reader->end.time = point->time;
    reader->end.removals = point->removals;
    reader->before = point->removals;

    if (end != NULL) {
        reader->limit = end->tail;
        reader->until = end->sequence;
        reader->promised = UINT64_MAX;

    } else {

        /*
         * Records that had been appended when a synchronisation failed were
         * known, and the system may have dropped them since.  So a gap there is
         * damage, not the end.
         */

        reader->limit = NGX_BLOOM_TO_THE_END;
        reader->until = UINT64_MAX;
        reader->promised = ngx_max(control->synced, control->rewrite);

        /* so is one before a checkpoint (S5) */

        ngx_bloom_base_file_get(state, &base);
        reader->promised = ngx_max(reader->promised,
                                   base.checkpoint[1].position);
    }

    reader->fd = NGX_INVALID_FILE;
    reader->room = NGX_BLOOM_READER_WINDOW;
    reader->window = malloc(reader->room);

    return reader->window != NULL ? NGX_OK : NGX_ERROR;
}


void
ngx_bloom_reader_extend(ngx_bloom_reader_t *reader, const ngx_bloom_end_t *end)
{
    reader->limit = end->tail;
    reader->until = end->sequence;
    reader->below = 0;
}


void
ngx_bloom_reader_close(ngx_bloom_reader_t *reader)
{
    ngx_bloom_io_close(&reader->fd);

    free(reader->window);
    reader->window = NULL;
}


ngx_int_t
ngx_bloom_reader_next(ngx_bloom_reader_t *reader, bloom_record_t *record)
{
    size_t     found;
    ngx_int_t  rc;

    for ( ;; ) {

        if (reader->position >= reader->limit) {
            return NGX_DONE;
        }

        if (reader->fd == NGX_INVALID_FILE) {
            rc = ngx_bloom_reader_segment(reader);

            if (rc == NGX_DONE && reader->broken
                && ngx_bloom_reader_behind(reader) < reader->promised)
            {
                ngx_bloom_reader_lost_end(reader);
            }

            if (rc != NGX_OK) {
                return rc;
            }

            continue;
        }

        rc = ngx_bloom_reader_find(reader, record, &found);

        if (rc == NGX_ERROR) {
            return NGX_ERROR;
        }

        if (rc == NGX_OK) {
            break;
        }
    }

    rc = ngx_bloom_reader_continues(reader, record, found);

    if (rc == NGX_DECLINED) {
        reader->cut = 1;
        return NGX_DONE;
    }

    if (rc == NGX_ERROR) {
        return NGX_ERROR;
    }

    if (!bloom_record_known(record->type)) {
        return ngx_bloom_reader_newer(reader, record);
    }

    ngx_bloom_reader_advance(reader, record, found);

    return NGX_OK;
}


/* Finds the next record of the open segment.  Returns NGX_OK, with the number
 * of bytes before it in *found; NGX_DONE if the segment has no record left; or
 * NGX_ERROR with the error. */
static ngx_int_t
ngx_bloom_reader_find(ngx_bloom_reader_t *reader, bloom_record_t *record,
    size_t *found)
{
    u_char    *p;
    size_t     rest;
    uint64_t   end;

    end = ngx_min(reader->next, reader->limit);

    if (reader->below == 0 && reader->limit > reader->next
        && ngx_bloom_segment_begins(reader->state, reader->next,
                                    &reader->below)
           != NGX_OK)
    {
        return ngx_bloom_reader_no_segment(reader, reader->next);
    }

    /* the window has the longest possible record, or all that is left */

    if (reader->start + reader->len
        < ngx_min(reader->position + BLOOM_RECORD_MAX, end)
        && ngx_bloom_reader_fill(reader, ngx_min(NGX_BLOOM_READER_WINDOW,
                                                 end - reader->position))
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    p = reader->window + (reader->position - reader->start);
    rest = reader->start + reader->len - reader->position;
    *found = 0;

    if (bloom_record_read(record, &reader->segment, reader->position,
                          reader->sequence, p, rest)
        == BLOOM_RECORD_OK
        && !ngx_bloom_reader_void(reader, record))
    {
        return NGX_OK;
    }

    /* the rest of the segment tells a gap from the end */

    if (ngx_bloom_reader_fill(reader, end - reader->position) != NGX_OK) {
        return NGX_ERROR;
    }

    *found = bloom_record_find(record, &reader->segment, reader->position,
                               reader->sequence, reader->window, reader->len);

    if (*found != reader->len && !ngx_bloom_reader_void(reader, record)) {
        return NGX_OK;
    }

    if (end == reader->limit) {

        /* records appended from now on follow there */

        ngx_bloom_reader_lost_end(reader);
        reader->position = end;
    }

    if (end == reader->next) {
        ngx_bloom_io_close(&reader->fd);
    }

    reader->passed |= (reader->position == reader->segment.base
                                           + BLOOM_SEGMENT_HEADER);
    return NGX_DONE;
}


/* Returns NGX_OK if the journal continues with this record, even if others are
 * lost before it; NGX_DECLINED if the journal ends before it; or NGX_ERROR with
 * the error. */
static ngx_int_t
ngx_bloom_reader_continues(ngx_bloom_reader_t *reader,
    const bloom_record_t *record, size_t found)
{
    ngx_int_t   rc;
    ngx_uint_t  gap;

    /*
     * If numbers have no gap, no record is missing.  If the number is not
     * known, skipped bytes mean a gap, and so does a segment without records
     * that is not the last one.
     */

    gap = (reader->sequence != 0)
          ? record->stamp.sequence != reader->sequence
          : (found != 0 || reader->broken || reader->passed);

    if (gap || found != 0) {

        rc = ngx_bloom_reader_damage(reader, record);

        if (rc != NGX_OK) {
            return rc;
        }

        if (gap) {
            ngx_bloom_reader_damaged(reader, "has lost records");
            ngx_bloom_reader_lost(reader, record->stamp.time);
        }
    }

    return NGX_OK;
}


/* Moves the reader past a record. */
static void
ngx_bloom_reader_advance(ngx_bloom_reader_t *reader,
    const bloom_record_t *record, size_t found)
{
    reader->broken = 0;
    reader->position += found + record->size;
    reader->sequence = record->stamp.sequence + 1;

    if (reader->end.limit == 0) {
        reader->before = bloom_record_before(record);
    }

    reader->end.tail = reader->position;
    reader->end.base = reader->segment.base;
    reader->end.limit = reader->next;
    reader->end.sequence = reader->sequence;
    reader->end.time = ngx_max(reader->end.time, record->stamp.time);
    reader->end.removals = record->stamp.removals;
}


/* Returns the end of the last record read, where a record may be missing. */
static uint64_t
ngx_bloom_reader_behind(ngx_bloom_reader_t *reader)
{
    return reader->end.limit != 0 ? reader->end.tail : reader->position;
}


/* Returns 1 if the record was never published: its process died, and the next
 * segment begins with its number. */
static ngx_uint_t
ngx_bloom_reader_void(ngx_bloom_reader_t *reader, const bloom_record_t *record)
{
    if (record->stamp.sequence >= reader->until) {
        return 1;
    }

    if (reader->limit <= reader->next) {
        return 0;                        /* nothing is in the next segment */
    }

    return record->stamp.sequence >= reader->below;
}


/*
 * Returns NGX_OK if what is missing before `record`, which is in the window,
 * was promised to be on disk; NGX_DECLINED if the journal ends there; or
 * NGX_ERROR with the error.
 */
static ngx_int_t
ngx_bloom_reader_damage(ngx_bloom_reader_t *reader,
    const bloom_record_t *record)
{
    size_t           at, len;
    u_char          *buf;
    uint64_t         base, next, sequence;
    ngx_int_t        rc;
    ngx_uint_t       durable;
    bloom_segment_t  segment;

    if (ngx_bloom_reader_behind(reader) < reader->promised) {
        return NGX_OK;
    }

    /* the first record that is missing; if its number is not known, nothing
     * proves that there was one */

    sequence = reader->sequence;

    if (sequence == 0) {
        return NGX_DECLINED;
    }

    at = (const u_char *) record->data - reader->window;

    durable = ngx_bloom_reader_durable(&reader->segment, reader->start + at,
                                       sequence, reader->window + at,
                                       reader->len - at);

    for (base = reader->next; !durable; base = next) {

        rc = ngx_bloom_segment_find(reader->state, base, &base);

        if (rc == NGX_DONE) {
            return NGX_DECLINED;
        }

        if (rc == NGX_OK) {
            rc = ngx_bloom_segment_read(reader->state, base, UINT64_MAX,
                                        &segment, &buf, &len);
        }

        if (rc == NGX_ERROR) {
            return ngx_bloom_reader_no_segment(reader, base);
        }

        next = base + 1;                 /* if it is damaged or removed */

        if (rc == NGX_OK) {
            next = base + segment.size;
            durable = ngx_bloom_reader_durable(&segment,
                                               base + BLOOM_SEGMENT_HEADER,
                                               sequence,
                                               buf + BLOOM_SEGMENT_HEADER,
                                               len - BLOOM_SEGMENT_HEADER);
            free(buf);
        }
    }

    return NGX_OK;
}


/* Returns 1 if a record in `buf` says that `sequence` was on disk. */
static ngx_uint_t
ngx_bloom_reader_durable(const bloom_segment_t *segment, uint64_t position,
    uint64_t sequence, const u_char *buf, size_t len)
{
    size_t          at;
    bloom_record_t  record;

    for (at = 0; at < len; at += record.size) {

        at += bloom_record_find(&record, segment, position + at, sequence,
                                buf + at, len - at);

        if (at >= len) {
            break;
        }

        if (record.stamp.durable >= sequence) {
            return 1;
        }
    }

    return 0;
}


/* Opens the segment at reader->next, or the first one after it. */
static ngx_int_t
ngx_bloom_reader_segment(ngx_bloom_reader_t *reader)
{
    char             error[BLOOM_RECORD_ERROR_LEN];
    uint64_t         base, begin;
    ngx_int_t        rc;
    bloom_segment_e  what;

    for ( ;; ) {
        begin = ngx_bloom_base_file_begin(reader->state);

        if (reader->next < begin) {

            /* removed meanwhile: an image covers all that was read */

            reader->next = begin;
            reader->position = begin;
            reader->sequence = 0;
            reader->passed = 0;
        }

        rc = ngx_bloom_segment_find(reader->state, reader->next, &base);

        if (rc == NGX_ERROR) {
            return ngx_bloom_reader_no_segment(reader, base);
        }

        if (rc == NGX_DONE && reader->limit == NGX_BLOOM_TO_THE_END) {
            return NGX_DONE;
        }

        if (rc == NGX_DONE || base > reader->next) {
            ngx_bloom_reader_damaged(reader, "lacks a segment");
            reader->broken = 1;
        }

        if (rc == NGX_DONE || base >= reader->limit) {
            reader->position = reader->limit;
            return NGX_DONE;
        }

        reader->fd = ngx_bloom_segment_open(reader->state, base, O_RDONLY,
                                            &reader->segment, error, &what);

        if (reader->fd == NGX_INVALID_FILE) {

            if (ngx_errno == NGX_ENOENT) {
                continue;                        /* removed meanwhile */
            }

            return ngx_bloom_reader_no_segment(reader, base);
        }

        if (what == BLOOM_SEGMENT_OK) {
            break;
        }

        ngx_bloom_io_close(&reader->fd);

        if (what == BLOOM_SEGMENT_FOREIGN) {
            ngx_bloom_print(reader->error, sizeof(reader->error),
                                "\"%V/journal.%016xL\" %s",
                                &reader->state->path, base, error);
            return NGX_ERROR;
        }

        ngx_bloom_reader_damaged(reader, error);
        reader->broken = 1;
        reader->next = base + 1;
    }

    reader->next = reader->segment.base + reader->segment.size;
    reader->below = 0;
    reader->position = ngx_max(reader->position, reader->segment.base
                                                 + BLOOM_SEGMENT_HEADER);
    reader->start = reader->position;
    reader->len = 0;

    return NGX_OK;
}


/* Fills the window with `len` bytes from the position on.  Bytes that a short
 * file lacks are zero. */
static ngx_int_t
ngx_bloom_reader_fill(ngx_bloom_reader_t *reader, size_t len)
{
    u_char   *p;
    ssize_t   n;

    if (len > reader->room) {
        p = realloc(reader->window, len);

        if (p == NULL) {
            return ngx_bloom_reader_fails(reader, "cannot be read",
                                          ngx_errno);
        }

        reader->window = p;
        reader->room = len;
    }

    n = ngx_bloom_io_read(reader->fd, reader->window, len,
                          reader->position - reader->segment.base);

    if (n == NGX_ERROR) {
        return ngx_bloom_reader_fails(reader, "cannot be read", ngx_errno);
    }

    ngx_memzero(reader->window + n, len - n);

    reader->start = reader->position;
    reader->len = len;

    return NGX_OK;
}


/* Records the first damage, for the log. */
static void
ngx_bloom_reader_damaged(ngx_bloom_reader_t *reader, const char *what)
{
    if (reader->damage[0] == '\0'
        && ngx_bloom_reader_behind(reader) < reader->promised)
    {
        ngx_bloom_print(reader->damage, sizeof(reader->damage),
                            "the journal in \"%V\" %s, near position %uL",
                            &reader->state->path, what, reader->position);
    }
}


/*
 * Records that records are lost.  `time` is the time of a record appended after
 * them, so none is newer, unless a clock was wrong.
 */
static void
ngx_bloom_reader_lost(ngx_bloom_reader_t *reader, uint64_t time)
{
    if (time > reader->now + NGX_BLOOM_CLOCKS_DIFFER) {
        time = reader->now;
    }

    reader->lost = ngx_max(reader->lost, ngx_max(time, 1));
}


void
ngx_bloom_reader_lost_end(ngx_bloom_reader_t *reader)
{
    ngx_bloom_reader_damaged(reader, "has lost its end");

    /* while others append, the last record's time is known */

    ngx_bloom_reader_lost(reader, reader->limit == NGX_BLOOM_TO_THE_END
                                  ? reader->now
                                  : ngx_bloom_state_end(reader->state).time);
}


/* Returns 1 if a point can be that of an end or of a record. */
static ngx_uint_t
ngx_bloom_reader_is(const bloom_point_t *point, const ngx_bloom_end_t *end)
{
    return point->sequence == end->sequence && point->time <= end->time
           && point->removals.keys == end->removals.keys
           && point->removals.bytes == end->removals.bytes;
}


ngx_uint_t
ngx_bloom_reader_has(ngx_bloom_state_t *state, const bloom_point_t *point,
    const bloom_point_t *begin, const ngx_bloom_end_t *end)
{
    ngx_int_t            rc;
    ngx_uint_t           has;
    bloom_record_t       record;
    ngx_bloom_end_t      there;
    ngx_bloom_reader_t   reader;

    if (end != NULL && point->position == end->tail) {
        return ngx_bloom_reader_is(point, end);
    }

    if (ngx_bloom_reader_open(&reader, state, end != NULL ? point : begin, end)
        != NGX_OK)
    {
        return 0;
    }

    rc = NGX_OK;

    while (reader.sequence < point->sequence && rc == NGX_OK) {
        rc = ngx_bloom_reader_next(&reader, &record);
    }

    there = reader.end;

    /* the point is between this record and the next one, or the end */

    if (rc == NGX_OK) {
        rc = ngx_bloom_reader_next(&reader, &record);
    }

    if (rc == NGX_OK) {
        has = point->position >= there.tail
              && point->position <= reader.end.tail - record.size;
        there.sequence = record.stamp.sequence;
        there.time = record.stamp.time;
        there.removals = bloom_record_before(&record);

    } else {
        has = (rc == NGX_DONE && point->position == there.tail);
    }

    has = has && reader.lost == 0 && ngx_bloom_reader_is(point, &there);

    ngx_bloom_reader_close(&reader);

    return has;
}


/* Sets the error for a record of a type that only a newer program knows.
 * Returns NGX_ERROR. */
static ngx_int_t
ngx_bloom_reader_newer(ngx_bloom_reader_t *reader, bloom_record_t *record)
{
    ngx_bloom_print(reader->error, sizeof(reader->error),
                        "\"%V/journal.%016xL\" has a record of type %uD near "
                        "position %uL, which this program does not know; use a "
                        "newer program, or move the file away and lose its "
                        "keys", &reader->state->path, reader->segment.base,
                        record->type, reader->position);
    return NGX_ERROR;
}


/* Sets the error for a segment that cannot be read.  Returns NGX_ERROR. */
static ngx_int_t
ngx_bloom_reader_no_segment(ngx_bloom_reader_t *reader, uint64_t base)
{
    reader->err = ngx_errno;

    ngx_bloom_print(reader->error, sizeof(reader->error),
                    "\"%V/journal.%016xL\" cannot be read%s",
                    &reader->state->path, base,
                    ngx_bloom_io_advice(reader->err));
    return NGX_ERROR;
}


static ngx_int_t
ngx_bloom_reader_fails(ngx_bloom_reader_t *reader, const char *what,
    ngx_err_t err)
{
    reader->err = err;

    ngx_bloom_print(reader->error, sizeof(reader->error),
                        "the journal in \"%V\" %s", &reader->state->path,
                        what);
    return NGX_ERROR;
}
