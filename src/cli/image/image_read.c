/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file opens image files, checks them, and reads or maps their words.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bloom_exceptions_image.h"
#include "cli.h"
#include "image_read.h"
#include "regular_file.h"
#include "bloom_image_decode.h"

#define HUGE_PAGE  (2 * 1024 * 1024)


/* Reads `len` bytes for the image reader.  Returns 0, or -1 with
 * read->unread. */
static int
read_at(void *ctx, void *buf, size_t len, uint64_t offset)
{
    ssize_t        n;
    image_read_t  *read = ctx;

    n = regular_file_read_at(read->fd, buf, len, offset);

    if (n == (ssize_t) len) {
        return 0;
    }

    read->unread = n == -1 ? errno : -1;

    return -1;
}


/* Prints what the image reader found.  Returns CLI_NO if the file is not a
 * valid image, or CLI_ERROR if it cannot be read. */
static int
refused(image_read_t *read)
{
    const char  *found;

    found = read->reader.error;

    if (read->unread == -1) {
        snprintf(read->error, sizeof(read->error), "%.160s: the file became "
                 "shorter while it was read; stop what writes to it and try "
                 "again", found);

    } else if (read->unread != 0) {
        snprintf(read->error, sizeof(read->error), "%.160s: %.40s%.50s", found,
                 strerror(read->unread), cli_advice(read->unread));

    } else {
        snprintf(read->error, sizeof(read->error), "%s", found);
    }

    cli_error("%s: %s", read->path, read->error);

    return read->unread != 0 ? CLI_ERROR : CLI_NO;
}


/* Prints why an image is invalid. */
static int
invalid(image_read_t *read, const char *why)
{
    snprintf(read->reader.error, sizeof(read->reader.error), "%s", why);

    return refused(read);
}


static int
open_file(image_read_t *read, const char *path)
{
    memset(read, 0, sizeof(*read));

    read->path = path;
    read->fd = regular_file_open(path, &read->st, read->error,
                                 sizeof(read->error), "an image");

    if (read->fd == -1) {
        cli_error("%s: %s", path, read->error);
        return CLI_ERROR;
    }

    return CLI_OK;
}


/* Refuses a checkpoint that only nginx can use.  Returns 1 if it is one. */
static int
is_ring(image_read_t *read)
{
    if ((read->reader.image.flags & BLOOM_IMAGE_RING) == 0) {
        return 0;
    }

    snprintf(read->reader.error, sizeof(read->reader.error), "%s",
             BLOOM_IMAGE_IS_RING);
    (void) refused(read);

    return 1;
}


int
image_read_header(image_read_t *read, const char *path)
{
    int  rc;

    if (open_file(read, path) != CLI_OK) {
        return CLI_ERROR;
    }

    if (bloom_image_open(&read->reader, read_at, read,
                         (uint64_t) read->st.st_size)
        != 0)
    {
        rc = refused(read);
        image_read_free(read);
        return rc;
    }

    read->image = read->reader.image;

    if (is_ring(read)) {
        image_read_free(read);
        return CLI_ERROR;
    }

    return CLI_OK;
}


int
image_read_shape(bloom_image_t *image, const char *path)
{
    int           rc;
    uint8_t       header[BLOOM_IMAGE_PAGE];
    uint64_t      size;
    image_read_t  read;

    if (open_file(&read, path) != CLI_OK) {
        return CLI_ERROR;
    }

    rc = CLI_OK;
    size = (uint64_t) read.st.st_size;
    memset(header, 0, sizeof(header));

    if (read_at(&read, header, size < sizeof(header) ? size : sizeof(header), 0)
        != 0)
    {
        rc = invalid(&read, "cannot be read at byte 0");

    } else {

        /* decoding refuses a file shorter than the header */

        if (size >= sizeof(header)) {
            size = bloom_image_claims(header);
        }

        if (bloom_image_decode(image, header, size, read.reader.error) != 0) {
            rc = refused(&read);

        } else {
            read.reader.image = *image;
            rc = is_ring(&read) ? CLI_ERROR : CLI_OK;
        }
    }

    image_read_free(&read);

    return rc;
}


int
image_read_alone(image_read_t *read, const char *path)
{
    int          rc;
    struct stat  named;

    for ( ;; ) {
        rc = image_read_header(read, path);

        if (rc != CLI_OK) {
            return rc;
        }

        /* some filesystems have no locks; continue without one */

        (void) flock(read->fd, LOCK_EX);

        if (stat(path, &named) == 0
            && named.st_dev == read->st.st_dev
            && named.st_ino == read->st.st_ino)
        {
            return CLI_OK;
        }

        image_read_free(read);
    }
}


int
image_read_chunk(image_read_t *read, void *dst)
{
    return bloom_image_next(&read->reader, dst) != -1 ? CLI_OK : refused(read);
}


int
image_read_origin(image_read_t *read)
{
    uint8_t   header[BLOOM_IMAGE_PAGE];
    uint32_t  len;

    len = read->image.origin_len;

    if (len == 0) {
        return CLI_OK;
    }

    if (read_at(read, header, sizeof(header), 0) != 0) {
        snprintf(read->reader.error, sizeof(read->reader.error),
                 "cannot be read at byte 0 again");

        return refused(read);
    }

    read->origin = cli_alloc(len);
    memcpy(read->origin, header + bloom_image_origin_at(&read->image), len);

    return CLI_OK;
}


int
image_read_exceptions(image_read_t *read, uint8_t **data)
{
    int          rc;
    uint8_t     *p;
    const char  *why;

    *data = NULL;

    if (read->image.exceptions == 0) {
        return CLI_OK;
    }

    *data = cli_alloc(bloom_image_exceptions_padded(&read->image));
    p = *data;

    while ((rc = bloom_image_next_exceptions(&read->reader, p)) == 1) {
        p += read->reader.len;
    }

    if (rc == -1) {
        return refused(read);
    }

    why = bloom_exceptions_check(&read->image, *data);

    return why == NULL ? CLI_OK : invalid(read, why);
}


int
image_read_removed(image_read_t *read)
{
    int          rc;
    uint8_t     *data;
    const char  *why;

    rc = image_read_exceptions(read, &data);

    if (rc == CLI_OK && data != NULL) {
        why = removed_keys_take(&read->removed, &read->image, data);

        if (why != NULL) {
            rc = invalid(read, why);
        }
    }

    free(data);

    return rc;
}


int
image_read_words(image_read_t *read)
{
    int       rc;
    void     *words;
    uint8_t  *p;
    uint64_t  i, size;

    size = bloom_image_payload_size(&read->image);

    if (posix_memalign(&words, HUGE_PAGE, size) != 0) {
        cli_no_memory(size);
    }

    /* lookups are spread over all words; without huge pages they are slower */
    (void) madvise(words, size, MADV_HUGEPAGE);

    read->words = words;
    p = words;

    for (i = 0; i < bloom_image_chunks(&read->image); i++) {
        rc = image_read_chunk(read, p);

        if (rc != CLI_OK) {
            return rc;
        }

        p += bloom_image_chunk_size(&read->image, i);
    }

    return CLI_OK;
}


void
image_read_words_free(image_read_t *read)
{
    free(read->words);

    read->words = NULL;
    read->reader.next = 0;
}


int
image_read_all(image_read_t *read)
{
    int  rc;

    rc = image_read_origin(read);

    if (rc == CLI_OK) {
        rc = image_read_words(read);
    }

    return rc == CLI_OK ? image_read_removed(read) : rc;
}


void
image_read_free(image_read_t *read)
{
    if (read->fd != -1) {
        (void) close(read->fd);
    }

    free(read->words);
    free(read->origin);
    removed_keys_free(&read->removed);

    read->fd = -1;
    read->words = NULL;
    read->origin = NULL;
}


int
image_read_each(char **paths, int n,
    int (*show)(image_read_t *read, int rc, void *data), void *data)
{
    int           i, rc, worst;
    image_read_t  read;

    if (n == 0) {
        return cli_misuse("no image is named");
    }

    worst = CLI_OK;

    for (i = 0; i < n; i++) {
        rc = image_read_header(&read, paths[i]);
        rc = show(&read, rc, data);
        worst = rc > worst ? rc : worst;

        image_read_free(&read);
    }

    return worst;
}


bloom_census_t
image_read_census(const bloom_image_t *image, const uint64_t *words)
{
    bloom_census_t  census;

    memset(&census, 0, sizeof(census));
    bloom_census(&census, &image->geometry, words,
                 bloom_image_payload_size(image) / sizeof(uint64_t));

    return census;
}
