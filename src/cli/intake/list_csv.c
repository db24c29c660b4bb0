/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file finds the keys in a column of comma-separated values.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli.h"
#include "keyform.h"
#include "list_csv.h"
#include "units.h"


/* The state of a file. */
typedef struct {
    size_t     column;                   /* from 0 */
    uint64_t   header;                   /* number of its line; 0: none */
} csv_t;


static const uint8_t *
line_end(const uint8_t *p, const uint8_t *end)
{
    const uint8_t  *found;

    found = p < end ? memchr(p, '\n', (size_t) (end - p)) : NULL;

    return found != NULL ? found : end;
}


static const uint8_t *
pass_blanks(const uint8_t *p, const uint8_t *end)
{
    while (p < end && list_is_blank(*p)) {
        p++;
    }

    return p;
}


/* Returns what follows a quoted field that begins at p, after its first quote
 * and with blanks left out; NULL if the field does not end. */
static const uint8_t *
pass_quoted(const uint8_t *p, const uint8_t *end)
{
    while (p < end && (p = memchr(p, '"', (size_t) (end - p))) != NULL) {

        if (p + 1 == end || p[1] != '"') {
            return pass_blanks(p + 1, end);
        }

        p += 2;
    }

    return NULL;
}


/* Returns the quote that begins the next quoted field of a line, or NULL.  The
 * first field begins at p. */
static const uint8_t *
next_quoted(const uint8_t *p, const uint8_t *end)
{
    const uint8_t  *q, *before;

    if (p < end && *p == '"') {
        return p;
    }

    q = p;

    while (q < end && (q = memchr(q, '"', (size_t) (end - q))) != NULL) {

        before = q;

        while (before > p && list_is_blank(before[-1])) {
            before--;
        }

        if (before == p || before[-1] == ',') {
            return q;
        }

        q++;
    }

    return NULL;
}


const uint8_t *
list_csv_end(const void *state, const uint8_t *p, const uint8_t *end,
    int *open)
{
    const uint8_t  *eol;

    (void) state;
    *open = 0;
    eol = line_end(p, end);
    p = pass_blanks(p, eol);

    if (p < eol && *p == '#') {
        return eol;
    }

    while ((p = next_quoted(p, eol)) != NULL) {

        p = pass_quoted(p + 1, end);

        if (p == NULL) {
            *open = 1;
            return end;
        }

        if (p == end || *p == '\n') {
            return p;
        }

        if (p > eol || *p != ',') {
            eol = line_end(p, end);
        }

        if (*p != ',') {
            return eol;
        }

        p++;
    }

    return eol;
}


/*
 * Takes the next field of a record; if it has doubled quotes, it is unquoted
 * into `buf`.  Returns 1 if another field follows; 0 if it is the last; or -1
 * if a quote is not closed.
 */
static int
next_field(bloom_key_t *record, bloom_key_t *field, uint8_t *buf)
{
    int             more;
    size_t          n;
    const uint8_t  *p, *quote, *end;

    while (record->len != 0 && list_is_blank(record->data[0])) {
        list_skip(record, 1);
    }

    if (list_begins(record, "\"")) {

        end = record->data + record->len;

        for (p = record->data + 1, n = 0; /* void */ ; p = quote + 2) {

            quote = p < end ? memchr(p, '"', (size_t) (end - p)) : NULL;

            if (quote == NULL) {
                return -1;
            }

            field->data = p;
            field->len = (size_t) (quote - p);

            if (n == 0 && (quote + 1 == end || quote[1] != '"')) {
                break;                       /* as it is */
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
        list_trim(record);

        if (record->len == 0) {
            return 0;
        }

        if (record->data[0] != ',') {
            return -1;
        }

        list_skip(record, 1);

        return 1;
    }

    more = list_until(record, field, ',');
    list_trim(field);

    return more;
}


/* Removes blanks and line ends around a field. */
static void
trim_lines(bloom_key_t *field)
{
    size_t  len;

    do {
        len = field->len;
        list_trim(field);

        while (list_begins(field, "\n")) {
            list_skip(field, 1);
        }

        while (list_ends(field, '\n')) {
            field->len--;
        }

    } while (field->len != len);
}


static list_result_e
next(list_line_t *at)
{
    int             more;
    size_t          i, used;
    bloom_key_t     blank, rest;
    const csv_t    *csv;
    const uint8_t  *eol;

    static const char  improper[] = "has a quoted field that does not end "
                                    "properly";

    if (at->step++ != 0) {
        return LIST_END;
    }

    csv = at->state;
    blank = at->line;
    list_trim(&blank);

    if (blank.len == 0) {
        return LIST_EMPTY;
    }

    if (blank.data[0] == '#' || at->number == csv->header) {
        return LIST_COMMENT;
    }

    for (i = 0, more = 1; i <= csv->column; i++) {

        if (!more) {
            return list_bad(at, "has fewer columns than --from names");
        }

        more = next_field(&at->line, &at->key, at->buf);

        if (more == -1) {
            return list_bad(at, improper);
        }
    }

    /* if the quotes of a record with several lines are wrong, it may have
     * swallowed other records */

    used = at->key.data == at->buf ? at->key.len : 0;
    eol = memrchr(at->line.data, '\n', at->line.len);

    while (more == 1 && eol != NULL && at->line.data <= eol) {
        more = next_field(&at->line, &rest, at->buf + used);
    }

    if (more == -1) {
        return list_bad(at, improper);
    }

    trim_lines(&at->key);

    return at->key.len != 0 ? LIST_KEY : LIST_EMPTY;
}


int
list_csv_column(const bloom_key_t *record, const char *name, size_t *column)
{
    int          more, comment, found;
    size_t       i;
    uint8_t     *buf;
    bloom_key_t  rest, field;

    rest = *record;
    list_trim(&rest);

    if (rest.len == 0) {
        return 0;
    }

    comment = rest.data[0] == '#';

    while (list_begins(&rest, "#")) {
        list_skip(&rest, 1);
    }

    buf = cli_alloc(rest.len + 1);

    for (i = 0, more = 1, found = 0; more == 1 && !found; i++) {

        more = next_field(&rest, &field, buf);

        if (more != -1 && list_equals(&field, name)) {
            *column = i;
            found = 1;
        }
    }

    free(buf);

    return found ? 1 : comment ? 0 : -1;
}


/* Finds the column by its name in the first records, of which the first one is
 * a better header than a comment.  Returns 0, or -1 with the reason. */
static int
find_column(csv_t *csv, const list_begin_t *with)
{
    int             rc, open;
    char            shown[KEYFORM_SHOWN];
    uint64_t        line;
    bloom_key_t     record;
    const uint8_t  *p, *end, *next;

    end = with->data + with->len;

    for (p = with->data, line = 1; p < end; p = next + 1, line++) {
        next = list_csv_end(NULL, p, end, &open);
        record.data = p;
        record.len = (size_t) (next - p);

        rc = list_csv_column(&record, with->column, &csv->column);
        list_trim(&record);

        if (rc == 1) {
            csv->header = line;
        }

        if (rc == -1 && csv->header == 0) {
            snprintf(with->why, LIST_WHY, "line %" PRIu64 ": \"%s\" is the "
                     "header, and has no column of that name; use csv:COLUMN "
                     "with one of its names, or with a number", line,
                     keyform_show(shown, &record));
            return -1;
        }

        if (rc == -1 || (rc == 1 && record.data[0] != '#')) {
            break;
        }

        while (p < next && (p = memchr(p, '\n', (size_t) (next - p))) != NULL) {
            p++;
            line++;
        }
    }

    return 0;
}


static int
begin(void *state, const list_begin_t *with)
{
    csv_t     *csv = state;
    uint64_t   number;

    if (parse_count(with->column, &number) == 0 && number != 0) {
        csv->column = number - 1;
        return 0;
    }

    return find_column(csv, with);
}


const list_reader_t  list_csv = {
    .name = "csv",
    .state = sizeof(csv_t),
    .in_order = 1,
    .begin = begin,
    .end = list_csv_end,
    .opens = "quotes",
    .next = next
};
