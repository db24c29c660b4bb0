/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions find the ends of many lines in a block at a time,
 * or count them.
 */

#ifndef LINE_ENDS_H
#define LINE_ENDS_H

#include <stddef.h>
#include <stdint.h>


#define LINE_ENDS_MIN  64                    /* the least size of ends[] */


/*
 * Finds `delimiter` in data[*from .. len-1], len < 2^32, and writes its indices
 * to ends[].  Stops at the end of the data, or when ends[], of `room` members,
 * may have less than LINE_ENDS_MIN left.  *from gets the index where it
 * stopped.  Returns the number of indices.
 */
size_t line_ends_find(const uint8_t *data, size_t *from, size_t len,
    uint8_t delimiter, uint32_t *ends, size_t room);

/* Returns how often `delimiter` is in the data. */
uint64_t line_ends_count(const uint8_t *data, size_t len, int delimiter);

/* Does what line_ends_find() does, with memchr(), on any processor; public for
 * tests. */
size_t line_ends_find_portable(const uint8_t *data, size_t *from, size_t len,
    uint8_t delimiter, uint32_t *ends, size_t room);


#endif /* LINE_ENDS_H */
