/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This function finds the separator of a file, its header and its columns, from
 * its first block.
 *
 * The header is
 *
 *     a comment     before the first record, with as many fields as that; the
 *                   last such comment counts
 *     a record      the first one, if one of its fields is the name of the
 *                   column, and that name does not stand again below in its
 *                   column.  With hosts and URLs as keys, a record with a
 *                   dotted name, a URL or an address is no header.
 *
 * A column that was asked for by its number needs no header.  Then the first
 * record is a header only if it can be told: none of its fields is a number, a
 * date, a hash, a URL, a dotted name or an address, and in one of its columns
 * all of at least two records below are.  A header that is taken for a record
 * adds a key that nobody asks for; a record that is taken for a header would
 * lose one.
 *
 * The separator is a comma, a semicolon, a tab or a bar: the one with which the
 * column exists, and with which the most records have as many fields as the
 * header; a comma if others are no better.  A first line `sep=;`, as
 * spreadsheets write it, decides.
 */

#ifndef LIST_CSV_HEADER_H
#define LIST_CSV_HEADER_H

#include "list_csv_feed.h"
#include "list_reader.h"


/* The state of a file. */
typedef struct {
    uint8_t      separator;
    int          hint;                   /* the first line names it */
    size_t       column;                 /* of the keys, from 0 */
    uint64_t     header;                 /* number of the first line of the
                                            header, if that is a record;
                                            otherwise 0 */
    size_t       type;                   /* column of the types, or
                                            LIST_CSV_NONE */
    size_t       status[LIST_CSV_STATUSES];
                                         /* columns of statuses, or
                                            LIST_CSV_NONE */
    int          learns;                 /* there is a type or a status */
    size_t       fields;                 /* how many a record is read of */
    const char  *format;                 /* such as "csv:url", if no column was
                                            asked for */
    int          table;                  /* the records agree in having several
                                            columns */
    char         described[64];
} list_csv_t;


/* Prepares the state of a file: `begin` of list_reader_t. */
int list_csv_begin(void *state, const list_begin_t *with);


#endif /* LIST_CSV_HEADER_H */
