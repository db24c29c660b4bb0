/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file looks at the first block of separated values.
 */

#include <stdlib.h>

#include "cli.h"
#include "list_csv_feed.h"
#include "list_csv_view.h"


/* The last line of a block that is as large as this may be cut off. */
#define LARGE  (64 * 1024)

/* A walk over the records and comments of a block. */
typedef struct {
    const list_csv_view_t  *view;
    const uint8_t          *p;
    uint64_t                next;        /* number of the line at p */
    bloom_key_t             record;
    uint64_t                line;        /* its number */
    list_result_e           what;        /* LIST_COMMENT, or LIST_KEY for a
                                            record */
} walk_t;


static void
walk_begin(walk_t *walk, const list_csv_view_t *view)
{
    memset(walk, 0, sizeof(*walk));
    walk->view = view;
    walk->p = view->data;
    walk->next = view->line;
}


/* Goes on to the record after the first one. */
static void
walk_below(walk_t *walk, const list_csv_view_t *view)
{
    const uint8_t  *p;

    walk_begin(walk, view);

    walk->p = view->first.data + view->first.len + 1;
    walk->next = view->first_line + 1;

    for (p = view->first.data; p < view->first.data + view->first.len; p++) {
        walk->next += *p == '\n';
    }
}


/* Takes the next record or comment.  Returns 0 at the end of the block. */
static int
walk_next(walk_t *walk)
{
    int             open;
    const uint8_t  *p, *end, *eol;

    end = walk->view->end;

    while (walk->p < end) {
        p = walk->p;
        eol = list_csv_record(walk->view->separator, p, end, &open);

        if (eol == end && end - walk->view->data >= LARGE) {
            break;
        }

        walk->record.data = p;
        walk->record.len = (size_t) (eol - p);
        walk->line = walk->next;
        walk->next++;
        walk->p = eol + 1;

        while (p < eol && (p = memchr(p, '\n', (size_t) (eol - p))) != NULL) {
            walk->next++;
            p++;
        }

        if (!list_csv_is_void(walk->view->separator, &walk->record,
                              &walk->what))
        {
            walk->what = LIST_KEY;
            return 1;
        }

        if (walk->what == LIST_COMMENT) {
            return 1;
        }
    }

    return 0;
}


/* Takes the next record. */
static int
walk_record(walk_t *walk)
{
    while (walk_next(walk)) {
        if (walk->what == LIST_KEY) {
            return 1;
        }
    }

    return 0;
}


/* Returns how many fields a record has; 0 if its quotes are wrong. */
static size_t
count_fields(const list_csv_view_t *view, bloom_key_t record)
{
    int          more;
    size_t       n;
    bloom_key_t  field;

    n = 0;

    do {
        more = list_csv_field(view->separator, &record, &field, view->buf);
        n++;
    } while (more == 1);

    return more == 0 ? n : 0;
}


int
list_csv_take(const list_csv_view_t *view, bloom_key_t record, size_t column,
    bloom_key_t *field)
{
    int     more;
    size_t  i;

    for (i = 0, more = 1; i <= column && more == 1; i++) {
        more = list_csv_field(view->separator, &record, field, view->buf);
    }

    return i > column && more != -1;
}


size_t
list_csv_find(const list_csv_view_t *view, bloom_key_t record,
    const char *name)
{
    int          more;
    size_t       i;
    bloom_key_t  field;

    for (i = 0, more = 1; more == 1; i++) {
        more = list_csv_field(view->separator, &record, &field, view->buf);

        if (more != -1 && list_equals(&field, name)) {
            return i;
        }
    }

    return LIST_CSV_NONE;
}


/* Returns 1 for what no column is called: a place, a number, a date, a hash. */
static int
is_data(const bloom_key_t *field)
{
    int      c;
    size_t   i, digits, date, hex;

    for (i = 0, digits = 0, date = 0, hex = 0; i < field->len; i++) {
        c = field->data[i];
        digits += bloom_is_digit((uint8_t) c) != 0;
        date += memchr("0123456789+-.,:/ TZ", c, 19) != NULL;
        hex += c == '-' || bloom_hex_digit((uint8_t) c) != -1;
    }

    return (digits != 0
            && (date == field->len || (hex == field->len && hex >= 16)))
           || list_is_place(field);
}


int
list_csv_has_place(const list_csv_view_t *view, bloom_key_t record)
{
    int          more;
    bloom_key_t  field;

    do {
        more = list_csv_field(view->separator, &record, &field, view->buf);

        if (more != -1 && list_is_place(&field)) {
            return 1;
        }
    } while (more == 1);

    return 0;
}


uint64_t
list_csv_below(const list_csv_view_t *view, size_t column, const char *text)
{
    walk_t       walk;
    bloom_key_t  field;

    walk_below(&walk, view);

    while (walk_record(&walk)) {
        if (list_csv_take(view, walk.record, column, &field)
            && list_equals(&field, text))
        {
            return walk.line;
        }
    }

    return 0;
}


int
list_csv_has_type(const list_csv_view_t *view, size_t column)
{
    walk_t       walk;
    bloom_key_t  field;

    walk_begin(&walk, view);

    while (walk_record(&walk)) {
        if (list_csv_take(view, walk.record, column, &field)
            && list_csv_type(&field) != NULL)
        {
            return 1;
        }
    }

    return 0;
}


/* Returns 1 if the first record can be told to be a header: none of its fields
 * is data, and all below one of its fields are. */
static int
is_told(const list_csv_view_t *view)
{
    int           more, told;
    size_t        i;
    walk_t        walk;
    uint8_t      *seen;                  /* for each column: 1 data, 2 others */
    bloom_key_t   rest, field;

    rest = view->first;

    do {
        more = list_csv_field(view->separator, &rest, &field, view->buf);

        if (more == -1 || is_data(&field)) {
            return 0;
        }
    } while (more == 1);

    seen = cli_alloc(view->fields);
    memset(seen, 0, view->fields);
    walk_below(&walk, view);

    while (walk_record(&walk)) {
        rest = walk.record;

        for (i = 0, more = 1; i < view->fields && more == 1; i++) {
            more = list_csv_field(view->separator, &rest, &field, view->buf);

            if (more != -1 && field.len != 0) {
                seen[i] |= is_data(&field) ? 1 : 2;
            }
        }
    }

    for (i = 0, told = 0; i < view->fields; i++) {
        told |= seen[i] == 1;
    }

    free(seen);

    return told && view->records > 2;
}


/* Keeps the last comment before the records that can be their header. */
static void
find_comment(list_csv_view_t *view, const char *name)
{
    walk_t       walk;
    bloom_key_t  text, field;

    walk_begin(&walk, view);

    while (walk_next(&walk) && walk.what == LIST_COMMENT) {
        text = walk.record;
        list_trim(&text);

        while (list_begins(&text, "#")) {
            list_skip(&text, 1);
        }

        if (count_fields(view, text) == view->fields
            && (view->fields > 1
                || (name != NULL && list_csv_take(view, text, 0, &field)
                    && list_equals(&field, name))))
        {
            view->comment = text;
            view->comment_line = walk.line;
        }
    }
}


void
list_csv_look(list_csv_view_t *view, uint8_t separator,
    const list_begin_t *with, size_t hint, uint8_t *buf, uint64_t number)
{
    size_t  n;
    walk_t  walk;

    memset(view, 0, sizeof(*view));
    view->separator = separator;
    view->data = with->data + hint;
    view->line = hint != 0 ? 2 : 1;
    view->end = with->data + with->len;
    view->buf = buf;

    walk_begin(&walk, view);

    while (walk_record(&walk)) {
        n = count_fields(view, walk.record);

        if (view->first.data == NULL) {
            view->first = walk.record;
            view->first_line = walk.line;
            view->fields = n;
        }

        view->records++;
        view->agree += n == view->fields && n != 0;
        view->enough += n >= number && n != 0;
    }

    if (view->first.data != NULL && view->fields != 0) {
        find_comment(view, with->column);
        view->told = is_told(view);
    }
}
