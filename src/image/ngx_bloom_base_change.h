/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions record what a zone serves from now on: its file in shared
 * memory, and its base in the state directory.
 */

#ifndef _NGX_BLOOM_BASE_CHANGE_H_INCLUDED_
#define _NGX_BLOOM_BASE_CHANGE_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_load.h"
#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/* How long to wait for the lock `keeper`, ms. */
#define NGX_BLOOM_BASE_WAIT  10000

/* Records in shared memory, for the helpers of all cycles, which file is the
 * zone's file= from now on. */
void ngx_bloom_base_note_name(ngx_bloom_zone_t *zone);

/* Does what ngx_bloom_base_note_name() does, and records that the file has been
 * seen as it is now. */
void ngx_bloom_base_note_file(ngx_bloom_zone_t *zone);

/* Records which image file= has, after it was loaded while nginx runs. */
void ngx_bloom_base_note_loaded(ngx_bloom_zone_t *zone, bloom_image_t *image);

/*
 * Makes the uploaded image of a load, which serves now, the base of the next
 * start.  `body` is the name of its file in the state directory, which is on
 * disk already, and which this renames.
 *
 * After a crash before this the previous image is still the base, the journal
 * still has all records that it needs, and no client has been told otherwise.
 * The image of file= becomes the base once a job has synchronised the file (S6,
 * ngx_bloom_stand.h); until then the journal keeps its records.  Returns
 * NGX_OK, or NGX_ERROR with errno.
 */
ngx_int_t ngx_bloom_base_change(ngx_bloom_load_t *load, const u_char *body);

/* Returns 1 if a start would load an upload in place of the image of file= that
 * serves now. */
ngx_uint_t ngx_bloom_base_returns(ngx_bloom_zone_t *zone);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_BASE_CHANGE_H_INCLUDED_ */
