/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Nothing is copied here: a key that is read points into the caller's piece,
 * and decoding works in place.
 */

#include <string.h>

#include "bloom_key.h"


int
bloom_key_next(bloom_key_t *key, const uint8_t **pos, const uint8_t *end,
    bloom_split_e split, int last)
{
    const uint8_t  *start, *stop;

    start = *pos;

    if (start == end) {
        return 0;
    }

    stop = memchr(start, split == BLOOM_SPLIT_NUL ? '\0' : '\n',
                  (size_t) (end - start));

    if (stop != NULL) {
        *pos = stop + 1;

    } else if (last) {
        stop = end;
        *pos = end;

    } else {
        return 0;
    }

    if (split == BLOOM_SPLIT_LINES && stop != start && stop[-1] == '\r') {
        stop--;
    }

    key->data = start;
    key->len = (size_t) (stop - start);

    return 1;
}


size_t
bloom_key_mark(const uint8_t *data, size_t len)
{
    return len >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}


/* Values of hexadecimal digits, plus 1; 0 for other bytes. */
static const uint8_t  hex[256] = {
    ['0'] = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
    ['A'] = 11, 12, 13, 14, 15, 16,
    ['a'] = 11, 12, 13, 14, 15, 16
};


size_t
bloom_key_decode(uint8_t *dst, const uint8_t *src, size_t len,
    bloom_decode_e how)
{
    unsigned        high, low;
    uint8_t         c, *d;
    const uint8_t  *end;

    d = dst;
    end = src + len;

    if (how == BLOOM_DECODE_OFF) {
        if (len != 0) {
            memmove(dst, src, len);
        }

        return len;
    }

    while (src < end) {
        c = *src++;

        if (c > '+') {                   /* most bytes */
            *d++ = c;
            continue;
        }

        if (c == '+' && how == BLOOM_DECODE_FORM) {
            c = ' ';

        } else if (c == '%' && end - src >= 2) {
            high = hex[src[0]];
            low = hex[src[1]];

            if (high != 0 && low != 0) {
                c = (uint8_t) ((high - 1) << 4 | (low - 1));
                src += 2;
            }
        }

        *d++ = c;
    }

    return (size_t) (d - dst);
}
