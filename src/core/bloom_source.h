/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A source is an ordered log of changes, such as a Redis stream: keys that were
 * added and keys that were removed.  A position says how much of it has been
 * applied.
 *
 * A position is a pair of unsigned 64-bit numbers, written as "HIGH-LOW", or as
 * "HIGH" if LOW is 0.  Positions are compared as pairs.  A source begins at
 * position 0.  The id of a Redis stream's entry is a position, and so is a
 * Kafka offset plus one.
 */

#ifndef BLOOM_SOURCE_H
#define BLOOM_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)


#define BLOOM_SOURCE_NAME_MAX    255
#define BLOOM_POSITION_TEXT_MAX  42      /* "HIGH-LOW" and a null byte */

typedef struct {
    uint64_t          high;
    uint64_t          low;
} bloom_position_t;

/* A source, and the position up to which a filter has its changes. */
typedef struct {
    bloom_position_t  position;
    uint32_t          len;               /* of the name; 0: no source */
    char              name[BLOOM_SOURCE_NAME_MAX];
} bloom_source_t;


/* Returns a number less than, equal to or greater than 0, as position `a` is
 * before, at or after `b`. */
static inline int
bloom_position_cmp(bloom_position_t a, bloom_position_t b)
{
    if (a.high != b.high) {
        return a.high < b.high ? -1 : 1;
    }

    return a.low < b.low ? -1 : a.low > b.low;
}

/* Returns 1 if a position is the beginning of a source, else 0. */
static inline int
bloom_position_is_zero(bloom_position_t position)
{
    return position.high == 0 && position.low == 0;
}

/* Returns the position after this one, which is the last position itself after
 * the last one. */
static inline bloom_position_t
bloom_position_next(bloom_position_t position)
{
    if (position.low != UINT64_MAX) {
        position.low++;

    } else if (position.high != UINT64_MAX) {
        position.high++;
        position.low = 0;
    }

    return position;
}

/* Parses a position, which is all of the text.  Returns 0, or -1 if it is not
 * one. */
int bloom_position_parse(bloom_position_t *position, const void *text,
    size_t len);

/* Writes a position with a null byte at its end.  Returns the length without
 * that byte. */
size_t bloom_position_write(bloom_position_t position,
    char text[BLOOM_POSITION_TEXT_MAX]);

/* Returns 1 if a source may have this name, which is 1 to 255 letters, digits
 * and characters of "._:/-", else 0. */
int bloom_source_name_valid(const void *name, size_t len);

/* Returns 1 if the source has this name, else 0. */
int bloom_source_is(const bloom_source_t *source, const void *name,
    size_t len);


#pragma GCC visibility pop

#endif /* BLOOM_SOURCE_H */
