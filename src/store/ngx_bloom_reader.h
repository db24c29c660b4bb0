/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A reader walks the records of the journal from segment to segment, and tells
 * the journal's end from damage.
 *
 * Records are numbered without a gap, so a missing one is seen.  Before the
 * position up to which the journal was promised to be on disk a gap is damage,
 * and valid records behind it count.  Behind that position a machine that lost
 * its power may have written what came later and not what came first: there the
 * first record that is missing or not whole is the journal's end, as in every
 * log that is written ahead, and nothing behind it counts.
 */

#ifndef _NGX_BLOOM_READER_H_INCLUDED_
#define _NGX_BLOOM_READER_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_segment.h"

#pragma GCC visibility push(hidden)


#define NGX_BLOOM_TO_THE_END  UINT64_MAX

typedef struct {
    ngx_bloom_state_t   *state;
    uint64_t             position;       /* of the next record */
    uint64_t             limit;          /* where reading ends */
    uint64_t             promised;       /* up to here a gap is damage; behind
                                            it, the end */
    uint64_t             sequence;       /* of the next record; 0: any */
    ngx_bloom_end_t      end;            /* behind the last record read; limit
                                            0: none was read */

    /*
     * The newest time of a record read so far.  Times that are further ahead of
     * the clock than clocks differ are left out: a clock was wrong.
     */
    uint64_t             newest;
    uint64_t             now;            /* when reading began, ms since 1970 */

    /*
     * Records that were lost: none of them is newer than `lost`, ms since 1970.
     * 0: nothing was lost.  `damage` says where, for the log.
     */
    uint64_t             lost;
    ngx_uint_t           broken;         /* if the next record does not tell
                                            otherwise */
    ngx_uint_t           passed;         /* a segment without any record */
    u_char               damage[NGX_MAX_PATH + BLOOM_RECORD_ERROR_LEN];

    ngx_uint_t           cut;            /* valid records are behind the end,
                                            and do not count */

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
 * the journal's end, which may be moved on later, or NGX_BLOOM_TO_THE_END to
 * find the end of a journal that nobody uses.  Returns NGX_OK, or NGX_ERROR if
 * memory is short.
 */
ngx_int_t ngx_bloom_reader_open(ngx_bloom_reader_t *reader,
    ngx_bloom_state_t *state, uint64_t position, uint64_t limit);

/*
 * Reads the next record, which is valid until the next call.  Returns NGX_OK,
 * NGX_DONE at the end, or NGX_ERROR with reader->error.
 */
ngx_int_t ngx_bloom_reader_next(ngx_bloom_reader_t *reader,
    bloom_record_t *record);

void ngx_bloom_reader_close(ngx_bloom_reader_t *reader);

/* Notes that the journal has lost its end. */
void ngx_bloom_reader_lost_end(ngx_bloom_reader_t *reader);



#pragma GCC visibility pop

#endif /* _NGX_BLOOM_READER_H_INCLUDED_ */
