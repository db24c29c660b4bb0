/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions check UTF-8 by the rules of RFC 3629: no overlong characters,
 * no surrogates, and nothing above U+10FFFF.
 */

#ifndef BLOOM_UTF8_H
#define BLOOM_UTF8_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)


/*
 * Returns the length, 1 to 4, of a character that begins with this byte; 0 if
 * none does.  If the length is at least 2, *from and *to are set to the range
 * of the second byte.  Further bytes are 0x80 to 0xbf.
 */
static inline unsigned
bloom_utf8_begin(uint8_t first, uint8_t *from, uint8_t *to)
{
    if (first < 0x80) {
        return 1;
    }

    if (first < 0xc2 || first > 0xf4) {
        return 0;
    }

    *from = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    *to = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;

    return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

/* Returns the length of the character at p; 0 if it is not valid.  `rest` is at
 * least 1. */
size_t bloom_utf8_len(const uint8_t *p, size_t rest);

/*
 * Returns 1 if a valid character of `len` bytes must not be shown as it is,
 * else 0: terminals and browsers obey it instead of showing it.  These are the
 * controls C0, DEL and C1, the line and paragraph separators, and the
 * characters that change the direction of text: U+0000 to U+001F, U+007F to
 * U+009F, U+061C, U+200E, U+200F, U+2028 to U+202E, U+2066 to U+2069.
 */
int bloom_utf8_is_hidden(const uint8_t *p, size_t len);

/* Returns 1 if these bytes are valid UTF-8, else 0. */
int bloom_utf8_valid(const uint8_t *p, size_t len);


#pragma GCC visibility pop

#endif /* BLOOM_UTF8_H */
