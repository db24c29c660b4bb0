/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A regular file is opened here, and read at any offset; a pipe, a directory or
 * a device is refused.
 */

#ifndef REGULAR_FILE_H
#define REGULAR_FILE_H

#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>


/*
 * Opens a file that has to be a regular one.  Returns its descriptor, or -1
 * with the reason in `error`, which tells to name `what` instead.
 */
int regular_file_open(const char *path, struct stat *st, char *error,
    size_t size, const char *what);

/* Reads up to `len` bytes.  Returns how many, which are fewer at the file's
 * end only; or -1 with errno. */
ssize_t regular_file_read_at(int fd, void *buf, size_t len, uint64_t offset);


#endif /* REGULAR_FILE_H */
