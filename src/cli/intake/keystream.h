/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A keystream reads keys from a file or standard input, plain or gzip.
 *
 * A stream that begins with gzip's magic bytes is inflated, member after
 * member.  The stream is returned in blocks of whole keys: the bytes after the
 * last delimiter are carried over to the next block.  A key that does not fit
 * into a block with its delimiter is an error, so that a few bytes of gzip
 * cannot take more memory than a block.
 */

#ifndef KEYSTREAM_H
#define KEYSTREAM_H

#include <sys/types.h>
#include <zlib.h>

#include "bloom_key.h"


#define KEYSTREAM_BLOCK  (1024 * 1024)


typedef struct {
    uint8_t        *data;                /* KEYSTREAM_BLOCK bytes */
    size_t          len;                 /* of the block, with its delimiter */
    int             last;                /* the stream ends; a delimiter may be
                                            missing */
} keystream_block_t;

typedef struct {
    const char     *name;                /* for messages */
    int             fd;
    int             gzip;
    int             members;             /* gzip members that have begun */
    int             between;             /* a gzip member has just ended */
    int             begun;               /* a block was returned */
    int             ended;
    uint64_t        offset;              /* bytes read from the file, before
                                            they are inflated */
    uint64_t        size;                /* of a regular file; else 0 */
    bloom_split_e   split;
    z_stream        z;
    uint8_t        *raw;                 /* the first bytes, and all of gzip */
    size_t          raw_pos;
    size_t          raw_len;
    uint8_t        *tail;                /* carried over to the next block */
    size_t          tail_len;

    /* Set by the caller: divides a block, by storing how many bytes its whole
     * records have.  Returns 0, or -1 after a message. */
    int           (*divide)(void *data, const keystream_block_t *block,
                            size_t *whole);
    void           *divide_data;
} keystream_t;


/* Opens a file; "-" is standard input.  Returns 0, or -1 after a message. */
int keystream_open(keystream_t *in, const char *path, bloom_split_e split);
void keystream_close(keystream_t *in);

/*
 * Reads the next block.  `eager` does not wait until the block is full.  A byte
 * order mark at the beginning of lines is left out.  Returns 1; 0 at the end;
 * or -1 after a message.
 */
int keystream_next(keystream_t *in, keystream_block_t *block, int eager);

/*
 * Reads up to `size` bytes, inflated if the stream is gzip.  Returns how many;
 * 0 at the end; or -1 after a message.  Cannot be mixed with keystream_next().
 */
ssize_t keystream_read(keystream_t *in, uint8_t *buf, size_t size);

/*
 * Returns the total size of these files, as stored; 0 if it is unknown, as one
 * of them is not a regular file; or -1 after a message, if one of them cannot
 * be opened.
 */
int64_t keystream_total(char **paths, int n);


#endif /* KEYSTREAM_H */
