/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions decode percent-escapes, and write them as canonical hosts and
 * URLs need them.
 */

#ifndef BLOOM_ESCAPE_H
#define BLOOM_ESCAPE_H

#include <stddef.h>
#include <stdint.h>

#include "bloom_ascii.h"


/*
 * Decodes p .. end in place until no escape is left, in one pass.  A decoded
 * byte may complete another escape ("%2541" becomes "%41", then "A").  Escapes
 * never overlap, so the order of decoding does not change the result.  Returns
 * the new end.
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


/* Writes a byte as an escape.  Returns the end of the output. */
static inline uint8_t *
bloom_put_escape(uint8_t *out, uint8_t c)
{
    static const char  hex[] = "0123456789ABCDEF";

    *out++ = '%';
    *out++ = (uint8_t) hex[c >> 4];
    *out++ = (uint8_t) hex[c & 0xf];

    return out;
}


/* Writes a byte.  Escapes space, "#", "%" and every byte that is not printable
 * ASCII.  Returns the end of the output. */
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
