/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A list format tells what the lines of a published list are, and finds the
 * keys in them.
 *
 *     keys       every line is a key; only an empty one is none
 *     lines      a key a line, with blanks around it or not, and comments:
 *                lines that begin with # or !, and what follows " #"
 *     hosts      a hosts file: an address and the names that lead there;
 *                a # and what follows it is a comment
 *     adblock-domains
 *                ||domain^ lines of Adblock-style lists; all other rules
 *                there, which are about more than a domain, are skipped
 *     json       what `ngx-bloom journal --keys --json` prints: an object a
 *                line, with "key" first, and then "key_hex" if the key is not
 *                UTF-8; any byte can be in a key
 *     csv:COLUMN a column of comma-separated values (RFC 4180, a record a
 *                line), by its name in the header, the first line or a
 *                comment before the first, or by its number from 1
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
    const char    *column;               /* csv: its name */
    size_t         index;                /* csv: its number, from 0 */
    uint64_t       header;               /* csv: the line that names it; 0:
                                            none does */
} listformat_t;


/* Returns 0, or -1 if there is no such list. */
int listformat_parse(listformat_t *list, const char *text);

/*
 * Looks for the header of a csv in its first line, after `line - 1` others, all
 * of them comments.  1 if that is done, 0 if another line has to be seen, -1
 * with *why, a phrase to follow the line.
 */
int listformat_header(listformat_t *list, const bloom_key_t *line,
    uint64_t number, const char **why);


typedef enum {
    LISTFORMAT_KEY,                      /* one more */
    LISTFORMAT_END,                      /* no more in this line */

    /* lines without any: */
    LISTFORMAT_EMPTY,
    LISTFORMAT_COMMENT,
    LISTFORMAT_SKIPPED,                  /* understood, and none of ours */
    LISTFORMAT_BAD                       /* with the reason */
} listformat_line_e;

/* A line while its keys are taken; begins with the line and zeros. */
typedef struct {
    bloom_key_t  line;                   /* what is left of it */
    uint64_t     number;                 /* from 1 */
    int          begun;
    uint8_t     *buf;                    /* csv, json: of at least line.len */
} listformat_line_t;


listformat_line_e listformat_next(const listformat_t *list,
    listformat_line_t *at, bloom_key_t *key, const char **why);


#endif /* LISTFORMAT_H */
