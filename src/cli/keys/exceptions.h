/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions collect the exceptions of lists, which are keys that must not
 * be found, and write them to a file, one on each line.
 */

#ifndef EXCEPTIONS_H
#define EXCEPTIONS_H

#include <stddef.h>
#include <stdint.h>

#include "bloom_key.h"
#include "output.h"
#include "place.h"


typedef struct {
    place_t    place;
    size_t     order;                    /* among those of a thread */
    size_t     len;
    uint8_t   *key;                      /* canonical */
} exception_t;

/* All members are 0 at first. */
typedef struct {
    exception_t  *exception;
    size_t        n;
    size_t        room;
    int           written;               /* to `out` */
    output_t      out;
} exceptions_t;


void exceptions_add(exceptions_t *exceptions, const place_t *place,
    const bloom_key_t *key);

/* Moves exceptions to the end of others. */
void exceptions_move(exceptions_t *exceptions, exceptions_t *from);

/* Writes the exceptions to a temporary file, in the order of the files and
 * their lines.  Returns CLI_OK, or CLI_ERROR after a message. */
int exceptions_write(exceptions_t *exceptions, const char *name);

/* Renames what was written to its name, if anything was.  Returns CLI_OK, or
 * CLI_ERROR after a message. */
int exceptions_commit(exceptions_t *exceptions);

/* Also removes what was written and not renamed. */
void exceptions_free(exceptions_t *exceptions);


#endif /* EXCEPTIONS_H */
