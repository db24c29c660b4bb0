/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Guards check a new image before it replaces another: its number of keys,
 * which its bits must not contradict, and keys that it must have or must not
 * have.  nginx and the tool share what is here, so they agree about every
 * image.
 *
 * The keys are in a file, one key a line, as in lists for "ngx-bloom build
 * --from lines".  Spaces, tabs and CR around a key are removed.  Empty lines,
 * lines that begin with # or !, and the rest of a line after " #" have no key.
 */

#ifndef BLOOM_GUARD_H
#define BLOOM_GUARD_H

#include "bloom_image.h"
#include "bloom_key.h"

#pragma GCC visibility push(hidden)


/* The largest max_change: a million percent. */
#define BLOOM_GUARD_CHANGE_MAX  10000

/* Bytes of the largest file of keys. */
#define BLOOM_GUARD_FILE_MAX    (16 * 1024 * 1024)


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

/*
 * Compares the number of keys that an image states with its bits.  bits_set has
 * the number of bits set in the base and in each layer; of links, their sum.
 * *items gets the number of keys that the bits have by the estimate.
 *
 * The estimate is that of bloom_geometry_items(): -(m/k) ln(z/m) with z zeros
 * among m bits.  With z/m = e^-a, z has the variance m e^-a (1 - (1 + a) e^-a),
 * that of the empty cells after m a balls were thrown into m cells (Kolchin,
 * Sevastyanov, Chistyakov: "Random Allocations", 1978), from which
 * bloom_geometry_items_error() follows.  In a blocked filter it is up to a
 * tenth larger.  In a fuse base each key has given a slot a value, which is as
 * good as random, and the other slots are zero: with n keys and slots of w
 * bits, n w/2 bits are set, with the variance n w/4.
 *
 * An image is contradicted only if its number is an eighth away from what is
 * possible with ten standard errors and 32 bits more or fewer: no image that
 * this project built, merged, added to or saved is.  If hardly a bit is zero,
 * any large number is possible.  If the filter has layers, keys that were false
 * positives have set no bits.  The bits of links only say that there are some
 * keys, and at least how many; those of a ring say nothing.
 *
 * Returns 0; -1 if the bits have too few keys; or 1 if they have too many.
 */
int bloom_guard_contradicts(const bloom_image_t *image,
    const uint64_t *bits_set, uint64_t *items);


#pragma GCC visibility pop

#endif /* BLOOM_GUARD_H */
