/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A keystream reads keys from a file or standard input, plain or gzip.
 *
 * A stream that begins with gzip's magic bytes is inflated, member after
 * member.  It is handed out in blocks of whole keys; what follows the last
 * delimiter is carried over to the next block.  A key that a block has no room
 * for, with its delimiter, is an error: however much a few bytes of gzip stand
 * for, no more than that is in memory.
 */

#ifndef KEYSTREAM_H
#define KEYSTREAM_H

#include <sys/types.h>
#include <zlib.h>

#include "bloom_key.h"


#define KEYSTREAM_BLOCK  (1024 * 1024)


typedef struct {
    const char     *name;                /* for messages */
    int             fd;
    int             gzip;
    int             members;             /* of gzip, begun */
    int             between;             /* at a member's end */
    int             begun;               /* a block was given */
    int             ended;
    uint64_t        offset;              /* bytes read, as they are stored */
    uint64_t        size;                /* of a regular file, stored; or 0 */
    bloom_split_e   split;
    z_stream        z;
    uint8_t        *raw;                 /* gzip, and the first bytes */
    size_t          raw_pos;
    size_t          raw_len;
    uint8_t        *tail;
    size_t          tail_len;
} keystream_t;

typedef struct {
    uint8_t        *data;                /* KEYSTREAM_BLOCK bytes */
    size_t          len;                 /* ends behind a delimiter, or ... */
    int             last;                /* ... at the stream's end */
} keystream_block_t;


/* "-" is standard input.  0, or -1 having said why. */
int keystream_open(keystream_t *in, const char *path, bloom_split_e split);
void keystream_close(keystream_t *in);

/*
 * The next block: 1, 0 at the end, -1 having said why.  `eager` takes what is
 * there and does not wait until the block is full.  A byte order mark at the
 * beginning of a text is left out.
 */
int keystream_next(keystream_t *in, keystream_block_t *block, int eager);

/*
 * The bytes themselves, inflated if need be: how many, up to `size`; 0 at the
 * end, -1 having said why.  Not after keystream_next().
 */
ssize_t keystream_read(keystream_t *in, uint8_t *buf, size_t size);

/*
 * The bytes that all these will give to keystream_t.offset, 0 if that cannot be
 * known; -1 having said that one of them cannot be read.
 */
int64_t keystream_total(char **paths, int n);


#endif /* KEYSTREAM_H */
