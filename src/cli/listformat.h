
/*
 * Lists as they are published: what a line of one is, and the keys in it.
 *
 *     keys       every line is a key; only an empty one is none
 *     lines      a key a line, with blanks around it or not, and comments:
 *                lines that begin with # or !, and what follows " #"
 *     hosts      a hosts file: an address and the names that lead there;
 *                a # and what follows it is a comment
 *     adblock-domains
 *                ||domain^ lines of Adblock-style lists; all other rules
 *                there, which are about more than a domain, are skipped
 *     csv:COLUMN a column of comma-separated values (RFC 4180, a record a
 *                line), by its name in the header, the first line or a
 *                comment before the first, or by its number from 1
 */

#ifndef LISTFORMAT_H
#define LISTFORMAT_H

#include "bloom_key.h"


typedef enum {
    LIST_KEYS = 0,
    LIST_LINES,
    LIST_HOSTS,
    LIST_ADBLOCK,
    LIST_CSV
} list_e;

typedef struct {
    list_e       kind;
    const char  *column;                 /* csv: its name */
    size_t       index;                  /* csv: its number, from 0 */
    uint64_t     header;                 /* csv: the line that names it; 0:
                                            none does */
} list_t;


/* 0, or -1 having said which lists there are. */
int list_parse(list_t *list, const char *text);

/*
 * Looks for the header of a csv in its first line, after `line - 1` others, all
 * of them comments.  1 if that is done, 0 if another line has to be seen, -1
 * with *why, a phrase to follow the line.
 */
int list_header(list_t *list, const bloom_key_t *line, uint64_t number,
    const char **why);


typedef enum {
    LIST_KEY,                            /* one more */
    LIST_END,                            /* no more in this line */

    /* lines without any: */
    LIST_EMPTY,
    LIST_COMMENT,
    LIST_SKIPPED,                        /* understood, and none of ours */
    LIST_BAD                             /* with the reason */
} list_line_e;

/* A line while its keys are taken; begins with the line and zeros. */
typedef struct {
    bloom_key_t  line;                   /* what is left of it */
    uint64_t     number;                 /* from 1 */
    int          begun;
    uint8_t     *buf;                    /* csv: of at least line.len */
} list_line_t;


list_line_e list_next(const list_t *list, list_line_t *at, bloom_key_t *key,
    const char **why);


#endif /* LISTFORMAT_H */
