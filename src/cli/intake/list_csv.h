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


#endif /* LIST_CSV_H */
