/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A list format says how the lines of a published list are read, and finds the
 * keys in them.
 *
 *     keys       each line that is not empty is a key
 *     lines      a key per line, with or without blanks around it; lines that
 *                begin with # or !, and the rest of a line after " #", are
 *                comments
 *     hosts      a hosts file: an address and the names that it belongs to;
 *                # begins a comment
 *     adblock-domains
 *                the ||domain^ lines of Adblock-style lists; all other rules
 *                are not about whole domains and are skipped
 *     json       the output of `ngx-bloom journal --keys --json`: an object
 *                per line, with "key" first and then, if the key is not UTF-8,
 *                "key_hex"; a key may contain any byte
 *     csv:COLUMN a column of comma-separated values (RFC 4180, a record per
 *                line), by its number from 1 or by its name in the header,
 *                which is the first line or a comment before it
 */

#ifndef LISTFORMAT_H
#define LISTFORMAT_H

#include "bloom_key.h"


typedef enum {
    LISTFORMAT_KEYS = 0,
    LISTFORMAT_LINES,
    LISTFORMAT_HOSTS,
    LISTFORMAT_ADBLOCK,
    LISTFORMAT_JSON,
    LISTFORMAT_CSV
} listformat_e;

typedef struct {
    listformat_e   kind;
    const char    *column;               /* csv: its name, or NULL */
    size_t         index;                /* csv: its number, from 0 */
    uint64_t       header;               /* csv: number of the header's line;
                                            0: none */
} listformat_t;


/* Parses the name of a format.  Returns 0, or -1 if it is unknown. */
int listformat_parse(listformat_t *list, const char *text);

/*
 * Looks for the column of a csv in its header.  Call it for each line from the
 * first, of which `number` is 1, until it returns 1.  Returns 1 when the column
 * is known; 0 if the next line is needed; or -1 if the header has no such
 * column, with a phrase in *why that follows the line in a message.
 */
int listformat_header(listformat_t *list, const bloom_key_t *line,
    uint64_t number, const char **why);


typedef enum {
    LISTFORMAT_KEY,                      /* the line has this key */
    LISTFORMAT_END,                      /* the line has no more keys */

    /* the line has no key: */
    LISTFORMAT_EMPTY,
    LISTFORMAT_COMMENT,
    LISTFORMAT_SKIPPED,                  /* valid, but without a key */
    LISTFORMAT_BAD                       /* invalid; *why has the reason */
} listformat_line_e;

/* A line whose keys are being read.  The caller sets all members, `begun` to
 * 0. */
typedef struct {
    bloom_key_t  line;                   /* the part that is still to be read */
    uint64_t     number;                 /* from 1 */
    int          begun;
    uint8_t     *buf;                    /* csv, json: line.len bytes or more */
} listformat_line_t;

/* Finds the next key of a line. */


listformat_line_e listformat_next(const listformat_t *list,
    listformat_line_t *at, bloom_key_t *key, const char **why);


#endif /* LISTFORMAT_H */
