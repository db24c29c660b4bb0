/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The JSON may contain white space, but its members must be in the order in
 * which the library writes them.  The base64 is decoded in place.
 */

#include <stdio.h>
#include <string.h>

#include "bloom_foreign_json.h"


static const uint8_t *
skip_space(const uint8_t *p, const uint8_t *end)
{
    while (p != end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r')) {
        p++;
    }

    return p;
}


/* Skips the text `what`, which may have white space between its tokens.
 * Returns its end, or NULL if the text is not there. */
static const uint8_t *
expect(const uint8_t *p, const uint8_t *end, const char *what)
{
    char  before;

    for (before = 'a'; *what != '\0'; before = *what++, p++) {

        if (strchr("{,:}", *what) != NULL || (*what == '"'
                                              && !(before >= 'a'
                                                   && before <= 'z')))
        {
            p = skip_space(p, end);
        }

        if (p == end || *p != (uint8_t) *what) {
            return NULL;
        }
    }

    return p;
}


static const uint8_t *
number(const uint8_t *p, const uint8_t *end, uint64_t *value)
{
    const uint8_t  *begin;

    p = skip_space(p, end);
    begin = p;

    for (*value = 0; p != end && *p >= '0' && *p <= '9'; p++) {

        if (*value > (UINT64_MAX - 9) / 10) {
            return NULL;
        }

        *value = *value * 10 + (uint64_t) (*p - '0');
    }

    return p == begin ? NULL : p;
}


/* Returns 0 to 63; -1 if the character is not in the alphabets. */
static int
base64_digit(uint8_t c)
{
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }

    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }

    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }

    return c == '-' || c == '+' ? 62 : c == '_' || c == '/' ? 63 : -1;
}


int64_t
bloom_foreign_json(uint8_t *dst, const uint8_t *src, size_t len,
    char error[BLOOM_FOREIGN_ERROR_LEN])
{
    int             digit, n;
    uint8_t        *out;
    uint32_t        group;
    uint64_t        m, k;
    const uint8_t  *p, *end;

    p = src;
    end = src + len;

    p = expect(p, end, "{\"m\":");
    p = p ? number(p, end, &m) : NULL;
    p = p ? expect(p, end, ",\"k\":") : NULL;
    p = p ? number(p, end, &k) : NULL;
    p = p ? expect(p, end, ",\"b\":\"") : NULL;

    if (p == NULL) {
        snprintf(error, BLOOM_FOREIGN_ERROR_LEN,
                 "is not a bits-and-blooms filter in JSON: it does not begin "
                 "with {\"m\":...,\"k\":...,\"b\":\"");
        return -1;
    }

    /* the text parsed so far was longer than these 16 bytes */

    bloom_put64be(dst, m);
    bloom_put64be(dst + 8, k);
    out = dst + 16;

    group = 0;
    n = 0;

    for ( /* void */ ; p != end; p++) {

        digit = base64_digit(*p);

        if (digit == -1) {
            break;
        }

        group = group << 6 | (uint32_t) digit;

        if (++n == 4) {
            *out++ = (uint8_t) (group >> 16);
            *out++ = (uint8_t) (group >> 8);
            *out++ = (uint8_t) group;
            group = 0;
            n = 0;
        }
    }

    if (n == 2) {
        *out++ = (uint8_t) (group >> 4);

    } else if (n == 3) {
        *out++ = (uint8_t) (group >> 10);
        *out++ = (uint8_t) (group >> 2);
    }

    while (n > 1 && n < 4 && p != end && *p == '=') {
        p++;
        n++;
    }

    p = n == 1 ? NULL : expect(p, end, "\"}");

    if (p == NULL || skip_space(p, end) != end) {
        snprintf(error, BLOOM_FOREIGN_ERROR_LEN,
                 "is not a bits-and-blooms filter in JSON: its base64 is not "
                 "followed by \"} and the end of the file");
        return -1;
    }

    return out - dst;
}
