/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file reads segments of a journal, and lists those of a directory.
 */

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "journal_files.h"
#include "regular_file.h"


piece_t
journal_files_piece(char *path)
{
    piece_t  piece;

    memset(&piece, 0, sizeof(piece));

    piece.path = path;
    piece.rc = CLI_OK;
    piece.kind = BLOOM_SEGMENT_DAMAGED;  /* until its header is known */

    return piece;
}


static int
unreadable(piece_t *piece)
{
    snprintf(piece->error, sizeof(piece->error), "cannot be read: %s%s",
             strerror(errno), cli_advice(errno));
    piece->rc = CLI_ERROR;

    return -1;
}


static int
read_header(piece_t *piece, int fd, uint64_t size)
{
    uint8_t  header[BLOOM_SEGMENT_HEADER];

    memset(header, 0, sizeof(header));

    if (regular_file_read_at(fd, header, sizeof(header), 0) == -1) {
        return unreadable(piece);
    }

    piece->kind = bloom_segment_decode(&piece->segment, header, size,
                                       piece->error);

    if (piece->kind != BLOOM_SEGMENT_OK) {
        piece->rc = piece->kind == BLOOM_SEGMENT_DAMAGED ? CLI_NO : CLI_ERROR;
        return -1;
    }

    return 0;
}


/* Reads a segment.  It appends zeros to a segment that was cut off, enough to
 * pad a record. */
static int
read_data(piece_t *piece, int fd, size_t size)
{
    piece->len = (size + 7) & ~(size_t) 7;
    piece->data = cli_alloc(piece->len);
    memset(piece->data, 0, piece->len);

    if (regular_file_read_at(fd, piece->data, size, 0) == -1) {
        return unreadable(piece);
    }

    return 0;
}


void
journal_files_read(piece_t *piece, int all)
{
    int          fd;
    struct stat  st;

    piece->rc = CLI_OK;
    fd = regular_file_open(piece->path, &st, piece->error,
                           sizeof(piece->error),
                           "a segment, or the directory of a journal");

    if (fd == -1) {
        piece->rc = CLI_ERROR;
        return;
    }

    if (read_header(piece, fd, (uint64_t) st.st_size) == 0 && all) {
        (void) read_data(piece, fd, (size_t) st.st_size);
    }

    close(fd);
}


static char *
joined(const char *directory, const char *name)
{
    size_t  size;
    char   *path;

    size = strlen(directory) + 1 + strlen(name) + 1;
    path = cli_alloc(size);
    snprintf(path, size, "%s%s%s", directory,
             directory[strlen(directory) - 1] == '/' ? "" : "/", name);

    return path;
}


/* Compares segments by position; those with a damaged header come last. */
static int
by_position(const void *left, const void *right)
{
    const piece_t  *a = left, *b = right;

    if ((a->kind == BLOOM_SEGMENT_OK) != (b->kind == BLOOM_SEGMENT_OK)) {
        return a->kind == BLOOM_SEGMENT_OK ? -1 : 1;
    }

    if (a->kind == BLOOM_SEGMENT_OK && a->segment.base != b->segment.base) {
        return a->segment.base < b->segment.base ? -1 : 1;
    }

    return strcmp(a->path, b->path);
}


/* Returns 1 for a file that is not complete yet, and for a segment that nginx
 * put aside at its start. */
static int
is_no_part(const char *name)
{
    size_t  len;

    len = strlen(name);

    return (len > 4 && strcmp(name + len - 4, ".tmp") == 0)
           || strncmp(name, "damaged.", 8) == 0;
}


ssize_t
journal_files_list(const char *directory, int quiet, piece_t **pieces)
{
    DIR            *dir;
    size_t          n, room;
    piece_t         piece;
    struct stat     st;
    struct dirent  *entry;

    dir = opendir(directory);

    if (dir == NULL) {
        if (!quiet) {
            cli_error("%s: cannot be opened: %s%s", directory, strerror(errno),
                      cli_advice(errno));
        }

        return -1;
    }

    n = 0;
    room = 0;
    *pieces = NULL;

    while ((errno = 0, entry = readdir(dir)) != NULL) {

        piece = journal_files_piece(joined(directory, entry->d_name));

        if (!is_no_part(entry->d_name)
            && stat(piece.path, &st) == 0 && S_ISREG(st.st_mode))
        {
            journal_files_read(&piece, 0);

        } else {
            piece.kind = BLOOM_SEGMENT_NONE;
        }

        if (piece.kind == BLOOM_SEGMENT_NONE) {
            free(piece.path);
            continue;
        }

        if (n == room) {
            room = 2 * room + 16;
            *pieces = cli_realloc(*pieces, room * sizeof(piece_t));
        }

        (*pieces)[n++] = piece;
    }

    if (errno != 0) {
        if (!quiet) {
            cli_error("%s: cannot be read: %s%s", directory, strerror(errno),
                      cli_advice(errno));
        }

        n = 0;

    } else if (n == 0 && !quiet) {
        cli_error("%s: contains no segment of a journal: no key was added to "
                  "the zone yet, or this is not the directory of a zone, which "
                  "is the zone's name under bloom_state_path", directory);
    }

    closedir(dir);

    if (n == 0) {
        free(*pieces);
        return -1;
    }

    qsort(*pieces, n, sizeof(piece_t), by_position);

    return (ssize_t) n;
}
