/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions divide separated values into records and fields (RFC 4180).
 *
 * A field may be in double quotes, and then has everything between them as it
 * is: separators, blanks, line ends and, doubled, double quotes.  So a record
 * may have several lines.  Blanks around a field do not belong to it, with or
 * without quotes.  A quote within a field without quotes is a byte like others.
 * A record that begins with # is a comment, and has one line.
 */

#ifndef LIST_CSV_FIELDS_H
#define LIST_CSV_FIELDS_H

#include "list_line.h"


/* The separator of a file that has only one column. */
#define LIST_CSV_ONE  '\n'

/* No field. */
#define LIST_CSV_NONE  ((size_t) -1)


/*
 * Finds the end of the record that begins at p: a line end that is not within
 * quotes, or `end`.  *open becomes 1 if quotes are open at the end, else 0.  A
 * quoted field that something other than a separator follows ends the record
 * with its line.
 */
const uint8_t *list_csv_record(uint8_t separator, const uint8_t *p,
    const uint8_t *end, int *open);

/*
 * Takes the next field of a record; if the field has doubled quotes, it is
 * unquoted into `buf`, which has room for the record.  Returns 1 if another
 * field follows; 0 if it is the last one; or -1 if its quotes do not end, or
 * something other than a separator follows them.
 */
int list_csv_field(uint8_t separator, bloom_key_t *record, bloom_key_t *field,
    uint8_t *buf);

/* Returns LIST_EMPTY or LIST_COMMENT for a record without any field; else
 * LIST_KEY. */
list_result_e list_csv_what(uint8_t separator, const bloom_key_t *record);


#endif /* LIST_CSV_FIELDS_H */
