
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli.h"
#include "image_read.h"

#define HUGE_PAGE  (2 * 1024 * 1024)


/* Exactly `len` bytes, for the image reader. */
static int
read_at(void *ctx, void *buf, size_t len, uint64_t offset)
{
    loaded_t  *loaded = ctx;
    ssize_t    n;
    uint8_t   *p;

    for (p = buf; len != 0; p += n, len -= (size_t) n, offset += (size_t) n) {
        n = pread(loaded->fd, p, len, (off_t) offset);

        if (n == -1 && errno == EINTR) {
            n = 0;

        } else if (n <= 0) {
            loaded->unread = n == 0 ? -1 : errno;
            return -1;
        }
    }

    return 0;
}


/* Says what is wrong with a file that could not be read; CLI_ERROR. */
static int __attribute__((format(printf, 2, 3)))
unreadable(loaded_t *loaded, const char *fmt, ...)
{
    va_list  args;

    va_start(args, fmt);
    vsnprintf(loaded->error, sizeof(loaded->error), fmt, args);
    va_end(args);

    cli_error("%s: %s", loaded->path, loaded->error);

    return CLI_ERROR;
}


/* Says what the image reader found. */
static int
refused(loaded_t *loaded)
{
    const char  *found;

    found = loaded->reader.error;

    if (loaded->unread == -1) {
        return unreadable(loaded, "%.160s: it became shorter meanwhile; leave "
                          "it alone and try again", found);
    }

    if (loaded->unread != 0) {
        return unreadable(loaded, "%.160s: %s", found,
                          strerror(loaded->unread));
    }

    snprintf(loaded->error, sizeof(loaded->error), "%s", found);

    cli_error("%s: %s", loaded->path, loaded->error);

    return CLI_NO;
}


static int
open_image(loaded_t *loaded)
{
    struct stat  *st;

    st = &loaded->st;

    /* a pipe without a writer would never open */

    loaded->fd = open(loaded->path, O_RDONLY|O_NONBLOCK|O_CLOEXEC);

    if (loaded->fd == -1 || fstat(loaded->fd, st) == -1) {
        return unreadable(loaded, "cannot be opened: %s", strerror(errno));
    }

    if (!S_ISREG(st->st_mode)) {
        return unreadable(loaded, "is not a regular file; name an image");
    }

    if (bloom_image_open(&loaded->reader, read_at, loaded,
                         (uint64_t) st->st_size)
        != 0)
    {
        return refused(loaded);
    }

    loaded->image = loaded->reader.image;

    return CLI_OK;
}


int
load_header(const char *path, loaded_t *loaded)
{
    int  rc;

    loaded->path = path;
    loaded->words = NULL;
    loaded->unread = 0;
    loaded->error[0] = '\0';

    rc = open_image(loaded);

    if (rc != CLI_OK) {
        load_free(loaded);
    }

    return rc;
}


int
load_alone(const char *path, loaded_t *loaded)
{
    int          rc;
    struct stat  named;

    for ( ;; ) {
        rc = load_header(path, loaded);

        if (rc != CLI_OK) {
            return rc;
        }

        /* where files cannot be locked, we do without */

        (void) flock(loaded->fd, LOCK_EX);

        if (stat(path, &named) == 0
            && named.st_dev == loaded->st.st_dev
            && named.st_ino == loaded->st.st_ino)
        {
            return CLI_OK;
        }

        load_free(loaded);
    }
}


int
load_chunk(loaded_t *loaded, void *dst)
{
    if (bloom_image_next(&loaded->reader, dst) == -1) {
        return refused(loaded);
    }

    return CLI_OK;
}


int
load_words(loaded_t *loaded)
{
    int       rc;
    void     *words;
    uint8_t  *p;
    uint64_t  i, size;

    size = bloom_image_payload_size(&loaded->image);

    if (posix_memalign(&words, HUGE_PAGE, size) != 0) {
        cli_no_memory(size);
    }

    /* lookups are all over the place; if it cannot be had, so be it */
    (void) madvise(words, size, MADV_HUGEPAGE);

    loaded->words = words;
    p = words;

    for (i = 0; i < bloom_image_chunks(&loaded->image); i++) {
        rc = load_chunk(loaded, p);

        if (rc != CLI_OK) {
            return rc;
        }

        p += bloom_image_chunk_size(&loaded->image, i);
    }

    return CLI_OK;
}


int
load_origin(loaded_t *loaded, uint8_t **origin)
{
    uint8_t   header[BLOOM_IMAGE_PAGE];
    uint32_t  len;

    *origin = NULL;
    len = loaded->image.origin_len;

    if (len == 0) {
        return CLI_OK;
    }

    if (read_at(loaded, header, sizeof(header), 0) != 0) {
        snprintf(loaded->reader.error, sizeof(loaded->reader.error),
                 "cannot be read at byte 0 again");

        return refused(loaded);
    }

    *origin = cli_alloc(len);
    memcpy(*origin, bloom_image_origin(&loaded->image, header), len);

    return CLI_OK;
}


void
load_free(loaded_t *loaded)
{
    if (loaded->fd != -1) {
        close(loaded->fd);
    }

    free(loaded->words);

    loaded->fd = -1;
    loaded->words = NULL;
}
