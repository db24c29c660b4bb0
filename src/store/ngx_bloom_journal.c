/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A record is written after the end of the journal first, and becomes part of
 * the journal when the end moves, so that a process may die in between.
 */

#include "ngx_bloom_journal.h"
#include "ngx_bloom_as_of.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_state_files.h"

#include <sys/random.h>


static ngx_int_t ngx_bloom_journal_find_end(ngx_bloom_state_t *state,
    ngx_bloom_end_t *end);
static ngx_int_t ngx_bloom_journal_cut(ngx_bloom_state_t *state,
    ngx_bloom_end_t *end);
static ngx_int_t ngx_bloom_journal_open(ngx_bloom_state_t *state,
    uint64_t base);
static ngx_int_t ngx_bloom_journal_fails(ngx_bloom_state_t *state);
static ngx_int_t ngx_bloom_journal_rewrite(ngx_bloom_state_t *state,
    uint64_t tail);
static ngx_int_t ngx_bloom_journal_lose(ngx_bloom_state_t *state);


ngx_int_t
ngx_bloom_journal_recover(ngx_bloom_state_t *state, ngx_bloom_reader_t *reader)
{
    ngx_bloom_end_t      *end;
    ngx_bloom_control_t  *control;

    control = state->control;
    end = &reader->end;

    if (end->limit == 0 && ngx_bloom_journal_find_end(state, end) != NGX_OK) {
        return NGX_ERROR;
    }

    if (reader->promised != UINT64_MAX && reader->promised > end->tail) {
        ngx_bloom_reader_lost_end(reader);
    }

    /* the loss is recorded before the traces that it is seen by are removed, so
     * that it is not forgotten if the process dies here */

    if (reader->lost != 0
        && ngx_bloom_state_lose(state, reader->lost) != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (ngx_bloom_state_files_lower(state, end->tail) != NGX_OK
        || ngx_bloom_journal_cut(state, end) != NGX_OK)
    {
        return NGX_ERROR;
    }

    control->end[0] = *end;
    control->which = 0;

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
 * Finds the end of the journal if no record was read, because reading began
 * after the last one, at a checkpoint, or because there is no record at all.
 * Returns NGX_OK, or NGX_ERROR with errno.
 */
static ngx_int_t
ngx_bloom_journal_find_end(ngx_bloom_state_t *state, ngx_bloom_end_t *end)
{
    char                  error[BLOOM_RECORD_ERROR_LEN];
    ngx_fd_t              fd;
    ngx_int_t             rc;
    bloom_record_t        record;
    bloom_segment_e       what;
    bloom_segment_t       segment;
    ngx_bloom_reader_t    reader;
    ngx_bloom_control_t  *control;

    control = state->control;

    if (ngx_bloom_reader_open(&reader, state, control->begin,
                              NGX_BLOOM_TO_THE_END)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (control->begin == 0) {
        reader.sequence = 1;
    }

    do {
        rc = ngx_bloom_reader_next(&reader, &record);
    } while (rc == NGX_OK);

    *end = reader.end;
    ngx_bloom_reader_close(&reader);

    if (rc == NGX_ERROR) {
        ngx_set_errno(reader.err);
        return NGX_ERROR;
    }

    if (end->limit != 0) {
        return NGX_OK;
    }

    end->base = control->begin;
    end->tail = end->base;
    end->limit = end->base;
    end->sequence = 1;

    /* a segment without records has the number of its first record */

    fd = ngx_bloom_segment_open(state, end->base, O_RDONLY, &segment, error,
                                &what);

    if (fd == NGX_INVALID_FILE) {
        return ngx_errno == NGX_ENOENT ? NGX_OK : NGX_ERROR;
    }

    (void) ngx_close_file(fd);

    if (what == BLOOM_SEGMENT_OK) {
        end->sequence = segment.sequence;
    }

    return NGX_OK;
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
    bloom_record_maker_t *maker, ngx_bloom_end_t *end)
{
    size_t                size;
    uint32_t              version;
    ngx_uint_t            next;
    ngx_bloom_control_t  *control;

    control = state->control;

    *end = control->end[control->which & 1];

    size = bloom_record_size(maker);
    version = bloom_record_version(maker->type);
    next = (end->tail + size > end->limit);

    /*
     * The segment of the end has a record, so its version stays.  Segments
     * after one of version 2 have that version, too, or each change of the type
     * could need a new segment.
     */

    if ((next || version != 1) && end->base != end->limit
        && ngx_bloom_journal_open(state, end->base) == NGX_OK)
    {
        next |= (maker->type == BLOOM_RECORD_CLEAR
                 || state->segment.version < version);
        version = ngx_max(version, state->segment.version);
    }

    if (next) {

        if (__atomic_load_n(&control->prepared, __ATOMIC_ACQUIRE)
            <= end->limit)
        {
            __atomic_store_n(&control->new_segment, end->limit,
                             __ATOMIC_RELEASE);
            return NGX_AGAIN;
        }

        if (ngx_bloom_segment_finish(state, end) != NGX_OK) {
            return ngx_bloom_journal_fails(state);
        }

        end->base = end->limit;
        end->tail = end->base + BLOOM_SEGMENT_HEADER;
        end->limit = 0;
    }

    if (ngx_bloom_journal_open(state, end->base) != NGX_OK) {
        return ngx_bloom_journal_fails(state);
    }

    if (state->segment.version < version
        && ngx_bloom_segment_upgrade(state->segment_fd, &state->segment,
                                     version)
           != NGX_OK)
    {
        return ngx_bloom_journal_fails(state);
    }

    end->limit = end->base + state->segment.size;

    end->time = ngx_bloom_as_of_now(state, end->time);

    (void) bloom_record_seal(maker, &state->segment, end->tail, end->sequence,
                             end->time);

    if (ngx_bloom_io_write(state->segment_fd, maker->buf, size,
                           end->tail - end->base)
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
                   ngx_bloom_plural(maker->count), size, end->tail,
                   end->sequence);

    end->tail += size;
    end->sequence++;

    return NGX_OK;
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


/*
 * Records that a record could not be written.  The segment is closed: as long
 * as no record in it is published, another process may change its version.
 * Returns NGX_ERROR.
 */
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
    uint64_t              which;
    ngx_bloom_control_t  *control;

    control = state->control;

    /* other instances are told first: they must not miss a key */

    ngx_bloom_state_require(state, end->tail);

    ngx_bloom_fault("publish");

    which = control->which + 1;
    control->end[which & 1] = *end;

    __atomic_store_n(&control->which, which, __ATOMIC_SEQ_CST);

    ngx_bloom_fault("published");
}


ngx_int_t
ngx_bloom_journal_prepare(ngx_bloom_state_t *state)
{
    char                  error[BLOOM_RECORD_ERROR_LEN];
    u_char                header[BLOOM_SEGMENT_HEADER];
    ngx_fd_t              fd;
    ngx_err_t             err;
    bloom_segment_e       what;
    bloom_segment_t       segment, current;
    ngx_bloom_end_t       end;
    ngx_bloom_control_t  *control;

    control = state->control;
    end = ngx_bloom_state_end(state);

    /* one segment is enough until it is a quarter full, or until a record
     * cannot go there; then two are kept ready, and always for bloom_remove,
     * which cannot wait for a segment of version 2 */

    if (control->prepared >= end.limit + 2 * (uint64_t) BLOOM_SEGMENT_SIZE
        || (control->prepared > end.tail
            && control->prepared
               > __atomic_load_n(&control->new_segment, __ATOMIC_ACQUIRE)
            && (!state->removes || control->prepared > end.limit)
            && end.tail - end.base <= (end.limit - end.base) / 4))
    {
        return NGX_OK;
    }

    segment.version = 1;
    segment.base = control->prepared;
    segment.size = (segment.base == control->begin)
                   ? NGX_BLOOM_SEGMENT_FIRST : BLOOM_SEGMENT_SIZE;
    segment.sequence = end.sequence;
    segment.created = ngx_bloom_time();

    if (getrandom(segment.salt, BLOOM_SEGMENT_SALT_LEN, 0) == -1) {
        goto failed;
    }

    if (end.base != end.limit) {

        /* a segment whose header cannot be read is what appenders report */

        fd = ngx_bloom_segment_open(state, end.base, O_RDONLY, &current, error,
                                    &what);

        if (fd != NGX_INVALID_FILE && what == BLOOM_SEGMENT_OK) {
            segment.version = current.version;
        }

        ngx_bloom_io_close(&fd);
    }

    bloom_segment_encode(&segment, header);

    if (ngx_bloom_segment_make(state, &segment, header, BLOOM_SEGMENT_HEADER)
        != NGX_OK)
    {
        goto failed;
    }

    __atomic_store_n(&control->prepared, segment.base + segment.size,
                     __ATOMIC_SEQ_CST);

    if (control->failed == NGX_BLOOM_CANNOT_PREPARE) {
        ngx_bloom_state_fail(state, 0, 0);
    }

    return NGX_OK;

failed:

    err = ngx_errno;

    ngx_bloom_state_fail(state, NGX_BLOOM_CANNOT_PREPARE, err);
    ngx_set_errno(err);

    return NGX_ERROR;
}


ngx_int_t
ngx_bloom_journal_sync(ngx_bloom_state_t *state)
{
    char                  error[BLOOM_RECORD_ERROR_LEN];
    uint64_t              at, tail, base;
    ngx_fd_t              fd;
    ngx_err_t             err;
    ngx_int_t             rc;
    ngx_uint_t            gone;
    bloom_segment_e       what;
    bloom_segment_t       segment;
    ngx_bloom_end_t       end;
    ngx_bloom_control_t  *control;

    control = state->control;
    end = ngx_bloom_state_end(state);
    tail = end.tail;

    if (control->synced >= tail) {
        return NGX_OK;
    }

    gone = 0;

    if (control->rewrite) {
        rc = ngx_bloom_journal_rewrite(state, tail);

        if (rc == NGX_ERROR) {
            goto failed;
        }

        gone = (rc == NGX_DECLINED);
    }

    /*
     * After a failed synchronisation the system may take data for written that
     * it could not write, and it reports the failure only once, to a process
     * that may die before it can record it.  So `rewrite` is set before.
     */

    control->rewrite = tail;

    for (at = control->synced; at < tail; at = segment.base + segment.size) {

        rc = ngx_bloom_segment_find(state, at, &base);

        if (rc == NGX_DONE || (rc == NGX_OK && base > end.base)) {

            if (tail <= end.base) {
                break;                           /* it has no records yet */
            }

            ngx_set_errno(NGX_ENOENT);           /* it has been removed */
            goto failed;
        }

        what = BLOOM_SEGMENT_DAMAGED;

        fd = (rc == NGX_OK)
             ? ngx_bloom_segment_open(state, base, O_RDWR, &segment, error,
                                      &what)
             : NGX_INVALID_FILE;

        if (fd == NGX_INVALID_FILE) {
            goto failed;
        }

        if (what != BLOOM_SEGMENT_OK) {
            segment.base = base;
            segment.size = 8;
        }

        rc = ngx_bloom_io_sync(fd);

        err = ngx_errno;
        ngx_bloom_fault("synced");
        (void) ngx_close_file(fd);
        ngx_set_errno(err);

        if (rc != NGX_OK) {
            goto failed;
        }
    }

    /* before `synced` moves, so that waiting requests see the loss */

    if (gone && ngx_bloom_journal_lose(state) != NGX_OK) {
        goto failed;
    }

    __atomic_store_n(&control->synced, tail, __ATOMIC_SEQ_CST);
    control->synced_check = ~tail;
    control->rewrite = 0;

    if (control->failed == NGX_BLOOM_CANNOT_SYNC) {
        ngx_bloom_state_fail(state, 0, 0);
    }

    return NGX_OK;

failed:

    err = ngx_errno;
    ngx_bloom_state_fail(state, NGX_BLOOM_CANNOT_SYNC, err);
    ngx_set_errno(err);

    return NGX_ERROR;
}


/*
 * Reads, checks and writes again the records from control->synced on.  Returns
 * NGX_OK; NGX_DECLINED if some of them are gone; or NGX_ERROR with errno.
 */
static ngx_int_t
ngx_bloom_journal_rewrite(ngx_bloom_state_t *state, uint64_t tail)
{
    char                 error[BLOOM_RECORD_ERROR_LEN];
    uint64_t             base, synced;
    ngx_fd_t             fd;
    ngx_err_t            err;
    ngx_int_t            rc;
    bloom_record_t       record;
    bloom_segment_e      what;
    bloom_segment_t      segment;
    ngx_bloom_end_t      last;
    ngx_bloom_reader_t   reader;

    synced = state->control->synced;

    /* begin before `synced`, to learn the number of the first record there */

    rc = ngx_bloom_segment_find(state, synced != 0 ? synced - 1 : 0, &base);

    if (rc != NGX_OK || base > synced) {
        base = synced;
    }

    if (rc == NGX_ERROR
        || ngx_bloom_reader_open(&reader, state, base, tail) != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (base == 0) {
        reader.sequence = 1;
    }

    fd = NGX_INVALID_FILE;
    last = reader.end;

    while ((rc = ngx_bloom_reader_next(&reader, &record)) == NGX_OK) {

        if (reader.position <= synced) {
            last = reader.end;
            reader.lost = 0;                 /* loads notice older damage */
            continue;
        }

        if (last.limit != 0 && last.base != reader.end.base
            && ngx_bloom_segment_finish(state, &last) != NGX_OK)
        {
            break;
        }

        if (fd == NGX_INVALID_FILE || last.base != reader.end.base) {
            ngx_bloom_io_close(&fd);
            fd = ngx_bloom_segment_open(state, reader.end.base, O_RDWR,
                                        &segment, error, &what);
        }

        /* the header may have been lost with the records */

        if (fd == NGX_INVALID_FILE
            || (segment.version < bloom_record_version(record.type)
                && ngx_bloom_segment_upgrade(fd, &segment,
                                             bloom_record_version(record.type))
                   != NGX_OK)
            || ngx_bloom_io_write(fd, record.data,
                                  record.size, reader.position - record.size
                                               - reader.end.base)
               != NGX_OK)
        {
            break;
        }

        last = reader.end;
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
    before = __atomic_load_n(&state->control->pending.lost, __ATOMIC_SEQ_CST);

    /* each loss has a time of its own: see ngx_bloom_pending_have_lost() */

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


/* Returns 1 if a record has changes of a source. */
static ngx_uint_t
ngx_bloom_journal_changes(const bloom_record_t *record,
    const bloom_source_t *source)
{
    return record->type == BLOOM_RECORD_CHANGES
           && bloom_source_is(source, record->source.data, record->source.len);
}


ngx_int_t
ngx_bloom_journal_drop(ngx_bloom_state_t *state, uint64_t time,
    const bloom_source_t *source)
{
    u_char                name[NGX_MAX_PATH];
    uint64_t              base, behind, newest, instances;
    ngx_int_t             rc;
    ngx_uint_t            i, ahead;
    bloom_record_t        record;
    ngx_bloom_end_t       end;
    bloom_position_t      reaches;
    ngx_bloom_reader_t    reader;
    ngx_bloom_control_t  *control;

    control = state->control;
    end = ngx_bloom_state_end(state);

    if (ngx_bloom_segment_find(state, 0, &base) != NGX_OK) {
        return NGX_ERROR;
    }

    time = ngx_max(time, 1);

    if (base >= end.base
        || (base == state->oldest
            && (state->newest >= time
                || bloom_position_cmp(state->reaches, source->position) > 0)))
    {
        return NGX_DECLINED;
    }

    if (ngx_bloom_reader_open(&reader, state, base, end.tail) != NGX_OK) {
        return NGX_ERROR;
    }

    newest = 0;
    ahead = 0;
    reaches.high = 0;
    reaches.low = 0;

    do {
        rc = ngx_bloom_reader_next(&reader, &record);

        if (rc != NGX_OK || reader.segment.base != base) {
            break;
        }

        if (ngx_bloom_journal_changes(&record, source)) {

            if (bloom_position_cmp(record.after, source->position) > 0) {
                reaches = record.after;
                newest = time;
            }

            continue;
        }

        ahead |= (record.time > reader.newest);
        newest = ngx_max(reader.newest, reader.lost);
    } while (newest < time);

    /* a record whose time is wrong is not newer than the first one in the next
     * segment */

    if (newest < time) {
        newest = ngx_max(newest, reader.lost);

        if (ahead) {
            newest = (rc == NGX_OK) ? ngx_max(newest, record.time) : time;
        }
    }

    behind = (reader.segment.base == base) ? reader.next
                                           : reader.segment.base;
    ngx_bloom_reader_close(&reader);

    if (rc == NGX_ERROR) {
        return NGX_ERROR;
    }

    if (newest >= time) {
        state->oldest = base;
        state->newest = (reaches.high | reaches.low) != 0 ? 0 : newest;
        state->reaches = reaches;
        return NGX_DECLINED;
    }

    if (behind > end.base) {
        return NGX_DECLINED;
    }

    instances = __atomic_load_n(&control->instances, __ATOMIC_SEQ_CST);

    for (i = 0; i < NGX_BLOOM_INSTANCES; i++) {
        if ((instances & ((uint64_t) 1 << i))
            && __atomic_load_n(&control->instance[i].required,
                               __ATOMIC_SEQ_CST)
               != NGX_BLOOM_LEFT
            && __atomic_load_n(&control->instance[i].applied,
                               __ATOMIC_SEQ_CST)
               < behind)
        {
            return NGX_DECLINED;
        }
    }

    /* the file "dropped" is written first: it may name a segment that still
     * exists, but must not lack one that is gone */

    if (base >= control->begin) {

        /* no image need have what has expired */

        newest = state->expire != 0 ? control->dropped
                                    : ngx_max(newest, control->dropped);

        if (ngx_bloom_state_write_mark(state, "dropped", newest, behind)
            != NGX_OK)
        {
            return NGX_ERROR;
        }

        control->dropped = newest;
        control->begin = behind;
    }

    if (ngx_bloom_io_remove(state->dir,
                            ngx_bloom_segment_name(name, base))
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    return NGX_OK;
}
