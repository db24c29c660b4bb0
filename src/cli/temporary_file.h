/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A temporary file holds what is written until it is renamed, and is removed if
 * the program ends before, also by a signal that people or the system's limits
 * send, SIGKILL excepted.  There is one at a time.
 */

#ifndef TEMPORARY_FILE_H
#define TEMPORARY_FILE_H


/* Creates it as mkostemp() does.  `name` must stay until it is renamed or
 * removed.  Returns its descriptor, or -1 with errno. */
int temporary_file_create(char *name);

/* Gives it the name `path`.  Returns 0, or -1 with errno. */
int temporary_file_rename(const char *path);

/* Removes it; does nothing if there is none. */
void temporary_file_remove(void);


#endif /* TEMPORARY_FILE_H */
