/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions read and write percent-escapes, as canonical hosts and URLs
 * have them.
 */

#ifndef BLOOM_ESCAPE_H
#define BLOOM_ESCAPE_H

#include <stddef.h>
#include <stdint.h>

#include "bloom_ascii.h"


/*
 * Unescapes p .. end until there is no escape left, in place and at once: a
 * byte that came out of an escape may be the last of another one.  As no two
 * escapes overlap, the order in which they are replaced makes no difference.
 * Returns the new end.
 */
static inline uint8_t *
bloom_unescape(uint8_t *p, const uint8_t *end)
{
    int       high, low;
    uint8_t  *start, *out;

    start = p;

    for (out = p; p < end; p++) {
        *out++ = *p;

        while (out - start >= 3 && out[-3] == '%'
               && (high = bloom_hex_digit(out[-2])) != -1
               && (low = bloom_hex_digit(out[-1])) != -1)
        {
            out -= 2;
            out[-1] = (uint8_t) (high << 4 | low);
        }
    }

    return out;
}


/* Writes a byte as an escape, and returns where it ends. */
static inline uint8_t *
bloom_put_escape(uint8_t *out, uint8_t c)
{
    static const char  hex[] = "0123456789ABCDEF";

    *out++ = '%';
    *out++ = (uint8_t) hex[c >> 4];
    *out++ = (uint8_t) hex[c & 0xf];

    return out;
}


/* Writes a byte, escaped if it is no printed character or marks something, and
 * returns where it ends. */
static inline uint8_t *
bloom_put_escaped(uint8_t *out, uint8_t c)
{
    if (c > ' ' && c < 0x7f && c != '#' && c != '%') {
        *out++ = c;
        return out;
    }

    return bloom_put_escape(out, c);
}


#endif /* BLOOM_ESCAPE_H */
