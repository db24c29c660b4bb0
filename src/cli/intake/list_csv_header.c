/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file finds the separator, the header and the columns of a file.
 */

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli.h"
#include "keyform.h"
#include "list_csv_fields.h"
#include "list_csv_header.h"
#include "list_csv_view.h"
#include "units.h"


static const uint8_t  separators[] = { ',', ';', '\t', '|', LIST_CSV_ONE };

#define SEPARATORS  sizeof(separators)

/* What is looked for, in a view. */
typedef struct {
    const list_begin_t       *with;
    uint64_t                  number;    /* the column that was asked for, or
                                            0 */
    const list_csv_view_t    *view;

    /* what was found */

    int                       found;
    size_t                    column;
    bloom_key_t               header;    /* data: NULL if there is none */
    uint64_t                  header_line;
    int                       skipped;   /* the first record is a header */
    int                       guessed;   /* only its fields tell so */
    const list_csv_column_t  *known;     /* if no column was asked for */

    /* why the first record is no header */

    int                       has_place;
    uint64_t                  again;     /* the line where the name is again */
} search_t;


/* Returns how the separator of a view is called in a message. */
static const char *
separated(const list_csv_view_t *view)
{
    return view->separator == ',' ? "separated by \",\""
           : view->separator == ';' ? "separated by \";\""
           : view->separator == '|' ? "separated by \"|\""
           : view->separator == '\t' ? "separated by tabs"
           : view->separator == LIST_CSV_ONE ? "not separated"
           : "separated as the first line says";
}


/* Adds a text to a message. */
__attribute__((format(printf, 2, 3)))
static void
say(char *why, const char *format, ...)
{
    size_t   len;
    va_list  args;

    len = strlen(why);
    va_start(args, format);
    vsnprintf(why + len, LIST_WHY - len, format, args);
    va_end(args);
}


/* Adds the fields of a record to a message: `"a", "b" (separated by ",")`. */
static void
say_fields(char *why, const list_csv_view_t *view, bloom_key_t record)
{
    int          more;
    char         shown[KEYFORM_SHOWN];
    const char  *comma;
    bloom_key_t  field;

    comma = "";

    do {
        more = list_csv_field(view->separator, &record, &field, view->buf);

        if (more == -1) {
            break;
        }

        if (strlen(why) > LIST_WHY / 2) {
            say(why, ", ...");
            break;
        }

        say(why, "%s\"%s\"", comma, keyform_show(shown, &field));
        comma = ", ";
    } while (more == 1);

    say(why, " (%s)", separated(view));
}


/* Looks for a column by its name.  Returns 1 if there is a header with it. */
static int
find_name(search_t *search, const char *name)
{
    size_t                  column;
    bloom_key_t             asked, field;
    const list_csv_view_t  *view;

    view = search->view;

    if (view->comment.data != NULL) {
        search->header = view->comment;
        search->header_line = view->comment_line;
        search->column = list_csv_find(view, view->comment, name);

        if (search->column != LIST_CSV_NONE) {
            search->skipped = list_csv_take(view, view->first, search->column,
                                            &field)
                              && list_equals(&field, name);
            return 1;
        }

        /* rather data below their header than a header below a remark */

        if (!view->told) {
            return 0;
        }
    }

    search->header = view->first;
    search->header_line = view->first_line;
    column = list_csv_find(view, view->first, name);

    if (column == LIST_CSV_NONE) {
        return 0;
    }

    asked.data = (const uint8_t *) name;
    asked.len = strlen(name);

    if (search->with->keys != LIST_ANY && !list_has(&asked, '.')
        && list_csv_has_place(view, view->first))
    {
        search->has_place = 1;
        return 0;
    }

    search->again = list_csv_below(view, column, name);

    if (search->again != 0) {
        return 0;
    }

    search->column = column;
    search->skipped = 1;

    return 1;
}


/* Returns the column of types of a header, or LIST_CSV_NONE. */
static size_t
find_types(const search_t *search)
{
    size_t  i, column;

    for (i = 0; list_csv_types[i] != NULL; i++) {
        column = list_csv_find(search->view, search->header, list_csv_types[i]);

        if (column != LIST_CSV_NONE && column != search->column
            && list_csv_has_type(search->view, column))
        {
            return column;
        }
    }

    return LIST_CSV_NONE;
}


/* Looks for the best one of the known columns. */
static int
find_known(search_t *search)
{
    const list_csv_column_t  *known;

    for (known = list_csv_columns; known->name != NULL; known++) {
        if (find_name(search, known->name)
            && (!known->typed || find_types(search) != LIST_CSV_NONE))
        {
            search->known = known;
            return 1;
        }
    }

    return 0;
}


/* Returns 1 if the first record has the names of the comment above it. */
static int
repeats_comment(const list_csv_view_t *view)
{
    char         name[256];
    bloom_key_t  field;

    if (!list_csv_take(view, view->comment, 0, &field) || field.len == 0
        || field.len >= sizeof(name))
    {
        return 0;
    }

    memcpy(name, field.data, field.len);
    name[field.len] = '\0';

    return list_csv_take(view, view->first, 0, &field)
           && list_equals(&field, name);
}


/* Looks for a column by its number, and for a header above it. */
static int
find_number(search_t *search)
{
    const list_csv_view_t  *view;

    view = search->view;
    search->column = search->number - 1;

    if (view->comment.data != NULL) {
        search->header = view->comment;
        search->header_line = view->comment_line;
        search->skipped = repeats_comment(view);
    }

    if (view->told && !search->skipped) {
        search->header = view->first;
        search->header_line = view->first_line;
        search->skipped = 1;
        search->guessed = 1;
    }

    return view->enough != 0;
}


/* Looks for what was asked for, in a view. */
static void
find(search_t *search, const list_csv_view_t *view, const list_begin_t *with,
    uint64_t number)
{
    memset(search, 0, sizeof(*search));
    search->with = with;
    search->number = number;
    search->view = view;

    if (view->first.data == NULL || view->fields == 0) {
        return;
    }

    search->found = number != 0 ? find_number(search)
                    : with->column != NULL ? find_name(search, with->column)
                    : find_known(search);
}


/* Returns 1 if a search is better than the best one before it. */
static int
is_better(const search_t *search, const search_t *best)
{
    uint64_t  agree, best_agree;

    if (search->found != best->found) {
        return search->found;
    }

    if (search->number != 0 && search->view->enough != best->view->enough) {
        return search->view->enough > best->view->enough;
    }

    agree = search->view->agree;
    best_agree = best->view->agree;

    /* several columns explain a number, or a header that was not found, better
     * than one does */

    if (search->number != 0 || !search->found) {
        agree = search->view->fields > 1 ? agree : 0;
        best_agree = best->view->fields > 1 ? best_agree : 0;
    }

    return agree > best_agree;
}


/* Writes why no column was found.  Returns -1. */
static int
refuse(const search_t *search)
{
    char                   *why;
    const char             *name;
    const list_csv_view_t  *view;

    why = search->with->why;
    why[0] = '\0';
    view = search->view;
    name = search->with->column;

    say(why, "line %" PRIu64, search->header.data != NULL
                              ? search->header_line : view->first_line);

    if (search->number != 0) {
        say(why, " has fewer columns than csv:%s: ", name);
        say_fields(why, view, view->first);
        return -1;
    }

    if (search->header.data == NULL) {
        say(why, " has a quoted field that does not end properly");
        return -1;
    }

    if (name != NULL && (search->has_place || search->again != 0)) {
        say(why, " has \"%.*s\", but is no header: ", KEYFORM_SHOWN, name);

        if (search->has_place) {
            say(why, "it has a host, a URL or an address");

        } else {
            say(why, "line %" PRIu64 " has it in the same column",
                search->again);
        }

        say(why, "; use csv:NUMBER for a file without a header");
        return -1;
    }

    say(why, " is taken for the header, and has ");

    if (name != NULL) {
        say(why, "no column \"%.*s\" but ", KEYFORM_SHOWN, name);
    }

    say_fields(why, view, search->header);
    say(why, "%s", name != NULL ? "; use csv:COLUMN with one of these names, or"
                                  " with a number"
                   : ", and none of the columns " LIST_CSV_KNOWN);

    return -1;
}


/* Finds what else of a record counts. */
static void
find_beside(list_csv_t *csv, const search_t *search)
{
    size_t                    i;
    const list_csv_view_t    *view;
    const list_csv_column_t  *known;
    const list_csv_status_t  *status;

    view = search->view;

    for (known = list_csv_columns;
         known->name != NULL && search->with->keys != LIST_ANY;
         known++)
    {
        if (known->typed && list_csv_find(view, search->header, known->name)
                            == csv->column)
        {
            csv->type = find_types(search);
        }
    }

    for (i = 0; i < LIST_CSV_STATUSES; i++) {
        status = &list_csv_statuses[i];

        if (list_csv_find(view, search->header, status->column) == csv->column
            && list_csv_find(view, search->header, status->beside)
               != LIST_CSV_NONE)
        {
            csv->status[i] = list_csv_find(view, search->header, status->name);
        }
    }
}


/* Writes what the user may want to know. */
static void
describe(list_csv_t *csv, const search_t *search)
{
    const char             *separator;
    const list_csv_view_t  *view;

    view = search->view;
    separator = view->separator != ',' && view->fields > 1
                ? separated(view) : NULL;

    if (search->guessed) {
        snprintf(csv->described, sizeof(csv->described),
                 "%s%sline %" PRIu64 " is a header",
                 separator != NULL ? separator : "",
                 separator != NULL ? ", " : "", view->first_line);

    } else if (separator != NULL) {
        snprintf(csv->described, sizeof(csv->described), "%s", separator);
    }
}


/* Lets records be read up to a column.  Returns 0 if there is no column. */
static int
read_to(list_csv_t *csv, size_t column)
{
    if (column != LIST_CSV_NONE && column >= csv->fields) {
        csv->fields = column + 1;
    }

    return column != LIST_CSV_NONE;
}


/* Prepares the state of a file without records in its first block.  A record
 * after it has no column with a name. */
static int
finish_empty(list_csv_t *csv, const search_t *search)
{
    if (search->with->column == NULL) {
        snprintf(search->with->why, LIST_WHY, "has only comments");
        return -1;
    }

    csv->column = (search->number != 0 ? search->number : LIST_CSV_NONE) - 1;
    csv->fields = csv->column + 1;

    return 0;
}


/* Prepares the state from the best search.  Returns 0, or -1 with the
 * reason. */
static int
finish(list_csv_t *csv, const search_t *search)
{
    size_t                  i;
    const list_csv_view_t  *view;

    view = search->view;
    csv->separator = view->separator;
    csv->table = view->fields > 1 && view->agree == view->records;

    csv->type = LIST_CSV_NONE;

    for (i = 0; i < LIST_CSV_STATUSES; i++) {
        csv->status[i] = LIST_CSV_NONE;
    }

    if (view->first.data == NULL) {
        return finish_empty(csv, search);
    }

    if (!search->found) {
        return refuse(search);
    }

    if (search->known != NULL && !search->known->whole
        && list_csv_find(view, search->header, "path") != LIST_CSV_NONE)
    {
        snprintf(search->with->why, LIST_WHY, "is a csv with hosts and paths "
                 "in two columns, which no format joins (--from csv:COLUMN "
                 "would list whole hosts)");
        csv->table = 1;
        return -1;
    }

    csv->column = search->column;
    csv->header = search->skipped ? view->first_line : 0;
    csv->format = search->known != NULL ? search->known->format : NULL;

    if (search->header.data != NULL) {
        find_beside(csv, search);
    }

    read_to(csv, csv->column);
    csv->learns = read_to(csv, csv->type);

    for (i = 0; i < LIST_CSV_STATUSES; i++) {
        csv->learns |= read_to(csv, csv->status[i]);
    }

    describe(csv, search);

    return 0;
}


/* Returns 1 if a separator cannot divide a block: it does not occur, or the
 * block has several columns without it. */
static int
is_idle(uint8_t separator, const list_csv_view_t *comma)
{
    if (separator == LIST_CSV_ONE) {
        return comma->fields > 1;
    }

    return comma->data == comma->end
           || memchr(comma->data, separator,
                     (size_t) (comma->end - comma->data))
              == NULL;
}


int
list_csv_begin(void *state, const list_begin_t *with)
{
    int               rc;
    size_t            i, best, hint;
    uint8_t          *buf, separator;
    uint64_t          number;
    list_csv_t       *csv = state;
    search_t          search[SEPARATORS];
    list_csv_view_t   view[SEPARATORS];

    if (with->column == NULL || parse_count(with->column, &number) != 0) {
        number = 0;
    }

    buf = cli_alloc(with->len + 1);
    separator = ',';
    hint = list_csv_hint(with->data, with->len, &separator);
    csv->hint = hint != 0;

    list_csv_look(&view[0], separator, with, hint, buf, number);
    find(&search[0], &view[0], with, number);

    for (i = 1, best = 0; i < SEPARATORS && hint == 0; i++) {
        if (!is_idle(separators[i], &view[0])) {
            list_csv_look(&view[i], separators[i], with, 0, buf, number);
            find(&search[i], &view[i], with, number);

            if (is_better(&search[i], &search[best])) {
                best = i;
            }
        }
    }

    rc = finish(csv, &search[best]);
    free(buf);

    return rc;
}
