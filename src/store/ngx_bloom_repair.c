
/*
 * The records behind a gap are put, with new numbers, into copies of their
 * segments, each of which replaces its segment once it is whole.
 */

#include "ngx_bloom_repair.h"
#include "ngx_bloom_io.h"


/* A segment that is rewritten without a gap. */
typedef struct {
    bloom_segment_t      segment;
    u_char              *buf;            /* all of it; NULL: none is */
    ngx_bloom_end_t      end;            /* behind what was put; sequence 0:
                                            nothing yet */
} ngx_bloom_repair_t;


static ngx_int_t ngx_bloom_repair_begin(ngx_bloom_repair_t *repair,
    ngx_bloom_reader_t *reader);
static void ngx_bloom_repair_put(ngx_bloom_repair_t *repair,
    bloom_record_t *record);
static ngx_int_t ngx_bloom_repair_replace(ngx_bloom_repair_t *repair,
    ngx_bloom_state_t *state);


ngx_int_t
ngx_bloom_repair(ngx_bloom_state_t *state, ngx_bloom_reader_t *reader)
{
    uint64_t             base, synced, sequence;
    ngx_int_t            rc;
    bloom_record_t       record;
    ngx_bloom_repair_t   repair;
    ngx_bloom_reader_t   all;

    synced = state->control->synced;

    if (synced == 0 || synced >= reader->end.tail) {
        return NGX_OK;
    }

    /* the reader may have begun behind a gap: at a checkpoint */

    rc = ngx_bloom_segment_find(state, synced - 1, &base);

    if (rc != NGX_OK) {
        return rc == NGX_DONE ? NGX_OK : NGX_ERROR;
    }

    if (ngx_bloom_reader_open(&all, state, base, NGX_BLOOM_TO_THE_END)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (base == 0) {
        all.sequence = 1;
    }

    ngx_memzero(&repair, sizeof(ngx_bloom_repair_t));

    for ( ;; ) {
        sequence = all.sequence;

        rc = ngx_bloom_reader_next(&all, &record);

        if (rc == NGX_ERROR) {
            ngx_set_errno(all.err);
        }

        if (rc != NGX_OK) {
            break;
        }

        if (all.gap == 0) {
            continue;
        }

        if (repair.end.sequence == 0) {
            repair.end.sequence = sequence ? sequence : record.sequence;
        }

        if (repair.buf == NULL || repair.segment.base != all.segment.base) {

            rc = ngx_bloom_repair_replace(&repair, state);

            if (rc != NGX_OK) {
                break;
            }

            rc = ngx_bloom_repair_begin(&repair, &all);

            if (rc != NGX_OK) {
                break;
            }
        }

        ngx_bloom_repair_put(&repair, &record);
    }

    if (rc == NGX_DONE) {
        rc = ngx_bloom_repair_replace(&repair, state);

        if (rc == NGX_OK && repair.end.sequence != 0) {
            reader->end = repair.end;
        }
    }

    free(repair.buf);
    ngx_bloom_reader_close(&all);

    return rc;
}


/* What is before the first gap stays as it is. */
static ngx_int_t
ngx_bloom_repair_begin(ngx_bloom_repair_t *repair, ngx_bloom_reader_t *reader)
{
    repair->segment = reader->segment;

    /* the number of what was lost may have been the lowest in it */

    repair->segment.sequence = ngx_min(repair->segment.sequence,
                                       repair->end.sequence);

    repair->end.base = repair->segment.base;
    repair->end.limit = repair->segment.base + repair->segment.size;
    repair->end.tail = ngx_max(reader->gap,
                               repair->segment.base + BLOOM_SEGMENT_HEADER);

    repair->buf = calloc(1, repair->segment.size);

    if (repair->buf == NULL
        || ngx_bloom_io_read(reader->fd, repair->buf,
                             repair->end.tail - repair->end.base, 0)
           == NGX_ERROR)
    {
        return NGX_ERROR;
    }

    bloom_segment_encode(&repair->segment, repair->buf);

    return NGX_OK;
}


static void
ngx_bloom_repair_put(ngx_bloom_repair_t *repair, bloom_record_t *record)
{
    bloom_record_maker_t  maker;

    maker.buf = repair->buf + (repair->end.tail - repair->end.base);
    maker.room = record->size;
    maker.len = BLOOM_RECORD_HEADER + (record->end - record->keys);
    maker.count = record->count;

    ngx_memcpy(maker.buf + BLOOM_RECORD_HEADER, record->keys,
               record->end - record->keys);

    repair->end.tail += bloom_record_seal(&maker, &repair->segment,
                                          repair->end.tail,
                                          repair->end.sequence, record->time);
    repair->end.sequence++;
    repair->end.time = record->time;
}


/*
 * Puts the segment in the place of the old one, if there is one.  Who dies
 * before the next one is replaced leaves a gap before that, to be closed again.
 */
static ngx_int_t
ngx_bloom_repair_replace(ngx_bloom_repair_t *repair, ngx_bloom_state_t *state)
{
    ngx_int_t  rc;
    ngx_err_t  err;

    if (repair->buf == NULL) {
        return NGX_OK;
    }

    rc = ngx_bloom_segment_make(state, &repair->segment, repair->buf,
                                repair->end.tail - repair->end.base);
    err = ngx_errno;

    free(repair->buf);
    repair->buf = NULL;
    ngx_set_errno(err);

    if (rc != NGX_OK && (err == NGX_ENOSPC || err == EDQUOT)) {
        return NGX_DECLINED;
    }

    return rc;
}
