
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"


/* Length of the UTF-8 character at p, 0 if there is no valid one. */
static size_t
character(const uint8_t *p, size_t rest)
{
    size_t    i, len;
    uint32_t  c;

    if (p[0] < 0x80) {
        return 1;
    }

    if (p[0] < 0xc2 || p[0] > 0xf4) {
        return 0;
    }

    len = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;

    if (len > rest) {
        return 0;
    }

    c = p[0] & (0x7fu >> len);

    for (i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            return 0;
        }

        c = c << 6 | (p[i] & 0x3f);
    }

    /* neither longer than need be, nor a surrogate, nor past the end */

    if ((len == 3 && c < 0x800) || (len == 4 && c < 0x10000)
        || (c >= 0xd800 && c <= 0xdfff) || c > 0x10ffff)
    {
        return 0;
    }

    return len;
}


int
json_is_utf8(const void *data, size_t len)
{
    size_t          n;
    const uint8_t  *p;

    for (p = data; len != 0; p += n, len -= n) {
        n = character(p, len);

        if (n == 0) {
            return 0;
        }
    }

    return 1;
}


static void
string(const uint8_t *p, size_t len)
{
    size_t  n;

    putchar('"');

    for ( /* void */ ; len != 0; p += n, len -= n) {
        n = character(p, len);

        if (n == 0) {
            fputs("\xef\xbf\xbd", stdout);
            n = 1;

        } else if (*p == '"' || *p == '\\') {
            putchar('\\');
            putchar(*p);

        } else if (*p < 0x20 || *p == 0x7f) {
            printf("\\u%04x", *p);

        } else {
            fwrite(p, 1, n, stdout);
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


/* As few digits as give the same number back. */
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

    if (!json_is_utf8(key->data, key->len)) {
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
