/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This reader finds the keys in a column of separated values.
 *
 * list_csv_fields.h says how records and fields look.  list_csv_header.h finds
 * the separator, the header and the columns.  list_csv_feed.h says what the
 * columns of known feeds mean, such as the type of a value.
 */

#ifndef LIST_CSV_H
#define LIST_CSV_H

#include "list_csv_header.h"


extern const list_reader_t  list_csv;


/*
 * Returns the format of a file, as --from takes it, after a `begin` that was
 * asked for no column: "csv:" and the name of the column that it found.
 */
static inline const char *
list_csv_format(const void *state)
{
    return ((const list_csv_t *) state)->format;
}


/* Returns 1 if `begin` refused what looks like a table: each record has the
 * same number of columns, and more than one. */
static inline int
list_csv_is_table(const void *state)
{
    return ((const list_csv_t *) state)->table;
}


#endif /* LIST_CSV_H */
