/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions open, read and check image files.
 *
 * Each returns CLI_OK; CLI_NO if the file was read and is not a valid image; or
 * CLI_ERROR if it could not be read.  The reason has then been printed to
 * standard error, and is also in image_read_t.error.
 */

#ifndef IMAGE_READ_H
#define IMAGE_READ_H

#include <sys/stat.h>

#include "bloom_census.h"
#include "bloom_image_reader.h"
#include "removed_keys.h"


typedef struct {
    bloom_image_t         image;
    uint64_t             *words;         /* the bits; NULL: not read */
    uint8_t              *origin;        /* header of an imported filter's
                                            source; NULL: not read, or none */
    removed_keys_t        removed;       /* empty if not read */

    const char           *path;
    int                   fd;            /* -1: not open */
    struct stat           st;            /* before it was read */
    int                   unread;        /* errno of a failed read; -1: the file
                                            became too short */
    bloom_image_reader_t  reader;
    char                  error[BLOOM_IMAGE_ERROR_LEN];
} image_read_t;


/* Opens a file and reads its header and table.  Unless the result is CLI_OK,
 * there is nothing to free. */
int image_read_header(image_read_t *read, const char *path);

/* Reads only the header, which is the first BLOOM_IMAGE_PAGE bytes, and closes the
 * file.  The rest of the file may be missing. */
int image_read_shape(bloom_image_t *image, const char *path);

/*
 * Opens a file that is going to be updated, like image_read_header().  It locks
 * the file against other updates and waits for those that have begun; if one of
 * them has replaced the file, it opens the new one.
 */
int image_read_alone(image_read_t *read, const char *path);

/* Reads the next of bloom_image_chunks() chunks: bloom_image_chunk_size() bytes
 * into `dst`. */
int image_read_chunk(image_read_t *read, void *dst);

/* Reads the header of an imported filter's source, if the image keeps one. */
int image_read_origin(image_read_t *read);

/*
 * Reads and checks the exceptions, before the first chunk or after the last
 * one.  *data gets image.exceptions_size bytes that the caller frees, or NULL
 * for an image without exceptions.
 */
int image_read_exceptions(image_read_t *read, uint8_t **data);

/* Reads the exceptions as a set. */
int image_read_removed(image_read_t *read);

/* Reads the words, when no chunk has been read. */
int image_read_words(image_read_t *read);

/* Frees the words, so that the chunks can be read again. */
void image_read_words_free(image_read_t *read);

/* Reads the words, the source's header and the removed keys. */
int image_read_all(image_read_t *read);

void image_read_free(image_read_t *read);

/*
 * Opens images one after the other and calls `show` for each with the result
 * `rc` of opening it.  `show` returns rc or a worse status.  Returns the worst
 * of these.
 */
int image_read_each(char **paths, int n,
    int (*show)(image_read_t *read, int rc, void *data), void *data);

/* Returns the census of a filter in memory: how many of its bits are set. */
bloom_census_t image_read_census(const bloom_image_t *image,
    const uint64_t *words);


#endif /* IMAGE_READ_H */
