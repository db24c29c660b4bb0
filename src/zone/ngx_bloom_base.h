
/*
 * The base is what a zone serves first, after a start or a reload: the master
 * opens the zone's state directory and loads the base with the journal behind
 * it.
 *
 * The base of a zone is the image that was uploaded in place of that of file=,
 * if there is one; else the image of file=, or an empty filter.
 */

#ifndef _NGX_BLOOM_BASE_H_INCLUDED_
#define _NGX_BLOOM_BASE_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_load.h"
#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/* A message for the log. */
#define NGX_BLOOM_BASE_FORGETS                                                \
    "bloom zone \"%V\" starts again from its journal: keys that were added "  \
    "while it had none are lost"


/*
 * Returns the path of the zone's state directory, in memory of `pool`, or NULL
 * if the zone has none.
 */
u_char *ngx_bloom_base_state_path(ngx_bloom_zone_t *zone, ngx_pool_t *pool);

/*
 * Opens the state directory, if the zone is to have one.  Returns NGX_OK, or
 * NGX_ERROR, logged, if there may be keys in it and it cannot be used.
 */
ngx_int_t ngx_bloom_base_open_state(ngx_bloom_zone_t *zone);

/* Takes over what lookups and additions ask of the control page. */
void ngx_bloom_base_attach_state(ngx_bloom_zone_t *zone);

/*
 * Loads the newest checkpoint of the base, else the base, and the journal, into
 * the bank that does not serve.  Returns NGX_OK, or NGX_ERROR, logged;
 * ngx_bloom_load_end() follows either way.
 */
ngx_int_t ngx_bloom_base_load(ngx_bloom_zone_t *zone, ngx_bloom_load_t *load);

/*
 * Determines where the journal goes on, after it was read to its end.  Returns
 * NGX_OK, or NGX_ERROR, logged.
 */
ngx_int_t ngx_bloom_base_recover(ngx_bloom_zone_t *zone,
    ngx_bloom_load_t *load);

/* Returns 1 if two filters are of the same kind, whatever their seeds. */
ngx_uint_t ngx_bloom_base_alike(bloom_image_t *one, bloom_image_t *other);

/* Notes which file is the zone's from now on: for helpers of every cycle. */
void ngx_bloom_base_note_name(ngx_bloom_zone_t *zone);

/* Notes, besides, that the file has been seen as it is now. */
void ngx_bloom_base_note_file(ngx_bloom_zone_t *zone);

/* Logs why the image of file= is refused.  Returns NGX_ERROR. */
ngx_int_t ngx_bloom_base_refuse(ngx_bloom_zone_t *zone);

/* Returns what the log calls the base. */
char *ngx_bloom_base_called(ngx_bloom_zone_t *zone, ngx_uint_t uploaded);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_BASE_H_INCLUDED_ */
