# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Clock;

# Makes the clock of nginx wrong.  A small library, loaded before the system's,
# adds a number of seconds to the time of day, or to the time since the
# machine's start, at once and in all processes.
#
#   my $clock = BloomTest::Clock->new($t);    before $t->run, after Disk->new
#   $clock->ahead(7200);                      seconds; negative: behind
#   $clock->right;
#   $clock->pass(960);                        seconds more since the start; the
#                                             time of day stays

use strict;
use warnings;

use Carp qw(croak);

use BloomTest::Process qw(run_command);

my $source = do { local $/; <DATA> };


sub new {
    my ($class, $t) = @_;

    my $self = bless { file => $t->testdir . '/clock.ahead', passed => 0 },
                     $class;
    my $code = $t->write_file('clock.c', $source);
    my $library = $t->testdir . '/clock.so';

    my ($exit, $out, $err) = run_command(
        [$ENV{CC} // 'cc', '-shared', '-fPIC', '-O1', '-o', $library, $code]);
    croak "clock.c does not compile: $err" if $exit != 0;

    $t->environment(
        LD_PRELOAD => $library,
        BLOOM_CLOCK_AHEAD => $self->{file},
        BLOOM_CLOCK_PASSED => "$self->{file}.passed");

    return $self;
}


sub ahead { $_[0]->_write($_[0]{file}, $_[1]) }


sub pass {
    my ($self, $seconds) = @_;

    $self->{passed} += $seconds;
    $self->_write("$self->{file}.passed", $self->{passed});
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

    unlink $self->{file};
}


1;

__DATA__
/* A time of day that is ahead by as much as the file BLOOM_CLOCK_AHEAD says,
 * and a time since the start by as much as BLOOM_CLOCK_PASSED says. */

#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
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
        && (clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE))
    {
        ts->tv_sec += ahead("BLOOM_CLOCK_PASSED");
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
