/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file parses and writes positions of sources, and checks their names.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bloom_source.h"


/* Parses an unsigned number of 1 to 20 digits.  Returns how many digits it has,
 * or 0 if there is no number or if it exceeds 64 bits. */
static size_t
parse_number(uint64_t *number, const uint8_t *text, size_t len)
{
    size_t   i;
    uint8_t  digit;

    *number = 0;

    for (i = 0; i < len && text[i] >= '0' && text[i] <= '9'; i++) {
        digit = (uint8_t) (text[i] - '0');

        if (i == 20 || *number > (UINT64_MAX - digit) / 10) {
            return 0;
        }

        *number = *number * 10 + digit;
    }

    return i;
}


int
bloom_position_parse(bloom_position_t *position, const void *text, size_t len)
{
    size_t          n;
    const uint8_t  *p;

    p = text;
    position->low = 0;

    n = parse_number(&position->high, p, len);

    if (n == 0 || n == len) {
        return n == 0 ? -1 : 0;
    }

    if (p[n] != '-') {
        return -1;
    }

    p += n + 1;
    len -= n + 1;

    n = parse_number(&position->low, p, len);

    return n != 0 && n == len ? 0 : -1;
}


size_t
bloom_position_write(bloom_position_t position,
    char text[BLOOM_POSITION_TEXT_MAX])
{
    int  len;

    len = position.low == 0
          ? snprintf(text, BLOOM_POSITION_TEXT_MAX, "%" PRIu64, position.high)
          : snprintf(text, BLOOM_POSITION_TEXT_MAX, "%" PRIu64 "-%" PRIu64,
                     position.high, position.low);

    return (size_t) len;
}


int
bloom_source_name_valid(const void *name, size_t len)
{
    size_t          i;
    const uint8_t  *p;

    p = name;

    for (i = 0; i < len; i++) {

        if (!(p[i] >= 'a' && p[i] <= 'z') && !(p[i] >= 'A' && p[i] <= 'Z')
            && !(p[i] >= '0' && p[i] <= '9')
            && (p[i] == '\0' || strchr("._:/-", p[i]) == NULL))
        {
            return 0;
        }
    }

    return len >= 1 && len <= BLOOM_SOURCE_NAME_MAX;
}


int
bloom_source_is(const bloom_source_t *source, const void *name, size_t len)
{
    return source->len == len && memcmp(source->name, name, len) == 0;
}
