/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Every text of a node is escaped and cut, since it may contain anything.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "fields.h"
#include "json.h"
#include "status_print.h"
#include "units.h"
#include "visible.h"

#define CELL_LEN    256                  /* bytes of an escaped text */
#define CELL_CHARS  60                   /* characters of a text */
#define MESSAGE_MAX 1000                 /* bytes of a sentence */
#define ID_LEN      8                    /* digits that are shown of build ids
                                            and digests */
#define COLUMNS_MAX 64


/* A column: a field, or the node. */
typedef struct {
    const char     *title;
    const field_t  *field;               /* NULL: the node's name */
    int             width;
} column_t;


/* Writes a text, escaped and cut. */
static void
write_text(char cell[CELL_LEN], const char *text, size_t len)
{
    char    shown[VISIBLE_MAX];
    size_t  n, used, at, chars;

    for (at = 0, chars = 0; len != 0; text += used, len -= used, chars++) {

        n = visible_next(shown, (const uint8_t *) text, len, &used);

        if (at + n + sizeof("...") > CELL_LEN || chars == CELL_CHARS) {
            memcpy(cell + at, "...", 3);
            at += 3;
            break;
        }

        memcpy(cell + at, shown, n);
        at += n;
    }

    cell[at] = '\0';
}


static void
write_string(char cell[CELL_LEN], const char *text)
{
    if (text == NULL) {
        text = "-";
    }

    write_text(cell, text, strlen(text));
}


/* Writes a value as a table shows it. */
static void
write_value(char cell[CELL_LEN], const json_t *values, const field_t *field)
{
    uint64_t       count;
    const char    *text;
    const json_t  *value;

    value = json_object_get(values, field->name);
    count = field_count(values, field->name);
    text = json_string_value(value);

    if (value == NULL) {
        write_string(cell, NULL);

    } else if (field->kind == FIELD_RATE) {
        (void) format_rate(cell, json_number_value(value));

    } else if (field->kind == FIELD_ID) {
        write_text(cell, text, strnlen(text, ID_LEN));

    } else if (field->kind == FIELD_SPAN && count >= 10000) {
        (void) format_span(cell, count - count % 1000);

    } else if (field->kind == FIELD_SPAN) {
        snprintf(cell, CELL_LEN, "%" PRIu64 ".%" PRIu64 "s", count / 1000,
                 count / 100 % 10);

    } else if (field->kind == FIELD_COUNT) {
        snprintf(cell, CELL_LEN, "%" PRIu64, count);

    } else {
        write_string(cell, text);
    }
}


static void
write_cell(char cell[CELL_LEN], const column_t *column, const node_row_t *row)
{
    if (column->field == NULL) {
        write_text(cell, row->node->name, (size_t) row->node->name_len);

    } else {
        write_value(cell, row->zone->values, column->field);
    }
}


/* Returns the number of characters of a text in UTF-8. */
static int
width_of(const char *text)
{
    int  n;

    for (n = 0; *text != '\0'; text++) {
        n += ((unsigned char) *text & 0xc0) != 0x80;
    }

    return n;
}


static int
in_colour(void)
{
    const char  *terminal, *none;

    terminal = getenv("TERM");
    none = getenv("NO_COLOR");

    return isatty(STDOUT_FILENO) && (none == NULL || none[0] == '\0')
           && terminal != NULL && strcmp(terminal, "dumb") != 0;
}


/* Prints a cell, and its mark in the column after it. */
static void
print_cell(const column_t *column, const char *cell, int mark, int colour)
{
    int  pad, right;

    pad = column->width - width_of(cell);
    right = column->field != NULL && column->field->right;

    printf("%*s%s%s%s%s%*s ", right ? pad : 0, "",
           mark && colour ? "\033[1;31m" : "", cell, mark ? "*" : " ",
           mark && colour ? "\033[0m" : "", right ? 0 : pad, "");
}


/* Lists the columns that are shown.  Returns how many. */
static size_t
list_columns(column_t columns[COLUMNS_MAX], int source)
{
    size_t  i, n;

    for (n = 0, i = 0; i < fields_n; i++) {

        if (fields[i].title == NULL || (fields[i].source && !source)) {
            continue;
        }

        columns[n].title = fields[i].title;
        columns[n++].field = &fields[i];

        if (i == 0) {
            columns[n].title = "node";
            columns[n++].field = NULL;
        }
    }

    return n;
}


static void
print_table(const findings_t *found, int source, int colour)
{
    char       cell[CELL_LEN];
    size_t     i, c, n;
    uint64_t   mark;
    column_t   columns[COLUMNS_MAX];

    n = list_columns(columns, source);

    for (c = 0; c < n; c++) {
        columns[c].width = (int) strlen(columns[c].title);

        for (i = 0; i < found->rows_n; i++) {
            write_cell(cell, &columns[c], &found->rows[i]);

            if (width_of(cell) > columns[c].width) {
                columns[c].width = width_of(cell);
            }
        }

        print_cell(&columns[c], columns[c].title, 0, 0);
    }

    putchar('\n');

    for (i = 0; i < found->rows_n; i++) {

        for (c = 0; c < n; c++) {
            mark = columns[c].field ? field_mark(columns[c].field->name) : 0;
            write_cell(cell, &columns[c], &found->rows[i]);
            print_cell(&columns[c], cell,
                       (mark & found->rows[i].zone->marks) != 0, colour);
        }

        putchar('\n');
    }
}


static void
print_findings(const findings_t *found)
{
    char         name[CELL_LEN];
    size_t       i, len;
    const char  *message;

    for (i = 0; i < found->n; i++) {
        message = found->list[i].message;
        len = strlen(message);

        printf("* ");

        if (found->list[i].zone != NULL) {
            write_string(name, found->list[i].zone);
            printf("zone \"%s\": ", name);
        }

        visible_print(stdout, message, len < MESSAGE_MAX ? len : MESSAGE_MAX);
        puts(len < MESSAGE_MAX ? "" : "...");
    }
}


/* Says what became of the sample in the zones whose answers agree. */
static void
print_sampled(const findings_t *found)
{
    char    name[CELL_LEN];
    size_t  i;

    for (i = 0; i < found->zones && found->sample != NULL; i++) {
        if (found->sampled[i].differ == 0) {
            write_string(name, found->sampled[i].zone);
            printf("zone \"%s\": the same keys are expected: 0 of %zu sampled "
                   "keys differ\n", name, found->sampled[i].keys);
        }
    }
}


void
status_print(const findings_t *found, size_t n)
{
    int     source;
    size_t  i;

    source = 0;

    for (i = 0; i < found->rows_n; i++) {
        source |= field_text(found->rows[i].zone->values, "source") != NULL;
    }

    if (found->rows_n != 0) {
        print_table(found, source, in_colour());
        putchar('\n');
    }

    print_findings(found);
    print_sampled(found);

    if (found->n == 0) {
        printf("%zu node%s, %zu zone%s: nothing is wrong%s\n", n, CLI_S(n),
               found->zones, CLI_S(found->zones),
               n > 1 ? ", and the nodes agree" : "");
    }
}


static void
json_row(bloom_json_writer_t *json, const node_row_t *row)
{
    size_t         i;
    const json_t  *value;

    bloom_json_put_text(json, "node", row->node->shown);

    for (i = 0; i < fields_n; i++) {

        if (fields[i].hidden) {
            continue;
        }

        value = json_object_get(row->zone->values, fields[i].name);

        if (json_is_integer(value)) {
            bloom_json_put_count(json, fields[i].name,
                                 (uint64_t) json_integer_value(value));

        } else if (json_is_real(value)) {
            bloom_json_put_number(json, fields[i].name,
                                  json_real_value(value));

        } else {
            bloom_json_put_text(json, fields[i].name,
                                json_string_value(value));
        }
    }
}


void
status_print_json(const findings_t *found, const node_t *nodes, size_t n)
{
    size_t               i;
    bloom_json_writer_t  json;

    json_begin(&json, 1);
    bloom_json_put_bool(&json, "ok", found->n == 0);
    bloom_json_put_array(&json, "nodes");

    for (i = 0; i < n; i++) {
        bloom_json_put_object(&json, NULL);
        bloom_json_put_text(&json, "url", nodes[i].shown);
        bloom_json_put_text(&json, "version", nodes[i].version);
        bloom_json_put_text(&json, "error", nodes[i].error);
        bloom_json_put_end(&json);
    }

    bloom_json_put_end(&json);
    bloom_json_put_array(&json, "zones");

    for (i = 0; i < found->rows_n; i++) {
        bloom_json_put_object(&json, NULL);
        json_row(&json, &found->rows[i]);
        bloom_json_put_end(&json);
    }

    bloom_json_put_end(&json);
    bloom_json_put_array(&json, "sampled");

    for (i = 0; i < found->zones && found->sample != NULL; i++) {
        bloom_json_put_object(&json, NULL);
        bloom_json_put_text(&json, "zone", found->sampled[i].zone);
        bloom_json_put_count(&json, "keys", found->sampled[i].keys);
        bloom_json_put_count(&json, "differ", found->sampled[i].differ);
        bloom_json_put_end(&json);
    }

    bloom_json_put_end(&json);
    bloom_json_put_array(&json, "problems");

    for (i = 0; i < found->n; i++) {
        bloom_json_put_object(&json, NULL);
        bloom_json_put_text(&json, "what", found->list[i].what);
        bloom_json_put_text(&json, "zone", found->list[i].zone);
        bloom_json_put_text(&json, "message", found->list[i].message);
        bloom_json_put_end(&json);
    }

    bloom_json_put_end(&json);
    json_end(&json);
}
