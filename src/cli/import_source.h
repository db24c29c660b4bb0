/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A source is where an imported filter comes from: files one behind the other,
 * plain or gzip, standard input, or a key of a Redis server.
 */

#ifndef IMPORT_SOURCE_H
#define IMPORT_SOURCE_H

#include "keystream.h"
#include "redis.h"


typedef struct {
    const char  *name;                   /* for messages */
    uint64_t     size;                   /* BLOOM_FOREIGN_UNKNOWN: of what is
                                            inflated, or comes through a pipe */

    char       **paths;                  /* files yet to be read */
    int          n;
    int          open;
    keystream_t  stream;

    redis_t     *redis;                  /* or a server */

    uint8_t     *memory;                 /* read in advance */
    size_t       memory_pos;
    size_t       memory_len;
} import_source_t;


/* Returns the path as messages show it: an address without the password.  Until
 * the next call. */
const char *import_source_shown(const char *path);

/* A server's key is read as a bitmap, or, if `dump`, by BF.SCANDUMP, with
 * `timeout` seconds for each answer.  Returns 0, or -1 after a message. */
int import_source_open(import_source_t *source, char **paths, int n, int dump,
    unsigned timeout);
void import_source_close(import_source_t *source);

/* As many bytes as `size`, fewer only at the end; -1 having said why. */
int64_t import_source_read(import_source_t *source, void *buf, uint64_t size);

/* Reads up to `n` bytes in advance, if none have been: they will be read again.
 * How many there are, at *data; -1 having said why. */
int64_t import_source_peek(import_source_t *source, size_t n,
    const uint8_t **data);

/* Reads all that is left in advance, into memory that is the caller's now. */
int64_t import_source_all(import_source_t *source, uint8_t **data);

/* Goes on with these bytes, which become the source's, instead. */
void import_source_replace(import_source_t *source, uint8_t *data, size_t len);


#endif /* IMPORT_SOURCE_H */
