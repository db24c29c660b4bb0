/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions read the records of the journal from segment to segment, and
 * tell the end of the journal from damage.
 *
 * Records are numbered without gaps, so a missing one is noticed (I18).  If it
 * was promised to be on disk, a gap is damage, and the valid records after it
 * count.  It was promised if a later record says so, or if it is before
 * `synced` of the control page.  Otherwise a machine that lost power may have
 * written later records but not this one.  So the first record that is missing
 * or broken is the end of the journal, as in any write-ahead log, and nothing
 * after it counts.
 *
 * A process that dies before it publishes a record leaves the record behind the
 * end.  The next record has the same number.  It overwrites that record, or it
 * is in the next segment: so a record does not count if the next segment begins
 * with the same number, or with a smaller one.
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
    uint64_t             limit;          /* where reading ends, */
    uint64_t             until;          /* and the sequence that no record
                                            before it has reached */
    uint64_t             promised;       /* before this position a gap is
                                            damage, whatever records say */
    uint64_t             sequence;       /* of the next record; 0: any */
    ngx_bloom_end_t      end;            /* after the last record read; limit
                                            0: none was read, and the rest is
                                            what the caller knew.  Its time is
                                            the greatest one so far */
    bloom_removals_t     before;         /* the removals of all records before
                                            the first one read */
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
    uint64_t             below;          /* the first sequence in that segment;
                                            UINT64_MAX: it has no record; 0: not
                                            known */
    ngx_fd_t             fd;
    bloom_segment_t      segment;
    u_char              *window;         /* its bytes from `start` on */
    uint64_t             start;
    size_t               len;
    size_t               room;
} ngx_bloom_reader_t;

/*
 * Begins to read at a point, whose sequence is 0 if nothing but its position is
 * known: that of a record or of a segment.  `end` is the end of the journal; or
 * it is NULL, to find the end of a journal that no process uses.  Returns
 * NGX_OK, or NGX_ERROR if there is no memory.
 */
ngx_int_t ngx_bloom_reader_open(ngx_bloom_reader_t *reader,
    ngx_bloom_state_t *state, const bloom_point_t *point,
    const ngx_bloom_end_t *end);

/* Moves the end of the journal to where it is now. */
void ngx_bloom_reader_extend(ngx_bloom_reader_t *reader,
    const ngx_bloom_end_t *end);

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

/*
 * Returns 1 if the journal has a point that a file claims, else 0.  With an
 * end it looks at one record or segment there, otherwise at all records from
 * the point `begin` on.
 */
ngx_uint_t ngx_bloom_reader_has(ngx_bloom_state_t *state,
    const bloom_point_t *point, const bloom_point_t *begin,
    const ngx_bloom_end_t *end);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_READER_H_INCLUDED_ */
