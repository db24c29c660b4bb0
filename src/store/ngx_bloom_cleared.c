/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Each step of settling can be repeated, so any process can finish what another
 * one has left unfinished.
 */

#include "ngx_bloom_cleared.h"
#include "ngx_bloom_as_of.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_journal_survey.h"
#include "ngx_bloom_replace.h"
#include "ngx_bloom_state_files.h"


/* How long to wait for the locks `keeper` and `append`, and for that of the
 * pending keys, ms. */
#define NGX_BLOOM_CLEARED_WAIT   1000

/* How long a start waits for the lock `keeper`, ms. */
#define NGX_BLOOM_CLEARED_START  10000

/* The file that says that a clear is about to happen: a time, and the
 * journal's end before the clear. */
#define NGX_BLOOM_CLEARED_MARK   "clearing"


static ngx_int_t ngx_bloom_cleared_sync(ngx_bloom_state_t *state);
static ngx_int_t ngx_bloom_cleared_forget(ngx_bloom_state_t *state);
static ngx_int_t ngx_bloom_cleared_files(ngx_bloom_state_t *state);
static ngx_int_t ngx_bloom_cleared_find(ngx_bloom_state_t *state,
    bloom_image_t *image, ngx_uint_t read);


ngx_int_t
ngx_bloom_cleared_intend(ngx_bloom_state_t *state)
{
    ngx_bloom_end_t       end;
    ngx_bloom_control_t  *control;

    control = state->control;
    end = ngx_bloom_state_end(state);

    if (control->prepared <= end.limit) {
        __atomic_store_n(&control->new_segment, end.limit, __ATOMIC_RELEASE);

        if (ngx_bloom_journal_prepare(state) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return ngx_bloom_state_write_mark(state, NGX_BLOOM_CLEARED_MARK,
                                      ngx_bloom_time(), end.tail);
}


ngx_int_t
ngx_bloom_cleared_append(ngx_bloom_state_t *state, ngx_bloom_end_t *end)
{
    u_char                buf[BLOOM_RECORD_HEADER + 8];
    bloom_record_maker_t  maker;

    bloom_record_begin(&maker, buf, sizeof(buf));
    maker.type = BLOOM_RECORD_CLEAR;

    return ngx_bloom_journal_append(state, &maker, end);
}


void
ngx_bloom_cleared_publish(ngx_bloom_state_t *state, ngx_bloom_end_t *end,
    bloom_image_t *image)
{
    uint64_t             *required;
    ngx_bloom_pending_t  *pending;
    ngx_bloom_control_t  *control;

    control = state->control;
    pending = &control->pending;
    required = &control->instance[state->instance].required;

    /* if this process dies, the others know what the record has dropped */

    control->clear.base = end->base;
    control->clear.pending = pending->end;
    control->clear.pending_keys = pending->count;
    control->clear.lost = __atomic_load_n(&pending->lost, __ATOMIC_SEQ_CST);
    control->clear.lost_keys = __atomic_load_n(&pending->lost_keys,
                                               __ATOMIC_SEQ_CST);

    __atomic_store_n(&control->clear.position,
                     end->base + BLOOM_SEGMENT_HEADER, __ATOMIC_SEQ_CST);
    __atomic_store_n(&control->clear.unsettled, 1, __ATOMIC_SEQ_CST);

    ngx_bloom_fault("clear");

    /* and this instance does not say "absent" until its next helper has applied
     * the record */

    if (__atomic_load_n(required, __ATOMIC_SEQ_CST) < end->tail) {
        __atomic_store_n(required, end->tail, __ATOMIC_SEQ_CST);
    }

    ngx_bloom_journal_publish(state, end);

    (void) ngx_bloom_cleared_since(state, 0);

    /* nothing that an older image lacks counts any more */

    if (ngx_bloom_as_of_too_old(state, image)) {
        __atomic_store_n(&control->dropped, 0, __ATOMIC_SEQ_CST);
    }
}


ngx_int_t
ngx_bloom_cleared_void(ngx_bloom_state_t *state)
{
    ngx_err_t             err;
    ngx_int_t             rc;
    ngx_bloom_end_t       end, next;
    ngx_bloom_control_t  *control;

    control = state->control;

    if (ngx_bloom_lock(&control->append, NGX_BLOOM_CLEARED_WAIT) != NGX_OK) {
        ngx_set_errno(NGX_EBUSY);
        return NGX_ERROR;
    }

    /* the record is the first one of the segment behind the end */

    end = control->end[control->which & 1];

    next = end;
    next.base = end.limit;
    next.tail = next.base + BLOOM_SEGMENT_HEADER;
    next.limit = UINT64_MAX;

    rc = ngx_bloom_segment_finish(state, &next);
    err = ngx_errno;

    if (rc == NGX_OK) {
        control->clear.position = 0;
        __atomic_store_n(&control->clear.unsettled, 0, __ATOMIC_SEQ_CST);
    }

    ngx_bloom_unlock(&control->append);

    if (rc != NGX_OK) {
        ngx_set_errno(err);
        return NGX_ERROR;
    }

    return ngx_bloom_io_remove(state->dir, (u_char *) NGX_BLOOM_CLEARED_MARK);
}


ngx_uint_t
ngx_bloom_cleared_since(ngx_bloom_state_t *state, uint64_t applied)
{
    uint64_t              begin, position;
    ngx_bloom_control_t  *control;

    control = state->control;
    position = __atomic_load_n(&control->clear.position, __ATOMIC_SEQ_CST);

    if (position == 0 || applied > position
        || ngx_bloom_state_tail(state) <= position)
    {
        return 0;
    }

    /* the process that published the record may have died before this */

    begin = __atomic_load_n(&control->begin, __ATOMIC_SEQ_CST);

    while (begin < control->clear.base
           && !__atomic_compare_exchange_n(&control->begin, &begin,
                                           control->clear.base, 0,
                                           __ATOMIC_SEQ_CST,
                                           __ATOMIC_SEQ_CST))
    {
        /* void */
    }

    return 1;
}


uint64_t
ngx_bloom_cleared_pending(ngx_bloom_state_t *state)
{
    return ngx_bloom_cleared_unsettled(state)
           && ngx_bloom_cleared_since(state, 0) ? state->control->clear.pending
                                                : 0;
}


ngx_int_t
ngx_bloom_cleared_settle(ngx_bloom_state_t *state)
{
    ngx_bloom_control_t  *control;

    control = state->control;

    if (!ngx_bloom_cleared_unsettled(state)) {
        return NGX_OK;
    }

    /* this instance may be the only one, which is starting */

    if (control->end[0].sequence != 0
        && ngx_bloom_state_tail(state) <= control->clear.position)
    {
        return ngx_bloom_cleared_void(state);
    }

    /* first the end of a replacement, which would move the beginning back */

    if (ngx_bloom_replace_settle(state) != NGX_OK) {
        return NGX_ERROR;
    }

    __atomic_store_n(&control->begin,
                     ngx_max(control->begin, control->clear.base),
                     __ATOMIC_SEQ_CST);

    if (ngx_bloom_cleared_sync(state) != NGX_OK
        || ngx_bloom_cleared_forget(state) != NGX_OK
        || ngx_bloom_cleared_files(state) != NGX_OK)
    {
        return NGX_ERROR;
    }

    control->compacted = 0;

    __atomic_store_n(&control->clear.unsettled, 0, __ATOMIC_SEQ_CST);

    return NGX_OK;
}


/* Synchronises the clear record. */
static ngx_int_t
ngx_bloom_cleared_sync(ngx_bloom_state_t *state)
{
    char                  error[BLOOM_RECORD_ERROR_LEN];
    ngx_fd_t              fd;
    ngx_err_t             err;
    ngx_int_t             rc;
    bloom_segment_e       what;
    bloom_segment_t       segment;
    ngx_bloom_control_t  *control;

    control = state->control;

    if (control->end[0].sequence != 0) {
        return ngx_bloom_journal_sync(state);
    }

    /* the only instance is starting and does not know the journal's end yet */

    fd = ngx_bloom_segment_open(state, control->clear.base, O_RDWR, &segment,
                                error, &what);
    if (fd == NGX_INVALID_FILE) {
        return NGX_ERROR;
    }

    rc = ngx_bloom_io_sync(fd);
    err = ngx_errno;

    (void) ngx_close_file(fd);
    ngx_set_errno(err);

    return rc;
}


/* Forgets the pending keys and the loss from before the clear. */
static ngx_int_t
ngx_bloom_cleared_forget(ngx_bloom_state_t *state)
{
    uint64_t              lost;
    ngx_bloom_pending_t  *pending;
    ngx_bloom_control_t  *control;

    control = state->control;
    pending = &control->pending;

    if (ngx_bloom_lock(&pending->mutex, NGX_BLOOM_CLEARED_WAIT) != NGX_OK) {
        ngx_set_errno(NGX_EBUSY);
        return NGX_ERROR;
    }

    if (pending->begin < control->clear.pending
        && control->clear.pending <= pending->end)
    {
        pending->count -= ngx_min(pending->count, control->clear.pending_keys);
        __atomic_store_n(&pending->begin, control->clear.pending,
                         __ATOMIC_SEQ_CST);
    }

    lost = control->clear.lost;

    /* a loss since then stays */

    if (lost != 0
        && __atomic_compare_exchange_n(&pending->lost, &lost, 0, 0,
                                       __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
    {
        __atomic_fetch_sub(&pending->lost_keys, control->clear.lost_keys,
                           __ATOMIC_SEQ_CST);
    }

    ngx_bloom_unlock(&pending->mutex);

    ngx_bloom_fault("forgot");

    return ngx_bloom_io_sync(state->fd);
}


/* Removes the files from before the clear.  The mark "dropped" says that no
 * upload or checkpoint is left. */
static ngx_int_t
ngx_bloom_cleared_files(ngx_bloom_state_t *state)
{
    ngx_bloom_control_t  *control;

    control = state->control;

    if (ngx_bloom_state_files_remove(state, "upload.", NULL) != NGX_OK
        || ngx_bloom_state_files_remove(state, "checkpoint.", NULL) != NGX_OK
        || ngx_bloom_io_sync_directory(state->dir) != NGX_OK
        || ngx_bloom_state_write_mark(state, "dropped", control->dropped,
                                      control->begin)
           != NGX_OK
        || ngx_bloom_io_remove(state->dir, (u_char *) NGX_BLOOM_CLEARED_MARK)
           != NGX_OK
        || ngx_bloom_segment_remove(state, control->begin) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_bloom_io_sync_directory(state->dir);
}


ngx_int_t
ngx_bloom_cleared_recover(ngx_bloom_state_t *state, bloom_image_t *image,
    ngx_uint_t read)
{
    ngx_err_t             err;
    ngx_int_t             rc;
    ngx_bloom_control_t  *control;

    control = state->control;

    if (!state->alone) {

        if (!ngx_bloom_cleared_unsettled(state)) {
            return NGX_OK;
        }

        if (ngx_bloom_lock(&control->keeper, NGX_BLOOM_CLEARED_START)
            != NGX_OK)
        {
            ngx_set_errno(NGX_EBUSY);
            return NGX_ERROR;
        }

        rc = ngx_bloom_cleared_settle(state);
        err = ngx_errno;

        ngx_bloom_unlock(&control->keeper);
        ngx_set_errno(err);

        return rc;
    }

    rc = ngx_bloom_cleared_find(state, image, read);

    if (rc == NGX_OK) {
        rc = ngx_bloom_cleared_settle(state);
    }

    if (rc == NGX_ERROR) {
        return NGX_ERROR;
    }

    control->clear.position = 0;
    control->clear.unsettled = 0;

    return NGX_OK;
}


/*
 * Finds a clear that is to be settled, in the only instance.  Returns NGX_OK,
 * NGX_DECLINED without such a clear, or NGX_ERROR with errno.
 */
static ngx_int_t
ngx_bloom_cleared_find(ngx_bloom_state_t *state, bloom_image_t *image,
    ngx_uint_t read)
{
    uint64_t              base, time, position;
    ngx_int_t             rc;
    ngx_bloom_control_t  *control;

    control = state->control;

    if (ngx_bloom_state_read_mark(state, NGX_BLOOM_CLEARED_MARK, &time,
                                  &position)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (time == 0 && !read) {
        return NGX_DECLINED;
    }

    rc = ngx_bloom_journal_cleared(state, &base);

    if (rc == NGX_ERROR) {
        return NGX_ERROR;
    }

    /* the clear of an empty journal does not move its beginning */

    if (rc != NGX_OK
        || (base <= control->begin
            && (time == 0 || base + BLOOM_SEGMENT_HEADER < position)))
    {
        return ngx_bloom_io_remove(state->dir,
                                   (u_char *) NGX_BLOOM_CLEARED_MARK)
               == NGX_OK ? NGX_DECLINED : NGX_ERROR;
    }

    if (control->clear.position != base + BLOOM_SEGMENT_HEADER) {

        /* the page is older than the clear; what it has is kept */

        control->clear.pending = 0;
        control->clear.lost = 0;
    }

    control->clear.base = base;
    control->clear.position = base + BLOOM_SEGMENT_HEADER;
    control->clear.unsettled = 1;

    if (ngx_bloom_as_of_too_old(state, image)) {
        control->dropped = 0;
    }

    return NGX_OK;
}


ngx_int_t
ngx_bloom_cleared_place(ngx_bloom_state_t *state, const u_char *tmp,
    const u_char *name, uint64_t position)
{
    ngx_err_t             err;
    ngx_int_t             rc;
    ngx_bloom_control_t  *control;

    control = state->control;

    if (ngx_bloom_lock(&control->keeper, NGX_BLOOM_CLEARED_WAIT) != NGX_OK) {
        ngx_set_errno(NGX_EBUSY);
        return NGX_ERROR;
    }

    rc = ngx_bloom_cleared_settle(state);

    if (rc == NGX_OK && ngx_bloom_cleared_since(state, position)) {
        ngx_set_errno(ECANCELED);
        rc = NGX_ERROR;
    }

    if (rc == NGX_OK) {
        rc = ngx_bloom_io_rename(state->dir, tmp, name);
    }

    err = ngx_errno;
    ngx_bloom_unlock(&control->keeper);
    ngx_set_errno(err);

    return rc;
}
