/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The as_of of an image says up to when its keys are complete, and with that
 * which records of the journal it covers: those that are older by more than
 * clocks differ.
 *
 * What is appended is newer than the image that serves, by definition: no
 * record gets an earlier time than that up to which the image is complete.
 *
 * An image may say so of a time that is still to come.  When the clock gets
 * there it must cover no more than it did before.  So the control page
 * remembers such an image with the time of its first load, and it is complete
 * as of then at most.  One that is further ahead than clocks differ says what
 * cannot be true, and covers nothing.
 */

#ifndef _NGX_BLOOM_AS_OF_H_INCLUDED_
#define _NGX_BLOOM_AS_OF_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_state.h"

#pragma GCC visibility push(hidden)


/*
 * Returns the time, ms since 1970, up to which the image is complete, or 0 if
 * it states none.  `state` may be NULL.
 */
uint64_t ngx_bloom_as_of_complete(ngx_bloom_state_t *state,
    bloom_image_t *image);

/*
 * Returns the time, ms since 1970, before which records need not be added to
 * the image, or 0 if all have to be.  `state` may be NULL.
 */
uint64_t ngx_bloom_as_of_cut(ngx_bloom_state_t *state, bloom_image_t *image);

/*
 * Returns whether records that the image lacks were removed from the journal.
 * `state` may be NULL.
 */
ngx_uint_t ngx_bloom_as_of_too_old(ngx_bloom_state_t *state,
    bloom_image_t *image);

/*
 * Remembers an image whose as_of was still to come at the time `loaded`, when
 * its load began.  It is called before the image serves.  Returns NGX_OK, or
 * NGX_ERROR with errno.
 */
ngx_int_t ngx_bloom_as_of_remember(ngx_bloom_state_t *state,
    bloom_image_t *image, uint64_t loaded);

/* Has records that are appended from now on be newer than the image, which this
 * instance is about to serve. */
void ngx_bloom_as_of_serve(ngx_bloom_state_t *state, bloom_image_t *image);

/*
 * Returns the time for a record that is appended behind one of the time `last`,
 * under the lock control->append.
 */
uint64_t ngx_bloom_as_of_now(ngx_bloom_state_t *state, uint64_t last);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_AS_OF_H_INCLUDED_ */
