/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A temporary file holds an output until it is renamed to its target.  If the
 * program ends before that, it removes the file, even if a signal ends it, such
 * as that of a resource limit; only SIGKILL leaves the file.  There are at most
 * TEMPORARY_FILES at a time.
 */

#ifndef TEMPORARY_FILE_H
#define TEMPORARY_FILE_H

#define TEMPORARY_FILES  2               /* an image, and a file beside it */


/* Creates the file with mkostemp().  `name` must stay valid until the file is
 * renamed or removed; it is the name for the functions below.  Returns a
 * descriptor, or -1 with errno. */
int temporary_file_create(char *name);

/* Renames the file to `path`.  Returns 0, or -1 with errno. */
int temporary_file_rename(const char *name, const char *path);

/* Removes the file, unless it was renamed or could not be created. */
void temporary_file_remove(const char *name);


#endif /* TEMPORARY_FILE_H */
