/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A list format says how a published list is read.  Each format has a reader,
 * in a file of its own, which says how the format looks:
 *
 *     keys       each line that is not empty is a key; the only format that
 *                --from does not name
 *     lines      list_text.h
 *     adblock    list_adblock.h
 *     hosts      list_hosts.h
 *     dnsmasq    list_dnsmasq.h
 *     unbound    list_unbound.h
 *     rpz        list_rpz.h
 *     csv:COLUMN list_csv.h; the column is a number from 1, or a name in the
 *                header
 *     json       list_json.h
 *     auto       what the beginning of the file looks like (list_guess.h)
 */

#ifndef LIST_FORMAT_H
#define LIST_FORMAT_H

#include "bloom_not_keys.h"
#include "list_reader.h"


typedef struct {
    const list_reader_t  *reader;        /* NULL: auto */
    const char           *name;          /* as --from takes it; NULL: keys */
    const char           *column;        /* csv: its name or number; else
                                            NULL */
} list_format_t;


/* The readers of the formats whose names have no column, in the order in which
 * --from auto tries them: names alone are lines, unless there are rules.  The
 * last one is the closest if none fits. */
enum { LIST_READERS = 7 };

extern const list_reader_t *const  list_readers[LIST_READERS];

/* The format without a name, and that of lines with comments. */
extern const list_format_t  list_format_keys;
extern const list_format_t  list_format_lines;


/* Parses the name of a format.  Returns NULL, or a phrase that says what the
 * name must be. */
const char *list_format_parse(list_format_t *format, const char *text);

/* Returns how bloom_not_keys() looks at a file of this format. */
unsigned list_format_how(const list_format_t *format, bloom_split_e split);

/* Returns 1 if each line is a key. */
static inline int
list_format_is_keys(const list_format_t *format)
{
    return format->reader == list_format_keys.reader;
}


#endif /* LIST_FORMAT_H */
