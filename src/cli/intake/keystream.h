/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A keystream reads keys from a file or standard input (input.h), in blocks of
 * whole keys: the bytes after the last delimiter are carried over to the next
 * block.  A key that does not fit into a block with its delimiter is an error,
 * so that a few bytes of compressed data cannot take more memory than a block.
 *
 * A file whose first block shows that it is no list of keys is refused
 * (bloom_not_keys.h).
 */

#ifndef KEYSTREAM_H
#define KEYSTREAM_H

#include "bloom_not_keys.h"
#include "input.h"


#define KEYSTREAM_BLOCK  (1024 * 1024)


typedef struct {
    uint8_t        *data;                /* KEYSTREAM_BLOCK bytes */
    size_t          len;                 /* of the block, with its delimiter */
    int             last;                /* the stream ends; a delimiter may be
                                            missing */
} keystream_block_t;

typedef struct {
    input_t         input;
    bloom_split_e   split;
    unsigned        how;                 /* BLOOM_NOT_KEYS_...; at first as for
                                            lines, or for zero bytes */
    int             begun;               /* a block was returned */
    int             ended;
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


#endif /* KEYSTREAM_H */
