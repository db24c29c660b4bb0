/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The files of a journal: a segment is read whole, and the segments of a
 * directory are listed in the order of their positions.
 */

#ifndef JOURNAL_FILES_H
#define JOURNAL_FILES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bloom_record.h"


/* A file that is a segment, or may be a damaged one. */
typedef struct {
    char             *path;
    int               rc;                /* CLI_OK, _NO or _ERROR */
    char              error[2 * BLOOM_RECORD_ERROR_LEN];
    bloom_segment_e   kind;
    bloom_segment_t   segment;           /* if its kind is OK */
    uint8_t          *data;
    size_t            len;
} piece_t;


/* Returns an unread segment with that path. */
piece_t journal_files_piece(char *path);

/*
 * Reads a segment's header and, with `all`, the rest.  Sets piece->rc and, if
 * that is not CLI_OK, piece->error; the caller prints it.  The caller frees
 * piece->data.
 */
void journal_files_read(piece_t *piece, int all);

/*
 * Lists the files of a directory that are segments, or may be damaged ones, in
 * the order of their positions.  Returns how many; or -1 after a message, which
 * `quiet` prevents.  The caller frees the paths and the list.
 */
ssize_t journal_files_list(const char *directory, int quiet,
    piece_t **pieces);


#endif /* JOURNAL_FILES_H */
