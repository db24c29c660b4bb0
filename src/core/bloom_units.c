/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A number that is out of range is an error; it is never clamped or truncated.
 */

#include <stdlib.h>
#include <string.h>

#include "bloom_units.h"


static int
parse_scaled(const char *text, size_t len, uint64_t unit, uint64_t *value)
{
    int       power;
    size_t    i;
    uint64_t  v;

    if (len == 0) {
        return -1;
    }

    switch (text[len - 1] | 0x20) {

    case 'k':
        power = 1;
        break;

    case 'm':
        power = 2;
        break;

    case 'g':
        power = 3;
        break;

    default:
        power = 0;
    }

    if (power != 0 && --len == 0) {
        return -1;
    }

    for (v = 0, i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9'
            || __builtin_mul_overflow(v, 10, &v)
            || __builtin_add_overflow(v, (uint64_t) (text[i] - '0'), &v))
        {
            return -1;
        }
    }

    while (power--) {
        if (__builtin_mul_overflow(v, unit, &v)) {
            return -1;
        }
    }

    *value = v;

    return 0;
}


int
bloom_units_count(const char *text, size_t len, uint64_t *count)
{
    return parse_scaled(text, len, 1000, count);
}


int
bloom_units_bytes(const char *text, size_t len, uint64_t *bytes)
{
    return parse_scaled(text, len, 1024, bytes);
}


int
bloom_units_rate(const char *text, size_t len, double *rate)
{
    char    copy[64], *end;
    double  v;

    if (len == 0 || len >= sizeof(copy)) {
        return -1;
    }

    memcpy(copy, text, len);
    copy[len] = '\0';

    /* no leading sign or space, no "inf", no hexadecimal */

    if (strspn(copy, "0123456789.eE+-%") != len || strchr("+-eE%", copy[0])) {
        return -1;
    }

    v = strtod(copy, &end);

    if (*end == '%') {
        v /= 100;
        end++;
    }

    if (end != copy + len || !(v > 0 && v < 1)) {
        return -1;
    }

    *rate = v;

    return 0;
}


int
bloom_units_percent(const char *text, size_t len, double *part)
{
    char    copy[64], *end;
    double  percent;

    if (len == 0 || len >= sizeof(copy)) {
        return -1;
    }

    memcpy(copy, text, len);
    copy[len] = '\0';

    /* no sign, no space, no exponent, and a digit before a dot */

    if (copy[0] == '.' || strspn(copy, "0123456789.") + 1 != len) {
        return -1;
    }

    percent = strtod(copy, &end);

    if (end == copy || end != copy + len - 1 || *end != '%') {
        return -1;
    }

    *part = percent / 100;

    return 0;
}
