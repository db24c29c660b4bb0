/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file writes to and reads from a temporary file that has no name.
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "regular_file.h"
#include "spill_file.h"
#include "units.h"


void
spill_file_init(spill_file_t *file, const char *directory)
{
    file->directory = directory;
    file->fd = -1;
    file->size = 0;

    pthread_mutex_init(&file->lock, NULL);
}


void
spill_file_close(spill_file_t *file)
{
    if (file->fd != -1) {
        (void) close(file->fd);
    }

    pthread_mutex_destroy(&file->lock);
}


/* Says why the file cannot be used, and ends the program.  Other threads that
 * fail as well wait for that. */
static void __attribute__((noreturn))
fail(const spill_file_t *file, const char *what, int err)
{
    char                    bytes[UNITS_LEN];
    static pthread_mutex_t  once = PTHREAD_MUTEX_INITIALIZER;

    pthread_mutex_lock(&once);

    if (file->fd == -1) {
        cli_error("%s: a temporary file there cannot be %s: %s; use --temp "
                  "with a directory that you may write to and that has room "
                  "for 16 bytes per key, or use a larger --memory",
                  file->directory, what, strerror(err));

    } else {
        cli_error("%s: a temporary file there cannot be %s: %s; it has %s: use "
                  "--temp with a directory that has more room (16 bytes per "
                  "key), or use a larger --memory", file->directory, what,
                  strerror(err), format_bytes(bytes, file->size));
    }

    exit(CLI_ERROR);
}


/* Creates a file without a name, which the system removes in any case. */
static void
create(spill_file_t *file)
{
    int        fd, err;
    char      *path;
    size_t     len;
    sigset_t   all, before;

#ifdef O_TMPFILE
    fd = open(file->directory, O_TMPFILE|O_RDWR|O_CLOEXEC, 0600);

    if (fd != -1) {
        file->fd = fd;
        return;
    }
#endif

    len = strlen(file->directory) + sizeof("/ngx-bloom-XXXXXX");
    path = cli_alloc(len);
    snprintf(path, len, "%s/ngx-bloom-XXXXXX", file->directory);

    sigfillset(&all);
    (void) pthread_sigmask(SIG_BLOCK, &all, &before);

    fd = mkostemp(path, O_CLOEXEC);
    err = errno;

    if (fd != -1) {
        (void) unlink(path);
    }

    (void) pthread_sigmask(SIG_SETMASK, &before, NULL);
    free(path);

    if (fd == -1) {
        fail(file, "created", err);
    }

    file->fd = fd;
}


uint64_t
spill_file_reserve(spill_file_t *file, size_t len)
{
    pthread_mutex_lock(&file->lock);

    if (file->fd == -1) {
        create(file);
    }

    pthread_mutex_unlock(&file->lock);

    return __atomic_fetch_add(&file->size, len, __ATOMIC_RELAXED);
}


void
spill_file_write(const spill_file_t *file, const void *data, size_t len,
    uint64_t offset)
{
    ssize_t      n;
    const char  *p;

    for (p = data; len != 0; p += n, len -= (size_t) n, offset += (size_t) n) {
        n = pwrite(file->fd, p, len, (off_t) offset);

        if (n == -1 && errno == EINTR) {
            n = 0;

        } else if (n == -1) {
            fail(file, "written", errno);
        }
    }
}


void
spill_file_read(const spill_file_t *file, void *data, size_t len,
    uint64_t offset)
{
    ssize_t  n;

    n = regular_file_read_at(file->fd, data, len, offset);

    if (n != (ssize_t) len) {
        fail(file, "read", n != -1 ? EIO : errno);
    }
}
