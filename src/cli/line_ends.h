/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions find the ends of lines in a block, many at a time.
 */

#ifndef LINE_ENDS_H
#define LINE_ENDS_H

#include <stddef.h>
#include <stdint.h>


#define LINE_ENDS_MIN  64                    /* the least room for ends */


/*
 * Looks for `delimiter` in data[*from .. len-1], len < 2^32, until all of it is
 * seen or there is no room for more than LINE_ENDS_MIN others, and leaves their
 * places in ends[].  How many; *from is then what has not been seen.
 */
size_t line_ends_find(const uint8_t *data, size_t *from, size_t len,
    uint8_t delimiter, uint32_t *ends, size_t room);

/* The same by memchr() alone, for any processor; public to be tested. */
size_t line_ends_find_portable(const uint8_t *data, size_t *from, size_t len,
    uint8_t delimiter, uint32_t *ends, size_t room);


#endif /* LINE_ENDS_H */
