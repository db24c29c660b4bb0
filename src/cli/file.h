
/*
 * Files are opened if they are regular ones, and read at any place.
 */

#ifndef FILE_H
#define FILE_H

#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>


/*
 * Opens a file that has to be a regular one.  Returns its descriptor, or -1
 * with the reason in `error`, which tells to name `what` instead.
 */
int file_open(const char *path, struct stat *st, char *error, size_t size,
    const char *what);

/* Reads up to `len` bytes.  Returns how many, which are fewer at the file's
 * end only; or -1 with errno. */
ssize_t file_read_at(int fd, void *buf, size_t len, uint64_t offset);


#endif /* FILE_H */
