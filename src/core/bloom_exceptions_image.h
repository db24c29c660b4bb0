/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The form that exceptions have in an image: docs/image-format.md.
 */

#ifndef BLOOM_EXCEPTIONS_IMAGE_H
#define BLOOM_EXCEPTIONS_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "bloom_exceptions.h"
#include "bloom_image.h"

#pragma GCC visibility push(hidden)


/* Returns the bytes that an exception takes in an image. */
size_t bloom_exception_size(const bloom_exception_t *exception);

/* Counts one exception more in what the header of an image says. */
void bloom_exception_count(bloom_image_t *image,
    const bloom_exception_t *exception);

/* Writes an exception; returns the end of what it has written. */
uint8_t *bloom_exception_write(const bloom_exception_t *exception, uint8_t *p);

/*
 * Reads the exception at *p, before `end`, and moves *p behind it.  The key
 * points into these bytes.  Returns 1; 0 if *p is `end`; -1 if the bytes are
 * not a valid exception.
 */
int bloom_exception_read(const uint8_t **p, const uint8_t *end,
    bloom_exception_t *exception);

/*
 * Checks that image->exceptions_size bytes are exactly the exceptions that the
 * header says.  Returns NULL, or the reason why they are not, a phrase to
 * follow the file's name.
 */
const char *bloom_exceptions_check(const bloom_image_t *image,
    const uint8_t *data);


#pragma GCC visibility pop

#endif /* BLOOM_EXCEPTIONS_IMAGE_H */
