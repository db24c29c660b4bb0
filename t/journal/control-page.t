#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# The control page is created once, and later starts take it over.  A page of
# another version is refused.  No process allocates blocks for a page that
# others have mapped.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Base;
use BloomTest::Control;
use BloomTest::Disk;
use BloomTest::Process qw(wait_until run_command);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;
my $state = "$dir/state/ids";
my $disk = BloomTest::Disk->new($t, 'state');

another_image($t);
configure($t, ['zone=ids file=ids.bloom'], api => 1, add => 1);
$t->run;
add($t, 'ids', ['kept']);
$t->stop;


sub answers {
    my (@keys) = @_;

    wait_until(sub { zone_state($t, 'ids')->{state} ne 'behind' })
        or die 'the zone does not follow';

    return ask($t, 'ids', 'id1', 'kept', @keys);
}


subtest 'another nginx uses a page that has been replaced' => sub {
    $t->run;
    rename "$state/control", "$state/aside" or die "rename: $!";
    $t->write_file('state/ids/control', 'no page');

    my $mark = $t->log_mark;
    $t->expect_log(qr/\[emerg\].*the file has been replaced/);
    $t->expect_log(qr/new binary process \d+ exited with code 1/);
    ok(!eval { $t->upgrade_begin }, 'an upgrade is refused');
    like($t->log_since($mark),
         qr/\[emerg\].*cannot use.*control.*another nginx uses this directory, and the file has been replaced; stop that nginx first/,
         'the log says what to do');
    $t->wait_for_log(qr/new binary process \d+ exited with code 1/, $mark);

    rename "$state/aside", "$state/control" or die "rename: $!";
    $t->stop;
};


for my $version (3, 5) {
    subtest "the page is of version $version" => sub {
        set_control("$state/control", version => $version);
        like($t->run_fails,
             qr/cannot use.*control.*another version of the module has created it; start nginx with that version/,
             'the start is refused with what to do');
        is(control("$state/control")->{version}, $version,
           'the page stays as it was');
        set_control("$state/control", version => 4);
    };
}


# state-files.t tests pages that are damaged.

subtest 'the page is damaged' => sub {
    $t->expect_log(qr/\[alert\].*"ids" has lost added keys/);

    for (['cut off', qr/"control" was truncated/,
          sub { truncate "$state/control", 10_000 }],
         ['missing', qr/"control" is missing/,
          sub { unlink "$state/control" }])
    {
        my ($how, $reason, $damage) = @$_;

        set_base("$state/base", lost => 0);
        set_control("$state/control", lost => 0);
        $t->expect_log(qr/\[alert\].*$reason/);
        $damage->() or die "$how: $!";
        $t->run;
        is(answers('no'), '11?', "a lost key is unknown if the page is $how");
        $t->stop;
        is(control("$state/control")->{version}, 4,
           "a page that is $how is created again");
        $t->run;
        is(answers('no'), '11?', 'the next start knows of the loss');
        $t->stop;
    }

    set_base("$state/base", lost => 0);
    set_control("$state/control", lost => 0);
};


# It may say any time, also one that no image is ever complete up to.

subtest 'the time of a loss is damaged' => sub {
    set_control("$state/control", lost => 1 << 62, lost_check => 0);
    $t->run;
    is(answers('no'), '11?', 'keys may be lost');
    cmp_ok(control("$state/control")->{lost} / 1000, '<=', time + 1,
           'up to the start');
    $t->stop;

    set_base("$state/base", lost => 0);
    set_control("$state/control", lost => 0);
};


# A page that is in use has its blocks already, and they are not allocated
# again: on a file system that cannot allocate, the C library writes to every
# block, and what others write at the same time would be lost.

subtest 'the page is in use' => sub {
    $t->run;
    add($t, 'ids', ['added']);
    $disk->refuse('ENOSPC', 'allocate');

    $t->reload;
    is(answers('added', 'no'), '1110', 'a reload needs no room for the page');
    $t->upgrade;
    is(answers('added', 'no'), '1110', 'an upgrade needs no room for the page');

    $disk->allow;
    $t->stop;
};


# On a copy-on-write file system, a write to a mapped page on a full disk would
# raise SIGBUS.

subtest 'the file is made to be overwritten' => sub {
    my $flags = BloomTest->new;
    my $at = $flags->testdir;

    my $code = $flags->write_file('flags.c', <<'C');
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int
ioctl(int fd, unsigned long request, ...)
{
    int          (*real)(int, unsigned long, ...) = dlsym(RTLD_NEXT, "ioctl");
    char         link[64], path[4096] = "";
    void        *arg;
    va_list      args;
    struct stat  st;

    va_start(args, request);
    arg = va_arg(args, void *);
    va_end(args);

    if (request == FS_IOC_GETFLAGS) {
        *(int *) arg = 0;
        return 0;
    }

    if (request == FS_IOC_SETFLAGS) {
        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        (void) !readlink(link, path, sizeof(path) - 1);
        fstat(fd, &st);

        dprintf(open(getenv("FLAGS"), O_WRONLY|O_CREAT|O_APPEND, 0600),
                "%s: %s, size %ld\n", strrchr(path, '/') + 1,
                *(int *) arg & FS_NOCOW_FL ? "overwritten" : "",
                (long) st.st_size);
        return 0;
    }

    return real(fd, request, arg);
}
C

    my ($exit, undef, $err) = run_command(
        [$ENV{CC} // 'cc', '-shared', '-fPIC', '-o', "$at/flags.so", $code,
         '-ldl']);
    is($exit, 0, 'the library is compiled') or die $err;

    $flags->environment(LD_PRELOAD => "$at/flags.so", FLAGS => "$at/flags");
    configure($flags, ['zone=seen capacity=1k fpr=0.001'], api => 1);
    $flags->run;
    is($flags->read_file('flags'),
       join('', map { "$_.tmp: overwritten, size 0\n" } qw(control base)),
       'the file system is asked to overwrite both files where they are');
    $flags->stop;
};


done_testing;
