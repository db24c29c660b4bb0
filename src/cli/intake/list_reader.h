/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A list_reader_t reads one format of lists.  The readers are in the files
 * list_*.c, and list_format.c has the table of them.
 *
 * A file is a sequence of records.  A record is a line, or what `end` finds.
 * `next` finds the entries of a record (list_line.h).
 */

#ifndef LIST_READER_H
#define LIST_READER_H

#include "key_set.h"
#include "list_line.h"


#define LIST_WHY  1024

/* What a reader gets before the first record of a file. */
typedef struct {
    const char     *column;              /* csv: a name or number; NULL: find
                                            it */
    list_keys_e     keys;
    const uint8_t  *data;                /* the first block of the file */
    size_t          len;
    char           *why;                 /* LIST_WHY bytes */
} list_begin_t;

typedef struct {
    const char     *name;                /* as --from takes it */
    size_t          state;               /* bytes of the state of a file, which
                                            are 0 at first */
    int             in_order;            /* what a record means depends on those
                                            before it: one thread reads all
                                            records of a file, in order */

    /* If not NULL, prepares the state of a file.  Returns 0; or -1 after it
     * wrote to `why` why the file is refused, a phrase that follows its
     * name. */
    int           (*begin)(void *state, const list_begin_t *with);

    /* If not NULL, says what `begin` found in the file that the user may want
     * to know: a phrase that follows the name of the format in a message, such
     * as `separated by ";"`, or NULL. */
    const char   *(*describe)(const void *state);

    /* If not NULL, a record may have several lines: returns the end of the
     * record that begins at p, the line end or `end`.  *open becomes 1 if the
     * record is not complete there, else 0. */
    const uint8_t *(*end)(const void *state, const uint8_t *p,
                          const uint8_t *end, int *open);
    const char     *opens;               /* what is open then: "quotes" */

    list_result_e (*next)(list_line_t *at);

    /* For --from auto.  If `owns` is not NULL, it returns 1 for a line in the
     * syntax of this format, and lines that are skipped do not fit the format
     * without that. */
    int           (*owns)(const bloom_key_t *line);
    int             any;                 /* a key can be any text */
    int             names;               /* entries are names of hosts, never
                                            URLs */

    /* If not NULL, a record may cancel entries of other records, also in other
     * files and before it.  Then no record is read until this function has
     * passed over all of them, in order, put what is cancelled into the set,
     * and kept in `state` what the record after them has to know. */
    void          (*pass)(void *state, key_set_t *cancelled,
                          const uint8_t *data, size_t len);
} list_reader_t;


#endif /* LIST_READER_H */
