/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions read the files of an intake one after the other, in blocks of
 * whole records, and prepare the reader of each file.
 *
 * A record of some formats may cancel entries of others, also in other
 * files.  The blocks of such files wait in memory until all files have been
 * read.
 */

#ifndef INTAKE_FILE_H
#define INTAKE_FILE_H

#include "keystream.h"
#include "list_format.h"


/* How files are read. */
typedef struct {
    bloom_split_e   split;
    list_format_t   format;
    uint32_t        key_form;
    unsigned        threads;
    uint64_t        memory;              /* bytes, for blocks that wait and what
                                            they cancel; 0 if no format has
                                            such blocks */
    int             any;                 /* a key can be any text: the sink
                                            judges it */
    int             eager;               /* do not wait until a block is full */
    int             quiet;               /* show no progress */
    int             again;               /* the files were read before: say
                                            nothing about them */
    int             strict;              /* end at the first line that is
                                            invalid or skipped */
} intake_t;

/* A file that was read. */
typedef struct {
    const char     *name;
    list_format_t   format;              /* what it was read as */
} intake_file_t;

/* A block of whole records. */
typedef struct {
    keystream_block_t     in;
    unsigned              file;          /* its index */
    uint64_t              line;          /* number of its first line, from 1 */
    const list_reader_t  *reader;
    void                 *state;         /* of the reader, as of the first
                                            record */
    void                 *copy;          /* the state, if it is the block's
                                            own */
} intake_block_t;

typedef struct waiting_block_s  waiting_block_t;

typedef struct {
    const intake_t       *intake;
    char                **names;
    unsigned              n;
    intake_file_t        *file;          /* n of them */
    unsigned              current;       /* index of the file that is read */
    int                   open;
    int                   begun;         /* its reader has begun */
    keystream_t           stream;
    uint64_t              line;          /* first one of the next block */
    uint64_t              before;        /* bytes of the files before it */
    void                 *state;         /* of the reader, for the file */
    key_set_t             cancelled;     /* entries that do not count */
    waiting_block_t      *first;         /* blocks that wait */
    waiting_block_t     **last;
    uint64_t              waiting;       /* bytes of these blocks */
} intake_files_t;


/* Prepares the reading of n files. */
void intake_files_begin(intake_files_t *files, const intake_t *intake,
    char **names, unsigned n);

/* Gets the next block, in the memory of the last one.  Returns 1; 0 at the end;
 * or -1 after a message. */
int intake_files_next(intake_files_t *files, intake_block_t *block);

/* Returns how many bytes of the files have been read. */
uint64_t intake_files_done(const intake_files_t *files);

/* Frees everything but the list of the files, which the caller frees. */
intake_file_t *intake_files_end(intake_files_t *files);

void intake_block_free(intake_block_t *block);


#endif /* INTAKE_FILE_H */
