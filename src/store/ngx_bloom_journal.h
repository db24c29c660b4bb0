
/*
 * The journal on disk: read by whoever loads or follows, appended to by
 * workers, kept by the helper.  src/bloom_record.h has the format.
 */

#ifndef _NGX_BLOOM_JOURNAL_H_INCLUDED_
#define _NGX_BLOOM_JOURNAL_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_state.h"

#pragma GCC visibility push(hidden)


/* ---- reading ---- */

#define NGX_BLOOM_TO_THE_END  UINT64_MAX

typedef struct {
    ngx_bloom_state_t   *state;
    uint64_t             position;       /* of the next record */
    uint64_t             limit;          /* where reading ends */
    uint64_t             sequence;       /* of the next record; 0: any */
    uint64_t             time;           /* of the last record read */
    ngx_bloom_end_t      end;            /* behind the last record read */

    /*
     * Records that were lost: none of them is newer than `lost`, ms since
     * 1970, UINT64_MAX if that cannot be known.  0: nothing was lost.
     * `damage` says where, for the log, and `damaged` the position.
     */
    uint64_t             lost;
    ngx_uint_t           broken;         /* if the next record does not tell
                                            otherwise */
    uint64_t             damaged;
    u_char               damage[NGX_MAX_PATH + BLOOM_RECORD_ERROR_LEN];

    uint64_t             gap;            /* where records are missing that
                                            were never said to be on disk; 0:
                                            nowhere */

    /* the system refused something, or the journal is of a newer version */
    ngx_err_t            err;
    u_char               error[NGX_MAX_PATH + BLOOM_RECORD_ERROR_LEN];

    /* of the segment that is read */
    uint64_t             next;           /* where the next one begins */
    ngx_fd_t             fd;
    bloom_segment_t      segment;
    u_char              *window;         /* its bytes from `start` on */
    uint64_t             start;
    size_t               len;
    size_t               room;
} ngx_bloom_reader_t;

/*
 * Begins to read at `position`, that of a record or of a segment.  `limit` is
 * the journal's end, or NGX_BLOOM_TO_THE_END to find it: then whatever is not
 * whole at the very end is a torn tail.  NGX_OK or, if memory is short,
 * NGX_ERROR.
 */
ngx_int_t ngx_bloom_reader_open(ngx_bloom_reader_t *reader,
    ngx_bloom_state_t *state, uint64_t position, uint64_t limit);

/*
 * NGX_OK with the next record, which is valid until the next call; NGX_DONE at
 * the end; NGX_ERROR with reader->error.
 */
ngx_int_t ngx_bloom_reader_next(ngx_bloom_reader_t *reader,
    bloom_record_t *record);

void ngx_bloom_reader_close(ngx_bloom_reader_t *reader);

/*
 * The segment in which a position lies, or the first behind it.  NGX_OK,
 * NGX_DONE if there is none, NGX_ERROR with errno.
 */
ngx_int_t ngx_bloom_journal_find(ngx_bloom_state_t *state, uint64_t position,
    uint64_t *base);

/*
 * Writes a segment, its header and what else there is of it, and puts it on the
 * disk whole: where there is one at its base, in the place of that.  NGX_OK, or
 * NGX_ERROR with errno.
 */
ngx_int_t ngx_bloom_journal_make(ngx_bloom_state_t *state,
    const bloom_segment_t *segment, const u_char *data, size_t len);

/*
 * Fills the control page of who is alone, after a reader has read all: cuts a
 * torn tail and synchronises that.  The journal goes on at `least` or behind.
 * NGX_OK, or NGX_ERROR with errno.
 */
ngx_int_t ngx_bloom_journal_recover(ngx_bloom_state_t *state,
    ngx_bloom_reader_t *reader, uint64_t least);


/* ---- appending: all under the lock control->append ---- */

/*
 * Writes a record behind the end, which does not move yet.  NGX_OK; NGX_AGAIN
 * if no segment has been prepared for it; NGX_ERROR if it cannot be written,
 * which is noted in the control page.
 */
ngx_int_t ngx_bloom_journal_append(ngx_bloom_state_t *state,
    bloom_record_maker_t *maker, ngx_bloom_end_t *end);

/*
 * Moves the end behind that record: from now on it counts.  Its keys are in
 * the filter of the caller's instance; others are told to follow.
 */
void ngx_bloom_journal_publish(ngx_bloom_state_t *state,
    ngx_bloom_end_t *end);


/* ---- keeping: all under the lock control->keeper, by the helper ---- */

/*
 * Makes the next segment if the last one is filling.  NGX_OK, or NGX_ERROR,
 * which is noted in the control page.
 */
ngx_int_t ngx_bloom_journal_prepare(ngx_bloom_state_t *state);

/* Synchronises all records before the end.  Likewise. */
ngx_int_t ngx_bloom_journal_sync(ngx_bloom_state_t *state);

/*
 * Removes the oldest segment if all of its records are older than `time`, ms,
 * and every instance has applied them.  NGX_OK if one was removed,
 * NGX_DECLINED if not, NGX_ERROR with errno.
 */
ngx_int_t ngx_bloom_journal_drop(ngx_bloom_state_t *state, uint64_t time);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_JOURNAL_H_INCLUDED_ */
