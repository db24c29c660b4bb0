/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions keep the removed keys of an image in memory: the exceptions
 * of docs/image-format.md.
 */

#ifndef REMOVED_KEYS_H
#define REMOVED_KEYS_H

#include "bloom_exceptions.h"
#include "bloom_exceptions_image.h"
#include "bloom_image.h"


/* A set of removed keys; empty if all members are 0. */
typedef struct {
    bloom_exceptions_t   set;
    void                *memory;
    size_t               size;           /* of the memory */
} removed_keys_t;


/* Makes an empty set with room for n keys of `bytes` bytes in all; ends the
 * program with a message if there is no memory. */
void removed_keys_create(removed_keys_t *removed, uint64_t n, uint64_t bytes);
void removed_keys_free(removed_keys_t *removed);

/*
 * Makes a set of the exceptions of an image, image->exceptions_size bytes that
 * bloom_exceptions_check() has accepted.  Returns NULL; or why they are
 * invalid, a phrase to follow the file's name.
 */
const char *removed_keys_take(removed_keys_t *removed,
    const bloom_image_t *image, const uint8_t *data);

/* Puts all keys of another set into a set that has room for them. */
void removed_keys_merge(removed_keys_t *removed, const removed_keys_t *other);

/*
 * Returns the exceptions as an image has them, with their padding, in memory
 * that the caller frees, and sets image->exceptions and image->exceptions_size.
 * Returns NULL if the set is empty.  `removed` may be NULL, too.
 */
uint8_t *removed_keys_data(const removed_keys_t *removed,
    bloom_image_t *image);


#endif /* REMOVED_KEYS_H */
