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


/* The state of checking an image's keys; all zeros at first. */
typedef struct {
    ngx_uint_t   file;                   /* NGX_BLOOM_GUARD_HAVE, ...; at the
                                            end NGX_BLOOM_GUARD_FILES */
    u_char      *data;                   /* its contents; NULL: not open */
    size_t       size;
    size_t       done;                   /* bytes read */
    ngx_fd_t     fd;                     /* valid until all is read */
    u_char      *pos;                    /* the next line */
    uint64_t     line;                   /* number of the last line */
    uint64_t     keys;                   /* found in the file so far */
    u_char      *buf;                    /* for a key in its key form */

    /* if the image is refused: a phrase that follows its name, and errno or
     * 0 */
    ngx_err_t    err;
    char         error[NGX_BLOOM_GUARD_ERROR_LEN];
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
 * Does a piece of checking the keys, which takes about a millisecond.  `bits`
 * are those of the image.  Returns NGX_AGAIN if there is more to do; NGX_OK if
 * no key is wrong; or NGX_ERROR with guard->error.
 */
ngx_int_t ngx_bloom_guard_keys(ngx_bloom_guard_t *guard,
    ngx_bloom_zone_t *zone, const ngx_bloom_zone_bits_t *bits);

/* Frees what a check has taken, however it ended. */
void ngx_bloom_guard_end(ngx_bloom_guard_t *guard);


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
