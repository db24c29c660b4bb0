/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A temporary file holds an output until it is renamed to its target.  If the
 * program ends before that, it removes the file, even if a signal ends it, such
 * as that of a resource limit; only SIGKILL leaves the file.  There is one
 * temporary file at a time.
 */

#ifndef TEMPORARY_FILE_H
#define TEMPORARY_FILE_H


/* Creates the file with mkostemp().  `name` must stay valid until the file is
 * renamed or removed.  Returns its descriptor, or -1 with errno. */
int temporary_file_create(char *name);

/* Renames the file to `path`.  Returns 0, or -1 with errno. */
int temporary_file_rename(const char *path);

/* Removes the temporary file, if the program has one. */
void temporary_file_remove(void);


#endif /* TEMPORARY_FILE_H */
