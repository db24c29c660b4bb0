/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions read the records of the journal from segment to segment, and
 * tell the end of the journal from damage.
 *
 * Records are numbered without gaps, so a missing one is noticed.  What a gap
 * means depends on the position up to which the journal was promised to be on
 * disk.  Before that position a gap is damage, and the valid records after it
 * count.  After that position, a machine that lost power may have written later
 * records but not earlier ones.  So the first record there that is missing or
 * broken is the end of the journal, as in any write-ahead log, and nothing
 * after it counts.
 */

#ifndef _NGX_BLOOM_READER_H_INCLUDED_
#define _NGX_BLOOM_READER_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_segment.h"

#pragma GCC visibility push(hidden)


#define NGX_BLOOM_TO_THE_END  UINT64_MAX

/* The state of reading a journal. */
typedef struct {
    ngx_bloom_state_t   *state;
    uint64_t             position;       /* of the next record */
    uint64_t             limit;          /* where reading ends */
    uint64_t             promised;       /* before this position a gap is
                                            damage; after it, the end */
    uint64_t             sequence;       /* of the next record; 0: any */
    ngx_bloom_end_t      end;            /* after the last record read; limit
                                            0: none was read */

    /*
     * The newest time of the records read so far.  A time ahead of the clock by
     * more than NGX_BLOOM_CLOCKS_DIFFER is left out, because a clock was wrong.
     */
    uint64_t             newest;
    uint64_t             now;            /* when reading began, ms since 1970 */

    /*
     * The latest time, ms since 1970, that a lost record can have; 0: no record
     * is lost.  `damage` is a message for the log that says where it was.
     */
    uint64_t             lost;
    ngx_uint_t           broken;         /* records are lost, unless the
                                            sequence number of the next record
                                            proves otherwise */
    ngx_uint_t           passed;         /* a segment without records was
                                            read */
    u_char               damage[NGX_MAX_PATH + BLOOM_RECORD_ERROR_LEN];

    ngx_uint_t           cut;            /* there are valid records after the
                                            end, which do not count */

    /* set if NGX_ERROR is returned: a system error, or a newer version */
    ngx_err_t            err;
    u_char               error[NGX_MAX_PATH + BLOOM_RECORD_ERROR_LEN];

    /* the segment that is being read */
    uint64_t             next;           /* base of the segment after it */
    ngx_fd_t             fd;
    bloom_segment_t      segment;
    u_char              *window;         /* its bytes from `start` on */
    uint64_t             start;
    size_t               len;
    size_t               room;
} ngx_bloom_reader_t;

/*
 * Begins to read at `position`, the position of a record or of a segment.
 * `limit` is the end of the journal, and the caller may raise it later; or it
 * is NGX_BLOOM_TO_THE_END, to find the end of a journal that no process uses.
 * Returns NGX_OK, or NGX_ERROR if there is no memory.
 */
ngx_int_t ngx_bloom_reader_open(ngx_bloom_reader_t *reader,
    ngx_bloom_state_t *state, uint64_t position, uint64_t limit);

/*
 * Reads the next record, of any type that this version knows; it is valid until
 * the next call.  Returns NGX_OK, NGX_DONE at the end, or NGX_ERROR with
 * reader->error.
 */
ngx_int_t ngx_bloom_reader_next(ngx_bloom_reader_t *reader,
    bloom_record_t *record);

/* Frees what the reader uses; its results stay valid. */
void ngx_bloom_reader_close(ngx_bloom_reader_t *reader);

/* Notes in the reader that records at the end of the journal are lost. */
void ngx_bloom_reader_lost_end(ngx_bloom_reader_t *reader);



#pragma GCC visibility pop

#endif /* _NGX_BLOOM_READER_H_INCLUDED_ */
