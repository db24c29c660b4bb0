/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Only hosts with one of a few rare characters are converted here.
 */

#include <string.h>

#include "bloom_escape.h"
#include "bloom_host_convert.h"
#include "bloom_idn.h"
#include "bloom_utf8.h"


/* A character that becomes a byte with a meaning, which labels cannot have;
 * 0 for any other one. */
static uint8_t
meaning(const uint8_t *p, size_t len)
{
    size_t  i;

    static const struct {
        char     text[4];
        uint8_t  c;
    } characters[] = {
        { "\xef\xbc\x85", '%' }, { "\xef\xb9\xaa", '%' },
        { "\xef\xbc\x9a", ':' }, { "\xef\xb9\x95", ':' },
        { "\xef\xb8\x93", ':' }
    };

    for (i = 0; i < sizeof(characters) / sizeof(characters[0]); i++) {
        if (len >= 3 && memcmp(p, characters[i].text, 3) == 0) {
            return characters[i].c;
        }
    }

    return 0;
}


int
bloom_host_needs_conversion(const uint8_t *p, size_t len)
{
    size_t   i;
    uint8_t  all;

    for (all = 0, i = 0; i < len; i++) {
        all |= p[i];

        if (p[i] == 0xef && meaning(p + i, len - i) == '%') {
            return 1;
        }
    }

    return all >= 0x80 && memchr(p, '[', len) != NULL;
}


/*
 * Converts one character of a host that is not ASCII.  Returns the length of
 * the result, -1 if the character stays as it is, and less if the budget is
 * used up.
 */
static int
convert_alone(uint8_t ascii[BLOOM_IDN_LABEL], const uint8_t *p, size_t len)
{
    int  n;

    ascii[0] = meaning(p, len);

    if (ascii[0] != 0) {
        return 1;
    }

    /* what joins other characters has no meaning by itself */

    if (bloom_idn_dot(p, len) != 0
        || (len == 3 && (memcmp(p, "\xe2\x80\x8c", 3) == 0
                         || memcmp(p, "\xe2\x80\x8d", 3) == 0)))
    {
        return -1;
    }

    n = bloom_idn_label(ascii, p, len);

    return n > 4 && memcmp(ascii, "xn--", 4) == 0 ? -1 : n;
}


/* Counts bytes that are not ASCII, or that end a host or what is before it. */
static size_t
count_ends(const uint8_t *p, const uint8_t *end)
{
    size_t  n;

    for (n = 0; p < end; p++) {
        n += *p >= 0x80 || *p == '/' || *p == '\\' || *p == '?' || *p == '@';
    }

    return n;
}


int
bloom_host_convert(uint8_t text[BLOOM_HOST_CONVERTED], const uint8_t *p,
    size_t len)
{
    int             n, valid, same;
    size_t          ends;
    uint8_t        *out, ascii[BLOOM_IDN_LABEL];
    const uint8_t  *end, *from;

    bloom_idn_begin_name();

    out = text;
    end = p + len;
    valid = 1;
    same = 1;

    for ( /* void */ ; p < end; p += len) {
        len = bloom_utf8_len(p, (size_t) (end - p));
        n = len < 2 ? -1 : convert_alone(ascii, p, len);

        valid &= len != 0;
        same &= n == -1;

        len = len == 0 ? 1 : len;
        from = n == -1 ? p : ascii;
        n = n == -1 ? (int) len : n;

        if (n < -1 || n > text + BLOOM_HOST_CONVERTED - out) {
            return -2;
        }

        memcpy(out, from, (size_t) n);
        out += n;
    }

    if (!valid && !same) {
        return -1;
    }

    ends = count_ends(text, out);
    out = bloom_unescape(text, out);

    return count_ends(text, out) != ends ? -1 : (int) (out - text);
}
