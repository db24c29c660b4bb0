/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file divides separated values into records and fields.
 */

#include "list_csv_fields.h"


static const uint8_t *
line_end(const uint8_t *p, const uint8_t *end)
{
    const uint8_t  *found;

    found = p < end ? memchr(p, '\n', (size_t) (end - p)) : NULL;

    return found != NULL ? found : end;
}


/* Returns 1 for a blank.  A tab that separates fields is not a blank. */
static int
is_blank(uint8_t c, uint8_t separator)
{
    return list_is_blank(c) && c != separator;
}


static const uint8_t *
pass_blanks(uint8_t separator, const uint8_t *p, const uint8_t *end)
{
    while (p < end && is_blank(*p, separator)) {
        p++;
    }

    return p;
}


/* Returns the quote that ends a quoted field, or NULL; p is after the field's
 * first quote.  *doubled becomes 1 if there are doubled quotes before it. */
static const uint8_t *
last_quote(const uint8_t *p, const uint8_t *end, int *doubled)
{
    *doubled = 0;

    while (p < end && (p = memchr(p, '"', (size_t) (end - p))) != NULL) {

        if (p + 1 == end || p[1] != '"') {
            return p;
        }

        *doubled = 1;
        p += 2;
    }

    return NULL;
}


/* Copies a field with doubled quotes to `buf`, with one quote for each two. */
static void
unquote(bloom_key_t *field, uint8_t *buf)
{
    size_t  i, n;

    for (i = 0, n = 0; i < field->len; i++) {
        buf[n++] = field->data[i];
        i += field->data[i] == '"';
    }

    field->data = buf;
    field->len = n;
}


int
list_csv_field(uint8_t separator, bloom_key_t *record, bloom_key_t *field,
    uint8_t *buf)
{
    int             more, doubled;
    const uint8_t  *p, *end, *quote;

    end = record->data + record->len;
    p = pass_blanks(separator, record->data, end);

    if (p == end || *p != '"') {
        list_skip(record, (size_t) (p - record->data));
        more = list_until(record, field, (char) separator);

        while (field->len != 0
               && is_blank(field->data[field->len - 1], separator))
        {
            field->len--;
        }

        return more;
    }

    quote = last_quote(++p, end, &doubled);

    if (quote == NULL) {
        return -1;
    }

    field->data = p;
    field->len = (size_t) (quote - p);

    if (doubled) {
        unquote(field, buf);
    }

    p = pass_blanks(separator, quote + 1, end);
    list_skip(record, (size_t) (p - record->data));

    if (record->len == 0) {
        return 0;
    }

    if (record->data[0] != separator) {
        return -1;
    }

    list_skip(record, 1);

    return 1;
}


const uint8_t *
list_csv_record(uint8_t separator, const uint8_t *p, const uint8_t *end,
    int *open)
{
    int             doubled;
    const uint8_t  *eol;

    *open = 0;
    eol = line_end(p, end);
    p = pass_blanks(separator, p, eol);

    if (p == eol || *p == '#' || memchr(p, '"', (size_t) (eol - p)) == NULL) {
        return eol;
    }

    for ( ;; p = pass_blanks(separator, p + 1, eol)) {

        if (p < eol && *p == '"') {
            p = last_quote(p + 1, end, &doubled);

            if (p == NULL) {
                *open = 1;
                return end;
            }

            p = pass_blanks(separator, p + 1, end);
            eol = p <= eol ? eol : line_end(p, end);

        } else {
            p = p < eol ? memchr(p, separator, (size_t) (eol - p)) : NULL;
        }

        if (p == NULL || p == eol || *p != separator) {
            return eol;
        }
    }
}


list_result_e
list_csv_what(uint8_t separator, const bloom_key_t *record)
{
    const uint8_t  *p, *end;

    end = record->data + record->len;
    p = pass_blanks(separator, record->data, end);

    return p == end ? LIST_EMPTY : *p == '#' ? LIST_COMMENT : LIST_KEY;
}
