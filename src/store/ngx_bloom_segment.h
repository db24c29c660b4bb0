/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions find, open, create and remove segments, the files of the
 * journal.  bloom_record.h describes their format.
 */

#ifndef _NGX_BLOOM_SEGMENT_H_INCLUDED_
#define _NGX_BLOOM_SEGMENT_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_state.h"

#pragma GCC visibility push(hidden)


/* The size of the first segment, which is small, because most zones never get
 * additions.  Others have BLOOM_SEGMENT_SIZE. */
#define NGX_BLOOM_SEGMENT_FIRST  (2 * 1024 * 1024)

/* Writes the name of a segment's file into `name`, which has NGX_MAX_PATH
 * bytes.  Returns `name`. */
u_char *ngx_bloom_segment_name(u_char *name, uint64_t base);

/*
 * Opens a segment and decodes its header.  Returns the open file with *what,
 * the result of decoding; if that is not OK, `error` (BLOOM_RECORD_ERROR_LEN
 * bytes) gets the reason.  Returns NGX_INVALID_FILE with errno if the file
 * cannot be read.
 */
ngx_fd_t ngx_bloom_segment_open(ngx_bloom_state_t *state, uint64_t base,
    int flags, bloom_segment_t *segment, char *error, bloom_segment_e *what);

/*
 * Reads a segment from its header on, but at most `most` bytes.  Bytes that a
 * short file lacks are zero.  Returns NGX_OK with *len bytes in *buf, which the
 * caller frees; NGX_DECLINED with errno if there is no such segment or its
 * header is not valid; or NGX_ERROR with errno if it cannot be read.
 */
ngx_int_t ngx_bloom_segment_read(ngx_bloom_state_t *state, uint64_t base,
    uint64_t most, bloom_segment_t *segment, u_char **buf, size_t *len);

/*
 * Finds the segment that contains a position, or else the first one after it.
 * Returns NGX_OK with its base in *base; NGX_DONE if there is no such segment;
 * or NGX_ERROR with errno and, in *base, the segment that cannot be opened.
 */
ngx_int_t ngx_bloom_segment_find(ngx_bloom_state_t *state, uint64_t position,
    uint64_t *base);

/* Find the last segment, or the last one that begins before a position, and
 * store its base in *base.  Return NGX_OK, NGX_DONE if there is no such
 * segment, or NGX_ERROR with errno. */
ngx_int_t ngx_bloom_segment_last(ngx_bloom_state_t *state, uint64_t *base);
ngx_int_t ngx_bloom_segment_before(ngx_bloom_state_t *state,
    uint64_t position, uint64_t *base);

/*
 * Checks if there is a segment at `base` that has no records and can take the
 * record `sequence` as its first one.  Returns NGX_OK and the segment's size if
 * so; NGX_DECLINED if not; NGX_ERROR with errno.
 */
ngx_int_t ngx_bloom_segment_unused(ngx_bloom_state_t *state, uint64_t base,
    uint64_t sequence, uint64_t *size);

/*
 * Removes a segment.  If its header is not valid, it is renamed to
 * "damaged.BASE" instead, so that an administrator can examine it.  Returns
 * NGX_OK, or NGX_ERROR with errno.
 */
ngx_int_t ngx_bloom_segment_discard(ngx_bloom_state_t *state, uint64_t base);

/* Removes all segments that end at or before a position.  Returns NGX_OK, or
 * NGX_ERROR with errno. */
ngx_int_t ngx_bloom_segment_remove(ngx_bloom_state_t *state, uint64_t end);

/*
 * Creates and synchronises a segment without records.  A segment with the same
 * base is replaced.  Returns NGX_OK, or NGX_ERROR with errno.
 */
ngx_int_t ngx_bloom_segment_make(ngx_bloom_state_t *state,
    const bloom_segment_t *segment);

/*
 * Finds the first valid record of a segment, and stores its sequence in
 * *sequence; UINT64_MAX if there is no such record or no such segment.  Returns
 * NGX_OK, or NGX_ERROR with errno.
 */
ngx_int_t ngx_bloom_segment_begins(ngx_bloom_state_t *state, uint64_t base,
    uint64_t *sequence);

/*
 * Overwrites what a segment has after the journal's end, `tail`, with zeros,
 * and synchronises it.  Returns NGX_OK, or NGX_ERROR with errno.
 */
ngx_int_t ngx_bloom_segment_cut(ngx_bloom_state_t *state, uint64_t base,
    uint64_t tail);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_SEGMENT_H_INCLUDED_ */
