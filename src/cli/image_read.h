
/*
 * Image files, read and checked.
 *
 * Each function returns CLI_OK; CLI_NO if the file was read and is not what an
 * image should be; CLI_ERROR if it could not be read.  What is wrong has then
 * been said on standard error, and is in loaded_t.error for whoever wants to
 * say it again.
 */

#ifndef IMAGE_READ_H
#define IMAGE_READ_H

#include <sys/stat.h>

#include "bloom_image.h"


typedef struct {
    bloom_image_t         image;
    uint64_t             *words;         /* the bits; NULL until load_words() */

    const char           *path;
    int                   fd;            /* -1: not open */
    struct stat           st;            /* before it was read */
    int                   unread;        /* errno of a read; -1: too short */
    bloom_image_reader_t  reader;
    char                  error[BLOOM_IMAGE_ERROR_LEN];
} loaded_t;


/* Opens a file; reads header and table.  After anything but CLI_OK there is
 * nothing to free. */
int load_header(const char *path, loaded_t *loaded);

/* The same, alone among those who do so: they are going to make a new file of
 * it.  One that took its place while they were waited for is opened instead. */
int load_alone(const char *path, loaded_t *loaded);

/* Then its chunks in their order, bloom_image_chunks() of them: `dst` gets
 * bloom_image_chunk_size() bytes. */
int load_chunk(loaded_t *loaded, void *dst);

/* Or all of them into loaded->words. */
int load_words(loaded_t *loaded);

/* What its source had in front of the bits, image.origin_len bytes, to be
 * freed; NULL if there is none. */
int load_origin(loaded_t *loaded, uint8_t **origin);

void load_free(loaded_t *loaded);


#endif /* IMAGE_READ_H */
