/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The image of file= becomes what the zone stands on when it is known to be on
 * disk (S6): its bytes, and the name that leads to it.  The program that put
 * the file there perhaps synchronised neither.  Until then the file "base"
 * keeps the image before, and the journal keeps all records that this one
 * needs.
 */

#ifndef _NGX_BLOOM_STAND_H_INCLUDED_
#define _NGX_BLOOM_STAND_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/* Returns 1 if the image that serves is not what the zone stands on yet, and no
 * attempt has failed within the last ten seconds; else 0. */
ngx_uint_t ngx_bloom_stand_due(ngx_bloom_zone_t *zone);

/*
 * Synchronises file=, and stores that the zone stands on its image; without
 * file=, that it stands on an empty filter.  This takes as long as the disk
 * needs.  The caller holds sh->helper.  Returns NGX_OK if the zone stands on
 * the image that serves; or NGX_ERROR if that image is not the one of file=
 * now, or not known to be on disk, which is logged.
 */
ngx_int_t ngx_bloom_stand(ngx_bloom_zone_t *zone);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_STAND_H_INCLUDED_ */
