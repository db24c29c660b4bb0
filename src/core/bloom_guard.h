/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Guards check a new image before it replaces another: its number of keys, and
 * keys that it must have or must not have.  nginx and the tool share what is
 * here, so they agree about every image.
 *
 * The keys are in a file, one key a line, as in lists for "ngx-bloom build
 * --from lines".  Spaces, tabs and CR around a key are removed.  Empty lines,
 * lines that begin with # or !, and the rest of a line after " #" have no key.
 */

#ifndef BLOOM_GUARD_H
#define BLOOM_GUARD_H

#include "bloom_key.h"

#pragma GCC visibility push(hidden)


/* The largest max_change: a million percent. */
#define BLOOM_GUARD_CHANGE_MAX  10000

/* Bytes of the largest file of keys. */
#define BLOOM_GUARD_FILE_MAX    (16 * 1024 * 1024)

/* Bytes of the longest line. */
#define BLOOM_GUARD_LINE_MAX    65535


/*
 * Reads the next line of a piece of a file, *pos .. end, and adds 1 to *line.
 * Pieces end with a line.  Returns 1 with the key of the line, which is empty
 * if the line has no key; or 0 at the end of the piece.
 */
int bloom_guard_next(bloom_key_t *key, const uint8_t **pos, const uint8_t *end,
    uint64_t *line);

/* Returns the part by which the number of keys changes: 0.2 if it grows or
 * shrinks by 20 %.  Returns 0 if there were no keys before. */
double bloom_guard_change(uint64_t before, uint64_t now);

/* Returns 1 if the change exceeds the part that is allowed, else 0. */
int bloom_guard_exceeds(double change, double allowed);


#pragma GCC visibility pop

#endif /* BLOOM_GUARD_H */
