/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions decide which records of the journal an image covers, and
 * which time a new record gets.
 *
 * The as_of of an image is the time up to which its keys are complete.  The
 * image covers the records that are older than as_of by more than
 * NGX_BLOOM_CLOCKS_DIFFER, because clocks may differ by up to that.
 *
 * A new record never gets a time before that of an earlier record, or before
 * the time up to which the serving image is complete, so that image does not
 * cover it (I19).
 *
 * The as_of of an image may lie in the future.  Such an image must not cover
 * more records when the clock reaches its as_of.  So the file "base" has, of
 * the last two accepted images, the time of the first load, and an image
 * counts as complete up to that time at most.  If as_of is ahead of the clock
 * by more than NGX_BLOOM_CLOCKS_DIFFER, it cannot be true, and the image
 * covers nothing.
 */

#ifndef _NGX_BLOOM_AS_OF_H_INCLUDED_
#define _NGX_BLOOM_AS_OF_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_state.h"

#pragma GCC visibility push(hidden)


/*
 * Returns the time, ms since 1970, up to which the image is complete; 0 if the
 * image does not state one.  `state` may be NULL.
 */
uint64_t ngx_bloom_as_of_complete(ngx_bloom_state_t *state,
    bloom_image_t *image);

/*
 * Returns the time, ms since 1970, before which the image covers all records:
 * ngx_bloom_as_of_complete() less NGX_BLOOM_CLOCKS_DIFFER; 0 if the image
 * covers no records.  If keys expire, records before the returned time have
 * expired.  `state` may be NULL.
 */
uint64_t ngx_bloom_as_of_cut(ngx_bloom_state_t *state, bloom_image_t *image);

/*
 * Returns the time, ms since 1970, up to which the image is the truth about
 * removed keys: its as_of or, without one, the time at which it was created; at
 * the latest the time at which it was first loaded, which is now for an image
 * that is not remembered.  `state` may be NULL.
 */
uint64_t ngx_bloom_as_of_truth(ngx_bloom_state_t *state,
    const bloom_image_t *image);

/*
 * Returns 1 if records that the image does not cover have been removed from the
 * journal, else 0.  `state` may be NULL.
 */
ngx_uint_t ngx_bloom_as_of_too_old(ngx_bloom_state_t *state,
    bloom_image_t *image);

/* Returns 1 if the as_of of an image that was never accepted is ahead of the
 * clock by more than NGX_BLOOM_CLOCKS_DIFFER, else 0.  `state` may be NULL. */
ngx_uint_t ngx_bloom_as_of_ahead(ngx_bloom_state_t *state,
    const bloom_image_t *image);

/*
 * Returns the time before which both accepted images of an entry cover all
 * records, ms since 1970, and in *source, whose name is set, the position up to
 * which both have its changes; 0 and position 0 if one of them covers none.
 */
uint64_t ngx_bloom_as_of_both(ngx_bloom_state_t *state,
    const bloom_base_t *base, bloom_source_t *source);

/* Makes sure that records appended from now on are newer than the image, which
 * this instance is about to serve, unless keys expire: then the image has no
 * keys. */
void ngx_bloom_as_of_serve(ngx_bloom_state_t *state, bloom_image_t *image);

/*
 * Returns the time for a new record.  `last` is the greatest time of the
 * records before it.  The caller holds the lock control->append.
 */
uint64_t ngx_bloom_as_of_now(ngx_bloom_state_t *state, uint64_t last);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_AS_OF_H_INCLUDED_ */
