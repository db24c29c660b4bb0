/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file prints JSON objects, whose strings are always valid UTF-8.
 */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bloom_json.h"
#include "bloom_utf8.h"
#include "json.h"
#include "visible.h"


/* Returns the code point of a character of two or three bytes. */
static unsigned
code_point(const uint8_t *p, size_t len)
{
    return len == 2 ? (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu)
                    : (p[0] & 0xfu) << 12 | (p[1] & 0x3fu) << 6
                      | (p[2] & 0x3fu);
}


/* Prints a string.  It escapes characters that a terminal would obey, although
 * JSON allows them. */
static void
string(const uint8_t *p, size_t len)
{
    size_t   n, used;
    uint8_t  escaped[BLOOM_JSON_ESCAPED_MAX];

    putchar('"');

    for ( /* void */ ; len != 0; p += used, len -= used) {
        n = bloom_json_escape_next(escaped, p, len, &used);

        if (used > 1 && visible_is_hidden(p, used)) {
            printf("\\u%04x", code_point(p, used));

        } else {
            fwrite(escaped, 1, n, stdout);
        }
    }

    putchar('"');
}


static void
name_it(json_t *json, const char *name)
{
    if (json->members++ != 0) {
        putchar(',');
    }

    if (!json->compact) {
        printf("\n  ");
    }

    string((const uint8_t *) name, strlen(name));
    putchar(':');

    if (!json->compact) {
        putchar(' ');
    }
}


void
json_begin(json_t *json, int compact)
{
    json->members = 0;
    json->compact = compact;

    putchar('{');
}


void
json_end(json_t *json)
{
    if (!json->compact) {
        putchar('\n');
    }

    printf("}\n");
}


void
json_text(json_t *json, const char *name, const char *text)
{
    json_bytes(json, name, text, strlen(text));
}


void
json_bytes(json_t *json, const char *name, const void *data, size_t len)
{
    name_it(json, name);
    string(data, len);
}


void
json_hex(json_t *json, const char *name, const void *data, size_t len)
{
    const uint8_t  *p;

    name_it(json, name);
    putchar('"');

    for (p = data; len != 0; p++, len--) {
        printf("%02x", *p);
    }

    putchar('"');
}


void
json_count(json_t *json, const char *name, uint64_t value)
{
    name_it(json, name);
    printf("%" PRIu64, value);
}


/* Prints the fewest digits that are read as the same number. */
void
json_number(json_t *json, const char *name, double value)
{
    int   digits;
    char  text[40];

    name_it(json, name);

    if (!isfinite(value)) {
        fputs("null", stdout);
        return;
    }

    for (digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, value);

        if (strtod(text, NULL) == value) {
            break;
        }
    }

    fputs(text, stdout);
}


void
json_bool(json_t *json, const char *name, int value)
{
    name_it(json, name);
    fputs(value ? "true" : "false", stdout);
}


void
json_null(json_t *json, const char *name)
{
    name_it(json, name);
    fputs("null", stdout);
}


void
json_key(json_t *json, const bloom_key_t *key)
{
    json_bytes(json, "key", key->data, key->len);

    if (!bloom_utf8_valid(key->data, key->len)) {
        json_hex(json, "key_hex", key->data, key->len);
    }
}


void
json_texts(json_t *json, const char *name, const bloom_key_t *texts,
    unsigned n)
{
    unsigned  i;

    name_it(json, name);
    putchar('[');

    for (i = 0; i < n; i++) {
        if (i != 0) {
            putchar(',');
        }

        string(texts[i].data, texts[i].len);
    }

    putchar(']');
}


void
json_array(json_t *json, const char *name)
{
    name_it(json, name);
    putchar('[');
}


void
json_object(json_t *object, int first)
{
    object->members = 0;
    object->compact = 1;

    fputs(first ? "{" : ",{", stdout);
}


void
json_object_end(void)
{
    putchar('}');
}


void
json_array_end(void)
{
    putchar(']');
}
