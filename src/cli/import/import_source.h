/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A source is the stream of bytes of a filter to import: one or more files in
 * order, plain or compressed, standard input, or a key of a Redis server.
 */

#ifndef IMPORT_SOURCE_H
#define IMPORT_SOURCE_H

#include "input.h"
#include "redis.h"


typedef struct {
    const char  *name;                   /* for messages */
    uint64_t     size;                   /* BLOOM_FOREIGN_UNKNOWN: compressed, a
                                            pipe, or several files */

    char       **paths;                  /* files that are not open yet */
    int          n;
    int          open;                   /* 1: the input is open */
    input_t      input;

    redis_t     *redis;                  /* NULL: files */

    uint8_t     *memory;                 /* bytes that were read in advance */
    size_t       memory_pos;
    size_t       memory_len;
} import_source_t;


/* Returns the path for messages: a URL without its password.  The text is valid
 * until the next call. */
const char *import_source_shown(const char *path);

/* Opens a source.  A Redis key is read as a bitmap or, if `dump`, by
 * BF.SCANDUMP.  Returns 0, or -1 after a message. */
int import_source_open(import_source_t *source, char **paths, int n, int dump,
    const redis_settings_t *settings);
void import_source_close(import_source_t *source);

/* Reads `size` bytes.  Returns how many were read, which is fewer only at the
 * end; or -1 after a message. */
int64_t import_source_read(import_source_t *source, void *buf, uint64_t size);

/* Reads up to `n` bytes in advance: *data points to them, and the next read
 * returns them again.  Returns how many there are, or -1 after a message. */
int64_t import_source_peek(import_source_t *source, size_t n,
    const uint8_t **data);

/* Reads all that is left into *data, which the caller frees.  Returns its
 * length, or -1 after a message. */
int64_t import_source_all(import_source_t *source, uint8_t **data);

/* Makes these bytes the next that are read.  The source frees them. */
void import_source_replace(import_source_t *source, uint8_t *data, size_t len);


#endif /* IMPORT_SOURCE_H */
