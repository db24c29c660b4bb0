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
bloom_utf8_is_hidden(const uint8_t *p, size_t len)
{
    switch (len) {

    case 1:
        return p[0] < 0x20 || p[0] == 0x7f;

    case 2:
        return (p[0] == 0xc2 && p[1] < 0xa0)             /* U+0080 - U+009F */
               || (p[0] == 0xd8 && p[1] == 0x9c);        /* U+061C */

    case 3:
        return p[0] == 0xe2
               && ((p[1] == 0x80
                    && (p[2] == 0x8e || p[2] == 0x8f     /* U+200E, U+200F */
                        || (p[2] >= 0xa8 && p[2] <= 0xae)))     /* U+2028 - */
                   || (p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9));

    default:
        return 0;
    }
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
