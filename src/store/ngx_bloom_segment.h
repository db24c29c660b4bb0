/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A segment is one file of the journal, which is found, opened, made, and
 * written to beside its records here.  bloom_record.h has the format.
 */

#ifndef _NGX_BLOOM_SEGMENT_H_INCLUDED_
#define _NGX_BLOOM_SEGMENT_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_state.h"

#pragma GCC visibility push(hidden)


/* Writes the path of a segment's file into `name` of NGX_MAX_PATH bytes.
 * Returns `name`. */
u_char *ngx_bloom_segment_name(u_char *name, uint64_t base);

/*
 * Opens a segment and reads its header.  Returns the file, with *what, and
 * `error` of BLOOM_RECORD_ERROR_LEN bytes where the header is no good; or
 * NGX_INVALID_FILE with errno if it cannot be read.
 */
ngx_fd_t ngx_bloom_segment_open(ngx_bloom_state_t *state, uint64_t base,
    int flags, bloom_segment_t *segment, char *error, bloom_segment_e *what);

/*
 * Finds the segment that contains a position, or else the first one behind it.
 * Returns NGX_OK with its base in *base; NGX_DONE if no such segment exists; or
 * NGX_ERROR with errno and, in *base, the segment that cannot be opened.
 */
ngx_int_t ngx_bloom_segment_find(ngx_bloom_state_t *state, uint64_t position,
    uint64_t *base);

/* Finds the last segment.  Returns NGX_OK, NGX_DONE if there is none, or
 * NGX_ERROR with errno. */
ngx_int_t ngx_bloom_segment_last(ngx_bloom_state_t *state, uint64_t *base);

/*
 * Returns NGX_OK, with the segment's size, if a segment begins at `base` in
 * which nothing was ever written, and a record with this number may be the
 * first; NGX_DECLINED if not, NGX_ERROR with errno.
 */
ngx_int_t ngx_bloom_segment_unused(ngx_bloom_state_t *state, uint64_t base,
    uint64_t sequence, uint64_t *size);

/*
 * Removes a segment.  One that cannot be read becomes damaged.BASE, for whoever
 * may know what to do about it.  Returns NGX_OK, or NGX_ERROR with errno.
 */
ngx_int_t ngx_bloom_segment_discard(ngx_bloom_state_t *state, uint64_t base);

/*
 * Puts a segment on the disk whole, `data` being its first bytes and the rest
 * zeros.  It takes the place of a segment with the same base.  Returns NGX_OK,
 * or NGX_ERROR with errno.
 */
ngx_int_t ngx_bloom_segment_make(ngx_bloom_state_t *state,
    const bloom_segment_t *segment, const u_char *data, size_t len);

/*
 * Overwrites with zeros, and synchronises, whatever a segment has behind the
 * journal's end.  Returns NGX_OK, or NGX_ERROR with errno.
 */
ngx_int_t ngx_bloom_segment_cut(ngx_bloom_state_t *state, uint64_t base,
    uint64_t tail);

/*
 * Ends the segment that `end` lies in: no record follows there.  A process that
 * died before it published a record has left it behind the end, with the number
 * that the next record gets elsewhere, and readers would take it for the older
 * of the two; so its header is overwritten.  Returns NGX_OK, or NGX_ERROR with
 * errno.
 */
ngx_int_t ngx_bloom_segment_finish(ngx_bloom_state_t *state,
    ngx_bloom_end_t *end);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_SEGMENT_H_INCLUDED_ */
