/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The first byte of a character determines its length and the range of its
 * second byte; all further bytes are 0x80 to 0xbf.
 */

#include "bloom_utf8.h"


size_t
bloom_utf8_len(const uint8_t *p, size_t rest)
{
    size_t   i, len;
    uint8_t  from, to;

    len = bloom_utf8_begin(p[0], &from, &to);

    if (len > rest) {
        return 0;
    }

    for (i = 1; i < len; i++) {
        if (p[i] < from || p[i] > to) {
            return 0;
        }

        from = 0x80;
        to = 0xbf;
    }

    return len;
}


int
bloom_utf8_valid(const uint8_t *p, size_t len)
{
    size_t  n;

    for ( /* void */ ; len != 0; p += n, len -= n) {
        n = bloom_utf8_len(p, len);

        if (n == 0) {
            return 0;
        }
    }

    return 1;
}
