/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions keep the exceptions of an image in memory
 * (docs/image-format.md): removed keys, keys of --except, and those of
 * feedback.
 */

#ifndef REMOVED_KEYS_H
#define REMOVED_KEYS_H

#include "bloom_exceptions.h"
#include "bloom_exceptions_image.h"
#include "bloom_image.h"


/* How many exceptions have each kind; one may have several. */
typedef struct {
    uint64_t   excepted;                 /* BLOOM_EXCEPTION_BUILT */
    uint64_t   removed;
    uint64_t   feedback;
} exception_kinds_t;

/* A set of removed keys, or exceptions of other kinds; empty if all members are
 * 0. */
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

/* Counts the kinds of a set, or of one exception more. */
exception_kinds_t removed_keys_kinds(const removed_keys_t *removed);
void removed_keys_count_kinds(exception_kinds_t *counts, unsigned kinds);

/* Puts all keys of another set into a set that has room for them. */
void removed_keys_merge(removed_keys_t *removed, const removed_keys_t *other);

/*
 * Returns the exceptions as an image has them, with their padding, in memory
 * that the caller frees, and counts them in the header of the image.
 * Returns NULL if the set is empty.  `removed` may be NULL, too.
 */
uint8_t *removed_keys_data(const removed_keys_t *removed,
    bloom_image_t *image);


#endif /* REMOVED_KEYS_H */
