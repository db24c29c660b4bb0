/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions read an image file, and check each part of it before it is
 * used.  They do no I/O and allocate nothing: the caller passes a function that
 * reads at an offset.
 */

#ifndef BLOOM_IMAGE_READER_H
#define BLOOM_IMAGE_READER_H

#include "bloom_image.h"

#pragma GCC visibility push(hidden)


/*
 * Reads exactly `len` bytes at `offset` into `buf`.  Returns 0, or -1 if it
 * cannot.  It is called only for bytes within the file's size.
 */
typedef int (*bloom_image_read_pt)(void *ctx, void *buf, size_t len,
    uint64_t offset);

/* The state of reading one image file. */
typedef struct {
    bloom_image_t        image;
    uint32_t             checksum;       /* bloom_image_checksum() */
    uint64_t             next;           /* number of the next chunk */
    uint64_t             next_exceptions;    /* number of their next chunk */
    size_t               len;            /* bytes of the last chunk read */
    uint32_t             table_crc;      /* of the pages of the current table
                                            that have been read */
    bloom_image_read_pt  read;
    void                *ctx;
    char                 error[BLOOM_IMAGE_ERROR_LEN];
    uint8_t              page[BLOOM_IMAGE_PAGE];       /* of the table */
    bloom_image_ring_t   ring;           /* if the image is one of a ring */
} bloom_image_reader_t;


/*
 * Reads and checks the header and the tables of a file of `file_size` bytes.
 * Returns 0 and fills reader->image, in which every value is in range; or
 * returns -1 and fills reader->error, a phrase to follow the file's name, such
 * as "is truncated: ...".
 */
int bloom_image_open(bloom_image_reader_t *reader, bloom_image_read_pt read,
    void *ctx, uint64_t file_size);

/*
 * Reads and checks the next chunk.  `dst` has room for bloom_image_chunk_size()
 * bytes.  Returns 1 if there was a chunk, which has reader->len bytes; 0 at the
 * end; -1 with reader->error, and then the contents of `dst` must not be used.
 *
 * If another image is written over the file while it is being read, one of the
 * remaining calls returns -1.
 */
int bloom_image_next(bloom_image_reader_t *reader, void *dst);

/*
 * Reads and checks the next chunk of the exceptions, like bloom_image_next().
 * All chunks of the exceptions are read before those of the payload or after
 * them, never in between.  The data is the first image->exceptions_size bytes;
 * bloom_exceptions_check() checks its entries.
 */
int bloom_image_next_exceptions(bloom_image_reader_t *reader, void *dst);


#pragma GCC visibility pop

#endif /* BLOOM_IMAGE_READER_H */
