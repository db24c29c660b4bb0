/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions notice that the file of a zone was replaced, and ask the
 * helper to load it.
 */

#ifndef _NGX_BLOOM_WATCH_H_INCLUDED_
#define _NGX_BLOOM_WATCH_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/*
 * Asks for a load of the zone's file if the file is not as it was last seen, or
 * if what serves has another key form than the zone wants now.  Returns NGX_OK
 * if it asked, NGX_DECLINED if there is no need, or NGX_BUSY if it has to be
 * called again.
 */
ngx_int_t ngx_bloom_watch_file(ngx_bloom_zone_t *zone);

/* Does the same if the zone watches its file, and looked at it, at *looked, ms,
 * long enough ago. */
void ngx_bloom_watch(ngx_bloom_zone_t *zone, ngx_msec_t *looked);

/* Finds out which file has a name.  Returns 1, or 0 with errno if there is
 * none. */
ngx_uint_t ngx_bloom_watch_id(u_char *name, ngx_bloom_image_id_t *id);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_WATCH_H_INCLUDED_ */
