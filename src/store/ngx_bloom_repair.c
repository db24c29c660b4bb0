
#include "ngx_bloom_repair.h"
#include "ngx_bloom_io.h"


/* A segment that is written anew, without a gap. */
typedef struct {
    bloom_segment_t      segment;
    u_char              *buf;            /* all of it; NULL: none is */
    ngx_bloom_end_t      end;            /* behind what was put; sequence 0:
                                            nothing yet */
} ngx_bloom_mend_t;


static ngx_int_t ngx_bloom_mend_begin(ngx_bloom_mend_t *mend,
    ngx_bloom_reader_t *reader);
static void ngx_bloom_mend_put(ngx_bloom_mend_t *mend,
    bloom_record_t *record);
static ngx_int_t ngx_bloom_mend_replace(ngx_bloom_mend_t *mend,
    ngx_bloom_state_t *state);


ngx_int_t
ngx_bloom_mend(ngx_bloom_state_t *state, ngx_bloom_reader_t *reader)
{
    uint64_t             base, synced, sequence;
    ngx_int_t            rc;
    bloom_record_t       record;
    ngx_bloom_mend_t     mend;
    ngx_bloom_reader_t   all;

    synced = state->control->synced;

    if (synced == 0 || synced >= reader->end.tail) {
        return NGX_OK;
    }

    /* the reader may have begun behind a gap: at a checkpoint */

    rc = ngx_bloom_journal_find(state, synced - 1, &base);

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

    ngx_memzero(&mend, sizeof(ngx_bloom_mend_t));

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

        if (mend.end.sequence == 0) {
            mend.end.sequence = sequence ? sequence : record.sequence;
        }

        if (mend.buf == NULL || mend.segment.base != all.segment.base) {

            rc = ngx_bloom_mend_replace(&mend, state);

            if (rc != NGX_OK) {
                break;
            }

            rc = ngx_bloom_mend_begin(&mend, &all);

            if (rc != NGX_OK) {
                break;
            }
        }

        ngx_bloom_mend_put(&mend, &record);
    }

    if (rc == NGX_DONE) {
        rc = ngx_bloom_mend_replace(&mend, state);

        if (rc == NGX_OK && mend.end.sequence != 0) {
            reader->end = mend.end;
        }
    }

    free(mend.buf);
    ngx_bloom_reader_close(&all);

    return rc;
}


/* What is before the first gap stays as it is. */
static ngx_int_t
ngx_bloom_mend_begin(ngx_bloom_mend_t *mend, ngx_bloom_reader_t *reader)
{
    mend->segment = reader->segment;

    /* the number of what was lost may have been the lowest in it */

    mend->segment.sequence = ngx_min(mend->segment.sequence,
                                     mend->end.sequence);

    mend->end.base = mend->segment.base;
    mend->end.limit = mend->segment.base + mend->segment.size;
    mend->end.tail = ngx_max(reader->gap,
                             mend->segment.base + BLOOM_SEGMENT_HEADER);

    mend->buf = calloc(1, mend->segment.size);

    if (mend->buf == NULL
        || ngx_bloom_io_read(reader->fd, mend->buf,
                             mend->end.tail - mend->end.base, 0)
           == NGX_ERROR)
    {
        return NGX_ERROR;
    }

    bloom_segment_encode(&mend->segment, mend->buf);

    return NGX_OK;
}


static void
ngx_bloom_mend_put(ngx_bloom_mend_t *mend, bloom_record_t *record)
{
    bloom_record_maker_t  maker;

    maker.buf = mend->buf + (mend->end.tail - mend->end.base);
    maker.room = record->size;
    maker.len = BLOOM_RECORD_HEADER + (record->end - record->keys);
    maker.count = record->count;

    ngx_memcpy(maker.buf + BLOOM_RECORD_HEADER, record->keys,
               record->end - record->keys);

    mend->end.tail += bloom_record_seal(&maker, &mend->segment,
                                        mend->end.tail, mend->end.sequence,
                                        record->time);
    mend->end.sequence++;
    mend->end.time = record->time;
}


/*
 * Puts the segment in the place of the old one, if there is one.  Who dies
 * before the next one is replaced leaves a gap before that, to be closed again.
 */
static ngx_int_t
ngx_bloom_mend_replace(ngx_bloom_mend_t *mend, ngx_bloom_state_t *state)
{
    ngx_int_t  rc;
    ngx_err_t  err;

    if (mend->buf == NULL) {
        return NGX_OK;
    }

    rc = ngx_bloom_journal_make(state, &mend->segment, mend->buf,
                                mend->end.tail - mend->end.base);
    err = ngx_errno;

    free(mend->buf);
    mend->buf = NULL;
    ngx_set_errno(err);

    if (rc != NGX_OK && (err == NGX_ENOSPC || err == EDQUOT)) {
        return NGX_DECLINED;
    }

    return rc;
}
