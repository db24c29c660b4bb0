# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Disk;

# Makes the disk refuse.  A small library, loaded into nginx before the
# system's, lets chosen calls on files below a directory fail, at once and in
# all processes. It needs no rights.
#
#   my $disk = BloomTest::Disk->new($t, 'state');    before $t->run
#   $disk->refuse('ENOSPC', qw(write grow));
#   $disk->refuse('ENOSPC', qw(write /ids/));     in paths with "/ids/" alone
#   $disk->allow;
#
# Calls to refuse: `open` (opening files for writing, and creating them), `read`
# (bytes of a file after the first 4096), `write` (to any place in a file),
# `grow` (reserving room for a file, or writing behind its end), `allocate`
# (reserving the room that a file already has), `sync` and `rename`.  With
# `room`, the file system reports hardly any free room.

use strict;
use warnings;

use Carp qw(croak);
use Errno ();

my $source = do { local $/; <DATA> };


sub new {
    my ($class, $t, $directory) = @_;

    my $self = bless { file => $t->testdir . '/disk.refuses' }, $class;

    $t->preload(
        disk => $source,
        BLOOM_DISK_REFUSES => $self->{file},
        BLOOM_DISK_BELOW => $t->testdir . "/$directory/");

    return $self;
}


sub refuse {
    my ($self, $error, @what) = @_;

    no strict 'refs';
    my $errno = &{"Errno::$error"}();

    open my $fh, '>', "$self->{file}.new" or croak "$self->{file}: $!";
    print $fh "$errno @what\n";
    close $fh or croak "$self->{file}: $!";
    rename "$self->{file}.new", $self->{file} or croak "$self->{file}: $!";
}


sub allow {
    my ($self) = @_;

    unlink $self->{file};
}


1;

__DATA__
/* Calls that fail while the file BLOOM_DISK_REFUSES says so. */

#define _GNU_SOURCE

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>


/* What is refused, or an empty line. */

static char *
refusals(char *line, size_t size)
{
    int          fd;
    ssize_t      n = 0;
    const char  *name = getenv("BLOOM_DISK_REFUSES");

    int     (*real_open)(const char *, int, ...) = dlsym(RTLD_NEXT, "open");

    fd = name ? real_open(name, O_RDONLY|O_CLOEXEC) : -1;

    if (fd != -1) {
        n = read(fd, line, size - 1);
        close(fd);
    }

    line[n > 0 ? n : 0] = '\0';

    return line;
}


static int
refused(const char *what)
{
    int    error;
    char   line[256], *word;

    word = strtok(refusals(line, sizeof(line)), " \n");
    error = word ? atoi(word) : 0;

    while ((word = strtok(NULL, " \n"))) {
        if (strcmp(word, what) == 0) {
            return error;
        }
    }

    return 0;
}


static int
below(const char *path)
{
    const char  *directory = getenv("BLOOM_DISK_BELOW");

    char         line[256], *within;

    if (!directory || strncmp(path, directory, strlen(directory)) != 0) {
        return 0;
    }

    within = strchr(refusals(line, sizeof(line)), '/');

    if (!within) {
        return 1;
    }

    within[strcspn(within, " \n")] = '\0';

    return strstr(path, within) != NULL;
}


/*
 * The path of a descriptor.  A process that has changed its user may not ask
 * the system; what it has opened since is remembered.
 */

static char  *paths[1024];

static ssize_t
path_of(int fd, char *path, size_t size)
{
    char     link[64];
    ssize_t  n;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, path, size - 1);

    if (n <= 0 && fd >= 0 && fd < 1024 && paths[fd]) {
        n = snprintf(path, size, "%s", paths[fd]);
    }

    if (n > 0) {
        path[n] = '\0';
    }

    return n;
}


static int
remember(int fd, const char *path)
{
    if (fd >= 0 && fd < 1024 && below(path)) {
        free(paths[fd]);
        paths[fd] = strdup(path);
    }

    return fd;
}


/* The path of a name in a directory, in `path`. */

static const char *
path_at(int dir, const char *name, char *path, size_t size)
{
    int      saved = errno;
    ssize_t  n;

    if (dir == AT_FDCWD || name[0] == '/') {
        return name;
    }

    n = path_of(dir, path, size);
    errno = saved;

    if (n <= 0) {
        return name;
    }

    snprintf(path + n, size - n, "/%s", name);

    return path;
}


/* Whether a call on a descriptor is refused; behind `end`, it grows. */

static int
refused_fd(int fd, const char *what, off_t end)
{
    int          saved = errno, error;
    char         path[4096];
    ssize_t      n;
    struct stat  st;

    if (!getenv("BLOOM_DISK_REFUSES")
        || access(getenv("BLOOM_DISK_REFUSES"), F_OK) != 0)
    {
        errno = saved;
        return 0;
    }

    n = path_of(fd, path, sizeof(path));
    errno = saved;

    if (n <= 0) {
        return 0;
    }

    if (!below(path)) {
        return 0;
    }

    error = refused(what);

    if (!error && end && fstat(fd, &st) == 0 && end > st.st_size) {
        error = refused("grow");
    }

    errno = error ? error : saved;

    return error != 0;
}


#define CALL(type, name, args, pass, ...)                                    \
    type name args                                                           \
    {                                                                        \
        type (*real) args = dlsym(RTLD_NEXT, #name);                         \
        return refused_fd(__VA_ARGS__) ? -1 : real pass;                     \
    }

CALL(ssize_t, pread, (int fd, void *buf, size_t n, off_t at),
     (fd, buf, n, at), fd, at + n > 4096 ? "read" : "", 0)
CALL(ssize_t, pread64, (int fd, void *buf, size_t n, off64_t at),
     (fd, buf, n, at), fd, at + n > 4096 ? "read" : "", 0)
CALL(ssize_t, pwrite, (int fd, const void *buf, size_t n, off_t at),
     (fd, buf, n, at), fd, "write", at + (off_t) n)
CALL(ssize_t, pwrite64, (int fd, const void *buf, size_t n, off64_t at),
     (fd, buf, n, at), fd, "write", at + (off_t) n)
CALL(ssize_t, write, (int fd, const void *buf, size_t n), (fd, buf, n),
     fd, "write", (off_t) n + lseek(fd, 0, SEEK_CUR))
CALL(int, ftruncate, (int fd, off_t size), (fd, size), fd, "grow", 0)
CALL(int, ftruncate64, (int fd, off64_t size), (fd, size), fd, "grow", 0)
CALL(int, fallocate, (int fd, int mode, off_t at, off_t n),
     (fd, mode, at, n), fd, "allocate", at + n)
CALL(int, fallocate64, (int fd, int mode, off64_t at, off64_t n),
     (fd, mode, at, n), fd, "allocate", at + (off_t) n)
CALL(int, fsync, (int fd), (fd), fd, "sync", 0)
CALL(int, fdatasync, (int fd), (fd), fd, "sync", 0)


/* Four blocks are left. */

#define STATVFS(name, type)                                                  \
    int name(int fd, struct type *buf)                                       \
    {                                                                        \
        int  (*real)(int, struct type *) = dlsym(RTLD_NEXT, #name);          \
        int  rc = real(fd, buf);                                             \
                                                                             \
        if (rc == 0 && refused("room")) {                                    \
            buf->f_bfree = buf->f_bavail = 4;                                \
        }                                                                    \
                                                                             \
        return rc;                                                           \
    }

STATVFS(fstatvfs, statvfs)
STATVFS(fstatvfs64, statvfs64)


/* These return the error itself. */

int
posix_fallocate(int fd, off_t at, off_t n)
{
    int (*real)(int, off_t, off_t) = dlsym(RTLD_NEXT, "posix_fallocate");

    return refused_fd(fd, "allocate", at + n) ? errno : real(fd, at, n);
}


int
posix_fallocate64(int fd, off64_t at, off64_t n)
{
    int (*real)(int, off64_t, off64_t) = dlsym(RTLD_NEXT, "posix_fallocate64");

    return refused_fd(fd, "allocate", at + (off_t) n) ? errno
                                                      : real(fd, at, n);
}


static int
refused_path(const char *path, const char *what)
{
    int  error = below(path) ? refused(what) : 0;

    if (error) {
        errno = error;
    }

    return error != 0;
}


#define OPEN(name)                                                           \
    int name(const char *path, int flags, ...)                               \
    {                                                                        \
        int      (*real)(const char *, int, ...) = dlsym(RTLD_NEXT, #name);  \
        mode_t   mode = 0;                                                   \
        va_list  args;                                                       \
                                                                             \
        if (flags & O_CREAT) {                                               \
            va_start(args, flags);                                           \
            mode = va_arg(args, mode_t);                                     \
            va_end(args);                                                    \
        }                                                                    \
                                                                             \
        if ((flags & (O_WRONLY|O_RDWR|O_CREAT))                              \
            && refused_path(path, "open"))                                   \
        {                                                                    \
            return -1;                                                       \
        }                                                                    \
                                                                             \
        return remember(real(path, flags, mode), path);                      \
    }

OPEN(open)
OPEN(open64)


#define OPENAT(name)                                                         \
    int name(int dir, const char *path, int flags, ...)                      \
    {                                                                        \
        int         (*real)(int, const char *, int, ...)                     \
                        = dlsym(RTLD_NEXT, #name);                           \
        char        whole[8192];                                             \
        mode_t      mode = 0;                                                \
        va_list     args;                                                    \
        const char  *at = path_at(dir, path, whole, sizeof(whole));          \
                                                                             \
        if (flags & O_CREAT) {                                               \
            va_start(args, flags);                                           \
            mode = va_arg(args, mode_t);                                     \
            va_end(args);                                                    \
        }                                                                    \
                                                                             \
        if ((flags & (O_WRONLY|O_RDWR|O_CREAT))                              \
            && refused_path(at, "open"))                                     \
        {                                                                    \
            return -1;                                                       \
        }                                                                    \
                                                                             \
        return remember(real(dir, path, flags, mode), at);                   \
    }

OPENAT(openat)
OPENAT(openat64)


int
rename(const char *from, const char *to)
{
    int (*real)(const char *, const char *) = dlsym(RTLD_NEXT, "rename");

    return refused_path(to, "rename") ? -1 : real(from, to);
}


int
renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    int   (*real)(int, const char *, int, const char *)
              = dlsym(RTLD_NEXT, "renameat");
    char  whole[8192];

    return refused_path(path_at(to_dir, to, whole, sizeof(whole)), "rename")
           ? -1 : real(from_dir, from, to_dir, to);
}
