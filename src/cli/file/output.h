/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * An output is a file that is written whole or not at all.
 *
 * Data goes to a temporary file next to the target (temporary_file.h), which is
 * renamed to the target when all of it is on the disk.  The old file is
 * unchanged until then.  There are at most TEMPORARY_FILES outputs at a time.
 *
 * A command that makes the new file from the old one must not overwrite a file
 * that another program put there meanwhile.  A lock on the old file does not
 * prevent that, because the other program renames a new file to that name.  So
 * a commit locks the directory and checks, just before it renames, that the
 * name still leads to the file that was read.
 */

#ifndef OUTPUT_H
#define OUTPUT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>


typedef struct {
    const char  *name;                   /* as the user wrote it */
    char        *path;                   /* with symbolic links resolved */
    char        *temporary;
    int          fd;
    mode_t       mode;                   /* of the new file */
    uid_t        uid;
    gid_t        gid;
    int          replaces;               /* there is an old file */
    struct stat  old;
    int          fixed;                  /* replace only the file `source` */
    struct stat  source;
} output_t;


/* Each returns 0; or -1 after a message, with nothing of the output left. */
int output_open(output_t *out, const char *name);
int output_write(output_t *out, const void *data, size_t len);
int output_seek(output_t *out, uint64_t offset);
int output_commit(output_t *out);

/* Says that the output is made from this file: a commit replaces it if it is
 * still there and unchanged, and fails otherwise.  The caller keeps the file
 * open until then, so that no other file gets its inode number. */
void output_made_of(output_t *out, const struct stat *source);

/* Says that the output contains a secret: only owner and group may read a new
 * file.  A file that is replaced keeps its mode. */
void output_secret(output_t *out);

/* Removes the temporary file; does nothing after a commit. */
void output_discard(output_t *out);

/* Returns the target's directory; the caller frees it. */
char *output_directory(const output_t *out);

/* Returns 1 if a commit would replace the file at `path`, or the file that was
 * there when the output was opened; else 0. */
int output_is(const output_t *out, const char *path);

/* Returns the name, for messages, of the first of these files that a commit
 * would replace, or NULL if it would replace none of them; "-" is standard
 * input. */
const char *output_among(const output_t *out, char **names, int n);


#endif /* OUTPUT_H */
