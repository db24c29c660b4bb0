/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file prints what nodes have told, as a table or as JSON.
 *
 * Every text of a node is escaped and cut, since it may contain anything.
 */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "json.h"
#include "status_print.h"
#include "units.h"
#include "visible.h"

#define CELL_LEN    256                  /* bytes of an escaped text */
#define CELL_CHARS  60                   /* characters of a text */
#define MESSAGE_MAX 1000                 /* bytes of a sentence */
#define BUILD_ID    8                    /* digits that are shown of build ids
                                            and digests */


/* Writes a cell. */
typedef void (*cell_t)(char cell[CELL_LEN], const node_row_t *row);

typedef struct {
    const char  *title;
    cell_t       cell;
    unsigned     mark;
    int          right;                  /* numbers are aligned at the right */
    int          source;                 /* shown only if a zone has a source */
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


static void
write_count(char cell[CELL_LEN], uint64_t count)
{
    if (count == NODE_UNKNOWN) {
        write_string(cell, NULL);

    } else {
        snprintf(cell, CELL_LEN, "%" PRIu64, count);
    }
}


static void
cell_zone(char cell[CELL_LEN], const node_row_t *row)
{
    write_string(cell, row->zone->name);
}


static void
cell_node(char cell[CELL_LEN], const node_row_t *row)
{
    write_text(cell, row->node->name, (size_t) row->node->name_len);
}


static void
cell_state(char cell[CELL_LEN], const node_row_t *row)
{
    write_string(cell, row->zone->state);
}


static void
cell_generation(char cell[CELL_LEN], const node_row_t *row)
{
    write_count(cell, row->zone->generation);
}


/* Writes the first digits of a text that identifies something. */
static void
write_id(char cell[CELL_LEN], const char *id)
{
    id = id ? id : "-";

    write_text(cell, id, strnlen(id, BUILD_ID));
}


static void
cell_image(char cell[CELL_LEN], const node_row_t *row)
{
    write_id(cell, row->zone->build_id);
}


static void
cell_items(char cell[CELL_LEN], const node_row_t *row)
{
    write_count(cell, row->zone->estimated_items);
}


static void
cell_fill(char cell[CELL_LEN], const node_row_t *row)
{
    if (isnan(row->zone->fill_ratio)) {
        write_string(cell, NULL);

    } else {
        (void) format_rate(cell, row->zone->fill_ratio);
    }
}


static void
cell_bits(char cell[CELL_LEN], const node_row_t *row)
{
    write_count(cell, row->zone->bits_set);
}


static void
cell_removed(char cell[CELL_LEN], const node_row_t *row)
{
    write_count(cell, row->zone->removed);
}


static void
cell_source(char cell[CELL_LEN], const node_row_t *row)
{
    write_string(cell, row->zone->source_state);
}


static void
cell_position(char cell[CELL_LEN], const node_row_t *row)
{
    write_string(cell, row->zone->position);
}


static void
cell_digest(char cell[CELL_LEN], const node_row_t *row)
{
    write_id(cell, row->zone->digest);
}


static void
cell_lag(char cell[CELL_LEN], const node_row_t *row)
{
    uint64_t  lag;

    lag = row->zone->lag;

    if (lag == NODE_UNKNOWN) {
        write_string(cell, NULL);

    } else if (lag < 10000) {
        snprintf(cell, CELL_LEN, "%" PRIu64 ".%" PRIu64 "s", lag / 1000,
                 lag / 100 % 10);

    } else {
        (void) format_span(cell, lag - lag % 1000);
    }
}


static void
cell_journal(char cell[CELL_LEN], const node_row_t *row)
{
    const node_zone_t  *zone;

    zone = row->zone;

    write_string(cell, zone->journal_error != NULL ? "fails"
                       : zone->journal == NODE_UNKNOWN ? NULL
                       : zone->lost_keys != NODE_UNKNOWN && zone->lost_keys != 0
                       ? "lost keys" : zone->journal ? "on" : "off");
}


static void
cell_helper(char cell[CELL_LEN], const node_row_t *row)
{
    uint64_t  silence;

    silence = node_state_silence(row->node, row->zone);

    write_string(cell, silence == NODE_UNKNOWN ? NULL
                       : row->zone->marks & NODE_MARK_HELPER ? "silent" : "ok");
}


static void
cell_version(char cell[CELL_LEN], const node_row_t *row)
{
    write_string(cell, row->node->version);
}


static const column_t  columns[] = {
    { "zone", cell_zone },
    { "node", cell_node },
    { "state", cell_state, NODE_MARK_STATE },
    { "gen", cell_generation, .right = 1 },
    { "image", cell_image, NODE_MARK_IMAGE },
    { "keys", cell_items, NODE_MARK_ITEMS, .right = 1 },
    { "fill", cell_fill, .right = 1 },
    { "bits set", cell_bits, NODE_MARK_BITS, .right = 1 },
    { "removed", cell_removed, NODE_MARK_REMOVED, .right = 1 },
    { "source", cell_source, NODE_MARK_SOURCE, .source = 1 },
    { "position", cell_position, NODE_MARK_SOURCE, .right = 1, .source = 1 },
    { "digest", cell_digest, NODE_MARK_DIGEST, .source = 1 },
    { "lag", cell_lag, NODE_MARK_SOURCE, .right = 1, .source = 1 },
    { "journal", cell_journal, NODE_MARK_JOURNAL },
    { "helper", cell_helper, NODE_MARK_HELPER },
    { "version", cell_version, NODE_MARK_VERSION }
};

#define COLUMNS  (sizeof(columns) / sizeof(columns[0]))


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
print_cell(const column_t *column, const char *cell, int width, int mark,
    int colour)
{
    int  pad;

    pad = width - width_of(cell);

    printf("%*s%s%s%s%s%*s ", column->right ? pad : 0, "",
           mark && colour ? "\033[1;31m" : "", cell, mark ? "*" : " ",
           mark && colour ? "\033[0m" : "", column->right ? 0 : pad, "");
}


static void
print_table(const node_findings_t *found, int source, int colour)
{
    int     width[COLUMNS];
    char    cell[CELL_LEN];
    size_t  i, c;

    for (c = 0; c < COLUMNS; c++) {
        width[c] = (int) strlen(columns[c].title);

        for (i = 0; i < found->rows_n; i++) {
            columns[c].cell(cell, &found->rows[i]);
            width[c] = width_of(cell) > width[c] ? width_of(cell) : width[c];
        }
    }

    for (c = 0; c < COLUMNS; c++) {
        if (!columns[c].source || source) {
            print_cell(&columns[c], columns[c].title, width[c], 0, 0);
        }
    }

    putchar('\n');

    for (i = 0; i < found->rows_n; i++) {

        for (c = 0; c < COLUMNS; c++) {
            if (!columns[c].source || source) {
                columns[c].cell(cell, &found->rows[i]);
                print_cell(&columns[c], cell, width[c],
                           (columns[c].mark & found->rows[i].zone->marks) != 0,
                           colour);
            }
        }

        putchar('\n');
    }
}


static void
print_findings(const node_findings_t *found)
{
    char         name[CELL_LEN];
    size_t       i, len;
    const char  *message;

    for (i = 0; i < found->n; i++) {
        message = found->findings[i].message;
        len = strlen(message);

        printf("* ");

        if (found->findings[i].zone != NULL) {
            write_string(name, found->findings[i].zone);
            printf("zone \"%s\": ", name);
        }

        visible_print(stdout, message, len < MESSAGE_MAX ? len : MESSAGE_MAX);
        puts(len < MESSAGE_MAX ? "" : "...");
    }
}


void
status_print(const node_findings_t *found, const node_t *nodes, size_t n)
{
    int     source;
    size_t  i;

    (void) nodes;
    source = 0;

    for (i = 0; i < found->rows_n; i++) {
        source |= found->rows[i].zone->source != NULL;
    }

    if (found->rows_n != 0) {
        print_table(found, source, in_colour());
        putchar('\n');
    }

    print_findings(found);

    if (found->n == 0) {
        printf("%zu node%s, %zu zone%s: nothing is wrong%s\n", n, CLI_S(n),
               found->zones, CLI_S(found->zones),
               n > 1 ? ", and the nodes agree" : "");
    }
}


static void
json_known_count(bloom_json_writer_t *json, const char *name, uint64_t count)
{
    if (count != NODE_UNKNOWN) {
        bloom_json_put_count(json, name, count);

    } else {
        bloom_json_put_null(json, name);
    }
}


static void
json_row(bloom_json_writer_t *json, const node_row_t *row)
{
    const node_zone_t  *zone;

    zone = row->zone;

    bloom_json_put_text(json, "node", row->node->shown);
    bloom_json_put_text(json, "name", zone->name);
    bloom_json_put_text(json, "state", zone->state);
    json_known_count(json, "generation", zone->generation);
    bloom_json_put_text(json, "build_id", zone->build_id);
    bloom_json_put_text(json, "form", zone->key_form);
    json_known_count(json, "items", zone->items);
    json_known_count(json, "estimated_items", zone->estimated_items);
    json_known_count(json, "max_items", zone->max_items);
    bloom_json_put_number(json, "fill_ratio", zone->fill_ratio);
    json_known_count(json, "bits_set", zone->bits_set);
    json_known_count(json, "removed", zone->removed);
    json_known_count(json, "excepted", zone->excepted);
    bloom_json_put_text(json, "source", zone->source);
    bloom_json_put_text(json, "source_state", zone->source_state);
    bloom_json_put_text(json, "position", zone->position);
    bloom_json_put_text(json, "digest", zone->digest);
    bloom_json_put_text(json, "digest_since", zone->digest_since);
    json_known_count(json, "lag_ms", zone->lag);
    bloom_json_put_text(json, "journal_error", zone->journal_error);
    json_known_count(json, "lost_keys", zone->lost_keys);
    json_known_count(json, "helper_silence_ms",
                     node_state_silence(row->node, zone));
}


void
status_print_json(const node_findings_t *found, const node_t *nodes, size_t n)
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
    bloom_json_put_array(&json, "problems");

    for (i = 0; i < found->n; i++) {
        bloom_json_put_object(&json, NULL);
        bloom_json_put_text(&json, "what", found->findings[i].what);
        bloom_json_put_text(&json, "zone", found->findings[i].zone);
        bloom_json_put_text(&json, "message", found->findings[i].message);
        bloom_json_put_end(&json);
    }

    bloom_json_put_end(&json);
    json_end(&json);
}
