
/*
 * Files that appear whole or not at all.
 *
 * What is written goes into a temporary file beside the target, which takes
 * the target's name when all is on the disk.  Until then the old file is
 * untouched; the temporary one is removed when the program ends, also by a
 * signal that people or the system's limits send, SIGKILL excepted.  One at a
 * time.
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
} output_t;


/* Each: 0, or -1 having said why; then nothing of it is left behind. */
int output_open(output_t *out, const char *name);
int output_write(output_t *out, const void *data, size_t len);
int output_seek(output_t *out, uint64_t offset);
int output_commit(output_t *out);

/* Gives it up; does nothing after a commit. */
void output_discard(output_t *out);

/* The directory it goes to, to be freed. */
char *output_directory(const output_t *out);

/* 1 if the file at `path` is the one that a commit would replace. */
int output_is(const output_t *out, const char *path);


#endif /* OUTPUT_H */
