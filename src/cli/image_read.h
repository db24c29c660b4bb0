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
#include "bloom_image.h"


typedef struct {
    bloom_image_t         image;
    uint64_t             *words;         /* the bits; NULL: not read */
    uint8_t              *origin;        /* what an imported filter's source had
                                            in front of them; or NULL */

    const char           *path;
    int                   fd;            /* -1: not open */
    struct stat           st;            /* before it was read */
    int                   unread;        /* errno of a read; -1: too short */
    bloom_image_reader_t  reader;
    char                  error[BLOOM_IMAGE_ERROR_LEN];
} image_read_t;


/* Opens a file; reads header and table.  After anything but CLI_OK there is
 * nothing to free. */
int image_read_header(image_read_t *read, const char *path);

/* Does so alone among those who do so: they are going to make a new file of
 * it.  One that took its place while they were waited for is opened instead. */
int image_read_alone(image_read_t *read, const char *path);

/* Reads the chunks in their order, bloom_image_chunks() of them: `dst` gets
 * bloom_image_chunk_size() bytes. */
int image_read_chunk(image_read_t *read, void *dst);

/* Reads origin, if there is one. */
int image_read_origin(image_read_t *read);

/* Reads words and origin. */
int image_read_all(image_read_t *read);

void image_read_free(image_read_t *read);

/*
 * Opens images one after the other.  `show` gets each with what came of it,
 * and has to return that or worse.  Returns the worst.
 */
int image_read_each(char **paths, int n,
    int (*show)(image_read_t *read, int rc, void *data), void *data);

/* Counts the bits of a filter that is in memory. */
bloom_census_t image_read_census(const bloom_image_t *image,
    const uint64_t *words);


#endif /* IMAGE_READ_H */
