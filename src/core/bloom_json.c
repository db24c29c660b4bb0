/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The reader is a state machine that takes one byte at a time, so that the
 * input may be cut anywhere.
 */

#include <string.h>

#include "bloom_json.h"
#include "bloom_ascii.h"
#include "bloom_utf8.h"


enum {
    START = 0,                           /* before the array */
    FIRST,                               /* before the first string */
    VALUE,                               /* before a further string */
    STRING,                              /* inside a string */
    UTF8,                                /* inside a multi-byte character */
    ESCAPE,                              /* after a backslash */
    HEX,                                 /* after \u */
    LOW,                                 /* after an escaped high surrogate */
    LOW_ESCAPE,                          /* after its next backslash */
    AFTER,                               /* after a string */
    END                                  /* after the array */
};


static int fail(bloom_json_t *json, const char *error);
static void append(bloom_json_t *json, uint8_t c);
static int unit(bloom_json_t *json);
static int begin_utf8(bloom_json_t *json, uint8_t c);
static int escape(bloom_json_t *json, uint8_t c);
static int between(bloom_json_t *json, uint8_t c);


void
bloom_json_begin(bloom_json_t *json, uint8_t *buf, size_t size)
{
    memset(json, 0, sizeof(bloom_json_t));

    json->buf = buf;
    json->size = size;
}


/* Returns 1 for a byte that is a character of a string by itself. */
static inline int
is_plain(uint8_t c)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}


int
bloom_json_next(bloom_json_t *json, bloom_key_t *key, const uint8_t **pos,
    const uint8_t *end)
{
    int             rc;
    size_t          run, fit;
    const uint8_t  *p, *start;

    if (json->error != NULL) {
        return -1;
    }

    start = *pos;
    rc = 0;

    for (p = start; p < end && rc == 0; /* void */ ) {

        if (json->state != STRING) {
            rc = between(json, *p);
            p += (rc == 0);
            continue;
        }

        for (run = 0; p + run < end && is_plain(p[run]); run++) { /* void */ }

        fit = json->size - json->len;
        fit = run < fit ? run : fit;

        if (p + run < end && p[run] == '"') {
            key->data = p;
            key->len = fit;

            if (json->len != 0) {
                memcpy(json->buf + json->len, p, fit);
                key->data = json->buf;
                key->len += json->len;
            }

            p += run + 1;
            json->state = AFTER;
            rc = 1;
            break;
        }

        memcpy(json->buf + json->len, p, fit);
        json->len += fit;
        p += run;

        if (p == end) {
            break;
        }

        if (*p == '\\') {
            json->state = ESCAPE;

        } else if (*p < 0x20) {
            rc = fail(json, "a control character must be escaped");

        } else {
            rc = begin_utf8(json, *p);
        }

        p += (rc == 0);
    }

    json->offset += (uint64_t) (p - start);
    *pos = p;

    return rc;
}


/* Takes one byte in any state but STRING.  Returns 0 or -1.  It is long because
 * it has all states of the reader, so that each transition is in sight. */
static int
between(bloom_json_t *json, uint8_t c)
{
    int  digit;

    switch (json->state) {

    case UTF8:
        if (c < json->from || c > json->to) {
            return fail(json, "the string is not valid UTF-8");
        }

        json->from = 0x80;
        json->to = 0xbf;
        json->state = --json->more == 0 ? STRING : UTF8;
        append(json, c);

        return 0;

    case ESCAPE:
        return escape(json, c);

    case HEX:
        digit = bloom_hex_digit(c);

        if (digit == -1) {
            return fail(json, "\\u must be followed by four hexadecimal "
                              "digits");
        }

        json->unit = json->unit << 4 | (uint32_t) digit;

        return --json->more == 0 ? unit(json) : 0;

    case LOW:
    case LOW_ESCAPE:
        if (c != (json->state == LOW ? '\\' : 'u')) {
            return fail(json, "a high surrogate must be followed by a low "
                              "one");
        }

        if (json->state == LOW) {
            json->state = LOW_ESCAPE;
            return 0;
        }

        return escape(json, c);
    }

    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
        return 0;
    }

    switch (json->state) {

    case START:
        if (c != '[') {
            return fail(json, "an array of strings must begin with \"[\"");
        }

        json->state = FIRST;
        return 0;

    case FIRST:
    case VALUE:
        if (c == '"') {
            json->state = STRING;
            json->len = 0;
            json->strings++;
            return 0;
        }

        if (json->state == VALUE) {
            return fail(json, "a string is expected here");
        }

        if (c != ']') {
            return fail(json, "a string or \"]\" is expected here");
        }

        json->state = END;
        return 0;

    case AFTER:
        if (c != ',' && c != ']') {
            return fail(json, "\",\" or \"]\" is expected here");
        }

        json->state = c == ',' ? VALUE : END;
        return 0;

    default: /* END */
        return fail(json, "nothing may follow the array");
    }
}


static int
fail(bloom_json_t *json, const char *error)
{
    json->error = error;

    return -1;
}


static void
append(bloom_json_t *json, uint8_t c)
{
    if (json->len < json->size) {
        json->buf[json->len++] = c;
    }
}


/* Takes the first byte of a multi-byte character. */
static int
begin_utf8(bloom_json_t *json, uint8_t c)
{
    unsigned  len;

    len = bloom_utf8_begin(c, &json->from, &json->to);

    if (len == 0) {
        return fail(json, "the string is not valid UTF-8");
    }

    json->more = (int) len - 1;
    json->state = UTF8;
    append(json, c);

    return 0;
}


/* Takes the byte after a backslash. */
static int
escape(bloom_json_t *json, uint8_t c)
{
    static const char  names[] = "\"\\/bfnrt";
    static const char  values[] = "\"\\/\b\f\n\r\t";

    const char  *name;

    if (c == 'u') {
        json->state = HEX;
        json->unit = 0;
        json->more = 4;
        return 0;
    }

    name = c == '\0' ? NULL : strchr(names, c);

    if (name == NULL) {
        return fail(json, "the escape is unknown");
    }

    json->state = STRING;
    append(json, (uint8_t) values[name - names]);

    return 0;
}


/* Takes the value of four hexadecimal digits. */
static int
unit(bloom_json_t *json)
{
    uint32_t  c;

    c = json->unit;

    if (json->high != 0) {
        if (c < 0xdc00 || c > 0xdfff) {
            return fail(json, "a high surrogate must be followed by a low "
                              "one");
        }

        c = 0x10000 + ((json->high - 0xd800) << 10) + (c - 0xdc00);
        json->high = 0;

    } else if (c >= 0xd800 && c <= 0xdbff) {
        json->high = c;
        json->state = LOW;
        return 0;

    } else if (c >= 0xdc00 && c <= 0xdfff) {
        return fail(json, "a low surrogate must follow a high one");
    }

    json->state = STRING;

    if (c < 0x80) {
        append(json, (uint8_t) c);
        return 0;
    }

    if (c < 0x800) {
        append(json, (uint8_t) (0xc0 | c >> 6));

    } else {
        if (c < 0x10000) {
            append(json, (uint8_t) (0xe0 | c >> 12));

        } else {
            append(json, (uint8_t) (0xf0 | c >> 18));
            append(json, (uint8_t) (0x80 | (c >> 12 & 0x3f)));
        }

        append(json, (uint8_t) (0x80 | (c >> 6 & 0x3f)));
    }

    append(json, (uint8_t) (0x80 | (c & 0x3f)));

    return 0;
}


int
bloom_json_end(bloom_json_t *json)
{
    if (json->error == NULL && json->state != END) {
        return fail(json, "the array is not complete");
    }

    return json->error == NULL ? 0 : -1;
}
