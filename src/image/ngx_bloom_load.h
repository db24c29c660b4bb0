/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A load copies an image into the idle bank, adds the journal's records, and
 * lets the bank serve.
 *
 *     begin     open the image, check its header, check that it fits and may be
 *               loaded; empty the bank
 *     run       copy the image, as long as memory for the rest is left, and its
 *               exceptions; check keys of it, if the zone has guards; then
 *               replay the journal up to its end (ngx_bloom_replay.h)
 *     switch    with the zone locked, replay the records that came meanwhile,
 *               and raise the generation
 *
 * So the new generation lacks no acknowledged key.
 *
 * A loader does this at a start, and a job while nginx runs.  A job holds
 * sh->helper from begin to end, so a zone never has two loads at once.
 */

#ifndef _NGX_BLOOM_LOAD_H_INCLUDED_
#define _NGX_BLOOM_LOAD_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_load_checks.h"

#pragma GCC visibility push(hidden)


/*
 * Begins to load the image in `file`, which the load takes over if it is open.
 * `image` and `point` depend on what is loaded:
 *
 *     an image file       image NULL, point NULL
 *     an empty filter     file->name.len 0, image its description, point NULL
 *     a checkpoint        image what the checkpoint was made from, NULL for an
 *                         empty filter or an upload; point where it was made
 *
 * Messages call the image `about`, or by its file's name if that is NULL.  With
 * `force`, the number of keys may change by any part.  Returns NGX_OK, or
 * NGX_ERROR with load->error.  The caller calls ngx_bloom_load_end() in either
 * case.
 */
ngx_int_t ngx_bloom_load_begin(ngx_bloom_load_t *load,
    ngx_bloom_zone_t *zone, ngx_bloom_image_file_t *file,
    bloom_image_t *image, const bloom_point_t *point, const char *about,
    ngx_uint_t force);

/*
 * Begins to load what a clear goes back to: an image file, or an empty filter
 * as above.  The image may be too old for the records that were removed.
 * ngx_bloom_clear() follows, not ngx_bloom_load_switch().
 */
ngx_int_t ngx_bloom_load_begin_clear(ngx_bloom_load_t *load,
    ngx_bloom_zone_t *zone, ngx_bloom_image_file_t *file,
    bloom_image_t *image);

/*
 * Checks the header of an image whose file has `size` bytes.  Returns NGX_OK;
 * or NGX_ERROR with load->outcome and load->error as a load of that file would
 * set them.  Any process may call this.
 */
ngx_int_t ngx_bloom_load_check(ngx_bloom_load_t *load,
    ngx_bloom_zone_t *zone, const u_char header[BLOOM_IMAGE_PAGE],
    uint64_t size, const char *about, ngx_uint_t force);

/* Does the same for the image of an opened file=, after a reload. */
ngx_int_t ngx_bloom_load_check_image(ngx_bloom_load_t *load,
    ngx_bloom_zone_t *zone, const bloom_image_t *image);

/*
 * Begins to read the journal alone.  ngx_bloom_load_journal() follows.  This
 * fills no bank, and ngx_bloom_load_switch() must not follow.
 */
void ngx_bloom_load_begin_journal(ngx_bloom_load_t *load,
    ngx_bloom_zone_t *zone);

/*
 * Loads the image and, unless the load is part of a clear, the journal up to
 * its present end.  Returns NGX_OK, or NGX_ERROR with load->error.
 */
ngx_int_t ngx_bloom_load_run(ngx_bloom_load_t *load);

/* Loads what the journal has got since it was read last.  Returns as above. */
ngx_int_t ngx_bloom_load_journal(ngx_bloom_load_t *load);

/*
 * Lets the loaded bank serve.  `uploaded` is 1 if the image was uploaded, 0 if
 * it is that of file=.  Returns NGX_OK; or NGX_ERROR with load->error, and then
 * the old generation serves on.
 */
ngx_int_t ngx_bloom_load_switch(ngx_bloom_load_t *load, ngx_uint_t uploaded);

/*
 * The end of a switch: lets the bank serve.  The caller holds the lock of the
 * zone.  With a state directory, the bank has the journal up to `applied`,
 * whose removals come to `removals`.
 */
void ngx_bloom_load_turn(ngx_bloom_load_t *load, ngx_uint_t uploaded,
    uint64_t applied, const bloom_removals_t *removals);

/* Closes the files of a load, however it ended. */
void ngx_bloom_load_end(ngx_bloom_load_t *load);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_LOAD_H_INCLUDED_ */
