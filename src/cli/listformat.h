/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A list format says how a published list is read.  Each format has a reader,
 * in a file of its own, which says how the format looks:
 *
 *     keys       each line that is not empty is a key; the only format without
 *                a name
 *     lines      list_text.h
 *     adblock    list_adblock.h
 *     hosts      list_hosts.h
 *     dnsmasq    list_dnsmasq.h
 *     rpz        list_rpz.h
 *     csv:COLUMN list_csv.h; the column is a number from 1, or a name in the
 *                header, which is the first record or a comment before it
 *     json       list_json.h
 *     auto       what the beginning of the file looks like (list_guess.h)
 *
 * A file is a sequence of records.  A record is a line, but in a csv and an rpz
 * it may have several lines.
 */

#ifndef LISTFORMAT_H
#define LISTFORMAT_H

#include "list_line.h"
#include "list_rpz.h"


typedef enum {
    LISTFORMAT_KEYS = 0,
    LISTFORMAT_LINES,
    LISTFORMAT_ADBLOCK,
    LISTFORMAT_HOSTS,
    LISTFORMAT_DNSMASQ,
    LISTFORMAT_RPZ,
    LISTFORMAT_CSV,
    LISTFORMAT_JSON,
    LISTFORMAT_AUTO
} listformat_e;

typedef struct {
    listformat_e   kind;
    const char    *name;                 /* as --from takes it; NULL: keys */
    const char    *column;               /* csv: its name; NULL: it has a
                                            number, or was found */
    size_t         index;                /* csv: its number, from 0 */
    uint64_t       header;               /* csv: number of the header's line;
                                            0: none */
} listformat_t;


/* Parses the name of a format.  Returns NULL, or a phrase that says what the
 * name must be. */
const char *listformat_parse(listformat_t *list, const char *text);

/*
 * Looks for the column of a csv in its header.  Call it for each record from
 * the first, which begins in line 1, until it returns 1.  Returns 1 when the
 * column is known; 0 if the next record is needed; or -1 if the header has no
 * such column.
 */
int listformat_header(listformat_t *list, const bloom_key_t *record,
    uint64_t line);

/* Returns 1 if a record of the format may have several lines. */
int listformat_has_records(const listformat_t *list);

/* Finds the end of the record that begins at p, for a format with records: see
 * list_csv_end(). */
const uint8_t *listformat_end(const listformat_t *list, const uint8_t *p,
    const uint8_t *end, int *open);

/* Returns how many bytes whole records have, from the beginning of the data;
 * *open becomes 1 if quotes or parentheses are open at the end. */
size_t listformat_whole(const listformat_t *list, const uint8_t *data,
    size_t len, int *open);

/* Finds the next entry of a record, which begins in line `number`.  The caller
 * sets the members of `at` that it does not set itself (list_line.h). */
list_result_e listformat_next(const listformat_t *list, list_line_t *at,
    uint64_t number);


#endif /* LISTFORMAT_H */
