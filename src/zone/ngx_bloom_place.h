/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The place of a zone in its source (ngx_bloom_source.h) changes when a
 * generation begins to serve, and is saved with an image.
 */

#ifndef _NGX_BLOOM_PLACE_H_INCLUDED_
#define _NGX_BLOOM_PLACE_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_source.h"
#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/*
 * Stores `place`, which a replay has computed from an image at the position
 * `start`, for the generation that is going to serve.  Instances that serve an
 * older image may lack changes before `start`, which nobody sends again: they
 * answer "unknown" from now on.  The caller holds the lock `append`.
 */
void ngx_bloom_place_serve(ngx_bloom_zone_t *zone, bloom_reached_t *place,
    bloom_position_t start);

/*
 * Does so for an instance that starts.  If others live, they may have moved the
 * place since the replay: it stays, unless the image is later.  Takes the lock
 * `append`.  Returns NGX_OK, or NGX_ERROR with errno if that is locked.
 */
ngx_int_t ngx_bloom_place_start(ngx_bloom_zone_t *zone,
    bloom_reached_t *place, bloom_position_t start);

/* Stores the place after a clear, which leaves the image at the position
 * `start`: the zone answers "unknown" until it is where it was before, or until
 * the source gives a sign of life.  The caller holds the lock `append`. */
void ngx_bloom_place_clear(ngx_bloom_zone_t *zone, bloom_position_t start);

/*
 * Finds out which changes of the source a copy of the generation that serves
 * has, if the copy is begun now: up to source->position, if the copy is loaded
 * without the journal; or, for a `checkpoint`, with the journal from
 * sh->applied on.  `source` keeps what it says if the zone has no source.  The
 * caller holds sh->helper.  Returns NGX_OK, or NGX_AGAIN if that is not known
 * now.
 */
ngx_int_t ngx_bloom_place_save(ngx_bloom_zone_t *zone, ngx_uint_t checkpoint,
    bloom_source_t *source);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_PLACE_H_INCLUDED_ */
