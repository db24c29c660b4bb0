/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions declare and size zones while a configuration is read.  They
 * log errors with the line of the configuration.
 */

#ifndef _NGX_BLOOM_DECLARE_H_INCLUDED_
#define _NGX_BLOOM_DECLARE_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/* Returns the zone of this name, of an array of ngx_bloom_zone_t *, or NULL. */
ngx_bloom_zone_t *ngx_bloom_declare_find(ngx_array_t *zones,
    const ngx_str_t *name);

/*
 * Returns the zone of this name in `zones`, an array of pointers.  If there is
 * none, appends a new zone, which is not yet declared.  Returns NULL if memory
 * is short.
 */
ngx_bloom_zone_t *ngx_bloom_declare_get(ngx_conf_t *cf, ngx_array_t *zones,
    ngx_str_t *name);

/*
 * Declares a zone of `size` bytes, or, if that is 0, of the size that its image
 * needs.  Its image is the file zone->file.name.  If that name is empty, the
 * zone starts empty, with the geometry, capacity, rate and kind of hash of
 * zone->image.  `tag` is the module.  Returns NGX_OK, or NGX_ERROR, logged.
 */
ngx_int_t ngx_bloom_declare_zone(ngx_conf_t *cf, ngx_bloom_zone_t *zone,
    size_t size, void *tag);

/*
 * Checks the zones after the whole configuration has been read: refuses a zone
 * that is used but not declared, and enlarges a zone whose start would load a
 * larger uploaded image.  Returns NGX_OK, or NGX_ERROR, logged.
 */
ngx_int_t ngx_bloom_declare_check(ngx_conf_t *cf, ngx_array_t *zones);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_DECLARE_H_INCLUDED_ */
