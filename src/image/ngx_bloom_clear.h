/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A clear takes a zone back to the image of file=, or to the empty filter:
 *
 *     begin     load that image into the idle bank, without the journal
 *     clear     with the zone locked, append a clear record and let the bank
 *               serve; then remove from disk what was dropped
 *               (ngx_bloom_cleared.h)
 *
 * If the image cannot be loaded, nothing changes.  Other instances of the zone
 * cannot unset bits: each loads the image and the journal from the clear record
 * on, and until then answers "unknown" instead of "absent".
 */

#ifndef _NGX_BLOOM_CLEAR_H_INCLUDED_
#define _NGX_BLOOM_CLEAR_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_load.h"

#pragma GCC visibility push(hidden)


/*
 * Prepares a load of what the zone goes back to: copies the name of file= to
 * `path`, which has NGX_MAX_PATH bytes, and, if the name is empty, describes
 * the empty filter in *empty.  Returns `empty`; or NULL, if the image is in the
 * file.
 */
bloom_image_t *ngx_bloom_clear_image(ngx_bloom_zone_t *zone, u_char *path,
    bloom_image_t *empty);

/*
 * Clears the zone, after a load that ngx_bloom_load_begin_clear() has begun.
 * Waits for other processes and the disk.  Returns
 *
 *     NGX_OK         the zone is cleared, also on disk
 *     NGX_DECLINED   the zone is cleared, but not on disk, with errno; the
 *                    helper completes the clear later
 *     NGX_ERROR      nothing has changed, with load->error
 */
ngx_int_t ngx_bloom_clear(ngx_bloom_load_t *load);

/* Completes on disk a clear that has happened.  Returns NGX_OK, or NGX_ERROR
 * with errno. */
ngx_int_t ngx_bloom_clear_settle(ngx_bloom_zone_t *zone);

/* Returns 1 if another instance, or a process that died, has cleared the zone,
 * so that this instance has to load an image. */
ngx_uint_t ngx_bloom_clear_due(ngx_bloom_zone_t *zone);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_CLEAR_H_INCLUDED_ */
