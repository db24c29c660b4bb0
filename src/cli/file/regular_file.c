/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file opens regular files and reads them at any offset.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "regular_file.h"


int
regular_file_open(const char *path, struct stat *st, char *error, size_t size,
    const char *what)
{
    int  fd;

    /* a pipe without a writer would never open */

    fd = open(path, O_RDONLY|O_NONBLOCK|O_CLOEXEC);

    if (fd == -1 || fstat(fd, st) == -1) {
        snprintf(error, size, "cannot be opened: %s%s", strerror(errno),
                 cli_advice(errno));

    } else if (S_ISDIR(st->st_mode)) {
        snprintf(error, size, "is a directory; name %s", what);

    } else if (!S_ISREG(st->st_mode)) {
        snprintf(error, size, "is not a regular file; name %s", what);

    } else {
        return fd;
    }

    if (fd != -1) {
        (void) close(fd);
    }

    return -1;
}


ssize_t
regular_file_read_at(int fd, void *buf, size_t len, uint64_t offset)
{
    size_t   done;
    ssize_t  n;

    for (done = 0; done < len; done += (size_t) n) {
        n = pread(fd, (uint8_t *) buf + done, len - done,
                  (off_t) (offset + done));

        if (n == -1 && errno == EINTR) {
            n = 0;

        } else if (n == -1) {
            return -1;

        } else if (n == 0) {
            break;
        }
    }

    return (ssize_t) done;
}
