/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The entry of the file "base" is written before the first segment goes (I15).
 */

#include "ngx_bloom_journal_drop.h"
#include "ngx_bloom_base_file.h"
#include "ngx_bloom_source.h"


static ngx_int_t ngx_bloom_journal_read_oldest(ngx_bloom_state_t *state,
    uint64_t time, const bloom_source_t *source, const bloom_point_t *from,
    const ngx_bloom_end_t *end, ngx_bloom_end_t *last);
static ngx_int_t ngx_bloom_journal_forget(ngx_bloom_state_t *state,
    bloom_base_t *base);
static ngx_uint_t ngx_bloom_journal_applied(ngx_bloom_state_t *state,
    uint64_t position);


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
    bloom_base_t     base;
    ngx_bloom_end_t  end, last;

    end = ngx_bloom_state_end(state);
    ngx_bloom_base_file_get(state, &base);

    time = ngx_max(time, 1);

    if (end.base <= base.from.position
        || (base.from.position == state->oldest
            && (state->newest >= time
                || bloom_position_cmp(state->reaches, source->position) > 0)))
    {
        return NGX_DECLINED;
    }

    if (ngx_bloom_journal_read_oldest(state, time, source, &base.from, &end,
                                      &last)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (state->newest >= time
        || !bloom_position_is_zero(state->reaches)
        || last.limit == 0
        || last.limit > end.base
        || !ngx_bloom_journal_applied(state, last.limit))
    {
        return NGX_DECLINED;
    }

    base.from.position = last.limit;
    base.from.sequence = last.sequence;
    base.from.time = last.time;
    base.from.removals = last.removals;
    ngx_bloom_source_place(state->control, &base.from.place);

    /* no image need have what has expired */

    if (state->expire == 0) {
        base.dropped = ngx_max(base.dropped, state->newest);
    }

    if (ngx_bloom_journal_forget(state, &base) != NGX_OK) {
        return NGX_DECLINED;
    }

    /* the entry is written first: it may name a segment that still exists, but
     * must not lack one that is gone (I15) */

    if (ngx_bloom_base_file_put(state, &base) != NGX_OK
        || ngx_bloom_segment_remove(state, base.from.position) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return NGX_OK;
}


/*
 * Reads the oldest segment, which begins at `from`, up to its end or to the
 * first record that is kept, and sets state->oldest, state->newest and
 * state->reaches.  *last becomes the end of the last record before that;
 * last->limit is 0 if no record precedes it.  Returns NGX_OK, or NGX_ERROR with
 * errno.
 */
static ngx_int_t
ngx_bloom_journal_read_oldest(ngx_bloom_state_t *state, uint64_t time,
    const bloom_source_t *source, const bloom_point_t *from,
    const ngx_bloom_end_t *end, ngx_bloom_end_t *last)
{
    ngx_int_t            rc;
    bloom_record_t       record;
    bloom_position_t     reaches;
    ngx_bloom_reader_t   reader;

    if (ngx_bloom_reader_open(&reader, state, from, end) != NGX_OK) {
        return NGX_ERROR;
    }

    reaches.high = 0;
    reaches.low = 0;
    state->newest = 0;

    /* a record that is kept keeps those before it */

    for (*last = reader.end; /* void */ ; *last = reader.end) {

        rc = ngx_bloom_reader_next(&reader, &record);

        if (rc != NGX_OK
            || (last->limit != 0 && reader.end.base != last->base))
        {
            break;
        }

        if (ngx_bloom_journal_changes(&record, source)) {

            if (bloom_position_cmp(record.after, source->position) > 0) {
                reaches = record.after;
                break;
            }

            continue;
        }

        state->newest = ngx_max(reader.end.time, reader.lost);

        if (state->newest >= time) {
            break;
        }
    }

    ngx_bloom_reader_close(&reader);

    if (rc == NGX_ERROR) {
        return NGX_ERROR;
    }

    state->oldest = from->position;
    state->reaches = reaches;

    return NGX_OK;
}


/* Forgets the checkpoints from before the journal of an entry: all of their
 * keys have expired.  Returns NGX_OK; or NGX_DECLINED if the zone stands on
 * one of them and its keys do not expire. */
static ngx_int_t
ngx_bloom_journal_forget(ngx_bloom_state_t *state, bloom_base_t *base)
{
    ngx_uint_t  i;

    for (i = 0; i < 2; i++) {
        if (base->checkpoint[i].position < base->from.position) {
            bloom_base_forget(base, i);
        }
    }

    if (base->kind == BLOOM_BASE_CHECKPOINT
        && base->checkpoint[0].position == 0)
    {
        if (state->expire == 0) {
            return NGX_DECLINED;
        }

        base->kind = BLOOM_BASE_EMPTY;
        ngx_memzero(base->build_id, BLOOM_IMAGE_BUILD_ID_LEN);
    }

    return NGX_OK;
}


/* Returns 1 if every instance has applied the journal up to a position. */
static ngx_uint_t
ngx_bloom_journal_applied(ngx_bloom_state_t *state, uint64_t position)
{
    uint64_t              instances;
    ngx_uint_t            i;
    ngx_bloom_control_t  *control;

    control = state->control;
    instances = __atomic_load_n(&control->instances, __ATOMIC_SEQ_CST);

    for (i = 0; i < NGX_BLOOM_INSTANCES; i++) {
        if ((instances & ((uint64_t) 1 << i))
            && __atomic_load_n(&control->instance[i].required,
                               __ATOMIC_SEQ_CST)
               != NGX_BLOOM_LEFT
            && __atomic_load_n(&control->instance[i].applied,
                               __ATOMIC_SEQ_CST)
               < position)
        {
            return 0;
        }
    }

    return 1;
}


ngx_int_t
ngx_bloom_journal_advance(ngx_bloom_state_t *state, bloom_base_t *base)
{
    char             error[BLOOM_RECORD_ERROR_LEN];
    uint64_t         first;
    ngx_fd_t         fd;
    bloom_segment_e  what;
    bloom_segment_t  segment;

    if (base->checkpoint[0].position <= base->from.position
        || ngx_bloom_segment_find(state, base->from.position, &first)
           != NGX_OK)
    {
        return NGX_DECLINED;
    }

    fd = ngx_bloom_segment_open(state, first, O_RDONLY, &segment, error, &what);

    if (fd == NGX_INVALID_FILE) {
        return NGX_DECLINED;
    }

    (void) ngx_close_file(fd);

    /* as long as no segment can go, the journal has what both have */

    if ((what != BLOOM_SEGMENT_OK
         || segment.base + segment.size <= base->checkpoint[0].position)
        && ngx_bloom_journal_applied(state, base->checkpoint[0].position))
    {
        base->kind = BLOOM_BASE_CHECKPOINT;
        base->from = base->checkpoint[0];

        /* an image lacks them, unless it was built later: one that is uploaded,
         * or that of file= if the zone gets one */

        base->dropped = ngx_max(base->dropped, base->from.time);

        return NGX_OK;
    }

    return NGX_DECLINED;
}
