/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This reader finds the keys in a column of comma-separated values (RFC 4180).
 *
 * A field may be in double quotes, and may then contain commas, line ends and,
 * doubled, double quotes.  So a record may have several lines.  A record that
 * begins with # is a comment, and has one line.
 */

#ifndef LIST_CSV_H
#define LIST_CSV_H

#include "list_reader.h"


extern const list_reader_t  list_csv;

/*
 * Looks for a column by its name in a record, or in a comment.  Returns 1, with
 * the column's index; 0 if it is not there; or -1 if it is not there and the
 * record is not a comment, so that it must be the header.
 */
int list_csv_column(const bloom_key_t *record, const char *name,
    size_t *column);

/*
 * Finds the end of the record that begins at p: a line end that is not within
 * quotes, or `end`.  *open becomes 1 if quotes are open at the end.  A quoted
 * field that something other than a comma follows ends the record with its
 * line.
 */
const uint8_t *list_csv_end(const void *state, const uint8_t *p,
    const uint8_t *end, int *open);


#endif /* LIST_CSV_H */
