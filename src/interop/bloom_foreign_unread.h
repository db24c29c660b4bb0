/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This function names files that look like filters but cannot be imported, such
 * as a serialised Java object, so that a user learns what to save instead.
 */

#ifndef BLOOM_FOREIGN_UNREAD_H
#define BLOOM_FOREIGN_UNREAD_H

#include "bloom_foreign.h"

#pragma GCC visibility push(hidden)


/* A kind of file that cannot be imported. */
typedef struct {
    const char  *title;                  /* "a serialised Java object" */
    const char  *instead;                /* what to do, to follow a semicolon */
    int          never_bits;             /* even a bitmap hardly begins so */

    /* Returns 1 if the source is of this kind, else 0.  The arguments are those
     * of a parser. */
    int        (*is)(const uint8_t *head, size_t len, uint64_t size);
} bloom_foreign_unread_t;


/* Returns the kind of a source; NULL if it is of none. */
const bloom_foreign_unread_t *bloom_foreign_unread(const uint8_t *head,
    size_t len, uint64_t size);


#pragma GCC visibility pop

#endif /* BLOOM_FOREIGN_UNREAD_H */
