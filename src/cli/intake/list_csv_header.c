/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file finds the separator, the header and the columns of a file.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli.h"
#include "keyform.h"
#include "line_ends.h"
#include "list_csv_fields.h"
#include "list_csv_header.h"
#include "units.h"


/* The last line of a block that is as large as this may be cut off. */
#define LARGE  (64 * 1024)

static const struct {
    uint8_t      byte;
    const char  *separated;
} separators[] = {
    { LIST_CSV_ONE, "not separated" },
    { ',', "separated by \",\"" },
    { ';', "separated by \";\"" },
    { '\t', "separated by tabs" },
    { '|', "separated by \"|\"" }
};

#define SEPARATORS  (sizeof(separators) / sizeof(separators[0]))

/* A record or comment in the first block. */
typedef struct {
    bloom_key_t  text;                   /* data is NULL if the block has no
                                            such row */
    uint64_t     line;                   /* its number */
} row_t;

static const row_t  top;                 /* before the first one */

/* How the first block looks with a separator. */
typedef struct {
    const list_begin_t  *with;
    uint8_t              separator;
    const char          *separated;
    uint8_t             *buf;            /* room for a record */
    row_t                header;         /* the last comment with several fields
                                            before the first record, if it has
                                            as many; else that record */
    row_t                first;          /* the first record */
    size_t               fields;         /* it has; 0 if its quotes are wrong */
    uint64_t             records;
    uint64_t             agree;          /* records with as many fields, if
                                            these are several */
    size_t               column;         /* of the keys */
} view_t;


/* Takes the row after another one.  Returns LIST_KEY for a record, or
 * LIST_COMMENT, LIST_EMPTY or LIST_END. */
static list_result_e
next_row(const view_t *view, row_t *row)
{
    int             open;
    const uint8_t  *p, *end, *eol;

    p = view->with->data;
    end = view->with->data + view->with->len;
    row->line++;

    if (row->text.data != NULL) {
        p = row->text.data + row->text.len + 1;
        row->line += line_ends_count(row->text.data, row->text.len, '\n');
    }

    if (p >= end) {
        return LIST_END;
    }

    eol = list_csv_record(view->separator, p, end, &open);
    row->text.data = p;
    row->text.len = (size_t) (eol - p);

    return eol == end && view->with->len >= LARGE
           ? LIST_END : list_csv_what(view->separator, &row->text);
}


/* Takes the field of a text in a column.  Returns how many fields the text has
 * up to there; 0 if its quotes are wrong. */
static size_t
take(const view_t *view, bloom_key_t text, size_t column, bloom_key_t *field)
{
    int     more;
    size_t  n;

    for (n = 0, more = 1; n <= column && more == 1; n++) {
        more = list_csv_field(view->separator, &text, field, view->buf);
    }

    return more != -1 ? n : 0;
}


/* Returns the column of a text with this name, or with a host, a URL or an
 * address if that is NULL; LIST_CSV_NONE if no field has it. */
static size_t
find(const view_t *view, bloom_key_t text, const char *name)
{
    int          more;
    size_t       i;
    bloom_key_t  field;

    for (i = 0, more = 1; more == 1; i++) {
        more = list_csv_field(view->separator, &text, &field, view->buf);

        if (more != -1
            && (name != NULL ? list_equals(&field, name)
                             : list_is_place(&field)))
        {
            return i;
        }
    }

    return LIST_CSV_NONE;
}


/* Returns the number of the first line below a row with this name in a column,
 * or with a type that is known if that is NULL; or 0. */
static uint64_t
find_below(const view_t *view, row_t row, size_t column, const char *name)
{
    bloom_key_t    field;
    list_result_e  what;

    while ((what = next_row(view, &row)) != LIST_END) {

        if (what == LIST_KEY && take(view, row.text, column, &field) > column
            && (name != NULL ? list_equals(&field, name)
                             : list_csv_type(&field) != NULL))
        {
            return row.line;
        }
    }

    return 0;
}


static size_t
count_fields(const view_t *view, bloom_key_t text)
{
    bloom_key_t  field;

    return take(view, text, LIST_CSV_NONE - 1, &field);
}


/* Takes a comment for the header if it has several fields. */
static void
note_comment(view_t *view, row_t comment)
{
    list_trim(&comment.text);

    while (list_begins(&comment.text, "#")) {
        list_skip(&comment.text, 1);
    }

    if (count_fields(view, comment.text) > 1) {
        view->header = comment;
    }
}


/* Looks at the first block with a separator. */
static void
look(view_t *view)
{
    row_t          row;
    size_t         n;
    list_result_e  what;

    for (row = top; (what = next_row(view, &row)) != LIST_END; /* void */ ) {

        if (what == LIST_COMMENT && view->records == 0) {
            note_comment(view, row);

        } else if (what == LIST_KEY) {
            n = count_fields(view, row.text);

            if (view->records == 0) {
                view->first = row;
                view->fields = n;
            }

            view->records++;
            view->agree += n == view->fields && n > 1;
        }
    }

    if (view->header.text.data == NULL
        || count_fields(view, view->header.text) != view->fields)
    {
        view->header = view->first;
    }
}


/* Writes the fields of the header, for a message. */
static const char *
show_header(const view_t *view, char *shown)
{
    int          more;
    char         one[KEYFORM_SHOWN], *p;
    bloom_key_t  text, field;

    p = shown;
    text = view->header.text;

    for (more = 1; more == 1 && p - shown < LIST_WHY / 2; /* void */ ) {
        more = list_csv_field(view->separator, &text, &field, view->buf);
        p += sprintf(p, "%s\"%s\"", p == shown ? "" : ", ",
                     keyform_show(one, &field));
    }

    sprintf(p, "%s (%s)", more == 1 ? ", ..." : "", view->separated);

    return shown;
}


static int
has_digit(const bloom_key_t *text)
{
    size_t  i;

    for (i = 0; i < text->len; i++) {
        if (bloom_is_digit(text->data[i])) {
            return 1;
        }
    }

    return 0;
}


/* Looks for a column by its name.  Returns 0, or -1 with the reason. */
static int
find_name(view_t *view, const char *name)
{
    int       has_place;
    char      shown[LIST_WHY], below[64];
    uint64_t  again;

    view->column = find(view, view->header.text, name);

    /* a record without a digit may be a header below a remark with a comma */

    if (view->column == LIST_CSV_NONE && !has_digit(&view->first.text)
        && find(view, view->first.text, name) != LIST_CSV_NONE)
    {
        view->header = view->first;
        view->column = find(view, view->first.text, name);
    }

    if (view->column == LIST_CSV_NONE) {
        snprintf(view->with->why, LIST_WHY, "line %" PRIu64 " is taken for the "
                 "header, and has no column \"%.*s\" but %s; use csv:COLUMN "
                 "with one of these names, or with a number",
                 view->header.line, KEYFORM_SHOWN, name,
                 show_header(view, shown));
        return -1;
    }

    if (view->header.text.data != view->first.text.data) {
        return 0;
    }

    has_place = view->with->keys != LIST_ANY && strchr(name, '.') == NULL
                && find(view, view->first.text, NULL) != LIST_CSV_NONE;
    again = find_below(view, view->first, view->column, name);

    if (!has_place && again == 0) {
        return 0;
    }

    snprintf(below, sizeof(below), "line %" PRIu64 " has it in the same column",
             again);
    snprintf(view->with->why, LIST_WHY, "line %" PRIu64 " has \"%.*s\", but is "
             "no header: %s; use csv:NUMBER for a file without a header",
             view->first.line, KEYFORM_SHOWN, name,
             has_place ? "it has a host, a URL or an address" : below);

    return -1;
}


/* Returns the column of types of the header, or LIST_CSV_NONE. */
static size_t
find_types(const view_t *view)
{
    size_t  i, column;

    for (i = 0; list_csv_types[i] != NULL; i++) {
        column = find(view, view->header.text, list_csv_types[i]);

        if (column != LIST_CSV_NONE
            && find_below(view, top, column, NULL) != 0)
        {
            return column;
        }
    }

    return LIST_CSV_NONE;
}


/* Looks for the best one of the known columns.  Returns its format, or NULL
 * with the reason. */
static const char *
find_known(view_t *view)
{
    char                      shown[LIST_WHY];
    const list_csv_column_t  *known;

    for (known = list_csv_columns; known->name != NULL; known++) {
        if (find_name(view, known->name) == 0
            && (!known->typed || find_types(view) != LIST_CSV_NONE))
        {
            break;
        }
    }

    if (known->name == NULL) {
        snprintf(view->with->why, LIST_WHY, "line %" PRIu64 " is taken for the "
                 "header, and has %s, and none of the columns " LIST_CSV_KNOWN,
                 view->header.line, show_header(view, shown));

    } else if (!known->whole
               && find(view, view->header.text, "path") != LIST_CSV_NONE)
    {
        snprintf(view->with->why, LIST_WHY, "is a csv with hosts and paths in "
                 "two columns, which no format joins (--from csv:COLUMN would "
                 "list whole hosts)");
        return NULL;
    }

    return known->format;
}


/* Lets the columns count that say something about the keys of a column with
 * this name. */
static void
find_beside(list_csv_t *csv, const view_t *view, const char *name)
{
    size_t                    i;
    const list_csv_column_t  *known;
    const list_csv_status_t  *status;

    for (known = list_csv_columns; known->name != NULL; known++) {
        if (known->typed && strcasecmp(known->name, name) == 0
            && view->with->keys != LIST_ANY)
        {
            csv->beside[0] = find_types(view);
        }
    }

    for (i = 0; i < LIST_CSV_STATUSES; i++) {
        status = &list_csv_statuses[i];

        if (strcasecmp(status->column, name) == 0
            && find(view, view->header.text, status->beside) != LIST_CSV_NONE)
        {
            csv->beside[1 + i] = find(view, view->header.text, status->name);
        }
    }
}


/* Finds the columns.  Returns 0, or -1 with the reason. */
static int
find_columns(list_csv_t *csv, view_t *view)
{
    char         shown[LIST_WHY];
    uint64_t     number;
    const char  *name;
    bloom_key_t  field;

    name = view->with->column;

    if (name == NULL || parse_count(name, &number) != 0) {
        number = 0;
    }

    if (view->records == 0 && name != NULL) {
        csv->column = LIST_CSV_NONE - 1;     /* no later record has it */
        return 0;
    }

    if (view->fields == 0) {
        snprintf(view->with->why, LIST_WHY, "line %" PRIu64 " has a quoted "
                 "field that does not end properly", view->first.line);
        return -1;
    }

    if (number > view->fields) {
        view->header = view->first;
        snprintf(view->with->why, LIST_WHY, "line %" PRIu64 " has fewer "
                 "columns than csv:%s: %s", view->first.line, name,
                 show_header(view, shown));
        return -1;
    }

    if (number != 0) {
        csv->column = number - 1;
        return 0;
    }

    if (name == NULL) {
        csv->format = find_known(view);

        if (csv->format == NULL) {
            return -1;
        }

        name = csv->format + strlen("csv:");

    } else if (find_name(view, name) != 0) {
        return -1;
    }

    csv->column = view->column;
    find_beside(csv, view, name);

    /* a record may repeat the comment that is the header */

    if (take(view, view->first.text, view->column, &field) > view->column
        && list_equals(&field, name))
    {
        csv->header = view->first.line;
    }

    return 0;
}


int
list_csv_begin(void *state, const list_begin_t *with)
{
    int          rc;
    size_t       i;
    uint8_t     *buf;
    view_t       view, next;
    list_csv_t  *csv = state;

    buf = cli_alloc(with->len + 1);

    for (i = 0; i < SEPARATORS; i++) {
        memset(&next, 0, sizeof(next));
        next.with = with;
        next.buf = buf;
        next.separator = separators[i].byte;
        next.separated = separators[i].separated;
        look(&next);

        /* a record whose quotes are wrong is not a record of one column */

        if (i == 0 || next.agree > view.agree
            || (next.agree == view.agree && view.fields != 0
                && next.fields > view.fields))
        {
            view = next;
        }
    }

    csv->separator = view.separator;
    csv->table = view.agree != 0 && view.agree == view.records;
    csv->described = view.separator != ',' && view.fields > 1
                     ? view.separated : NULL;

    for (i = 0; i < LIST_CSV_BESIDE; i++) {
        csv->beside[i] = LIST_CSV_NONE;
    }

    rc = find_columns(csv, &view);
    csv->fields = csv->column + 1;

    for (i = 0; i < LIST_CSV_BESIDE; i++) {
        if (csv->beside[i] != LIST_CSV_NONE && csv->beside[i] >= csv->fields) {
            csv->fields = csv->beside[i] + 1;
        }
    }

    free(buf);

    return rc;
}
