/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A place_t says where a key is in the files that are read.
 */

#ifndef PLACE_H
#define PLACE_H

#include <stdint.h>


typedef struct {
    unsigned   file;                     /* its index */
    uint64_t   line;                     /* from 1; with -0, the key's number */
} place_t;


/* Returns a number below 0 if the first place is before the second one, 0 if
 * they are the same, else a number above 0. */
static inline int
place_cmp(const place_t *one, const place_t *two)
{
    if (one->file != two->file) {
        return one->file < two->file ? -1 : 1;
    }

    return one->line < two->line ? -1 : one->line > two->line;
}


#endif /* PLACE_H */
