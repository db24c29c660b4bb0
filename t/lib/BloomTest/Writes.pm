# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Writes;

# Records what nginx writes to disk.  A small library, loaded before the
# system's, records calls on files below the test's directory while the test
# wants it, and passes them on.
#
#   my $writes = BloomTest::Writes->new($t);    before $t->run
#   $writes->begin;
#   my @calls = $writes->calls;                 in the order of their ends
#
# A call is { what, path, bytes }: "write", "sync" (fsync and fdatasync),
# "slice" (sync_file_range), "rename" (with the new path) or "remove".

use strict;
use warnings;

use Carp qw(croak);

my $source = do { local $/; <DATA> };


sub new {
    my ($class, $t) = @_;

    my $self = bless { file => $t->testdir . '/writes' }, $class;

    $t->preload(
        writes => $source,
        BLOOM_WRITES => $self->{file},
        BLOOM_WRITES_BELOW => $t->testdir . '/');

    return $self;
}


# Deletes the record and begins to record.

sub begin {
    my ($self) = @_;

    open my $fh, '>', $self->{file} or croak "$self->{file}: $!";
    close $fh;
}


sub calls {
    my ($self) = @_;

    open my $fh, '<', $self->{file} or croak "$self->{file}: $!";

    return map {
        /^(\w+) (\d+) (.*)$/ or croak "unexpected: $_";
        { what => $1, bytes => $2, path => $3 };
    } <$fh>;
}


1;

__DATA__
/* Calls are noted in the file BLOOM_WRITES, if that exists. */

#define _GNU_SOURCE

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>


static void
note_path(const char *what, long bytes, const char *path)
{
    int          fd, saved = errno;
    char         line[5000];
    const char  *below = getenv("BLOOM_WRITES_BELOW");

    if (!below || strncmp(path, below, strlen(below)) != 0
        || strcmp(path, getenv("BLOOM_WRITES")) == 0)
    {
        return;
    }

    fd = syscall(SYS_openat, AT_FDCWD, getenv("BLOOM_WRITES"),
                 O_WRONLY|O_APPEND|O_CLOEXEC, 0);

    if (fd != -1) {
        snprintf(line, sizeof(line), "%s %ld %s\n", what, bytes, path);
        (void) !syscall(SYS_write, fd, line, strlen(line));
        close(fd);
    }

    errno = saved;
}


static void
note(const char *what, long bytes, int fd, const char *name)
{
    int      saved = errno;
    char     link[64], path[4600];
    ssize_t  n;

    if (name && name[0] == '/') {
        note_path(what, bytes, name);
        return;
    }

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, path, 4096);
    errno = saved;

    if (n <= 0) {
        return;
    }

    path[n] = '\0';

    if (name) {
        snprintf(path + n, sizeof(path) - n, "/%s", name);
    }

    note_path(what, bytes, path);
}


#define CALL(type, name, args, pass, what, bytes, fd, path)                  \
    type name args                                                           \
    {                                                                        \
        type (*real) args = dlsym(RTLD_NEXT, #name);                         \
        type   done = real pass;                                             \
                                                                             \
        if (done != -1) {                                                    \
            note(what, bytes, fd, path);                                     \
        }                                                                    \
                                                                             \
        return done;                                                         \
    }

CALL(ssize_t, pwrite, (int fd, const void *buf, size_t n, off_t at),
     (fd, buf, n, at), "write", (long) done, fd, NULL)
CALL(ssize_t, pwrite64, (int fd, const void *buf, size_t n, off64_t at),
     (fd, buf, n, at), "write", (long) done, fd, NULL)
CALL(int, fsync, (int fd), (fd), "sync", 0, fd, NULL)
CALL(int, fdatasync, (int fd), (fd), "sync", 0, fd, NULL)
CALL(int, sync_file_range, (int fd, off64_t at, off64_t n, unsigned flags),
     (fd, at, n, flags), "slice", (long) n, fd, NULL)
CALL(int, rename, (const char *from, const char *to), (from, to),
     "rename", 0, AT_FDCWD, to)
CALL(int, renameat, (int a, const char *from, int b, const char *to),
     (a, from, b, to), "rename", 0, b, to)
CALL(int, unlink, (const char *path), (path), "remove", 0, AT_FDCWD, path)
CALL(int, unlinkat, (int fd, const char *path, int flags), (fd, path, flags),
     "remove", 0, fd, path)
