# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Writes;

# Records what nginx writes to disk.  A small library, loaded before the
# system's, records calls on files below a directory while the test wants it,
# and passes them on.
#
#   my $writes = BloomTest::Writes->new($t);    before $t->run
#   $writes->begin;
#   my @calls = $writes->calls;                 in the order of their ends
#
# A call is { what, path, bytes, inode }:
#
#   write       `bytes` were written at `at`
#   sync        fsync, fdatasync or msync of a file, or fsync of a directory
#   syncfs      a file system was synchronised
#   slice       sync_file_range, which promises nothing
#   create      a file that did not exist was opened, or a directory made
#   truncate    a file has `bytes` now
#   grow        room up to `bytes` was allocated
#   rename      `from` has the name `path` now
#   remove      the name `path` is gone
#
# With contents => 1, writes have their `data`, and nothing is synchronised
# really, which would take long.  The record has three more kinds of entries:
# `begin`, where a synchronisation begins that ends later; `page`, what a page
# of a mapped file has where a call in the same directory begins or ends; and
# `mark`, a note of the test, which notes the pages of mapped files, too:
#
#   my $number = $writes->mark;
#   my @entries = $writes->entries;

use strict;
use warnings;

use Carp qw(croak);

use constant PAGE => 4096;

my $source = do { local $/; <DATA> };


# Options: below (a directory, default: the test's), contents.

sub new {
    my ($class, $t, %option) = @_;

    my $self = bless {
        file => $t->testdir . '/writes', marks => 0,
        below => $option{below} // $t->testdir,
        contents => $option{contents} ? 1 : 0,
    }, $class;

    $t->preload(
        writes => $source,
        BLOOM_WRITES => $self->{file},
        BLOOM_WRITES_BELOW => "$self->{below}/",
        BLOOM_WRITES_CONTENTS => $self->{contents});

    return $self;
}


# Deletes the record and begins to record.

sub begin {
    my ($self) = @_;

    open my $fh, '>', $self->{file} or croak "$self->{file}: $!";
    close $fh;
}


# Ends the record.

sub end { unlink $_[0]{file} }


# Notes an entry as the library does.

sub note {
    my ($self, $what, %entry) = @_;

    my $data = $entry{data} // '';

    open my $fh, '>>:raw', $self->{file} or croak "$self->{file}: $!";
    syswrite $fh, join("\t", $what, map({ $entry{$_} // 0 } qw(inode at bytes)),
                       length $data, $entry{path} // '', $entry{from} // '')
                  . "\n$data"
        or croak "$self->{file}: $!";
    close $fh;
}


# Notes what mapped files have now, and then a mark.  Returns its number.

sub mark {
    my ($self, @mapped) = @_;

    for my $path (@mapped) {
        open my $fh, '<:raw', $path or next;
        my $inode = (stat $fh)[1];
        my $data = do { local $/; <$fh> } // '';

        for (my $at = 0; $at < length $data; $at += PAGE) {
            my $page = substr $data, $at, PAGE;

            $self->note('page', path => $path, inode => $inode, at => $at,
                        bytes => length $page, data => $page)
                if $page =~ tr/\0//c;
        }
    }

    $self->note('mark', at => $self->{marks});

    return $self->{marks}++;
}


sub calls {
    my ($self) = @_;

    return grep { $_->{what} !~ /^(?:begin|page|mark)$/ } $self->entries;
}


sub entries {
    my ($self) = @_;

    open my $fh, '<:raw', $self->{file} or croak "$self->{file}: $!";
    my @entries;

    while (my $line = <$fh>) {
        chomp $line;
        my %entry;
        (@entry{qw(what inode at bytes)}, my $length, @entry{qw(path from)})
            = split /\t/, $line, -1;
        defined $entry{from} or croak "unexpected: $line";
        read($fh, $entry{data}, $length) == $length
            or croak "an entry lacks its data: $line";
        push @entries, \%entry;
    }

    return @entries;
}


1;

__DATA__
/* Calls are noted in the file BLOOM_WRITES, if that exists: a line of words
 * with tabs between them, and data. */

#define _GNU_SOURCE

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>


#define PAGE    4096
#define MAPPED  64


/* A mapped file, and what was noted of it. */
typedef struct {
    char    *addr;
    char    *noted;
    size_t   size;
    ino_t    inode;
    char    *path;
} mapped_t;

static mapped_t  mapped[MAPPED];


/* Returns the descriptor of the record, or -1. */
static int
record(void)
{
    const char  *name = getenv("BLOOM_WRITES");

    return name ? (int) syscall(SYS_openat, AT_FDCWD, name,
                                O_WRONLY|O_APPEND|O_CLOEXEC, 0)
                : -1;
}


static int
contents(void)
{
    const char  *wanted = getenv("BLOOM_WRITES_CONTENTS");

    return wanted && wanted[0] == '1';
}


static int
below(const char *path)
{
    const char  *directory = getenv("BLOOM_WRITES_BELOW");

    return directory && strncmp(path, directory, strlen(directory)) == 0
           && strcmp(path, getenv("BLOOM_WRITES")) != 0;
}


/* Writes one entry. */
static void
entry(int fd, const char *what, ino_t inode, long at, long bytes,
    const void *data, size_t size, const char *path, const char *from)
{
    char          line[9000];
    struct iovec  part[2];

    part[0].iov_base = line;
    part[0].iov_len = snprintf(line, sizeof(line), "%s\t%lu\t%ld\t%ld\t%zu\t"
                               "%s\t%s\n", what, (unsigned long) inode, at,
                               bytes, size, path, from);
    part[1].iov_base = (void *) data;
    part[1].iov_len = size;

    (void) !syscall(SYS_writev, fd, part, 2);
}


/* Notes the pages of mapped files in the directory of `path` that have
 * changed. */
static void
pages(int fd, const char *path)
{
    size_t      at;
    mapped_t   *map;

    for (map = mapped; map < mapped + MAPPED; map++) {

        if (map->addr == NULL
            || strncmp(map->path, path,
                       strrchr(map->path, '/') - map->path + 1)
               != 0)
        {
            continue;
        }

        for (at = 0; at < map->size; at += PAGE) {

            if (memcmp(map->noted + at, map->addr + at, PAGE) != 0) {
                memcpy(map->noted + at, map->addr + at, PAGE);
                entry(fd, "page", map->inode, at, PAGE, map->noted + at, PAGE,
                      map->path, "");
            }
        }
    }
}


static void
note_path(const char *what, ino_t inode, long at, long bytes,
    const void *data, size_t size, const char *path, const char *from)
{
    int  fd, saved = errno;

    if (below(path)) {
        fd = record();

        if (fd != -1) {
            if (contents()) {
                pages(fd, path);
            }

            entry(fd, what, inode, at, bytes, data, contents() ? size : 0,
                  path, from);
            close(fd);
        }
    }

    errno = saved;
}


/* Returns the path of a descriptor, or of a name in its directory; NULL if it
 * is not known. */
static const char *
path_of(int fd, const char *name, char *path)
{
    int      saved = errno;
    char     link[64];
    ssize_t  n;

    if (name && name[0] == '/') {
        return name;
    }

    snprintf(link, sizeof(link), fd == AT_FDCWD ? "/proc/self/cwd"
                                                : "/proc/self/fd/%d", fd);
    n = readlink(link, path, 4096);
    errno = saved;

    if (n <= 0) {
        return NULL;
    }

    path[n] = '\0';

    if (name) {
        snprintf(path + n, 8200 - n, "/%s", name);
    }

    return path;
}


static void
note_fd(const char *what, int fd, long at, long bytes, const void *data,
    size_t size)
{
    int          saved = errno;
    char         buf[8200];
    const char  *path = path_of(fd, NULL, buf);
    struct stat  st;

    if (path && below(path) && fstat(fd, &st) == 0) {
        note_path(what, st.st_ino, at, bytes, data, size, path, "");
    }

    errno = saved;
}


#define REAL(type, name, args)                                               \
    type (*real) args = dlsym(RTLD_NEXT, #name)


#define PWRITE(name, off)                                                    \
    ssize_t name(int fd, const void *buf, size_t n, off at)                  \
    {                                                                        \
        REAL(ssize_t, name, (int, const void *, size_t, off));               \
        ssize_t  done = real(fd, buf, n, at);                                \
                                                                             \
        if (done > 0) {                                                      \
            note_fd("write", fd, at, done, buf, done);                       \
        }                                                                    \
                                                                             \
        return done;                                                         \
    }

PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)


ssize_t
write(int fd, const void *buf, size_t n)
{
    REAL(ssize_t, write, (int, const void *, size_t));
    ssize_t  done = real(fd, buf, n);

    if (done > 0) {
        note_fd("write", fd, (long) lseek(fd, 0, SEEK_CUR) - done, done, buf,
                done);
    }

    return done;
}


#define SYNC(name, args, pass, what, at, bytes, fd)                          \
    int name args                                                            \
    {                                                                        \
        REAL(int, name, args);                                               \
        int  done;                                                           \
                                                                             \
        if (contents()) {                                                    \
            note_fd("begin", fd, getpid(), 0, NULL, 0);                      \
        }                                                                    \
                                                                             \
        done = contents() ? 0 : real pass;                                   \
                                                                             \
        if (done != -1) {                                                    \
            note_fd(what, fd, at, bytes, NULL, 0);                           \
        }                                                                    \
                                                                             \
        return done;                                                         \
    }

SYNC(fsync, (int fd), (fd), "sync", getpid(), 0, fd)
SYNC(fdatasync, (int fd), (fd), "sync", getpid(), 0, fd)
SYNC(syncfs, (int fd), (fd), "syncfs", getpid(), 0, fd)
SYNC(sync_file_range, (int fd, off64_t at, off64_t n, unsigned flags),
     (fd, at, n, flags), "slice", getpid(), (long) n, fd)


int
msync(void *addr, size_t n, int flags)
{
    REAL(int, msync, (void *, size_t, int));
    int        done;
    mapped_t  *map;

    for (map = mapped; map < mapped + MAPPED; map++) {
        if (map->addr && (char *) addr >= map->addr
            && (char *) addr < map->addr + map->size)
        {
            break;
        }
    }

    if (map == mapped + MAPPED || !(flags & MS_SYNC)) {
        return real(addr, n, flags);
    }

    note_path("begin", map->inode, getpid(), 0, NULL, 0, map->path, "");
    done = real(addr, n, flags);

    if (done == 0) {
        note_path("sync", map->inode, getpid(), 0, NULL, 0, map->path, "");
    }

    return done;
}


#define CALL(name, args, pass, what, bytes, failed)                          \
    int name args                                                            \
    {                                                                        \
        REAL(int, name, args);                                               \
        int  done = real pass;                                               \
                                                                             \
        if (!(failed)) {                                                     \
            note_fd(what, fd, 0, (long) (bytes), NULL, 0);                   \
        }                                                                    \
                                                                             \
        return done;                                                         \
    }

CALL(ftruncate, (int fd, off_t size), (fd, size), "truncate", size, done)
CALL(ftruncate64, (int fd, off64_t size), (fd, size), "truncate", size, done)
CALL(fallocate, (int fd, int mode, off_t at, off_t n), (fd, mode, at, n),
     "grow", at + n, done || mode)
CALL(fallocate64, (int fd, int mode, off64_t at, off64_t n),
     (fd, mode, at, n), "grow", at + n, done || mode)
CALL(posix_fallocate, (int fd, off_t at, off_t n), (fd, at, n), "grow",
     at + n, done)
CALL(posix_fallocate64, (int fd, off64_t at, off64_t n), (fd, at, n), "grow",
     at + n, done)


/* Notes that a file was created, or emptied. */
static int
opened(int fd, const char *path, int flags, int existed)
{
    struct stat  st;
    int          saved = errno;

    if (fd != -1 && (flags & (O_CREAT|O_TRUNC)) && path && below(path)
        && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
    {
        if (!existed) {
            note_path("create", st.st_ino, 0, 0, NULL, 0, path, "");

        } else if (flags & O_TRUNC) {
            note_path("truncate", st.st_ino, 0, 0, NULL, 0, path, "");
        }
    }

    errno = saved;

    return fd;
}


#define OPEN(name, params, dir, pass)                                         \
    int name params                                                          \
    {                                                                        \
        REAL(int, name, params);                                             \
        int          existed, saved = errno;                                 \
        char         buf[8200];                                              \
        mode_t       mode = 0;                                               \
        va_list      args;                                                   \
        const char  *path = path_of(dir, file, buf);                         \
                                                                             \
        if (flags & (O_CREAT|O_TMPFILE)) {                                   \
            va_start(args, flags);                                           \
            mode = va_arg(args, mode_t);                                     \
            va_end(args);                                                    \
        }                                                                    \
                                                                             \
        existed = (path == NULL || access(path, F_OK) == 0);                 \
        errno = saved;                                                       \
                                                                             \
        return opened(real pass, path, flags, existed);                      \
    }

OPEN(open, (const char *file, int flags, ...), AT_FDCWD, (file, flags, mode))
OPEN(open64, (const char *file, int flags, ...), AT_FDCWD,
     (file, flags, mode))
OPEN(openat, (int dir, const char *file, int flags, ...), dir,
     (dir, file, flags, mode))
OPEN(openat64, (int dir, const char *file, int flags, ...), dir,
     (dir, file, flags, mode))


/* Notes a change of a name in the directory `dir`. */
static int
named(int done, const char *what, int dir, const char *name, int old_dir,
    const char *old)
{
    char         buf[8200], old_buf[8200];
    const char  *path = path_of(dir, name, buf);
    const char  *from = old ? path_of(old_dir, old, old_buf) : "";

    if (done == 0 && path && from) {
        note_path(what, 0, 0, 0, NULL, 0, path, from);
    }

    return done;
}


#define NAMED(name, args, pass, what, dir, path, old_dir, old)               \
    int name args                                                            \
    {                                                                        \
        REAL(int, name, args);                                               \
                                                                             \
        return named(real pass, what, dir, path, old_dir, old);              \
    }

NAMED(rename, (const char *from, const char *to), (from, to), "rename",
      AT_FDCWD, to, AT_FDCWD, from)
NAMED(renameat, (int a, const char *from, int b, const char *to),
      (a, from, b, to), "rename", b, to, a, from)
NAMED(unlink, (const char *path), (path), "remove", AT_FDCWD, path, 0, NULL)
NAMED(unlinkat, (int dir, const char *path, int flags), (dir, path, flags),
      "remove", dir, path, 0, NULL)
NAMED(rmdir, (const char *path), (path), "remove", AT_FDCWD, path, 0, NULL)
NAMED(mkdir, (const char *path, mode_t mode), (path, mode), "create",
      AT_FDCWD, path, 0, NULL)
NAMED(mkdirat, (int dir, const char *path, mode_t mode), (dir, path, mode),
      "create", dir, path, 0, NULL)


/* Remembers a file that is mapped for changes. */
static void *
map(void *addr, size_t size, int protection, int flags, int fd)
{
    char         buf[8200];
    mapped_t    *m;
    const char  *path;
    struct stat  st;

    if (addr == MAP_FAILED || !contents() || fd == -1
        || !(flags & MAP_SHARED) || !(protection & PROT_WRITE)
        || (path = path_of(fd, NULL, buf)) == NULL || !below(path)
        || fstat(fd, &st) == -1)
    {
        return addr;
    }

    for (m = mapped; m < mapped + MAPPED; m++) {
        if (m->addr == NULL) {
            m->noted = calloc(1, size);
            m->path = strdup(path);
            m->size = size / PAGE * PAGE;
            m->inode = st.st_ino;
            m->addr = addr;
            break;
        }
    }

    return addr;
}


#define MMAP(name, off)                                                      \
    void *name(void *addr, size_t size, int protection, int flags, int fd,   \
        off at)                                                              \
    {                                                                        \
        REAL(void *, name, (void *, size_t, int, int, int, off));            \
                                                                             \
        return map(real(addr, size, protection, flags, fd, at), size,        \
                   protection, flags, fd);                                   \
    }

MMAP(mmap, off_t)
MMAP(mmap64, off64_t)


int
munmap(void *addr, size_t size)
{
    REAL(int, munmap, (void *, size_t));
    mapped_t  *m;

    for (m = mapped; m < mapped + MAPPED; m++) {
        if (m->addr && m->addr == addr) {
            m->addr = NULL;
            free(m->noted);
            free(m->path);
        }
    }

    return real(addr, size);
}
