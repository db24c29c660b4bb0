/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions decide which records of the journal an image covers, and
 * which time a new record gets.
 *
 * The as_of of an image is the time up to which its keys are complete.  The
 * image covers the records that are older than as_of by more than
 * NGX_BLOOM_CLOCKS_DIFFER, because clocks may differ by up to that.
 *
 * A new record never gets a time before the time up to which the serving image
 * is complete, so that image does not cover it.
 *
 * The as_of of an image may lie in the future.  Such an image must not cover
 * more records when the clock reaches its as_of.  So the control page remembers
 * the image with the time of its first load, and the image counts as complete
 * up to that time at most.  If as_of is ahead of the clock by more than
 * NGX_BLOOM_CLOCKS_DIFFER, it cannot be true, and the image covers nothing.
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

/*
 * Remembers an image whose as_of or, without one, whose time of creation is
 * later than `loaded`, the time at which its load began; does nothing for other
 * images.  Call it before the image serves.
 * Returns NGX_OK, or NGX_ERROR with errno.
 */
ngx_int_t ngx_bloom_as_of_remember(ngx_bloom_state_t *state,
    bloom_image_t *image, uint64_t loaded);

/* Makes sure that records appended from now on are newer than the image, which
 * this instance is about to serve, unless keys expire: then the image has no
 * keys. */
void ngx_bloom_as_of_serve(ngx_bloom_state_t *state, bloom_image_t *image);

/*
 * Returns the time for a new record that follows a record with the time `last`.
 * The caller holds the lock control->append.
 */
uint64_t ngx_bloom_as_of_now(ngx_bloom_state_t *state, uint64_t last);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_AS_OF_H_INCLUDED_ */
