/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Each step of settling can be repeated, so any process can finish what another
 * one has left unfinished.
 */

#include "ngx_bloom_cleared.h"
#include "ngx_bloom_base_file.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_source.h"
#include "ngx_bloom_state_files.h"


static ngx_int_t ngx_bloom_cleared_sync(ngx_bloom_state_t *state);
static ngx_int_t ngx_bloom_cleared_forget(ngx_bloom_state_t *state);
static ngx_int_t ngx_bloom_cleared_stand(ngx_bloom_state_t *state,
    const u_char *build);
static ngx_int_t ngx_bloom_cleared_record(ngx_bloom_state_t *state,
    uint64_t position, bloom_point_t *point);


ngx_int_t
ngx_bloom_cleared_append(ngx_bloom_state_t *state, ngx_bloom_end_t *end)
{
    u_char                buf[BLOOM_RECORD_HEADER + 8];
    ngx_int_t             rc;
    ngx_bloom_loss_t     *loss;
    ngx_bloom_control_t  *control;
    bloom_record_maker_t  maker;

    control = state->control;
    loss = &control->loss;

    bloom_record_begin(&maker, buf, sizeof(buf));
    maker.type = BLOOM_RECORD_CLEAR;

    rc = ngx_bloom_journal_append(state, &maker, 0, end);

    if (rc != NGX_OK) {
        return rc;
    }

    /* if this process dies, the others know what the record has dropped */

    control->clear.at = end->base + BLOOM_SEGMENT_HEADER;
    control->clear.lost = __atomic_load_n(&loss->lost, __ATOMIC_SEQ_CST);
    control->clear.lost_keys = __atomic_load_n(&loss->lost_keys,
                                               __ATOMIC_SEQ_CST);

    ngx_bloom_fault("clear");

    /* and this instance does not say "absent" until its next helper has applied
     * the record */

    ngx_bloom_state_require(state, (uint64_t) 1 << state->instance, end->tail);

    ngx_bloom_journal_publish(state, end);

    ngx_bloom_cleared_found(state, end->base + BLOOM_SEGMENT_HEADER);

    return NGX_OK;
}


void
ngx_bloom_cleared_found(ngx_bloom_state_t *state, uint64_t position)
{
    uint64_t  *found, last;

    found = &state->control->clear.position;
    last = __atomic_load_n(found, __ATOMIC_SEQ_CST);

    while (last < position
           && !__atomic_compare_exchange_n(found, &last, position, 0,
                                           __ATOMIC_SEQ_CST,
                                           __ATOMIC_SEQ_CST))
    {
        /* void */
    }
}


ngx_uint_t
ngx_bloom_cleared_since(ngx_bloom_state_t *state, uint64_t applied)
{
    uint64_t  position;

    position = __atomic_load_n(&state->control->clear.position,
                               __ATOMIC_SEQ_CST);

    return position != 0 && applied <= position;
}


ngx_uint_t
ngx_bloom_cleared_unsettled(ngx_bloom_state_t *state)
{
    uint64_t  position;

    position = __atomic_load_n(&state->control->clear.position,
                               __ATOMIC_SEQ_CST);

    return position > ngx_bloom_base_file_begin(state);
}


ngx_int_t
ngx_bloom_cleared_settle(ngx_bloom_state_t *state, const u_char *build)
{
    bloom_base_t  base;

    if (!ngx_bloom_cleared_unsettled(state)) {
        return NGX_OK;
    }

    if (ngx_bloom_cleared_sync(state) != NGX_OK
        || ngx_bloom_cleared_forget(state) != NGX_OK
        || ngx_bloom_cleared_stand(state, build) != NGX_OK)
    {
        return NGX_ERROR;
    }

    /* no start uses what the entry does not name; the helper removes what
     * cannot be removed now */

    ngx_bloom_base_file_get(state, &base);
    ngx_bloom_state_files_sweep(state, &base);
    (void) ngx_bloom_segment_remove(state, base.from.position);

    return NGX_OK;
}


/* Synchronises the journal up to the clear record, and with it: a gap before it
 * would be the journal's end. */
static ngx_int_t
ngx_bloom_cleared_sync(ngx_bloom_state_t *state)
{
    /* the only instance is starting and does not know the journal's end yet */

    return (state->control->end[0].sequence == 0)
           ? ngx_bloom_io_sync_all(state->fd) : ngx_bloom_journal_sync(state);
}


/* Forgets the loss from before the clear. */
static ngx_int_t
ngx_bloom_cleared_forget(ngx_bloom_state_t *state)
{
    uint64_t              lost;
    ngx_bloom_loss_t     *loss;
    ngx_bloom_control_t  *control;

    control = state->control;
    loss = &control->loss;

    if (control->clear.at != control->clear.position) {
        return NGX_OK;                   /* the page is older than the clear */
    }

    lost = control->clear.lost;

    /* a loss since then stays */

    if (lost != 0
        && __atomic_compare_exchange_n(&loss->lost, &lost, 0, 0,
                                       __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
    {
        ngx_bloom_control_check_lost(loss);
        __atomic_fetch_sub(&loss->lost_keys, control->clear.lost_keys,
                           __ATOMIC_SEQ_CST);
    }

    ngx_bloom_fault("forgot");

    return ngx_bloom_io_sync(state->fd);
}


/* Lets the zone stand on what it goes back to. */
static ngx_int_t
ngx_bloom_cleared_stand(ngx_bloom_state_t *state, const u_char *build)
{
    bloom_base_t  base;

    ngx_bloom_base_file_get(state, &base);

    if (ngx_bloom_cleared_record(state, state->control->clear.position,
                                 &base.from)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    base.kind = BLOOM_BASE_EMPTY;
    ngx_memzero(base.build_id, BLOOM_IMAGE_BUILD_ID_LEN);
    ngx_memzero(base.replaced, BLOOM_IMAGE_BUILD_ID_LEN);
    bloom_base_forget(&base, 0);
    bloom_base_forget(&base, 1);

    if (build != NULL) {
        base.kind = BLOOM_BASE_FILE;
        ngx_memcpy(base.build_id, build, BLOOM_IMAGE_BUILD_ID_LEN);
    }

    /* nothing that an older image lacks counts any more */

    base.dropped = 0;
    base.lost = 0;
    base.lost_keys = 0;

    return ngx_bloom_base_file_put(state, &base);
}


/* Finds out what the journal comes to at the clear record.  A record at this
 * place has the removals of all records before, and none of its own. */
static ngx_int_t
ngx_bloom_cleared_record(ngx_bloom_state_t *state, uint64_t position,
    bloom_point_t *point)
{
    size_t           len;
    u_char          *buf;
    ngx_uint_t       clears;
    bloom_record_t   record;
    bloom_segment_t  segment;

    if (ngx_bloom_segment_read(state, position - BLOOM_SEGMENT_HEADER,
                               BLOOM_SEGMENT_HEADER + BLOOM_RECORD_HEADER + 8,
                               &segment, &buf, &len)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    clears = bloom_record_read(&record, &segment, position, 0,
                               buf + BLOOM_SEGMENT_HEADER,
                               len - BLOOM_SEGMENT_HEADER)
             == BLOOM_RECORD_OK
             && record.type == BLOOM_RECORD_CLEAR;

    free(buf);

    if (!clears) {
        ngx_set_errno(NGX_EINVAL);
        return NGX_ERROR;
    }

    ngx_memzero(point, sizeof(bloom_point_t));

    point->position = position;
    point->sequence = record.stamp.sequence;
    point->time = record.stamp.time;
    point->removals = record.stamp.removals;

    ngx_bloom_source_place(state->control, &point->place);

    return NGX_OK;
}


ngx_int_t
ngx_bloom_cleared_place(ngx_bloom_state_t *state, const u_char *tmp,
    const u_char *name, uint64_t position)
{
    if (ngx_bloom_cleared_unsettled(state)
        || ngx_bloom_cleared_since(state, position))
    {
        ngx_set_errno(ECANCELED);
        return NGX_ERROR;
    }

    return ngx_bloom_io_rename(state->dir, tmp, name);
}
