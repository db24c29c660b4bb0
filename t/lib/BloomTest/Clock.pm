# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Clock;

# Makes the clock of nginx wrong.  A small library, loaded before the system's,
# adds a number of seconds to the time of day, or to the time since the
# machine's start, at once and in all processes.  It can also make the machine
# seem to have been booted again.
#
#   my $clock = BloomTest::Clock->new($t);    before $t->run, after Disk->new
#   $clock->ahead(7200);                      seconds; negative: behind
#   $clock->right;
#   $clock->pass(960);                        seconds more since the start; the
#                                             time of day stays
#   $clock->pass_all(960);                    both clocks
#   $clock->reboot;                           the machine started now; nginx is
#                                             stopped

use strict;
use warnings;

use Carp qw(croak);
use Time::HiRes qw(clock_gettime);

use constant CLOCK_BOOTTIME => 7;         # Linux

my $source = do { local $/; <DATA> };


sub new {
    my ($class, $t) = @_;

    my $self = bless { file => $t->testdir . '/clock.ahead', passed => 0 },
                     $class;

    $t->preload(
        clock => $source,
        BLOOM_CLOCK_AHEAD => $self->{file},
        BLOOM_CLOCK_PASSED => "$self->{file}.passed",
        BLOOM_CLOCK_BOOTED => "$self->{file}.booted",
        BLOOM_CLOCK_BOOT_ID => "$self->{file}.boot_id");

    return $self;
}


sub ahead {
    my ($self, $seconds) = @_;

    $self->{ahead} = $seconds;
    $self->_write($self->{file}, $seconds);
}


sub pass {
    my ($self, $seconds) = @_;

    $self->{passed} += $seconds;
    $self->_write("$self->{file}.passed", $self->{passed});
}


sub pass_all {
    my ($self, $seconds) = @_;

    $self->ahead(($self->{ahead} // 0) + $seconds);
    $self->pass($seconds);
}


sub reboot {
    my ($self) = @_;

    my $since = clock_gettime(CLOCK_BOOTTIME);

    $self->{boots}++;
    $self->_write("$self->{file}.booted", -int($since + $self->{passed}));
    $self->_write("$self->{file}.boot_id",
                  sprintf '%08x-0000-4000-8000-000000000000', $self->{boots});
}


sub _write {
    my ($self, $file, $seconds) = @_;

    open my $fh, '>', "$file.new" or croak "$file: $!";
    print $fh "$seconds\n";
    close $fh or croak "$file: $!";
    rename "$file.new", $file or croak "$file: $!";
}


sub right {
    my ($self) = @_;

    $self->{ahead} = 0;
    unlink $self->{file};
}


1;

__DATA__
/* A time of day that is ahead by as much as the file BLOOM_CLOCK_AHEAD says,
 * and a time since the start by as much as BLOOM_CLOCK_PASSED says.  Since the
 * machine was booted as much more has passed as BLOOM_CLOCK_BOOTED says, and
 * BLOOM_CLOCK_BOOT_ID is the file that names the boot, if it exists. */

#define _GNU_SOURCE

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>


static long
ahead(const char *variable)
{
    int          fd, saved = errno;
    char         line[32];
    ssize_t      n;
    const char  *name = getenv(variable);

    fd = name ? (int) syscall(SYS_openat, AT_FDCWD, name, O_RDONLY|O_CLOEXEC)
              : -1;
    n = (fd != -1) ? read(fd, line, sizeof(line) - 1) : 0;

    if (fd != -1) {
        close(fd);
    }

    errno = saved;
    line[n > 0 ? n : 0] = '\0';

    return atol(line);
}


int
clock_gettime(clockid_t clock, struct timespec *ts)
{
    int  rc = (int) syscall(SYS_clock_gettime, clock, ts);

    if (rc == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
    {
        ts->tv_sec += ahead("BLOOM_CLOCK_AHEAD");
    }

    if (rc == 0
        && (clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE
            || clock == CLOCK_BOOTTIME))
    {
        ts->tv_sec += ahead("BLOOM_CLOCK_PASSED");
    }

    if (rc == 0 && clock == CLOCK_BOOTTIME) {
        ts->tv_sec += ahead("BLOOM_CLOCK_BOOTED");
    }

    return rc;
}


int
gettimeofday(struct timeval *tv, void *zone)
{
    struct timespec  ts;

    (void) zone;
    (void) clock_gettime(CLOCK_REALTIME, &ts);

    tv->tv_sec = ts.tv_sec;
    tv->tv_usec = ts.tv_nsec / 1000;

    return 0;
}


time_t
time(time_t *t)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_REALTIME, &ts);

    if (t) {
        *t = ts.tv_sec;
    }

    return ts.tv_sec;
}


/* Opens a file by the next library, which may refuse or record it. */
static int
open_file(const char *function, const char *name, int flags, va_list args)
{
    int        (*next)(const char *, int, ...);
    mode_t       mode = (flags & (O_CREAT|O_TMPFILE)) ? va_arg(args, mode_t)
                                                      : 0;
    const char  *boot_id = getenv("BLOOM_CLOCK_BOOT_ID");

    if (boot_id && strcmp(name, "/proc/sys/kernel/random/boot_id") == 0
        && access(boot_id, R_OK) == 0)
    {
        name = boot_id;
    }

    *(void **) &next = dlsym(RTLD_NEXT, function);

    return next(name, flags, mode);
}


int
open(const char *name, int flags, ...)
{
    int      fd;
    va_list  args;

    va_start(args, flags);
    fd = open_file("open", name, flags, args);
    va_end(args);

    return fd;
}


int
open64(const char *name, int flags, ...)
{
    int      fd;
    va_list  args;

    va_start(args, flags);
    fd = open_file("open64", name, flags, args);
    va_end(args);

    return fd;
}
