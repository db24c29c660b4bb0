/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file writes JSON to a sink.
 */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bloom_json_writer.h"
#include "bloom_utf8.h"


#define ESCAPED_MAX  6                   /* output bytes per input byte */


static void
put(bloom_json_writer_t *json, const char *text)
{
    json->sink(json->data, text, strlen(text));
}


/* Escapes the character at p, and stores the number of its input bytes in
 * *used.  `rest` is at least 1.  Returns the length of the output. */
static size_t
escape(uint8_t dst[ESCAPED_MAX], const uint8_t *p, size_t rest, size_t *used)
{
    int       i;
    unsigned  c;

    static const char  hex[] = "0123456789abcdef";

    *used = bloom_utf8_len(p, rest);

    if (*used == 0) {
        *used = 1;
        memcpy(dst, "\xef\xbf\xbd", 3);
        return 3;
    }

    if (*p == '"' || *p == '\\') {
        dst[0] = '\\';
        dst[1] = *p;
        return 2;
    }

    if (bloom_utf8_is_hidden(p, *used)) {

        c = *used == 1 ? p[0]
            : *used == 2 ? (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu)
            : (p[0] & 0xfu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);

        memcpy(dst, "\\u", 2);

        for (i = 5; i >= 2; i--, c >>= 4) {
            dst[i] = (uint8_t) hex[c & 0xf];
        }

        return 6;
    }

    memcpy(dst, p, *used);

    return *used;
}


static void
put_string(bloom_json_writer_t *json, const uint8_t *p, size_t len)
{
    size_t   n, used;
    uint8_t  out[32 * ESCAPED_MAX];

    put(json, "\"");

    for (n = 0; len != 0; p += used, len -= used) {

        if (n > sizeof(out) - ESCAPED_MAX) {
            json->sink(json->data, out, n);
            n = 0;
        }

        n += escape(out + n, p, len, &used);
    }

    json->sink(json->data, out, n);
    put(json, "\"");
}


/* Writes what is before a value: a comma, a line end, its name. */
static void
begin_value(bloom_json_writer_t *json, const char *name)
{
    int  line;

    line = (json->lines && json->depth == 1);

    put(json, json->comma ? "," : "");
    put(json, line ? "\n  " : "");

    if (name != NULL) {
        put_string(json, (const uint8_t *) name, strlen(name));
        put(json, line ? ": " : ":");
    }

    json->comma = 1;
}


static void
begin_nested(bloom_json_writer_t *json, const char *name, int array)
{
    begin_value(json, name);
    put(json, array ? "[" : "{");

    json->arrays = json->arrays << 1 | array;
    json->depth++;
    json->comma = 0;
}


void
bloom_json_writer_init(bloom_json_writer_t *json, bloom_json_sink_t sink,
    void *data)
{
    memset(json, 0, sizeof(bloom_json_writer_t));

    json->sink = sink;
    json->data = data;
}


void
bloom_json_put_object(bloom_json_writer_t *json, const char *name)
{
    begin_nested(json, name, 0);
}


void
bloom_json_put_array(bloom_json_writer_t *json, const char *name)
{
    begin_nested(json, name, 1);
}


void
bloom_json_put_end(bloom_json_writer_t *json)
{
    json->depth--;

    put(json, json->lines && json->depth == 0 ? "\n" : "");
    put(json, json->arrays & 1 ? "]" : "}");

    json->arrays >>= 1;
    json->comma = 1;
}


void
bloom_json_put_text(bloom_json_writer_t *json, const char *name,
    const char *text)
{
    if (text == NULL) {
        bloom_json_put_null(json, name);
        return;
    }

    bloom_json_put_bytes(json, name, text, strlen(text));
}


void
bloom_json_put_bytes(bloom_json_writer_t *json, const char *name,
    const void *data, size_t len)
{
    begin_value(json, name);
    put_string(json, data, len);
}


void
bloom_json_put_hex(bloom_json_writer_t *json, const char *name,
    const void *data, size_t len)
{
    char            digits[3];
    const uint8_t  *p;

    begin_value(json, name);
    put(json, "\"");

    for (p = data; len != 0; p++, len--) {
        snprintf(digits, sizeof(digits), "%02x", *p);
        put(json, digits);
    }

    put(json, "\"");
}


void
bloom_json_put_count(bloom_json_writer_t *json, const char *name,
    uint64_t value)
{
    char  text[32];

    snprintf(text, sizeof(text), "%" PRIu64, value);

    begin_value(json, name);
    put(json, text);
}


void
bloom_json_put_number(bloom_json_writer_t *json, const char *name,
    double value)
{
    int   digits;
    char  text[40];

    if (!isfinite(value)) {
        bloom_json_put_null(json, name);
        return;
    }

    for (digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, value);

        if (strtod(text, NULL) == value) {
            break;
        }
    }

    begin_value(json, name);
    put(json, text);
}


void
bloom_json_put_rate(bloom_json_writer_t *json, const char *name, double value)
{
    char  text[40];

    if (!isfinite(value)) {
        bloom_json_put_null(json, name);
        return;
    }

    snprintf(text, sizeof(text), "%.6g", value);

    begin_value(json, name);
    put(json, text);
}


void
bloom_json_put_seconds(bloom_json_writer_t *json, const char *name,
    uint64_t ms)
{
    int   n;
    char  text[40];

    n = snprintf(text, sizeof(text), "%" PRIu64, ms / 1000);

    if (ms % 1000 != 0) {
        snprintf(text + n, sizeof(text) - n, ".%03u", (unsigned) (ms % 1000));
    }

    begin_value(json, name);
    put(json, text);
}


void
bloom_json_put_time(bloom_json_writer_t *json, const char *name, uint64_t ms)
{
    char       text[64];
    size_t     len;
    time_t     seconds;
    struct tm  tm;

    seconds = (time_t) (ms / 1000);

    if (ms == 0 || gmtime_r(&seconds, &tm) == NULL
        || tm.tm_year > 9999 - 1900)
    {
        bloom_json_put_null(json, name);
        return;
    }

    len = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(text + len, sizeof(text) - len, ".%03uZ", (unsigned) (ms % 1000));

    bloom_json_put_text(json, name, text);
}


void
bloom_json_put_bool(bloom_json_writer_t *json, const char *name, int value)
{
    begin_value(json, name);
    put(json, value ? "true" : "false");
}


void
bloom_json_put_null(bloom_json_writer_t *json, const char *name)
{
    begin_value(json, name);
    put(json, "null");
}
