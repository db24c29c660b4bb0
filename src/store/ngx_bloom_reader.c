/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A reader keeps a window of one segment in memory, which moves forward as
 * records are read.
 */

#include "ngx_bloom_reader.h"
#include "ngx_bloom_io.h"


#define NGX_BLOOM_READER_WINDOW  (1024 * 1024)


static ngx_int_t ngx_bloom_reader_segment(ngx_bloom_reader_t *reader);
static ngx_int_t ngx_bloom_reader_fill(ngx_bloom_reader_t *reader, size_t len);
static uint64_t ngx_bloom_reader_behind(ngx_bloom_reader_t *reader);
static void ngx_bloom_reader_damaged(ngx_bloom_reader_t *reader,
    const char *what);
static void ngx_bloom_reader_lost(ngx_bloom_reader_t *reader, uint64_t time);
static ngx_int_t ngx_bloom_reader_newer(ngx_bloom_reader_t *reader,
    bloom_record_t *record);
static ngx_int_t ngx_bloom_reader_no_segment(ngx_bloom_reader_t *reader,
    uint64_t base);
static ngx_int_t ngx_bloom_reader_fails(ngx_bloom_reader_t *reader,
    const char *what, ngx_err_t err);


ngx_int_t
ngx_bloom_reader_open(ngx_bloom_reader_t *reader, ngx_bloom_state_t *state,
    uint64_t position, uint64_t limit)
{
    ngx_bloom_control_t  *control;

    control = state->control;

    ngx_memzero(reader, sizeof(ngx_bloom_reader_t));

    reader->state = state;
    reader->position = position;
    reader->next = position;
    reader->limit = limit;
    reader->now = ngx_bloom_state_time(state);

    /*
     * Records that had been appended when a synchronisation failed were known,
     * and the system may have dropped them since.  So a gap there is damage,
     * not the end.
     */

    reader->promised = (limit == NGX_BLOOM_TO_THE_END && control->synced != 0)
                       ? ngx_max(control->synced, control->rewrite)
                       : UINT64_MAX;

    reader->fd = NGX_INVALID_FILE;
    reader->room = NGX_BLOOM_READER_WINDOW;
    reader->window = malloc(reader->room);

    return reader->window != NULL ? NGX_OK : NGX_ERROR;
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
    u_char      *p;
    size_t       rest, found;
    uint64_t     end;
    ngx_int_t    rc;
    ngx_uint_t   gap;

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

        end = ngx_min(reader->next, reader->limit);

        /* the window has the longest possible record, or all that is left */

        if (reader->start + reader->len
            < ngx_min(reader->position + BLOOM_RECORD_MAX, end)
            && ngx_bloom_reader_fill(reader,
                                     ngx_min(NGX_BLOOM_READER_WINDOW,
                                             end - reader->position))
               != NGX_OK)
        {
            return NGX_ERROR;
        }

        p = reader->window + (reader->position - reader->start);
        rest = reader->start + reader->len - reader->position;
        found = 0;

        if (bloom_record_read(record, &reader->segment, reader->position,
                              reader->sequence, p, rest)
            != BLOOM_RECORD_OK)
        {
            /* the rest of the segment tells a gap from the end */

            if (ngx_bloom_reader_fill(reader, end - reader->position)
                != NGX_OK)
            {
                return NGX_ERROR;
            }

            found = bloom_record_find(record, &reader->segment,
                                      reader->position, reader->sequence,
                                      reader->window, reader->len);

            if (found == reader->len) {

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
                continue;
            }
        }

        /*
         * If numbers have no gap, no record is missing.  If the number is not
         * known, skipped bytes mean a gap, and so does a segment without
         * records that is not the last one.
         */

        gap = (reader->sequence != 0)
              ? record->sequence != reader->sequence
              : (found != 0 || reader->broken || reader->passed);

        if (gap || found != 0) {

            if (ngx_bloom_reader_behind(reader) >= reader->promised) {
                reader->cut = 1;
                return NGX_DONE;
            }

            if (gap) {
                ngx_bloom_reader_damaged(reader, "has lost records");
                ngx_bloom_reader_lost(reader, record->time);
            }
        }

        if (!bloom_record_known(record->type)) {
            return ngx_bloom_reader_newer(reader, record);
        }

        reader->broken = 0;
        reader->position += found + record->size;
        reader->sequence = record->sequence + 1;

        if (record->time <= reader->now + NGX_BLOOM_CLOCKS_DIFFER) {
            reader->newest = ngx_max(reader->newest, record->time);
        }

        reader->end.tail = reader->position;
        reader->end.base = reader->segment.base;
        reader->end.limit = reader->next;
        reader->end.sequence = reader->sequence;
        reader->end.time = record->time;

        return NGX_OK;
    }
}


/* Returns the end of the last record read, where a record may be missing. */
static uint64_t
ngx_bloom_reader_behind(ngx_bloom_reader_t *reader)
{
    return reader->end.limit != 0 ? reader->end.tail : reader->position;
}


/* Opens the segment at reader->next, or the first one after it. */
static ngx_int_t
ngx_bloom_reader_segment(ngx_bloom_reader_t *reader)
{
    char             error[BLOOM_RECORD_ERROR_LEN];
    uint64_t         base;
    ngx_int_t        rc;
    bloom_segment_e  what;

    for ( ;; ) {

        if (reader->next < reader->state->control->begin) {

            /* removed meanwhile: an image covers all that was read */

            reader->next = reader->state->control->begin;
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

        if (what == BLOOM_SEGMENT_NEWER) {
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

    time = ngx_max(time, reader->newest);
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


/* Sets the error for a segment that cannot be opened.  Returns NGX_ERROR. */
static ngx_int_t
ngx_bloom_reader_no_segment(ngx_bloom_reader_t *reader, uint64_t base)
{
    reader->err = ngx_errno;

    ngx_bloom_print(reader->error, sizeof(reader->error),
                    "\"%V/journal.%016xL\" cannot be opened%s",
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
