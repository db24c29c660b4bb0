/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This function finds the separator of a file, its header and its columns, from
 * its first block.
 *
 * The header is
 *
 *     a comment     the last one with several fields before the first record,
 *                   if it has as many as that
 *     a record      the first one, if one of its fields is the name of the
 *                   column (and, below such a comment, it has no digit and the
 *                   comment lacks the name), and that name does not stand
 *                   again below in its column.  With hosts and URLs as keys,
 *                   a record with a dotted name, a URL or an address is no
 *                   header.
 *
 * A column that was asked for by its number has no header: a header that is
 * taken for a record adds a key that nobody asks for, but a record that is
 * taken for a header would lose one.
 *
 * The separator is a comma, a semicolon, a tab or a bar: the one with which the
 * most records have as many fields as the first, or the one with the most
 * fields.  If the first record has only one field with each of these, the file
 * has only one column.
 */

#ifndef LIST_CSV_HEADER_H
#define LIST_CSV_HEADER_H

#include "list_csv_feed.h"
#include "list_reader.h"


#define LIST_CSV_BESIDE  (1 + LIST_CSV_STATUSES)

/* The state of a file. */
typedef struct {
    uint8_t      separator;
    size_t       column;                 /* of the keys, from 0 */
    uint64_t     header;                 /* number of the first line of the
                                            header, if that is a record;
                                            otherwise 0 */
    size_t       beside[LIST_CSV_BESIDE];  /* columns that say something about
                                            the key, or LIST_CSV_NONE: of types,
                                            and of list_csv_statuses */
    size_t       fields;                 /* how many a record is read of */
    const char  *format;                 /* such as "csv:url", if no column was
                                            asked for */
    int          table;                  /* the records agree in having several
                                            columns */
    const char  *described;              /* the separator, if it is no comma */
} list_csv_t;


/* Prepares the state of a file: `begin` of list_reader_t. */
int list_csv_begin(void *state, const list_begin_t *with);


#endif /* LIST_CSV_HEADER_H */
