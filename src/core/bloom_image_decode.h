/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions decode the header of an image, field by field.  It is
 * accepted only if every field is in range and agrees with the file's size.
 */

#ifndef BLOOM_IMAGE_DECODE_H
#define BLOOM_IMAGE_DECODE_H

#include "bloom_image.h"

#pragma GCC visibility push(hidden)


/* Reads the slices of a ring from a header that was decoded.  Returns 0, or -1
 * if they are not valid. */
int bloom_image_get_ring(const bloom_image_t *image, bloom_image_ring_t *ring,
    const uint8_t header[BLOOM_IMAGE_PAGE]);

/* Returns 1 if a file that begins with these bytes is an image, whatever its
 * version, else 0. */
int bloom_image_is(const void *data, size_t len);

/* Returns the file size that a header states, without checking the header. */
uint64_t bloom_image_claims(const uint8_t header[BLOOM_IMAGE_PAGE]);

/*
 * Decodes and checks only the header of a file of `file_size` bytes.  Returns
 * 0, or -1 with the reason in `error`, which has BLOOM_IMAGE_ERROR_LEN bytes.
 */
int bloom_image_decode(bloom_image_t *image,
    const uint8_t header[BLOOM_IMAGE_PAGE], uint64_t file_size, char *error);


#pragma GCC visibility pop

#endif /* BLOOM_IMAGE_DECODE_H */
