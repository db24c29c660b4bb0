/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Guards refuse an image before it serves: one with too few keys, with far more
 * or far fewer keys than the last image that was accepted, with bits that
 * contradict its number of keys, without a key of "must_have", or with a key of
 * "must_not_have".
 *
 * An image is accepted when it begins to serve.  The last two are recorded in
 * the file "base" or, in a zone without a state directory, in the zone's
 * memory. Files of the state directory are not checked: they were made of
 * images that were accepted.
 *
 * Keys are looked up in the image alone, with its own exceptions, and by any of
 * their expressions, as a request looks them up.  The files of keys are read by
 * the process that loads the image, never by a worker.
 */

#ifndef _NGX_BLOOM_GUARD_H_INCLUDED_
#define _NGX_BLOOM_GUARD_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


#define NGX_BLOOM_GUARD_ERROR_LEN  400


/* Why an image is refused. */
typedef struct {
    ngx_err_t    err;                    /* errno, or 0 */
    char         error[NGX_BLOOM_GUARD_ERROR_LEN];   /* a phrase that follows
                                                        the image's name */
} ngx_bloom_guard_t;


/*
 * Checks what the header of an image says.  `force` lets any change of the
 * number of keys pass.  Returns NGX_OK; or NGX_ERROR with guard->error.  Any
 * process may call this.
 */
ngx_int_t ngx_bloom_guard_header(ngx_bloom_guard_t *guard,
    ngx_bloom_zone_t *zone, const bloom_image_t *image, ngx_uint_t force);

/*
 * Checks that the bits of an image do not contradict the number of keys that
 * its header states, if a guard believes that number; see
 * bloom_guard_contradicts().  Returns NGX_OK; or NGX_ERROR with guard->error.
 */
ngx_int_t ngx_bloom_guard_bits(ngx_bloom_guard_t *guard,
    ngx_bloom_zone_t *zone, const bloom_image_t *image, ngx_uint_t force,
    const uint64_t *bits_set);

/*
 * Checks that an image has the keys of "must_have=" and lacks those of
 * "must_not_have=".  `bits` are those of the image.  It reads files, which may
 * take long.  Returns NGX_OK; or NGX_ERROR with guard->error.
 */
ngx_int_t ngx_bloom_guard_keys(ngx_bloom_guard_t *guard,
    ngx_bloom_zone_t *zone, const ngx_bloom_zone_bits_t *bits);


/* Copies the last image that was accepted.  Returns 1, or 0 if none is
 * recorded. */
ngx_uint_t ngx_bloom_guard_last(ngx_bloom_zone_t *zone,
    bloom_accepted_t *last);

/* Records an image that has begun to serve, and that this process began to load
 * at the time `loaded`, ms since 1970. */
void ngx_bloom_guard_accept(ngx_bloom_zone_t *zone,
    const bloom_image_t *image, uint64_t loaded);

/*
 * Checks that an image has the key form that the zone wants, and no changes of
 * another source.  Returns NGX_OK; or NGX_ERROR with the reason in `error`, a
 * phrase that follows the image's name.
 */
ngx_int_t ngx_bloom_guard_form(ngx_bloom_zone_t *zone,
    const bloom_image_t *image, char error[BLOOM_IMAGE_ERROR_LEN]);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_GUARD_H_INCLUDED_ */
