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


/* The largest percentages by which the number of keys may shrink and grow. */
#define BLOOM_GUARD_LOSS_MAX    1
#define BLOOM_GUARD_GROWTH_MAX  10000

/* Bytes of the largest file of keys. */
#define BLOOM_GUARD_FILE_MAX    (16 * 1024 * 1024)


/* By how many keys a new image may differ from the old one in one direction. */
typedef struct {
    enum {
        BLOOM_GUARD_ANY = 0,             /* by any number */
        BLOOM_GUARD_PART,
        BLOOM_GUARD_KEYS
    } kind;

    double    part;                      /* of the number of the old keys */
    uint64_t  keys;
} bloom_guard_limit_t;

/* The limits in both directions.  What counts is the difference of the numbers
 * of keys: as many new keys as lost ones are no change. */
typedef struct {
    bloom_guard_limit_t  loss;
    bloom_guard_limit_t  growth;
} bloom_guard_limits_t;

/* Why a number of keys is refused, for a message. */
typedef struct {
    int   loss;                          /* 1: the loss is too large; 0: the
                                            growth */
    char  change[96];                    /* "150 fewer (15 %) than the 1000" */
    char  allowed[32];                   /* "1 %" or "500 keys" */
} bloom_guard_excess_t;


/*
 * Reads the next line of a piece of a file, *pos .. end, and adds 1 to *line.
 * Pieces end with a line.  Returns 1 with the key of the line, which is empty
 * if the line has no key; or 0 at the end of the piece.
 */
int bloom_guard_next(bloom_key_t *key, const uint8_t **pos, const uint8_t *end,
    uint64_t *line);

/* Reads a percentage, at most the part `most`, or a number of keys, such as
 * "1%" or "10k".  Returns 0; or -1 if the text is neither. */
int bloom_guard_limit_parse(bloom_guard_limit_t *limit, const char *text,
    size_t len, double most);

/* Returns 1 if a limit is set in either direction, else 0. */
int bloom_guard_limited(const bloom_guard_limits_t *limits);

/* Returns 1 with the reason if the change of the number of keys exceeds a
 * limit, else 0.  If there were no keys before, no percentage is exceeded. */
int bloom_guard_exceeds(const bloom_guard_limits_t *limits, uint64_t before,
    uint64_t now, bloom_guard_excess_t *excess);

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
