
/*
 * A record is written behind the end and counts once the end has moved, so that
 * a process may die between the two.
 */

#include "ngx_bloom_journal.h"
#include "ngx_bloom_io.h"

#include <sys/random.h>


/* The first segment is small: most zones are never added to. */
#define NGX_BLOOM_JOURNAL_FIRST_SIZE  (1024 * 1024)


ngx_int_t
ngx_bloom_journal_recover(ngx_bloom_state_t *state,
    ngx_bloom_reader_t *reader, uint64_t least)
{
    uint64_t              base;
    ngx_fd_t              fd;
    ngx_int_t             rc;
    ngx_uint_t            none;
    ngx_bloom_end_t      *end;
    bloom_segment_e       what;
    bloom_segment_t       segment;
    ngx_bloom_control_t  *control;
    char                  error[BLOOM_RECORD_ERROR_LEN];

    control = state->control;
    end = &control->end[0];

    *end = reader->end;
    control->which = 0;

    rc = ngx_bloom_segment_find(state, control->begin, &base);

    if (rc == NGX_ERROR) {
        return NGX_ERROR;
    }

    none = (rc == NGX_DONE);

    if (none) {
        least = ngx_max(least, control->begin);

    } else {
        control->begin = base;
    }

    if (end->limit == 0 && !none) {

        /* segments, and no record in them */

        fd = ngx_bloom_segment_open(state, control->begin, O_RDONLY, &segment,
                                    error, &what);
        if (fd == NGX_INVALID_FILE) {
            return NGX_ERROR;
        }

        (void) ngx_close_file(fd);

        if (what == BLOOM_SEGMENT_OK) {
            end->base = segment.base;
            end->tail = segment.base + BLOOM_SEGMENT_HEADER;
            end->limit = segment.base + segment.size;
            end->sequence = segment.sequence;
        }
    }

    if (end->sequence == 0) {
        end->sequence = 1;
    }

    /* segments from the end on, without a gap, wait for records */

    control->prepared = end->limit;

    for (base = end->base; end->limit != 0; base = control->prepared) {

        fd = ngx_bloom_segment_open(state, base, O_RDONLY, &segment, error,
                                    &what);

        if (fd == NGX_INVALID_FILE) {
            if (ngx_errno == NGX_ENOENT) {
                break;
            }

            return NGX_ERROR;
        }

        (void) ngx_close_file(fd);

        if (what != BLOOM_SEGMENT_OK) {
            break;
        }

        if (ngx_bloom_segment_cut(state, base, end->tail) != NGX_OK) {
            return NGX_ERROR;
        }

        control->prepared = segment.base + segment.size;
    }

    if (end->tail < least || reader->broken) {

        /* on with a segment of its own, where nothing was ever written */

        least = ngx_max(least, control->prepared);

        for ( ;; ) {
            rc = ngx_bloom_segment_find(state, least, &base);

            if (rc == NGX_ERROR) {
                return NGX_ERROR;
            }

            if (rc == NGX_DONE) {
                break;
            }

            least = ngx_max(least, base) + BLOOM_SEGMENT_MAX;
        }

        least = (least + 7) & ~(uint64_t) 7;

        end->tail = least;
        end->base = least;
        end->limit = least;
        control->prepared = least;
    }

    if (none) {
        control->begin = end->base;
    }

    if (control->synced > end->tail) {
        ngx_bloom_reader_lost_end(reader, end->tail);
    }

    control->synced = ngx_min(control->synced, end->tail);
    control->synced_check = ~control->synced;

    return NGX_OK;
}


ngx_int_t
ngx_bloom_journal_append(ngx_bloom_state_t *state,
    bloom_record_maker_t *maker, ngx_bloom_end_t *end)
{
    char                  error[BLOOM_RECORD_ERROR_LEN];
    size_t                size;
    uint64_t              now;
    bloom_segment_e       what;
    ngx_bloom_control_t  *control;

    control = state->control;

    *end = control->end[control->which & 1];

    size = (maker->len + 7) & ~(size_t) 7;

    if (end->tail + size > end->limit) {

        if (__atomic_load_n(&control->prepared, __ATOMIC_ACQUIRE)
            <= end->limit)
        {
            return NGX_AGAIN;
        }

        if (ngx_bloom_segment_finish(state, end) != NGX_OK) {
            ngx_bloom_state_fail(state, NGX_BLOOM_CANNOT_WRITE, ngx_errno);
            return NGX_ERROR;
        }

        end->base = end->limit;
        end->tail = end->base + BLOOM_SEGMENT_HEADER;
        end->limit = 0;
    }

    if (state->segment_fd == NGX_INVALID_FILE
        || state->segment.base != end->base)
    {
        ngx_bloom_io_close(&state->segment_fd);

        what = BLOOM_SEGMENT_DAMAGED;
        state->segment_fd = ngx_bloom_segment_open(state, end->base, O_RDWR,
                                                   &state->segment, error,
                                                   &what);

        if (what != BLOOM_SEGMENT_OK) {
            ngx_bloom_state_fail(state, NGX_BLOOM_CANNOT_WRITE,
                                 state->segment_fd == NGX_INVALID_FILE
                                 ? ngx_errno : NGX_EINVAL);

            ngx_bloom_io_close(&state->segment_fd);

            return NGX_ERROR;
        }
    }

    end->limit = end->base + state->segment.size;

    /* the clock may go back, the journal's time does not */

    now = ngx_bloom_time();
    end->time = ngx_max(end->time, now);

    (void) bloom_record_seal(maker, &state->segment, end->tail, end->sequence,
                             end->time);

    if (ngx_bloom_io_write(state->segment_fd, maker->buf, size,
                           end->tail - end->base)
        != NGX_OK)
    {
        ngx_bloom_state_fail(state, NGX_BLOOM_CANNOT_WRITE, ngx_errno);
        return NGX_ERROR;
    }

    if (control->failed == NGX_BLOOM_CANNOT_WRITE) {
        ngx_bloom_state_fail(state, 0, 0);
    }

    end->tail += size;
    end->sequence++;

    return NGX_OK;
}


void
ngx_bloom_journal_publish(ngx_bloom_state_t *state, ngx_bloom_end_t *end)
{
    uint64_t              which;
    ngx_bloom_control_t  *control;

    control = state->control;

    /* others are told first: they must not miss a key that counts */

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
    u_char                header[BLOOM_SEGMENT_HEADER];
    ngx_err_t             err;
    bloom_segment_t       segment;
    ngx_bloom_end_t       end;
    ngx_bloom_control_t  *control;

    control = state->control;
    end = ngx_bloom_state_end(state);

    /* one is enough until it is filled by a quarter, then two are ahead */

    if (control->prepared >= end.limit + 2 * (uint64_t) BLOOM_SEGMENT_SIZE
        || (control->prepared > end.tail
            && end.tail - end.base <= (end.limit - end.base) / 4))
    {
        return NGX_OK;
    }

    segment.base = control->prepared;
    segment.size = (segment.base == control->begin)
                   ? NGX_BLOOM_JOURNAL_FIRST_SIZE : BLOOM_SEGMENT_SIZE;
    segment.sequence = end.sequence;
    segment.created = ngx_bloom_time();

    if (getrandom(segment.salt, BLOOM_SEGMENT_SALT_LEN, 0) == -1) {
        goto failed;
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
    bloom_segment_e       what;
    bloom_segment_t       segment;
    ngx_bloom_end_t       end;
    ngx_bloom_control_t  *control;

    control = state->control;
    end = ngx_bloom_state_end(state);
    tail = end.tail;

    for (at = control->synced; at < tail; at = segment.base + segment.size) {

        rc = ngx_bloom_segment_find(state, at, &base);

        if (rc == NGX_DONE || (rc == NGX_OK && base > end.base)) {

            if (tail <= end.base) {
                break;                           /* nothing is in it yet */
            }

            ngx_set_errno(NGX_ENOENT);           /* somebody has removed it */
            goto failed;
        }

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

        /*
         * Where a synchronisation failed, the system may think what it could
         * not write to be on disk; so it is written again.
         */

        rc = control->rewrite
             ? ngx_bloom_segment_rewrite(fd, ngx_min(segment.size,
                                                     tail - base))
             : NGX_OK;

        if (rc == NGX_OK) {
            rc = ngx_bloom_io_sync(fd);
        }

        err = ngx_errno;
        (void) ngx_close_file(fd);
        ngx_set_errno(err);

        if (rc != NGX_OK) {
            goto failed;
        }
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
    control->rewrite = 1;
    ngx_bloom_state_fail(state, NGX_BLOOM_CANNOT_SYNC, err);
    ngx_set_errno(err);

    return NGX_ERROR;
}


ngx_int_t
ngx_bloom_journal_drop(ngx_bloom_state_t *state, uint64_t time)
{
    u_char                name[NGX_MAX_PATH];
    uint64_t              base, behind, newest, lost, unused, instances;
    ngx_uint_t            damaged;
    ngx_int_t             rc;
    ngx_uint_t            i;
    bloom_record_t        record;
    ngx_bloom_reader_t    reader;
    ngx_bloom_control_t  *control;

    control = state->control;
    newest = 0;

    if (ngx_bloom_segment_find(state, 0, &base) != NGX_OK) {
        return NGX_ERROR;
    }

    if (base >= ngx_bloom_state_end(state).base
        || (base == state->oldest && state->newest >= time))
    {
        return NGX_DECLINED;
    }

    if (ngx_bloom_reader_open(&reader, state, base, NGX_BLOOM_TO_THE_END)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    do {
        rc = ngx_bloom_reader_next(&reader, &record);

        if (rc != NGX_OK || reader.segment.base != base) {
            break;
        }

        newest = ngx_max(newest, record.time);
    } while (newest < time);

    behind = (reader.segment.base == base) ? reader.next
                                           : reader.segment.base;
    damaged = (reader.damage[0] != '\0');
    ngx_bloom_reader_close(&reader);

    if (rc == NGX_ERROR) {
        return NGX_ERROR;
    }

    if (newest >= time) {
        state->oldest = base;
        state->newest = newest;
        return NGX_DECLINED;
    }

    if (behind > ngx_bloom_state_end(state).base) {
        return NGX_DECLINED;
    }

    /* what cannot be read has its time in the mark */

    if (damaged
        && (ngx_bloom_state_read_mark(state, "lost", &lost, &unused) != NGX_OK
            || lost == 0 || lost >= time))
    {
        return NGX_DECLINED;
    }

    instances = __atomic_load_n(&control->instances, __ATOMIC_SEQ_CST);

    for (i = 0; i < NGX_BLOOM_INSTANCES; i++) {
        if ((instances & ((uint64_t) 1 << i))
            && __atomic_load_n(&control->instance[i].applied,
                               __ATOMIC_SEQ_CST)
               < behind)
        {
            return NGX_DECLINED;
        }
    }

    /* first what is true either way, then the segment */

    if (base >= control->begin) {
        newest = ngx_max(newest, control->dropped);

        if (ngx_bloom_state_write_mark(state, "dropped", newest, behind)
            != NGX_OK)
        {
            return NGX_ERROR;
        }

        control->dropped = newest;
        control->begin = behind;
    }

    if (ngx_bloom_io_remove(ngx_bloom_segment_name(state, name, base))
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    return NGX_OK;
}
