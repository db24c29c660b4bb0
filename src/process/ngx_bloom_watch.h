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
 * if the image that serves has another key form than the zone wants now.
 * Returns NGX_OK if it asked, NGX_DECLINED if a load is not needed, or NGX_BUSY
 * if it has to be called again.
 */
ngx_int_t ngx_bloom_watch_file(ngx_bloom_zone_t *zone);

/* Calls ngx_bloom_watch_file() if the zone watches its file and last looked at
 * it, at *looked, ms, long enough ago; updates *looked. */
void ngx_bloom_watch(ngx_bloom_zone_t *zone, ngx_msec_t *looked);

/* Stores in *id which file has the name.  Returns 1; or 0 with errno if no file
 * has it. */
ngx_uint_t ngx_bloom_watch_id(u_char *name, ngx_bloom_image_id_t *id);

/* Returns 1 if file= is still the file that the last load read, so that the
 * load also answers the requests for a load that came while it was running. */
ngx_uint_t ngx_bloom_watch_is_loaded(ngx_bloom_zone_t *zone);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_WATCH_H_INCLUDED_ */
