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


typedef struct {
    ngx_bloom_image_file_t  file;        /* file=, while it is synchronised */
    uint64_t                synced;      /* bytes synchronised so far */
    ngx_msec_t              tried;       /* when this was last begun; 0: try at
                                            once */
    uint64_t                logged;      /* generation for which a failure of
                                            this has been logged */
} ngx_bloom_stand_t;


/* Initialises the state. */
void ngx_bloom_stand_init(ngx_bloom_stand_t *stand);

/* Lets the next step begin at once, though the last attempt may have failed. */
void ngx_bloom_stand_begin(ngx_bloom_stand_t *stand);

/*
 * Synchronises a slice of file=, and after the last one stores that the zone
 * stands on its image; without file=, that it stands on an empty filter.  The
 * caller holds sh->helper.  Returns NGX_OK if the zone stands on the image that
 * serves; NGX_AGAIN if there is more to do; or NGX_DECLINED if that image is
 * not the one of file= now, or not known to be on disk, which is logged and
 * tried again later.
 */
ngx_int_t ngx_bloom_stand_step(ngx_bloom_stand_t *stand,
    ngx_bloom_zone_t *zone);

/* Closes the file. */
void ngx_bloom_stand_end(ngx_bloom_stand_t *stand);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_STAND_H_INCLUDED_ */
