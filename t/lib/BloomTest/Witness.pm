# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Witness;

# Records what processes of root do to files that another user can write.  A
# small library, loaded into nginx before the system's, records calls on files
# and directories within the directories of zones, and on locks in shared
# memory.  Root may open, create and give away the directory of all zones and
# that of a zone, so these calls are not recorded.
#
#   my $witness = BloomTest::Witness->new($t, 'state');    before $t->run
#   $witness->seen                  returns lines: process, call, file
#   $witness->forget                deletes the record
#   $witness->stop_at('state/ids/control')
#                                   stops each process that opens this file and
#                                   is not root, as by a SIGSTOP of its own user
#   $witness->go_on                 stops no more processes

use strict;
use warnings;

my $source = do { local $/; <DATA> };


sub new {
    my ($class, $t, $directory) = @_;

    my $dir = $t->testdir;
    my $self = bless { t => $t, file => "$dir/root.does",
                       stop => "$dir/stops.at" }, $class;

    $t->preload(
        witness => $source,
        BLOOM_WITNESS_FILE => $self->{file},
        BLOOM_WITNESS_STOP => $self->{stop},
        BLOOM_WITNESS_BELOW => "$dir/$directory/");

    return $self;
}


sub seen {
    my ($self) = @_;

    open my $fh, '<', $self->{file} or return;

    return <$fh>;
}


sub forget {
    my ($self) = @_;

    unlink $self->{file};
}


sub stop_at {
    my ($self, $name) = @_;

    $self->{t}->write_file('stops.at', $self->{t}->testdir . "/$name");
}


sub go_on {
    my ($self) = @_;

    unlink $self->{stop};
}


1;

__DATA__
/* Writes down what root does to the files of others. */

#define _GNU_SOURCE

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>


#define REAL(type, name, args)                                               \
    type (*real) args = (type (*) args) dlsym(RTLD_NEXT, #name)


static int
open_really(const char *path, int flags, mode_t mode)
{
    REAL(int, open, (const char *, int, ...));

    return real(path, flags, mode);
}


static void
note(const char *call, const char *path)
{
    int          fd, n;
    char         line[PATH_MAX + 64];
    const char  *file = getenv("BLOOM_WITNESS_FILE");

    fd = file ? open_really(file, O_WRONLY|O_CREAT|O_APPEND|O_CLOEXEC, 0600)
              : -1;

    if (fd != -1) {
        n = snprintf(line, sizeof(line), "%d %s %s\n", (int) getpid(), call,
                     path);
        (void) !write(fd, line, n < (int) sizeof(line) ? n : (int) sizeof(line));
        close(fd);
    }
}


/* "/STATE/ZONE/..." is for nobody but the workers' user. */

static void
saw_path(const char *call, const char *path)
{
    size_t       len;
    const char  *below = getenv("BLOOM_WITNESS_BELOW");

    len = below ? strlen(below) : 0;

    if (len && strncmp(path, below, len) == 0 && strchr(path + len, '/')) {
        note(call, path);
    }
}


static void
saw_fd(const char *call, int fd)
{
    char     link[64], path[PATH_MAX];
    ssize_t  n;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof(path) - 1);

    if (n > 0) {
        path[n] = '\0';
        saw_path(call, path);
    }
}


/* The path of a name in an open directory, into `path` of 2 * PATH_MAX. */

static const char *
path_at(int dir, const char *name, char *path)
{
    char     link[64];
    ssize_t  n;

    if (dir == AT_FDCWD || name[0] == '/') {
        return name;
    }

    snprintf(link, sizeof(link), "/proc/self/fd/%d", dir);
    n = readlink(link, path, PATH_MAX - 1);

    if (n <= 0) {
        return name;
    }

    snprintf(path + n, 2 * PATH_MAX - n, "/%s", name);

    return path;
}


static void
saw_at(const char *call, int dir, const char *name)
{
    char  path[2 * PATH_MAX];

    saw_path(call, path_at(dir, name, path));
}


static void
saw_list(const char *path)
{
    char  below[PATH_MAX + 1];

    snprintf(below, sizeof(below), "%s/", path);
    saw_path("list", below);
}


static void
saw_list_fd(int fd)
{
    char     link[64], path[PATH_MAX];
    ssize_t  n;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof(path) - 1);

    if (n > 0) {
        path[n] = '\0';
        saw_list(path);
    }
}


#define SAW(what)                                                            \
    do {                                                                     \
        int saved = errno;                                                   \
        if (geteuid() == 0) {                                                \
            what;                                                            \
        }                                                                    \
        errno = saved;                                                       \
    } while (0)


/* Whoever opens the file that is named there stops, unless it is root. */

static void
stops(int dir, const char *name)
{
    int          fd, saved = errno;
    char         path[PATH_MAX], whole[2 * PATH_MAX];
    ssize_t      n;
    const char  *file = getenv("BLOOM_WITNESS_STOP");

    if (geteuid() == 0 || !file) {
        return;
    }

    fd = open_really(file, O_RDONLY|O_CLOEXEC, 0);

    if (fd != -1) {
        n = read(fd, path, sizeof(path) - 1);
        close(fd);

        path[n > 0 ? n : 0] = '\0';

        if (n > 0 && strcmp(path, path_at(dir, name, whole)) == 0) {
            raise(SIGSTOP);
        }
    }

    errno = saved;
}


#define OPEN(name)                                                           \
    int name(const char *path, int flags, ...)                               \
    {                                                                        \
        mode_t   mode;                                                       \
        va_list  args;                                                       \
        REAL(int, name, (const char *, int, ...));                           \
                                                                             \
        va_start(args, flags);                                               \
        mode = (flags & (O_CREAT|O_TMPFILE)) ? va_arg(args, mode_t) : 0;     \
        va_end(args);                                                        \
                                                                             \
        SAW(saw_path("open", path));                                         \
        stops(AT_FDCWD, path);                                               \
        return real(path, flags, mode);                                      \
    }

OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                         \
    int name(int dir, const char *path, int flags, ...)                      \
    {                                                                        \
        mode_t   mode;                                                       \
        va_list  args;                                                       \
        REAL(int, name, (int, const char *, int, ...));                      \
                                                                             \
        va_start(args, flags);                                               \
        mode = (flags & (O_CREAT|O_TMPFILE)) ? va_arg(args, mode_t) : 0;     \
        va_end(args);                                                        \
                                                                             \
        SAW(saw_at("open", dir, path));                                      \
        stops(dir, path);                                                    \
        return real(dir, path, flags, mode);                                 \
    }

OPENAT(openat)
OPENAT(openat64)


#define CALL(type, name, args, pass, what)                                   \
    type name args                                                           \
    {                                                                        \
        REAL(type, name, args);                                              \
        SAW(what);                                                           \
        return real pass;                                                    \
    }

CALL(DIR *, opendir, (const char *path), (path), saw_list(path))
CALL(DIR *, fdopendir, (int fd), (fd), saw_list_fd(fd))
CALL(void *, mmap, (void *p, size_t n, int prot, int flags, int fd, off_t at),
     (p, n, prot, flags, fd, at), if (fd != -1) saw_fd("map", fd))
CALL(void *, mmap64,
     (void *p, size_t n, int prot, int flags, int fd, off64_t at),
     (p, n, prot, flags, fd, at), if (fd != -1) saw_fd("map", fd))

CALL(int, flock, (int fd, int how), (fd, how), saw_fd("lock", fd))
CALL(ssize_t, pread, (int fd, void *p, size_t n, off_t at), (fd, p, n, at),
     saw_fd("read", fd))
CALL(ssize_t, pread64, (int fd, void *p, size_t n, off64_t at),
     (fd, p, n, at), saw_fd("read", fd))
CALL(ssize_t, read, (int fd, void *p, size_t n), (fd, p, n),
     saw_fd("read", fd))
CALL(ssize_t, pwrite, (int fd, const void *p, size_t n, off_t at),
     (fd, p, n, at), saw_fd("write", fd))
CALL(ssize_t, pwrite64, (int fd, const void *p, size_t n, off64_t at),
     (fd, p, n, at), saw_fd("write", fd))
CALL(int, ftruncate, (int fd, off_t n), (fd, n), saw_fd("truncate", fd))
CALL(int, ftruncate64, (int fd, off64_t n), (fd, n), saw_fd("truncate", fd))
CALL(int, posix_fallocate, (int fd, off_t at, off_t n), (fd, at, n),
     saw_fd("allocate", fd))
CALL(int, posix_fallocate64, (int fd, off64_t at, off64_t n), (fd, at, n),
     saw_fd("allocate", fd))
CALL(int, fsync, (int fd), (fd), saw_fd("sync", fd))
CALL(int, fdatasync, (int fd), (fd), saw_fd("sync", fd))

CALL(int, chown, (const char *path, uid_t u, gid_t g), (path, u, g),
     saw_path("chown", path))
CALL(int, lchown, (const char *path, uid_t u, gid_t g), (path, u, g),
     saw_path("chown", path))
CALL(int, fchown, (int fd, uid_t u, gid_t g), (fd, u, g), saw_fd("chown", fd))
CALL(int, fchownat, (int dir, const char *path, uid_t u, gid_t g, int flags),
     (dir, path, u, g, flags),
     *path ? saw_at("chown", dir, path) : saw_fd("chown", dir))
CALL(int, chmod, (const char *path, mode_t mode), (path, mode),
     saw_path("chmod", path))
CALL(int, fchmod, (int fd, mode_t mode), (fd, mode), saw_fd("chmod", fd))
CALL(int, fchmodat, (int dir, const char *path, mode_t mode, int flags),
     (dir, path, mode, flags), saw_at("chmod", dir, path))

CALL(int, unlink, (const char *path), (path), saw_path("remove", path))
CALL(int, unlinkat, (int dir, const char *path, int flags),
     (dir, path, flags), saw_at("remove", dir, path))
CALL(int, rename, (const char *from, const char *to), (from, to),
     saw_path("rename", to))
CALL(int, renameat, (int d, const char *from, int dir, const char *to),
     (d, from, dir, to), saw_at("rename", dir, to))


/* Locks in memory that is shared with processes of another user */

static void
saw_lock(const void *lock)
{
    int            fd;
    char           text[65536], *line, *next;
    size_t         len;
    ssize_t        n;
    char           how[8];
    unsigned long  from, to, at = (unsigned long) lock;

    fd = open_really("/proc/self/maps", O_RDONLY|O_CLOEXEC, 0);

    if (fd == -1) {
        return;
    }

    for (len = 0; len < sizeof(text) - 1; len += n) {
        n = read(fd, text + len, sizeof(text) - 1 - len);

        if (n <= 0) {
            break;
        }
    }

    close(fd);
    text[len] = '\0';

    for (line = text; *line; line = next) {
        next = strchr(line, '\n');
        next = next ? next + 1 : line + strlen(line);

        if (sscanf(line, "%lx-%lx %7s", &from, &to, how) == 3
            && at >= from && at < to && strchr(how, 's'))
        {
            note("lock", "in shared memory");
            return;
        }
    }
}

CALL(int, pthread_mutex_lock, (pthread_mutex_t *lock), (lock), saw_lock(lock))
CALL(int, pthread_mutex_trylock, (pthread_mutex_t *lock), (lock),
     saw_lock(lock))
CALL(int, pthread_mutex_timedlock,
     (pthread_mutex_t *lock, const struct timespec *until), (lock, until),
     saw_lock(lock))
CALL(int, pthread_mutex_clocklock,
     (pthread_mutex_t *lock, clockid_t clock, const struct timespec *until),
     (lock, clock, until), saw_lock(lock))
