/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The place of a zone in its source says which changes of the source the zone
 * has.  It is in the control page, so that all processes of all instances know
 * it, and it changes together with the journal: under the lock `append`, after
 * a record of changes was published.
 *
 *     position    the journal, and the images that the instances serve, have
 *                 the changes up to here
 *     gap         changes before this position may be missing in the journal.
 *                 An image at this position or a later one has them.  If the
 *                 source has lost its end and goes back, the gap ends after all
 *                 that the journal had until then: an image before that may
 *                 have been built from what was lost
 *
 * After a crash the next start computes the place again from the image and the
 * journal, so that they always agree.
 */

#ifndef _NGX_BLOOM_SOURCE_H_INCLUDED_
#define _NGX_BLOOM_SOURCE_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_control.h"

#pragma GCC visibility push(hidden)


/* Returns a number that identifies a source by its name; never 0. */
uint64_t ngx_bloom_source_id(const ngx_str_t *name);

/* Reads the place in a source; all of it is 0 if none was stored for this
 * source.  Takes no lock. */
void ngx_bloom_source_read(ngx_bloom_control_t *control, uint64_t source,
    ngx_bloom_place_t *place);

/*
 * Moves a place to a position up to which changes are missing.  `seen` is the
 * last position of the source that was applied before.
 */
void ngx_bloom_source_gap(ngx_bloom_place_t *place, bloom_position_t seen,
    bloom_position_t position);

/* Stores the place in place->source.  The caller holds the lock `append`. */
void ngx_bloom_source_store(ngx_bloom_control_t *control,
    const ngx_bloom_place_t *place);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_SOURCE_H_INCLUDED_ */
