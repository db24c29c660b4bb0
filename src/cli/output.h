/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * An output is a file that appears whole or not at all.
 *
 * Data is written to a temporary file beside the target (temporary_file.h),
 * which takes the target's name when all of it is on the disk.  Until then the
 * old file is untouched.  There is one output at a time.
 *
 * A command that makes the new file from the old one must not undo what another
 * program put there meanwhile.  A lock on the old file does not prevent that,
 * as the other program renames a new file to its name.  So a commit checks,
 * just before the renaming, that the name still leads to the file that was
 * read; and every command locks the directory for that moment.
 */

#ifndef OUTPUT_H
#define OUTPUT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>


typedef struct {
    const char  *name;                   /* as the user gave it */
    char        *path;                   /* behind symbolic links */
    char        *temporary;
    int          fd;
    mode_t       mode;
    uid_t        uid;
    gid_t        gid;
    int          replaces;               /* an existing file */
    struct stat  old;
    int          fixed;                  /* `source` or nothing */
    struct stat  source;
} output_t;


/* Each: 0, or -1 having said why; then nothing of it is left behind. */
int output_open(output_t *out, const char *name);
int output_write(output_t *out, const void *data, size_t len);
int output_seek(output_t *out, uint64_t offset);
int output_commit(output_t *out);

/* It is made of this file, which a commit replaces if it is still there as it
 * was, and nothing otherwise.  It stays open until then, so that no other file
 * gets its number. */
void output_made_of(output_t *out, const struct stat *source);

/* What is written is a secret: a new file is for its owner and group alone.  A
 * file that is replaced keeps its mode. */
void output_secret(output_t *out);

/* 0 if a commit would do so now. */
int output_check(const output_t *out);

/* Gives it up; does nothing after a commit. */
void output_discard(output_t *out);

/* The directory it goes to, to be freed. */
char *output_directory(const output_t *out);

/* 1 if the file at `path` is the one that a commit would replace, also if it
 * is another one now. */
int output_is(const output_t *out, const char *path);

/* Returns the first of these files that a commit would replace, as messages
 * call it, or NULL if it would replace none of them; "-" is standard input. */
const char *output_among(const output_t *out, char **names, int n);


#endif /* OUTPUT_H */
