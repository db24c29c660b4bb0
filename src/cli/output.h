
/*
 * An output is a file that appears whole or not at all.
 *
 * What is written goes into a temporary file beside the target, which takes
 * the target's name when all is on the disk.  Until then the old file is
 * untouched; the temporary one is removed when the program ends, also by a
 * signal that people or the system's limits send, SIGKILL excepted.  One at a
 * time.
 *
 * What is made of the file whose place it takes must not undo what others put
 * there meanwhile.  A lock on that file does not keep them out, as they give
 * its name to another one.  So it is seen just before the renaming whether the
 * name still leads to the file that was read, and all of us lock the directory
 * for that moment.
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

/* 0 if a commit would do so now. */
int output_check(const output_t *out);

/* Gives it up; does nothing after a commit. */
void output_discard(output_t *out);

/* The directory it goes to, to be freed. */
char *output_directory(const output_t *out);

/* 1 if the file at `path` is the one that a commit would replace, also if it
 * is another one now. */
int output_is(const output_t *out, const char *path);

/* The first of these files for which that is so, as messages call it; "-" is
 * standard input.  NULL if there is none. */
const char *output_among(const output_t *out, char **names, int n);


#endif /* OUTPUT_H */
