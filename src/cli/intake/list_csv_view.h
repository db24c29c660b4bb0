/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A list_csv_view_t says how the first block of a file looks with one
 * separator.
 */

#ifndef LIST_CSV_VIEW_H
#define LIST_CSV_VIEW_H

#include "list_csv_fields.h"
#include "list_reader.h"


typedef struct {
    uint8_t         separator;
    const uint8_t  *data;                /* the first block of the file, after a
                                            line that names the separator */
    uint64_t        line;                /* number of the line there */
    const uint8_t  *end;
    uint8_t        *buf;                 /* room for a record */
    bloom_key_t     comment;             /* the last one before the records with
                                            as many fields as the first record;
                                            data: NULL if there is none */
    uint64_t        comment_line;        /* its number */
    bloom_key_t     first;               /* the first record; data: NULL if
                                            there is none */
    uint64_t        first_line;
    size_t          fields;              /* of the first record */
    uint64_t        records;
    uint64_t        agree;               /* records with so many fields */
    uint64_t        enough;              /* records with as many as a column
                                            that was asked for by number */
    int             told;                /* the first record can be told to be a
                                            header */
} list_csv_view_t;


/*
 * Looks at a block with a separator.  `hint` is the length of the line that
 * names it, or 0; `number` is the column that was asked for, or 0.  A comment of
 * one field counts only if it is the name that was asked for.
 */
void list_csv_look(list_csv_view_t *view, uint8_t separator,
    const list_begin_t *with, size_t hint, uint8_t *buf, uint64_t number);

/* Takes field number `column` of a record.  Returns 1, or 0 if the record has
 * no such field. */
int list_csv_take(const list_csv_view_t *view, bloom_key_t record,
    size_t column, bloom_key_t *field);

/* Returns the number of the field that is this name, or LIST_CSV_NONE. */
size_t list_csv_find(const list_csv_view_t *view, bloom_key_t record,
    const char *name);

/* Returns 1 if a field of a record is a dotted name, a URL or an address. */
int list_csv_has_place(const list_csv_view_t *view, bloom_key_t record);

/* Returns the number of a line below the first record with this text in a
 * column, or 0. */
uint64_t list_csv_below(const list_csv_view_t *view, size_t column,
    const char *text);

/* Returns 1 if a record, the first one or one below, has a type that is known
 * in this column. */
int list_csv_has_type(const list_csv_view_t *view, size_t column);


#endif /* LIST_CSV_VIEW_H */
