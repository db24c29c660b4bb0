/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file writes a file with a temporary name, and renames it to the target
 * unless another program has replaced that meanwhile.
 */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "output.h"
#include "temporary_file.h"

#define TEMPORARY  ".tmp-XXXXXX"
#define ADDED      (sizeof(TEMPORARY) - 1)

#define SECRET_MODE  0640

/* ngx-bloom locks a directory only for the time of a rename. */
#define LOCK_TRIES  500
#define LOCK_PAUSE  10000000             /* nanoseconds */


/* Finds the target's path, with symbolic links resolved, its owner and its
 * mode. */
static int
find_target(output_t *out, const char *name)
{
    mode_t       mask;
    struct stat  link;

    if (strcmp(name, "-") == 0) {
        cli_error("the output cannot be standard output; name a file");
        return -1;
    }

    if (*name == '\0') {
        cli_error("the name of the output is empty; name a file");
        return -1;
    }

    mask = umask(0);
    (void) umask(mask);

    out->mode = 0666 & ~mask;
    out->replaces = 0;

    if (stat(name, &out->old) == 0) {

        if (S_ISDIR(out->old.st_mode)) {
            cli_error("%s: is a directory; name a file in it", name);
            return -1;
        }

        if (!S_ISREG(out->old.st_mode)) {
            cli_error("%s: is not a regular file; name another output", name);
            return -1;
        }

        out->replaces = 1;
        out->mode = out->old.st_mode & 07777;
        out->uid = out->old.st_uid;
        out->gid = out->old.st_gid;
        out->path = realpath(name, NULL);

        if (out->path == NULL) {
            cli_error("%s: cannot be written: %s", name, strerror(errno));
            return -1;
        }

        return 0;
    }

    if (errno != ENOENT) {
        cli_error("%s: cannot be written: %s", name, strerror(errno));
        return -1;
    }

    if (lstat(name, &link) == 0) {
        cli_error("%s: is a symbolic link to a file that does not exist; "
                  "remove the link or create the file", name);
        return -1;
    }

    out->path = strdup(name);

    if (out->path == NULL) {
        cli_no_memory(strlen(name) + 1);
    }

    return 0;
}


/* Returns a name for mkostemp(): the target's name and a suffix, or less of the
 * name if that is too long. */
static char *
temporary_name(const output_t *out)
{
    long         most;
    char        *temporary, *directory;
    size_t       len;
    const char  *base;

    directory = output_directory(out);
    most = pathconf(directory, _PC_NAME_MAX);
    free(directory);

    if (most <= 0) {
        most = NAME_MAX;
    }

    base = strrchr(out->path, '/');
    base = base == NULL ? out->path : base + 1;
    len = strlen(base);

    if (len + ADDED > (size_t) most) {
        len = len > ADDED ? len - ADDED : 0;

        /* do not cut a character: some filesystems require UTF-8 */

        while (len != 0 && ((uint8_t) base[len] & 0xc0) == 0x80) {
            len--;
        }
    }

    len += (size_t) (base - out->path);

    temporary = cli_alloc(len + sizeof(TEMPORARY));
    memcpy(temporary, out->path, len);
    memcpy(temporary + len, TEMPORARY, sizeof(TEMPORARY));

    return temporary;
}


/* Says why there is no temporary file, and names the directory: the permissions
 * of the target do not matter. */
static void
complain(const output_t *out, int err)
{
    char        *directory, *real;
    const char  *advice;

    switch (err) {

    case EACCES:
    case EPERM:
        advice = "get write access to that directory; access to the file is "
                 "not enough";
        break;

    case ENOENT:
        advice = "create that directory first";
        break;

    case ENOSPC:
    case EDQUOT:
        advice = "free space there";
        break;

    default:
        advice = "write to another directory";
        break;
    }

    directory = output_directory(out);
    real = realpath(directory, NULL);

    cli_error("%s: cannot be written: a temporary file cannot be created in "
              "%s: %s; %s", out->name, real != NULL ? real : directory,
              strerror(err), advice);

    free(real);
    free(directory);
}


int
output_open(output_t *out, const char *name)
{
    int  err;

    memset(out, 0, sizeof(*out));
    out->name = name;
    out->fd = -1;

    if (find_target(out, name) != 0) {
        return -1;
    }

    out->temporary = temporary_name(out);

    out->fd = temporary_file_create(out->temporary);

    if (out->fd == -1) {
        err = errno;
        complain(out, err);
        output_discard(out);
        return -1;
    }

    return 0;
}


static int
failed(output_t *out)
{
    cli_error("%s: cannot be written: %s%s", out->name, strerror(errno),
              out->replaces ? "; the old file is unchanged" : "");
    output_discard(out);

    return -1;
}


int
output_write(output_t *out, const void *data, size_t len)
{
    ssize_t      n;
    const char  *p;

    for (p = data; len != 0; p += n, len -= (size_t) n) {

        n = write(out->fd, p, len < 0x40000000 ? len : 0x40000000);

        if (n == -1 && errno == EINTR) {
            n = 0;

        } else if (n == -1) {
            return failed(out);
        }
    }

    return 0;
}


int
output_seek(output_t *out, uint64_t offset)
{
    return lseek(out->fd, (off_t) offset, SEEK_SET) == -1 ? failed(out) : 0;
}


char *
output_directory(const output_t *out)
{
    char        *directory;
    const char  *slash;

    slash = strrchr(out->path, '/');

    directory = slash == NULL ? strdup(".")
                : strndup(out->path, slash == out->path
                                     ? 1 : (size_t) (slash - out->path));

    if (directory == NULL) {
        cli_no_memory(strlen(out->path) + 1);
    }

    return directory;
}


/* Synchronises the target's directory, so that the rename is on the disk. */
static int
sync_directory(const output_t *out)
{
    int    fd, rc;
    char  *directory;

    directory = output_directory(out);
    fd = open(directory, O_RDONLY|O_DIRECTORY|O_CLOEXEC);
    free(directory);

    if (fd == -1) {

        /* a directory that may be written but not read cannot be synced */

        return errno == EACCES ? 0 : -1;
    }

    rc = fsync(fd);

    if (rc == -1 && errno == EINVAL) {
        rc = 0;                          /* the filesystem has no fsync */
    }

    (void) close(fd);

    return rc;
}


void
output_made_of(output_t *out, const struct stat *source)
{
    out->fixed = 1;
    out->source = *source;
}


void
output_secret(output_t *out)
{
    if (!out->replaces) {
        out->mode &= SECRET_MODE;
    }
}


/* Returns 1 if the file that was read is still at `path` and unchanged. */
static int
is_source(const output_t *out, const char *path)
{
    struct stat         st;
    const struct stat  *source;

    source = &out->source;

    return stat(path, &st) == 0
           && st.st_dev == source->st_dev && st.st_ino == source->st_ino
           && st.st_size == source->st_size
           && st.st_mtim.tv_sec == source->st_mtim.tv_sec
           && st.st_mtim.tv_nsec == source->st_mtim.tv_nsec;
}


/* Checks what output_made_of() demands.  Returns 0, or -1 after a message. */
static int
output_check(const output_t *out)
{
    /* check its own name, too: a link in it may lead elsewhere now */

    if (!out->fixed
        || (is_source(out, out->name) && is_source(out, out->path)))
    {
        return 0;
    }

    cli_error("%s: another program changed, replaced or removed it meanwhile, "
              "so nothing was written; try again", out->name);

    return -1;
}


/*
 * Locks the directory against other commands that rename a file in it.  Returns
 * a descriptor, which holds the lock until it is closed; or -1 if there is no
 * lock, as on a filesystem without locks or in a directory that cannot be read.
 * The caller then continues without it.
 *
 * It waits for a limited time: a script may run this command under flock(1) on
 * the directory, and each would wait for the other.
 */
static int
lock_directory(const output_t *out)
{
    int    i, fd;
    char  *directory;

    static const struct timespec  pause = { 0, LOCK_PAUSE };

    directory = output_directory(out);
    fd = open(directory, O_RDONLY|O_DIRECTORY|O_CLOEXEC);
    free(directory);

    for (i = 0; fd != -1 && i < LOCK_TRIES; i++) {

        if (flock(fd, LOCK_EX|LOCK_NB) == 0) {
            return fd;
        }

        if (errno != EWOULDBLOCK) {
            break;
        }

        (void) nanosleep(&pause, NULL);
    }

    if (fd != -1) {
        (void) close(fd);
    }

    return -1;
}


int
output_commit(output_t *out)
{
    int  rc, err, lock;

    if (out->replaces) {

        /* keep owner and group, so that the same users can read the file; if
         * that is not permitted, it belongs to the current user */

        if (fchown(out->fd, (uid_t) -1, out->gid) == -1
            || fchown(out->fd, out->uid, (gid_t) -1) == -1)
        {
            errno = 0;
        }
    }

    if (fchmod(out->fd, out->mode) == -1 || fsync(out->fd) == -1) {
        return failed(out);
    }

    rc = close(out->fd);
    out->fd = -1;

    if (rc == -1) {
        return failed(out);
    }

    lock = lock_directory(out);

    if (output_check(out) != 0) {

        if (lock != -1) {
            (void) close(lock);
        }

        output_discard(out);
        return -1;
    }

    rc = temporary_file_rename(out->temporary, out->path);
    err = errno;

    if (lock != -1) {
        (void) close(lock);
    }

    if (rc == -1) {
        errno = err;
        return failed(out);
    }

    if (sync_directory(out) == -1) {
        cli_error("%s: is written, but a power failure may undo that: its "
                  "directory cannot be synchronised: %s", out->name,
                  strerror(errno));
        output_discard(out);
        return -1;
    }

    output_discard(out);

    return 0;
}


void
output_discard(output_t *out)
{
    if (out->fd != -1) {
        (void) close(out->fd);
        out->fd = -1;
    }

    temporary_file_remove(out->temporary);

    free(out->temporary);
    free(out->path);
    out->temporary = NULL;
    out->path = NULL;
}


int
output_is(const output_t *out, const char *path)
{
    int          same;
    char        *real;
    struct stat  st;

    if (!out->replaces) {
        return 0;
    }

    if (stat(path, &st) == 0
        && st.st_dev == out->old.st_dev && st.st_ino == out->old.st_ino)
    {
        return 1;
    }

    real = realpath(path, NULL);
    same = real != NULL && strcmp(real, out->path) == 0;
    free(real);

    return same;
}


const char *
output_among(const output_t *out, char **names, int n)
{
    int  standard;

    for ( /* void */ ; n != 0; n--, names++) {
        standard = strcmp(*names, "-") == 0;

        if (output_is(out, standard ? "/dev/stdin" : *names)) {
            return standard ? "standard input" : *names;
        }
    }

    return NULL;
}
