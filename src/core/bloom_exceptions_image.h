/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The form that exceptions have in an image: docs/image-format.md.
 */

#ifndef BLOOM_EXCEPTIONS_IMAGE_H
#define BLOOM_EXCEPTIONS_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "bloom_exceptions.h"

#pragma GCC visibility push(hidden)


/* Returns the bytes that an exception takes in an image. */
size_t bloom_exception_size(const bloom_exception_t *exception);

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
 * Checks that `size` bytes are exactly n exceptions.  Returns NULL, or the
 * reason why they are not, a phrase to follow the file's name.
 */
const char *bloom_exceptions_check(const uint8_t *data, size_t size,
    uint64_t n);


#pragma GCC visibility pop

#endif /* BLOOM_EXCEPTIONS_IMAGE_H */
