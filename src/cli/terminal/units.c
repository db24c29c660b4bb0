/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file parses and formats numbers with units, times and hexadecimal
 * digits.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bloom_units.h"
#include "units.h"


int
parse_count(const char *text, uint64_t *value)
{
    return bloom_units_count(text, strlen(text), value);
}


int
parse_bytes(const char *text, uint64_t *value)
{
    return bloom_units_bytes(text, strlen(text), value);
}


int
parse_rate(const char *text, double *value)
{
    return bloom_units_rate(text, strlen(text), value);
}


int
parse_percent(const char *text, double *share)
{
    return bloom_units_percent(text, strlen(text), share);
}


/* Parses a fraction of a second after a dot, to milliseconds. */
static int
parse_fraction(const char **text, uint64_t *ms)
{
    const char  *p;
    unsigned     unit;

    *ms = 0;

    if (**text != '.') {
        return 0;
    }

    p = *text + 1;

    if (*p < '0' || *p > '9') {
        return -1;
    }

    for (unit = 100; *p >= '0' && *p <= '9'; p++, unit /= 10) {
        *ms += (uint64_t) (*p - '0') * unit;
    }

    *text = p;

    return 0;
}


static int
parse_unix(const char *text, uint64_t *ms)
{
    char        *end;
    uint64_t     seconds, fraction;
    const char  *p;

    errno = 0;
    seconds = strtoull(text, &end, 10);
    p = end;

    if (errno != 0 || parse_fraction(&p, &fraction) != 0 || *p != '\0'
        || seconds > UINT64_MAX / 1000 - 1)
    {
        return -1;
    }

    *ms = seconds * 1000 + fraction;

    return 0;
}


/* Returns 1 if strftime() formats the time as this text; strptime() accepts
 * other texts, too, such as "2026-2-30". */
static int
is_written_so(const char *text, const char *format, const struct tm *tm)
{
    char  again[UNITS_LEN];

    return strftime(again, sizeof(again), format, tm) != 0
           && strcmp(again, text) == 0;
}


/* Parses "Z" or an offset such as "-02:30", to seconds. */
static int
parse_offset(const char *text, int *seconds)
{
    struct tm  tm;

    memset(&tm, 0, sizeof(tm));
    *seconds = 0;

    if (strcmp(text, "Z") == 0 || strcmp(text, "z") == 0) {
        return 0;
    }

    if ((*text != '+' && *text != '-')
        || strptime(text + 1, "%H:%M", &tm) == NULL
        || !is_written_so(text + 1, "%H:%M", &tm))
    {
        return -1;
    }

    *seconds = tm.tm_hour * 3600 + tm.tm_min * 60;

    if (*text == '-') {
        *seconds = -*seconds;
    }

    return 0;
}


int
parse_time(const char *text, uint64_t *ms)
{
    int          offset;
    char         date[sizeof("2026-01-31T12:00:00")];
    time_t       seconds;
    uint64_t     fraction;
    struct tm    tm;
    const char  *p;

    static const char  format[] = "%Y-%m-%dT%H:%M:%S";

    if (*text < '0' || *text > '9') {
        return -1;
    }

    if (strchr(text, '-') == NULL) {
        return parse_unix(text, ms);
    }

    if (strlen(text) < sizeof(date) || strchr("Tt ", text[10]) == NULL) {
        return -1;
    }

    memcpy(date, text, sizeof(date) - 1);
    date[10] = 'T';
    date[sizeof(date) - 1] = '\0';

    p = text + sizeof(date) - 1;
    memset(&tm, 0, sizeof(tm));

    if (strptime(date, format, &tm) == NULL
        || parse_fraction(&p, &fraction) != 0
        || parse_offset(p, &offset) != 0)
    {
        return -1;
    }

    /* timegm() turns 31 February into 3 March */

    seconds = timegm(&tm);

    if (!is_written_so(date, format, &tm) || tm.tm_year < 70
        || seconds < offset)
    {
        return -1;
    }

    *ms = (uint64_t) (seconds - offset) * 1000 + fraction;

    return 0;
}


int
parse_hex(const char *text, uint8_t *bytes, size_t len)
{
    size_t  i;
    char    digits[3] = "";

    if (strlen(text) != 2 * len
        || strspn(text, "0123456789abcdefABCDEF") != 2 * len)
    {
        return -1;
    }

    for (i = 0; i < len; i++) {
        digits[0] = text[2 * i];
        digits[1] = text[2 * i + 1];
        bytes[i] = (uint8_t) strtoul(digits, NULL, 16);
    }

    return 0;
}


const char *
format_bytes(char text[UNITS_LEN], uint64_t bytes)
{
    int          i;
    double       v;
    const char  *units[] = { "bytes", "KiB", "MiB", "GiB", "TiB" };

    v = (double) bytes;

    for (i = 0; i < 4 && v >= 1024; i++) {
        v /= 1024;
    }

    snprintf(text, UNITS_LEN, "%.*f %s", i == 0 || v >= 100 ? 0 : v >= 10 ? 1
             : 2, v, bytes == 1 ? "byte" : units[i]);

    return text;
}


const char *
format_rate(char text[UNITS_LEN], double rate)
{
    snprintf(text, UNITS_LEN, "%.3g %%", rate * 100);

    return text;
}


const char *
format_time(char text[UNITS_LEN], uint64_t ms)
{
    size_t     len;
    time_t     seconds;
    struct tm  tm;

    seconds = (time_t) (ms / 1000);

    if (gmtime_r(&seconds, &tm) == NULL || tm.tm_year > 9999 - 1900) {
        snprintf(text, UNITS_LEN, "%" PRIu64 " ms after 1970", ms);
        return text;
    }

    len = strftime(text, UNITS_LEN, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(text + len, UNITS_LEN - len, ".%03uZ", (unsigned) (ms % 1000));

    return text;
}


const char *
format_count(char text[UNITS_LEN], double count)
{
    int          i;
    const char  *units[] = { "", " k", " M", " G", " T" };

    for (i = 0; i < 4 && count >= 1000; i++) {
        count /= 1000;
    }

    snprintf(text, UNITS_LEN, "%.*f%s", i == 0 || count >= 100 ? 0
             : count >= 10 ? 1 : 2, count, units[i]);

    return text;
}


const char *
format_duration(char text[UNITS_LEN], double seconds)
{
    unsigned long  s;

    s = seconds < 1e9 ? (unsigned long) (seconds + 0.5) : 1000000000;

    if (s < 60) {
        snprintf(text, UNITS_LEN, "%lu s", s);

    } else if (s < 3600) {
        snprintf(text, UNITS_LEN, "%lu:%02lu", s / 60, s % 60);

    } else {
        snprintf(text, UNITS_LEN, "%lu:%02lu:%02lu", s / 3600, s / 60 % 60,
                 s % 60);
    }

    return text;
}


static const struct {
    char      name[3];
    uint64_t  ms;
} span_units[] = {
    { "w", 604800000 }, { "d", 86400000 }, { "h", 3600000 }, { "m", 60000 },
    { "s", 1000 }, { "ms", 1 }
};

#define SPAN_UNITS   (sizeof(span_units) / sizeof(span_units[0]))
#define SPAN_DAY     1
#define SPAN_SECOND  4


/* Finds the unit at a text, seconds at its end, and moves the text behind it.
 * Returns its index; SPAN_UNITS if there is none. */
static size_t
span_unit(const char **text)
{
    size_t  i, len;

    if (**text == '\0') {
        return SPAN_SECOND;
    }

    for (i = SPAN_UNITS; i-- > 0; /* void */ ) {
        len = strlen(span_units[i].name);      /* "ms" is tried before "m" */

        if (strncmp(*text, span_units[i].name, len) == 0) {
            *text += len;
            return i;
        }
    }

    return SPAN_UNITS;
}


int
parse_span(const char *text, uint64_t *ms)
{
    size_t    unit, next;
    uint64_t  value;

    *ms = 0;
    next = 0;

    do {
        if (*text < '0' || *text > '9') {
            return -1;
        }

        for (value = 0; *text >= '0' && *text <= '9'; text++) {
            if (__builtin_mul_overflow(value, 10, &value)
                || __builtin_add_overflow(value, (uint64_t) (*text - '0'),
                                          &value))
            {
                return -1;
            }
        }

        unit = span_unit(&text);

        if (unit < next || unit == SPAN_UNITS
            || __builtin_mul_overflow(value, span_units[unit].ms, &value)
            || __builtin_add_overflow(*ms, value, ms))
        {
            return -1;
        }

        next = unit + 1;

        while (*text == ' ') {
            text++;
        }
    } while (*text != '\0');

    return 0;
}


const char *
format_span(char text[UNITS_LEN], uint64_t ms)
{
    size_t  i;
    char   *p;

    /* hours are read more easily than one day and some hours */

    i = ms < 2 * span_units[SPAN_DAY].ms ? SPAN_DAY + 1 : SPAN_DAY;
    p = text;
    snprintf(text, UNITS_LEN, "0s");

    for ( /* void */ ; i < SPAN_UNITS; ms %= span_units[i].ms, i++) {
        if (ms >= span_units[i].ms) {
            p += snprintf(p, UNITS_LEN - (size_t) (p - text), "%s%" PRIu64
                          "%s", p == text ? "" : " ", ms / span_units[i].ms,
                          span_units[i].name);
        }
    }

    return text;
}


const char *
format_hex(char *text, const uint8_t *bytes, size_t len)
{
    size_t  i;

    text[0] = '\0';

    for (i = 0; i < len; i++) {
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    }

    return text;
}
