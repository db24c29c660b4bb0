/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The base is what a zone serves first in new memory.
 *
 * It is the uploaded image that replaced the image of file=, if there is one;
 * otherwise the image of file=; otherwise an empty filter.  A loader, a
 * child of the master that runs as the workers' user, loads the base and the
 * journal from the state directory that ngx_bloom_base_state.h opens.
 */

#ifndef _NGX_BLOOM_BASE_H_INCLUDED_
#define _NGX_BLOOM_BASE_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_load.h"
#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/*
 * Loads the base, from its newest checkpoint if it has one, and the journal
 * into the idle bank.  Returns NGX_OK, or NGX_ERROR, logged.  The caller calls
 * ngx_bloom_load_end() in either case.
 */
ngx_int_t ngx_bloom_base_load(ngx_bloom_zone_t *zone, ngx_bloom_load_t *load);

/*
 * Reads the journal alone, if the base cannot be loaded, so that its end is
 * known.  Returns NGX_OK, or NGX_ERROR, logged.  The caller calls
 * ngx_bloom_load_end() in either case.
 */
ngx_int_t ngx_bloom_base_load_journal(ngx_bloom_zone_t *zone,
    ngx_bloom_load_t *load);

/*
 * Recovers the journal's end after `load` has read the journal: from now on
 * records can be appended.  Returns NGX_OK, or NGX_ERROR, logged.
 */
ngx_int_t ngx_bloom_base_recover(ngx_bloom_zone_t *zone,
    ngx_bloom_load_t *load);

/*
 * Say whether the entry of the file "base" is about what the configuration has
 * now: an uploaded image in place of file= as it is now or of an empty filter;
 * or the image of file=, or the empty filter, itself.
 */
ngx_uint_t ngx_bloom_base_uploaded(ngx_bloom_zone_t *zone,
    const bloom_base_t *base);
ngx_uint_t ngx_bloom_base_stands(ngx_bloom_zone_t *zone,
    const bloom_base_t *base);

/* Prepares to open a file of the state directory, and writes its full path into
 * `path`, which has NGX_MAX_PATH bytes. */
void ngx_bloom_base_name(ngx_bloom_zone_t *zone, ngx_bloom_image_file_t *file,
    u_char *name, u_char *path);

/* Logs why the image of file= is refused, with errno or 0 and a phrase that
 * follows its name, at the level of ngx_bloom_zone_level().  Returns
 * NGX_ERROR. */
ngx_int_t ngx_bloom_base_refuse(ngx_bloom_zone_t *zone, ngx_err_t err,
    const char *error);

/* Warns of an image of file= that this process, a loader, may not open.  The
 * master may have opened it. */
void ngx_bloom_base_warn_access(ngx_bloom_zone_t *zone);

/* Returns what log messages call the base. */
char *ngx_bloom_base_called(ngx_bloom_zone_t *zone, ngx_uint_t uploaded);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_BASE_H_INCLUDED_ */
