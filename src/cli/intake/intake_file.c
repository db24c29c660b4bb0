/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file reads files in blocks of whole records.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "intake_file.h"
#include "keyform.h"
#include "line_ends.h"
#include "list_guess.h"
#include "units.h"


/* So many lines with as many separators are called a table. */
#define TABLE_LINES     3


struct waiting_block_s {
    intake_block_t    block;
    waiting_block_t  *next;
};


void
intake_files_begin(intake_files_t *files, const intake_t *intake, char **names,
    unsigned n)
{
    files->intake = intake;
    files->names = names;
    files->n = n;
    files->last = &files->first;

    files->file = cli_alloc(n * sizeof(*files->file));
    memset(files->file, 0, n * sizeof(*files->file));
    key_set_create(&files->cancelled);
}


/* Says how a file is read, where that was found in the file. */
static void
announce(const intake_files_t *files, const intake_file_t *file)
{
    const char           *found;
    const list_reader_t  *reader;

    reader = file->format.reader;
    found = reader->describe != NULL ? reader->describe(files->state) : NULL;

    if (!files->intake->again
        && (found != NULL || files->intake->format.reader == NULL))
    {
        cli_error("%s: is read with --from %s%s%s", file->name,
                  file->format.name, found != NULL ? ", " : "",
                  found != NULL ? found : "");
    }
}


/* Warns of lines that look like those of a table, but are read as keys. */
static void
warn_of_table(const intake_files_t *files, const intake_file_t *file,
    const uint8_t *data, size_t len)
{
    size_t          i, n;
    uint64_t        lines, columns;
    const uint8_t  *p, *end, *next;

    static const struct {
        int          byte;
        const char  *name;
    } separators[] = {
        { ',', "commas" }, { ';', "semicolons" }, { '\t', "tabs" },
        { '|', "bars" }
    };

    if (!list_format_is_keys(&file->format) || files->intake->any
        || files->intake->again || files->intake->quiet
        || files->intake->split == BLOOM_SPLIT_NUL)
    {
        return;
    }

    end = data + len;

    for (i = 0; i < sizeof(separators) / sizeof(separators[0]); i++) {
        columns = 0;

        for (p = data, lines = 0; p < end; p = next + 1, lines++) {
            next = memchr(p, '\n', (size_t) (end - p));
            next = next != NULL ? next : end;
            n = (size_t) line_ends_count(p, (size_t) (next - p),
                                         separators[i].byte);
            columns = lines == 0 ? n : columns;

            if (n == 0 || n != columns) {
                break;
            }
        }

        if (p >= end && lines >= TABLE_LINES) {
            cli_warn("%s: each line has as many %s as the first, as a table "
                     "has; if one of its columns has the keys, read it with "
                     "--from csv:COLUMN", file->name, separators[i].name);
            return;
        }
    }
}


/* Prepares the reader for the current file, which begins with these whole
 * lines.  Returns 0, or -1 after a message. */
static int
begin_file(intake_files_t *files, const uint8_t *data, size_t len)
{
    char                  why[LIST_WHY];
    list_begin_t          with;
    intake_file_t        *file;
    const list_reader_t  *reader;

    file = &files->file[files->current];
    with.column = file->format.column;
    with.keys = keyform_list_keys(files->intake->key_form);
    with.data = data;
    with.len = len;
    with.why = why;

    if (file->format.reader == NULL
        && list_guess(&file->format, &with) != 0)
    {
        cli_error("%s: %s; check the file, or name its format with --from",
                  file->name, why);
        return -1;
    }

    files->begun = 1;
    reader = file->format.reader;
    files->state = cli_realloc(files->state, reader->state + 1);
    memset(files->state, 0, reader->state);

    if (reader->begin != NULL && reader->begin(files->state, &with) != 0) {
        cli_error("%s: %s", file->name, why);
        return -1;
    }

    announce(files, file);
    warn_of_table(files, file, data, len);

    return 0;
}


/* Says that a record does not end.  Returns -1. */
static int
refuse_open(const intake_files_t *files, const keystream_block_t *block,
    size_t whole)
{
    const intake_file_t  *file;

    file = &files->file[files->current];

    cli_error("%s: line %" PRIu64 ": %s begin here and do not end%s; correct "
              "the file", file->name,
              files->line + line_ends_count(block->data, whole, '\n'),
              file->format.reader->opens,
              block->last ? "" : " within 1 MiB");

    return -1;
}


/* Finds the end of the last whole record of a block. */
static int
divide_block(void *data, const keystream_block_t *block, size_t *whole)
{
    int                   open, delimiter;
    const uint8_t        *p, *end, *next;
    intake_files_t       *files = data;
    const list_reader_t  *reader;

    delimiter = files->intake->split == BLOOM_SPLIT_NUL ? '\0' : '\n';
    next = block->len != 0 ? memrchr(block->data, delimiter, block->len) : NULL;
    *whole = next != NULL ? (size_t) (next + 1 - block->data) : 0;

    if (!files->begun) {

        if (*whole == 0 && !block->last) {
            return 0;                    /* a line that is too long */
        }

        if (begin_file(files, block->data, block->last ? block->len : *whole)
            != 0)
        {
            return -1;
        }
    }

    reader = files->file[files->current].format.reader;

    if (reader->end == NULL) {
        return 0;
    }

    open = 0;
    end = block->data + block->len;

    for (p = block->data; p < end; p = next + 1) {
        next = reader->end(files->state, p, end, &open);

        if (next == end) {
            break;
        }
    }

    *whole = (size_t) (p - block->data);

    return open && (block->last || *whole == 0)
           ? refuse_open(files, block, *whole) : 0;
}


/* Opens the current file.  Returns 0, or -1 after a message. */
static int
open_file(intake_files_t *files)
{
    intake_file_t  *file;

    if (keystream_open(&files->stream, files->names[files->current],
                       files->intake->split)
        != 0)
    {
        return -1;
    }

    file = &files->file[files->current];
    file->name = files->stream.input.name;
    file->format = files->intake->format;

    files->stream.how = list_format_how(&file->format, files->intake->split);
    files->stream.divide = divide_block;
    files->stream.divide_data = files;
    files->open = 1;
    files->begun = 0;
    files->line = 1;

    return 0;
}


/* Reads the next block of the files.  Returns 1; 0 at the end; or -1 after a
 * message. */
static int
read_next(intake_files_t *files, intake_block_t *block)
{
    int  rc;

    for ( ;; ) {

        if (files->current == files->n) {
            return 0;
        }

        if (!files->open && open_file(files) != 0) {
            return -1;
        }

        rc = keystream_next(&files->stream, &block->in, files->intake->eager);

        if (rc != 0) {
            break;
        }

        files->before += files->stream.input.offset;
        files->open = 0;
        files->current++;
        keystream_close(&files->stream);
    }

    if (rc == -1) {
        return -1;
    }

    block->file = files->current;
    block->line = files->line;
    block->reader = files->file[files->current].format.reader;
    block->state = files->state;

    files->line += line_ends_count(block->in.data, block->in.len,
                                   files->intake->split == BLOOM_SPLIT_NUL
                                   ? '\0' : '\n');
    return 1;
}


/* Lets a block wait until all files have been read.  Returns 0, or -1 after a
 * message. */
static int
keep_waiting(intake_files_t *files, intake_block_t *block)
{
    char              limit[UNITS_LEN];
    const char       *name;
    waiting_block_t  *waiting;

    block->copy = cli_alloc(block->reader->state + 1);
    memcpy(block->copy, files->state, block->reader->state);
    block->state = block->copy;
    block->in.data = cli_realloc(block->in.data, block->in.len + 1);

    block->reader->pass(files->state, &files->cancelled, block->in.data,
                        block->in.len);

    files->waiting += block->in.len + block->reader->state;
    name = files->file[block->file].name;

    waiting = cli_alloc(sizeof(*waiting));
    waiting->block = *block;
    waiting->next = NULL;
    *files->last = waiting;
    files->last = &waiting->next;

    memset(block, 0, sizeof(*block));

    if (files->waiting + key_set_memory(&files->cancelled)
        > files->intake->memory)
    {
        cli_error("%s: lists in which a line can take back others are kept "
                  "until all of them are read, and take more than %s; use a "
                  "larger --memory", name,
                  format_bytes(limit, files->intake->memory));
        return -1;
    }

    return 0;
}


int
intake_files_next(intake_files_t *files, intake_block_t *block)
{
    int               rc;
    waiting_block_t  *waiting;

    while ((rc = read_next(files, block)) == 1 && block->reader->pass != NULL) {
        if (keep_waiting(files, block) != 0) {
            return -1;
        }
    }

    if (rc != 0 || files->first == NULL) {
        return rc;
    }

    waiting = files->first;
    files->first = waiting->next;

    intake_block_free(block);
    *block = waiting->block;
    free(waiting);

    return 1;
}


uint64_t
intake_files_done(const intake_files_t *files)
{
    return files->before + (files->open ? files->stream.input.offset : 0);
}


intake_file_t *
intake_files_end(intake_files_t *files)
{
    waiting_block_t  *waiting;

    while ((waiting = files->first) != NULL) {
        files->first = waiting->next;
        intake_block_free(&waiting->block);
        free(waiting);
    }

    if (files->open) {
        keystream_close(&files->stream);
    }

    key_set_free(&files->cancelled);
    free(files->state);

    return files->file;
}


void
intake_block_free(intake_block_t *block)
{
    free(block->in.data);
    free(block->copy);
    memset(block, 0, sizeof(*block));
}
