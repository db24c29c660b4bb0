/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A record is written after the end of the journal first, and becomes part of
 * the journal when the end moves, so that a process may die in between.
 */

#include "ngx_bloom_journal.h"
#include "ngx_bloom_as_of.h"
#include "ngx_bloom_base_file.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_source.h"

#include <sys/random.h>


static ngx_int_t ngx_bloom_journal_place(ngx_bloom_state_t *state,
    ngx_bloom_reader_t *reader);
static ngx_uint_t ngx_bloom_journal_reaches(const bloom_segment_t *segment,
    uint64_t sequence, const u_char *buf, size_t len);
static ngx_int_t ngx_bloom_journal_cut(ngx_bloom_state_t *state,
    ngx_bloom_end_t *end);
static uint64_t ngx_bloom_journal_reserve(const ngx_bloom_end_t *end,
    uint64_t prepared);
static ngx_int_t ngx_bloom_journal_open(ngx_bloom_state_t *state,
    uint64_t base);
static ngx_int_t ngx_bloom_journal_fails(ngx_bloom_state_t *state);
static void ngx_bloom_journal_move(ngx_bloom_state_t *state,
    const ngx_bloom_end_t *end);
static ngx_int_t ngx_bloom_journal_create(ngx_bloom_state_t *state,
    const ngx_bloom_end_t *end);
static ngx_int_t ngx_bloom_journal_sync_all(ngx_bloom_state_t *state,
    const ngx_bloom_end_t *end);
static ngx_int_t ngx_bloom_journal_sync_segments(ngx_bloom_state_t *state,
    const ngx_bloom_end_t *end);
static ngx_int_t ngx_bloom_journal_sync_segment(ngx_bloom_state_t *state,
    uint64_t base, uint64_t *next);
static ngx_int_t ngx_bloom_journal_rewrite(ngx_bloom_state_t *state);
static ngx_int_t ngx_bloom_journal_lose(ngx_bloom_state_t *state);


ngx_int_t
ngx_bloom_journal_recover(ngx_bloom_state_t *state, ngx_bloom_reader_t *reader)
{
    bloom_base_t          base;
    ngx_bloom_end_t      *end;
    ngx_bloom_control_t  *control;

    control = state->control;
    end = &reader->end;

    ngx_bloom_base_file_get(state, &base);

    if (end->limit == 0 && ngx_bloom_journal_place(state, reader) != NGX_OK) {
        return NGX_ERROR;
    }

    end->time = ngx_max(end->time, base.floor);

    if (reader->promised > end->tail) {
        ngx_bloom_reader_lost_end(reader);
    }

    /* the loss is recorded before the traces that it is seen by are removed, so
     * that it is not forgotten if the process dies here */

    if (reader->lost != 0
        && ngx_bloom_state_lose(state, reader->lost) != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (ngx_bloom_journal_cut(state, end) != NGX_OK) {
        return NGX_ERROR;
    }

    control->end[0] = *end;
    control->which = 0;
    control->durable = ngx_max(base.from.sequence, base.checkpoint[1].sequence)
                       - 1;

    if (ngx_max(control->synced, control->rewrite) <= end->tail) {
        return NGX_OK;
    }

    /* the next start must not report the same loss again */

    control->synced = ngx_min(control->synced, end->tail);
    control->synced_check = ~control->synced;
    control->rewrite = ngx_min(control->rewrite, end->tail);

    return ngx_bloom_io_sync(state->fd);
}


/*
 * Places the end if no record was read, because reading began after the last
 * one: in the segment that has its position, or else between two segments.  The
 * record before it was on disk when the file "base" got the position.  If it is
 * not there, the segment is older, and the reader has lost the end.  Returns
 * NGX_OK, or NGX_ERROR with errno.
 */
static ngx_int_t
ngx_bloom_journal_place(ngx_bloom_state_t *state, ngx_bloom_reader_t *reader)
{
    size_t            len;
    u_char           *buf;
    uint64_t          base;
    ngx_int_t         rc;
    bloom_segment_t   segment;
    ngx_bloom_end_t  *end;

    end = &reader->end;
    end->base = end->tail;
    end->limit = end->tail;

    rc = ngx_bloom_segment_find(state, end->tail, &base);

    if (rc == NGX_OK && base > end->tail) {
        rc = NGX_DONE;
    }

    if (rc == NGX_DONE && end->tail != 0) {

        /* the last record may have filled its segment */

        rc = ngx_bloom_segment_find(state, end->tail - 1, &base);

        if (rc == NGX_DONE || (rc == NGX_OK && base > end->tail)) {
            reader->promised = end->tail + 1;
            return NGX_OK;
        }
    }

    if (rc != NGX_OK || base == end->tail) {
        return rc == NGX_ERROR ? NGX_ERROR : NGX_OK;
    }

    rc = ngx_bloom_segment_read(state, base, end->tail - base, &segment, &buf,
                                &len);

    if (rc != NGX_OK) {
        return rc == NGX_ERROR ? NGX_ERROR : NGX_OK;
    }

    if (len > BLOOM_SEGMENT_HEADER
        && !ngx_bloom_journal_reaches(&segment, end->sequence - 1, buf, len))
    {
        reader->promised = end->tail + 1;
    }

    free(buf);

    if (end->tail < base + segment.size) {
        end->base = base;
        end->limit = base + segment.size;
        end->tail = ngx_max(end->tail, base + BLOOM_SEGMENT_HEADER);
    }

    return NGX_OK;
}


/* Returns 1 if the first `len` bytes of a segment end with the record
 * `sequence`. */
static ngx_uint_t
ngx_bloom_journal_reaches(const bloom_segment_t *segment, uint64_t sequence,
    const u_char *buf, size_t len)
{
    size_t          at;
    bloom_record_t  record;

    for (at = BLOOM_SEGMENT_HEADER; at < len; at += record.size) {

        at += bloom_record_find(&record, segment, segment->base + at, 0,
                                buf + at, len - at);

        if (at >= len) {
            break;
        }

        if (at + record.size == len && record.stamp.sequence == sequence) {
            return 1;
        }
    }

    return 0;
}


ngx_int_t
ngx_bloom_journal_removals(ngx_bloom_state_t *state, bloom_removals_t *removals)
{
    size_t           at, len;
    u_char          *buf;
    uint64_t         base;
    ngx_int_t        rc;
    bloom_base_t     from;
    bloom_record_t   record;
    bloom_segment_t  segment;

    ngx_bloom_base_file_get(state, &from);

    *removals = from.from.removals;

    for (rc = ngx_bloom_segment_last(state, &base); rc == NGX_OK;
         rc = ngx_bloom_segment_before(state, base, &base))
    {
        rc = ngx_bloom_segment_read(state, base, UINT64_MAX, &segment, &buf,
                                    &len);

        if (rc == NGX_ERROR) {
            return NGX_ERROR;
        }

        if (rc == NGX_DECLINED) {
            continue;
        }

        for (at = BLOOM_SEGMENT_HEADER; at < len; at += record.size) {

            at += bloom_record_find(&record, &segment, base + at, 0, buf + at,
                                    len - at);

            if (at >= len) {
                break;
            }

            *removals = record.stamp.removals;
            rc = NGX_DONE;
        }

        free(buf);

        if (rc == NGX_DONE || base <= from.from.position) {
            return NGX_OK;
        }
    }

    return rc == NGX_ERROR ? NGX_ERROR : NGX_OK;
}


/*
 * Removes everything after the end that could be taken for a part of the
 * journal, now or when the journal has grown that far.  Later segments are
 * removed, the last one first, and then the tail is cut; so the journal keeps
 * its end if the process dies meanwhile.  Segments without records stay.
 * Returns NGX_OK, or NGX_ERROR with errno.
 */
static ngx_int_t
ngx_bloom_journal_cut(ngx_bloom_state_t *state, ngx_bloom_end_t *end)
{
    uint64_t    base, size, prepared;
    ngx_int_t   rc;
    ngx_uint_t  removed;

    prepared = end->limit;

    while ((rc = ngx_bloom_segment_unused(state, prepared, end->sequence,
                                          &size))
           == NGX_OK)
    {
        prepared += size;
    }

    for (removed = 0; rc != NGX_ERROR; removed = 1) {
        rc = ngx_bloom_segment_last(state, &base);

        if (rc != NGX_OK || base < prepared) {
            break;
        }

        rc = ngx_bloom_segment_discard(state, base);
    }

    if (rc == NGX_ERROR
        || (removed
            && ngx_bloom_io_sync_directory(state->dir) != NGX_OK))
    {
        return NGX_ERROR;
    }

    if (end->limit != end->base
        && ngx_bloom_segment_cut(state, end->base, end->tail) != NGX_OK)
    {
        return NGX_ERROR;
    }

    state->control->prepared = prepared;

    return NGX_OK;
}


ngx_int_t
ngx_bloom_journal_append(ngx_bloom_state_t *state,
    bloom_record_maker_t *maker, ngx_uint_t wait, ngx_bloom_end_t *end)
{
    size_t                size;
    uint64_t              at, prepared;
    bloom_stamp_t         stamp;
    ngx_bloom_control_t  *control;

    control = state->control;

    *end = control->end[control->which & 1];

    size = bloom_record_size(maker);

    at = ngx_max(end->tail, end->base + BLOOM_SEGMENT_HEADER);

    prepared = __atomic_load_n(&control->prepared, __ATOMIC_ACQUIRE);

    if (wait && at + size > ngx_bloom_journal_reserve(end, prepared)) {
        return NGX_AGAIN;
    }

    if (at + size > end->limit
        || (maker->type == BLOOM_RECORD_CLEAR && end->tail > end->base))
    {

        if (prepared <= end->limit) {
            return NGX_AGAIN;
        }

        /* the segment of the end changes first, so that all processes agree on
         * it: a record that one of them left in the old one does not count */

        end->base = end->limit;
        at = end->base + BLOOM_SEGMENT_HEADER;

        if (ngx_bloom_journal_open(state, end->base) != NGX_OK) {
            return ngx_bloom_journal_fails(state);
        }

        end->limit = end->base + state->segment.size;

        ngx_bloom_journal_move(state, end);
    }

    if (ngx_bloom_journal_open(state, end->base) != NGX_OK) {
        return ngx_bloom_journal_fails(state);
    }

    end->time = ngx_bloom_as_of_now(state, end->time);

    stamp.sequence = end->sequence;
    stamp.time = end->time;
    stamp.durable = __atomic_load_n(&control->durable, __ATOMIC_ACQUIRE);
    stamp.removals = end->removals;

    (void) bloom_record_seal(maker, &state->segment, at, &stamp);

    end->removals = stamp.removals;

    if (ngx_bloom_io_write(state->segment_fd, maker->buf, size,
                           at - end->base)
        != NGX_OK)
    {
        return ngx_bloom_journal_fails(state);
    }

    if (control->failed == NGX_BLOOM_CANNOT_WRITE) {
        ngx_bloom_state_fail(state, 0, 0);
    }

    ngx_log_debug6(NGX_LOG_DEBUG_CORE, ngx_cycle->log, 0,
                   "bloom journal \"%V\": appended %uD key%s in %uz bytes at "
                   "%uL, sequence %uL", &state->path, maker->count,
                   ngx_bloom_plural(maker->count), size, at,
                   end->sequence);

    end->tail = at + size;
    end->sequence++;

    return NGX_OK;
}


/* Returns where the reserve begins.  A journal with a single segment has half
 * of it for each. */
static uint64_t
ngx_bloom_journal_reserve(const ngx_bloom_end_t *end, uint64_t prepared)
{
    uint64_t  size;

    size = prepared - ngx_min(prepared, end->base);

    return prepared - ngx_min(size / 2, NGX_BLOOM_JOURNAL_RESERVE);
}


/* Opens the segment at `base` for appending.  Returns NGX_OK, or NGX_ERROR with
 * errno. */
static ngx_int_t
ngx_bloom_journal_open(ngx_bloom_state_t *state, uint64_t base)
{
    char             error[BLOOM_RECORD_ERROR_LEN];
    bloom_segment_e  what;

    if (state->segment_fd != NGX_INVALID_FILE && state->segment.base == base) {
        return NGX_OK;
    }

    ngx_bloom_io_close(&state->segment_fd);

    state->segment_fd = ngx_bloom_segment_open(state, base, O_RDWR,
                                               &state->segment, error, &what);

    if (state->segment_fd == NGX_INVALID_FILE) {
        return NGX_ERROR;
    }

    if (what != BLOOM_SEGMENT_OK) {
        ngx_bloom_io_close(&state->segment_fd);
        ngx_set_errno(NGX_EINVAL);
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* Records that a record could not be written.  Returns NGX_ERROR. */
static ngx_int_t
ngx_bloom_journal_fails(ngx_bloom_state_t *state)
{
    ngx_bloom_state_fail(state, NGX_BLOOM_CANNOT_WRITE, ngx_errno);
    ngx_bloom_io_close(&state->segment_fd);

    return NGX_ERROR;
}


void
ngx_bloom_journal_publish(ngx_bloom_state_t *state, ngx_bloom_end_t *end)
{
    /* other instances are told first: they must not miss a key (I5) */

    ngx_bloom_state_require(state, ngx_bloom_state_others(state), end->tail);

    ngx_bloom_fault("required");

    ngx_bloom_journal_move(state, end);

    ngx_bloom_fault("published");
}


ngx_int_t
ngx_bloom_journal_wipe(ngx_bloom_state_t *state)
{
    u_char            header[BLOOM_RECORD_HEADER];
    ssize_t           n;
    uint64_t          at;
    ngx_bloom_end_t   end;

    end = ngx_bloom_state_end(state);
    at = ngx_max(end.tail, end.base + BLOOM_SEGMENT_HEADER);

    if (at + BLOOM_RECORD_HEADER > end.limit) {
        return NGX_OK;
    }

    if (ngx_bloom_journal_open(state, end.base) != NGX_OK) {
        return NGX_ERROR;
    }

    n = ngx_bloom_io_read(state->segment_fd, header, sizeof(header),
                          at - end.base);

    if (n == NGX_ERROR) {
        return NGX_ERROR;
    }

    if (bloom_record_tail(header, n) == 0) {
        return NGX_OK;                   /* zeros */
    }

    ngx_memzero(header, sizeof(header));

    return ngx_bloom_io_write(state->segment_fd, header, sizeof(header),
                              at - end.base);
}


/* Moves the end by a single store.  The caller holds the lock `append`. */
static void
ngx_bloom_journal_move(ngx_bloom_state_t *state, const ngx_bloom_end_t *end)
{
    uint64_t              which;
    ngx_bloom_control_t  *control;

    control = state->control;

    which = control->which + 1;
    control->end[which & 1] = *end;

    __atomic_store_n(&control->which, which, __ATOMIC_SEQ_CST);
}


ngx_int_t
ngx_bloom_journal_prepare(ngx_bloom_state_t *state)
{
    ngx_bloom_end_t       end;
    ngx_bloom_control_t  *control;

    control = state->control;
    end = ngx_bloom_state_end(state);

    /* a journal without a record may never get one: one segment is enough */

    if (control->prepared > end.tail
        && (end.tail <= end.base + BLOOM_SEGMENT_HEADER
            || control->prepared - end.tail
               >= NGX_BLOOM_JOURNAL_RESERVE + NGX_BLOOM_JOURNAL_ROOM))
    {
        return NGX_OK;
    }

    return ngx_bloom_journal_create(state, &end) == NGX_OK ? NGX_AGAIN
                                                           : NGX_ERROR;
}


ngx_int_t
ngx_bloom_journal_prepare_next(ngx_bloom_state_t *state)
{
    ngx_bloom_end_t  end;

    end = ngx_bloom_state_end(state);

    return state->control->prepared > end.limit
           ? NGX_OK : ngx_bloom_journal_create(state, &end);
}


/* Creates a segment behind the others.  Returns NGX_OK, or NGX_ERROR with
 * errno, which the control page records. */
static ngx_int_t
ngx_bloom_journal_create(ngx_bloom_state_t *state, const ngx_bloom_end_t *end)
{
    ngx_err_t             err;
    bloom_base_t          base;
    bloom_segment_t       segment;
    ngx_bloom_control_t  *control;

    control = state->control;
    ngx_bloom_base_file_get(state, &base);

    segment.base = control->prepared;
    segment.size = (segment.base == base.from.position)
                   ? NGX_BLOOM_SEGMENT_FIRST : BLOOM_SEGMENT_SIZE;
    segment.sequence = end->sequence;
    segment.created = ngx_bloom_time();
    segment.entry = base.number;
    ngx_memcpy(segment.journal, base.journal, BLOOM_JOURNAL_ID_LEN);

    if (getrandom(segment.salt, BLOOM_SEGMENT_SALT_LEN, 0) == -1
        || ngx_bloom_segment_make(state, &segment) != NGX_OK)
    {
        err = ngx_errno;

        ngx_bloom_state_fail(state, NGX_BLOOM_CANNOT_PREPARE, err);
        ngx_set_errno(err);

        return NGX_ERROR;
    }

    __atomic_store_n(&control->prepared, segment.base + segment.size,
                     __ATOMIC_SEQ_CST);

    if (control->failed == NGX_BLOOM_CANNOT_PREPARE) {
        ngx_bloom_state_fail(state, 0, 0);
    }

    return NGX_OK;
}


ngx_int_t
ngx_bloom_journal_sync(ngx_bloom_state_t *state)
{
    ngx_err_t             err;
    ngx_bloom_end_t       end;
    ngx_bloom_control_t  *control;

    control = state->control;
    end = ngx_bloom_state_end(state);

    if (control->synced >= end.tail) {
        return NGX_OK;
    }

    if (ngx_bloom_journal_sync_all(state, &end) != NGX_OK) {
        err = ngx_errno;
        ngx_bloom_state_fail(state, NGX_BLOOM_CANNOT_SYNC, err);
        ngx_set_errno(err);

        return NGX_ERROR;
    }

    __atomic_store_n(&control->synced, end.tail, __ATOMIC_SEQ_CST);
    control->synced_check = ~end.tail;
    __atomic_store_n(&control->durable, end.sequence - 1, __ATOMIC_RELEASE);
    control->rewrite = 0;

    if (control->failed == NGX_BLOOM_CANNOT_SYNC) {
        ngx_bloom_state_fail(state, 0, 0);
    }

    return NGX_OK;
}


/* Synchronises the records up to the end.  Returns NGX_OK, or NGX_ERROR with
 * errno. */
static ngx_int_t
ngx_bloom_journal_sync_all(ngx_bloom_state_t *state,
    const ngx_bloom_end_t *end)
{
    ngx_int_t   rc;
    ngx_uint_t  gone;

    gone = 0;

    if (state->control->rewrite) {
        rc = ngx_bloom_journal_rewrite(state);

        if (rc == NGX_ERROR) {
            return NGX_ERROR;
        }

        gone = (rc == NGX_DECLINED);
    }

    /*
     * After a failed synchronisation the system may take data for written that
     * it could not write, and it reports the failure only once, to a process
     * that may die before it can record it.  So `rewrite` is set before.
     */

    state->control->rewrite = end->tail;

    if (ngx_bloom_journal_sync_segments(state, end) != NGX_OK) {
        return NGX_ERROR;
    }

    /* before `synced` moves, so that waiting requests see the loss */

    return gone ? ngx_bloom_journal_lose(state) : NGX_OK;
}


static ngx_int_t
ngx_bloom_journal_sync_segments(ngx_bloom_state_t *state,
    const ngx_bloom_end_t *end)
{
    uint64_t   at, base;
    ngx_int_t  rc;

    for (at = state->control->synced; at < end->tail; /* void */ ) {

        rc = ngx_bloom_segment_find(state, at, &base);

        if (rc == NGX_DONE || (rc == NGX_OK && base > end->base)) {

            if (end->tail <= end->base) {
                break;                           /* it has no records yet */
            }

            ngx_set_errno(NGX_ENOENT);           /* it has been removed */
            return NGX_ERROR;
        }

        if (rc != NGX_OK
            || ngx_bloom_journal_sync_segment(state, base, &at) != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* Synchronises the segment at `base`.  Returns NGX_OK, with the position at
 * which to look for the next one; or NGX_ERROR with errno. */
static ngx_int_t
ngx_bloom_journal_sync_segment(ngx_bloom_state_t *state, uint64_t base,
    uint64_t *next)
{
    char             error[BLOOM_RECORD_ERROR_LEN];
    ngx_fd_t         fd;
    ngx_err_t        err;
    ngx_int_t        rc;
    bloom_segment_e  what;
    bloom_segment_t  segment;

    fd = ngx_bloom_segment_open(state, base, O_RDWR, &segment, error, &what);

    if (fd == NGX_INVALID_FILE) {
        return NGX_ERROR;
    }

    *next = (what == BLOOM_SEGMENT_OK) ? segment.base + segment.size
                                       : base + 8;

    rc = ngx_bloom_io_sync(fd);

    err = ngx_errno;
    ngx_bloom_fault("synced");
    (void) ngx_close_file(fd);
    ngx_set_errno(err);

    return rc;
}


/*
 * Reads, checks and writes again the records from control->synced on.  Returns
 * NGX_OK; NGX_DECLINED if some of them are gone; or NGX_ERROR with errno.
 */
static ngx_int_t
ngx_bloom_journal_rewrite(ngx_bloom_state_t *state)
{
    char                 error[BLOOM_RECORD_ERROR_LEN];
    uint64_t             synced, base;
    ngx_fd_t             fd;
    ngx_err_t            err;
    ngx_int_t            rc;
    bloom_point_t        point;
    bloom_record_t       record;
    bloom_segment_e      what;
    bloom_segment_t      segment;
    ngx_bloom_end_t      end;
    ngx_bloom_reader_t   reader;

    synced = state->control->synced;
    end = ngx_bloom_state_end(state);

    /* begin before `synced`, to learn the number of the first record there */

    ngx_memzero(&point, sizeof(bloom_point_t));

    rc = ngx_bloom_segment_find(state, synced != 0 ? synced - 1 : 0,
                                &point.position);

    if (rc != NGX_OK || point.position > synced) {
        point.position = synced;
    }

    if (rc == NGX_ERROR
        || ngx_bloom_reader_open(&reader, state, &point, &end) != NGX_OK)
    {
        return NGX_ERROR;
    }

    fd = NGX_INVALID_FILE;
    base = 0;

    while ((rc = ngx_bloom_reader_next(&reader, &record)) == NGX_OK) {

        if (reader.position <= synced) {
            reader.lost = 0;                 /* loads notice older damage */
            continue;
        }

        if (fd == NGX_INVALID_FILE || base != reader.end.base) {
            ngx_bloom_io_close(&fd);
            fd = ngx_bloom_segment_open(state, reader.end.base, O_RDWR,
                                        &segment, error, &what);
        }

        if (fd == NGX_INVALID_FILE
            || ngx_bloom_io_write(fd, record.data,
                                  record.size, reader.position - record.size
                                               - reader.end.base)
               != NGX_OK)
        {
            break;
        }

        base = reader.end.base;
    }

    err = (rc == NGX_ERROR) ? reader.err : ngx_errno;

    ngx_bloom_io_close(&fd);
    ngx_bloom_reader_close(&reader);

    if (rc == NGX_DONE) {
        return reader.lost ? NGX_DECLINED : NGX_OK;
    }

    ngx_set_errno(err);

    return NGX_ERROR;
}


/* Records that records could not be synchronised and are gone.  Returns NGX_OK,
 * or NGX_ERROR with errno. */
static ngx_int_t
ngx_bloom_journal_lose(ngx_bloom_state_t *state)
{
    uint64_t  now, before;

    now = ngx_bloom_state_time(state);
    before = __atomic_load_n(&state->control->loss.lost, __ATOMIC_SEQ_CST);

    /* each loss has a time of its own: see ngx_bloom_lost_by_disk() */

    state->lost_before = before;
    state->lost_now = ngx_max(now, before + 1);

    if (ngx_bloom_state_lose(state, state->lost_now) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, 0,
                  "the journal in \"%V\" has lost records that the disk could "
                  "not write: their keys are only in the filter that serves, "
                  "and after the next load or start the zone answers "
                  "\"unknown\" instead of \"absent\"; check the disk, and add "
                  "again every key that was added since the disk began to "
                  "fail",
                  &state->path);

    return NGX_OK;
}
