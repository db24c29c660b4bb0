/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions open regular files and read them at any offset; they refuse
 * pipes, directories and devices.
 */

#ifndef REGULAR_FILE_H
#define REGULAR_FILE_H

#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>


/*
 * Opens a regular file.  `what` is what the file should be, such as "an image".
 * Returns its descriptor; or -1 with a reason in `error` for a message.
 */
int regular_file_open(const char *path, struct stat *st, char *error,
    size_t size, const char *what);

/* Reads `len` bytes.  Returns how many were read, which is fewer only at the
 * file's end; or -1 with errno. */
ssize_t regular_file_read_at(int fd, void *buf, size_t len, uint64_t offset);


#endif /* REGULAR_FILE_H */
