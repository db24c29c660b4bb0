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
 *     digest      of the changes as the source sent them, from digest.since to
 *                 the position.  It begins again where changes are skipped: at
 *                 an image that is later than the zone, a gap, a clear
 *     due         after a clear: the position before it
 *
 * Changes of one position that are too many for a record come in parts.  The
 * place stays until the last part has come.  Meanwhile the control page counts
 * the changes that the zone has, so that each part follows the one before,
 * whoever sends it.  Whenever the place is stored, the count begins again at 0:
 * the source sends all changes of the position again.  That does no harm, since
 * the zone has none that are later.
 *
 * The next start computes the place again from the file "base", the image and
 * the journal, so that they always agree.
 *
 * Besides, the control page has the last sign of life of the source: the zone
 * had all changes then.  It takes no lock, and it does not outlive the
 * processes: a start that finds no other instance forgets it.
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
    bloom_reached_t *place);

/* Copies the place, whatever its source.  Takes no lock. */
void ngx_bloom_source_place(ngx_bloom_control_t *control,
    bloom_reached_t *place);

/*
 * Moves a place to a position up to which changes are missing, where its digest
 * begins again, and nothing else is due.  `seen` is the last position of the
 * source that was applied before.
 */
void ngx_bloom_source_gap(bloom_reached_t *place, bloom_position_t seen,
    bloom_position_t position);

/* Records a sign of life at `now`, ngx_current_msec: the zone has all changes
 * of the source, and is at a position there. */
void ngx_bloom_source_sign(ngx_bloom_control_t *control, uint64_t source,
    bloom_position_t position, ngx_msec_t now);

/* Forgets the last sign of life. */
void ngx_bloom_source_unsign(ngx_bloom_control_t *control);

/*
 * Returns the time since the last sign of life, in ms, of a zone that is at
 * this place; UINT64_MAX if there was none, or if the zone was further then.
 */
uint64_t ngx_bloom_source_lag(ngx_bloom_control_t *control,
    const bloom_reached_t *place, ngx_msec_t now);

/* Returns 1 if the zone lacks changes that a clear has dropped, else 0. */
static ngx_inline ngx_uint_t
ngx_bloom_source_due(const bloom_reached_t *place)
{
    return bloom_position_cmp(place->position, place->due) < 0;
}

/* Reads how many changes between two positions the zone has; all of *part is 0
 * if it has none.  The caller holds the lock `append`. */
void ngx_bloom_source_read_part(ngx_bloom_control_t *control, uint64_t source,
    bloom_position_t before, bloom_position_t after, ngx_bloom_part_t *part);

/* Stores that.  The caller holds the lock `append`. */
void ngx_bloom_source_store_part(ngx_bloom_control_t *control,
    const ngx_bloom_part_t *part);

/* Stores the place in place->source, and that the zone has no changes after it.
 * The caller holds the lock `append`. */
void ngx_bloom_source_store(ngx_bloom_control_t *control,
    const bloom_reached_t *place);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_SOURCE_H_INCLUDED_ */
