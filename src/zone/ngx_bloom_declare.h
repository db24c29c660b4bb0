/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Zones are declared and sized while a configuration is read; errors are logged
 * with its line.
 */

#ifndef _NGX_BLOOM_DECLARE_H_INCLUDED_
#define _NGX_BLOOM_DECLARE_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/*
 * Returns the zone of this name in `zones`, an array of pointers; if there is
 * none, a new one that is not yet declared.  Returns NULL if memory is short.
 */
ngx_bloom_zone_t *ngx_bloom_declare_get(ngx_conf_t *cf, ngx_array_t *zones,
    ngx_str_t *name);

/*
 * Declares a zone of `size` bytes, or of a fitting size if 0, for the image
 * zone->file.name, or, if that is empty, one that starts empty with the
 * geometry, capacity, rate and kind of hash of zone->image.  `tag` is the
 * module's.
 */
ngx_int_t ngx_bloom_declare_zone(ngx_conf_t *cf, ngx_bloom_zone_t *zone,
    size_t size, void *tag);

/*
 * Refuses zones that are used and not declared; makes room for uploaded images
 * that zones would start with.
 */
ngx_int_t ngx_bloom_declare_check(ngx_conf_t *cf, ngx_array_t *zones);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_DECLARE_H_INCLUDED_ */
