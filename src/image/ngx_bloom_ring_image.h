/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A checkpoint of a zone whose keys expire has the slices of its ring, with
 * their times.
 */

#ifndef _NGX_BLOOM_RING_IMAGE_H_INCLUDED_
#define _NGX_BLOOM_RING_IMAGE_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_ring.h"

#pragma GCC visibility push(hidden)


/* Takes over the slices of a checkpoint whose filter has been loaded into a
 * bank. No other process uses the bank. */
void ngx_bloom_ring_image_load(ngx_bloom_zone_t *zone, ngx_uint_t bank,
    const bloom_image_ring_t *slices);

/* Describes the slices of the bank that serves for a checkpoint: keys that are
 * in the filter now are in a slice that is live in it, or have expired. */
void ngx_bloom_ring_image_save(ngx_bloom_zone_t *zone, ngx_uint_t bank,
    bloom_image_ring_t *slices);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_RING_IMAGE_H_INCLUDED_ */
