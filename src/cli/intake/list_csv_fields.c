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


/* Returns 1 for a blank: a tab is none where it separates the fields. */
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


/* Returns what follows a quoted field, without blanks; p is after the field's
 * first quote.  Returns NULL if the field does not end. */
static const uint8_t *
pass_quoted(uint8_t separator, const uint8_t *p, const uint8_t *end)
{
    while (p < end && (p = memchr(p, '"', (size_t) (end - p))) != NULL) {

        if (p + 1 == end || p[1] != '"') {
            return pass_blanks(separator, p + 1, end);
        }

        p += 2;
    }

    return NULL;
}


/* Returns the quote that begins the next quoted field of a line, or NULL.  The
 * first field begins at p. */
static const uint8_t *
next_quoted(uint8_t separator, const uint8_t *p, const uint8_t *end)
{
    const uint8_t  *q, *before;

    if (p < end && *p == '"') {
        return p;
    }

    for (q = p;
         q < end && (q = memchr(q, '"', (size_t) (end - q))) != NULL;
         q++)
    {
        before = q;

        while (before > p && is_blank(before[-1], separator)) {
            before--;
        }

        if (before == p || before[-1] == separator) {
            return q;
        }
    }

    return NULL;
}


const uint8_t *
list_csv_record(uint8_t separator, const uint8_t *p, const uint8_t *end,
    int *open)
{
    const uint8_t  *eol;

    *open = 0;
    eol = line_end(p, end);
    p = pass_blanks(separator, p, eol);

    if (p < eol && *p == '#') {
        return eol;
    }

    while ((p = next_quoted(separator, p, eol)) != NULL) {

        p = pass_quoted(separator, p + 1, end);

        if (p == NULL) {
            *open = 1;
            return end;
        }

        if (p == end || *p == '\n') {
            return p;
        }

        if (p > eol || *p != separator) {
            eol = line_end(p, end);
        }

        if (*p != separator) {
            return eol;
        }

        p++;
    }

    return eol;
}


/* Removes the blanks at both ends of a text. */
static void
trim(uint8_t separator, bloom_key_t *text)
{
    while (text->len != 0 && is_blank(text->data[0], separator)) {
        list_skip(text, 1);
    }

    while (text->len != 0
           && is_blank(text->data[text->len - 1], separator))
    {
        text->len--;
    }
}


/* Takes the text of a quoted field; the first quote is already taken.  Returns
 * 0, or -1 if it does not end. */
static int
unquote(bloom_key_t *record, bloom_key_t *field, uint8_t *buf)
{
    size_t          n;
    const uint8_t  *p, *end, *quote;

    p = record->data;
    end = record->data + record->len;

    for (n = 0; /* void */ ; p = quote + 2) {

        quote = p < end ? memchr(p, '"', (size_t) (end - p)) : NULL;

        if (quote == NULL) {
            return -1;
        }

        field->data = p;
        field->len = (size_t) (quote - p);

        if (n == 0 && (quote + 1 == end || quote[1] != '"')) {
            break;                           /* as it is */
        }

        memcpy(buf + n, p, field->len);
        n += field->len;

        if (quote + 1 == end || quote[1] != '"') {
            field->data = buf;
            field->len = n;
            break;
        }

        buf[n++] = '"';
    }

    list_skip(record, (size_t) (quote + 1 - record->data));

    return 0;
}


int
list_csv_field(uint8_t separator, bloom_key_t *record, bloom_key_t *field,
    uint8_t *buf)
{
    int             more;
    const uint8_t  *p;

    p = pass_blanks(separator, record->data, record->data + record->len);

    if (p == record->data + record->len || *p != '"') {
        more = list_until(record, field, (char) separator);
        trim(separator, field);

        return more;
    }

    list_skip(record, (size_t) (p + 1 - record->data));

    if (unquote(record, field, buf) != 0) {
        return -1;
    }

    p = pass_blanks(separator, record->data, record->data + record->len);
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


size_t
list_csv_hint(const uint8_t *data, size_t len, uint8_t *separator)
{
    bloom_key_t  text, line;

    text.data = data;
    text.len = len;
    (void) list_until(&text, &line, '\n');

    len = (size_t) (text.data - data);

    if (list_ends(&line, '\r')) {
        line.len--;
    }

    if (line.len != 5 || !list_begins(&line, "sep=")) {
        return 0;
    }

    *separator = line.data[4];

    return len;
}


int
list_csv_is_void(uint8_t separator, const bloom_key_t *record,
    list_result_e *what)
{
    const uint8_t  *p, *end;

    end = record->data + record->len;
    p = pass_blanks(separator, record->data, end);

    *what = p == end ? LIST_EMPTY : LIST_COMMENT;

    return p == end || *p == '#';
}
