#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# The control page is created once, and later starts take it over.  A page of
# version 1 is converted with everything of use in it, at whichever step the
# process dies.  A page of a newer version is refused.  No process allocates
# blocks for a page that others have mapped.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Control;
use BloomTest::Disk;
use BloomTest::Faults;
use BloomTest::Journal;
use BloomTest::Process qw(wait_until alive run_command);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;
my $state = "$dir/state/ids";
my $disk = BloomTest::Disk->new($t, 'state');
my $faults = BloomTest::Faults->new($t);

# more steps than a start has
use constant STEPS => 60;

another_image($t);
configure($t, ['zone=ids file=ids.bloom'], api => 1, add => 1);
$t->run;
$t->stop;

# Creates a directory as version 1 left it: with a record up to which the
# journal was synchronised, and a page with these fields.

my $journal = BloomTest::Journal->new;
$journal->append(['kept']);

sub begin_v1 {
    my (%field) = @_;

    unlink files("$state/{journal,checkpoint,lost,control}*");
    write_segments($t, 'ids', $journal);
    write_control_v1("$state/control", synced => $journal->{used}, %field);
}

sub answers {
    my (@keys) = @_;

    wait_until(sub { !zone_state($t, 'ids')->{journal}{pending_keys} })
        or die 'keys are still pending';
    wait_until(sub { zone_state($t, 'ids')->{state} ne 'behind' })
        or die 'the zone does not follow';

    return ask($t, 'ids', 'id1', 'kept', @keys);
}

my @pending = map { "pending$_-" . 'x' x (300 * $_) } 1 .. 20;


subtest 'a page of version 1 has pending keys' => sub {
    begin_v1(keys => \@pending, pending_keys => scalar @pending);
    $t->run;
    is(answers(@pending, 'no'), '11' . '1' x 20 . '0',
       'the pending keys are present after the start');

    my $control = control("$state/control");
    is("@$control{qw(version size lost)}", '2 2109440 0',
       'the page is of version 2, and no key is lost');
    is(-s "$state/control", 2109440, 'the file is as large as it says');

    $t->kill_all;
    $t->run;
    is(answers(@pending, 'no'), '11' . '1' x 20 . '0',
       'the pending keys are present after another start');
    $t->stop;
};


subtest 'the journal ends before the end that a page of version 1 has' => sub {
    $t->expect_log(qr/\[alert\].*"ids" has lost added keys.*has lost its end/);

    begin_v1(synced => $journal->{used} + 40);
    $t->run;
    is(answers('no'), '11?', 'a lost key is unknown after the start');
    $t->stop;
};


# Version 1 recorded the time of a loss in a file, if the disk had room for it.

subtest 'version 1 has lost keys' => sub {
    $t->expect_log(qr/\[alert\].*"ids" has lost added keys.*see the error log of that time/);

    my $time = (time - 86400) * 1000;

    begin_v1(lost_keys => 7);
    $t->write_file('state/ids/lost', "$time 9223372036854775807\n");
    $t->run;
    is(answers('no'), '11?', 'a lost key is unknown after the start');
    my $control = control("$state/control");
    is("@$control{qw(lost lost_keys)}", "$time 7",
       'the time of the loss is in the control page');
    ok(!-e "$state/lost", 'the file that had it is removed');
    $t->stop;

    begin_v1();
    $t->write_file('state/ids/lost', 'damaged');
    $t->run;
    is(answers('no'), '11?', 'a lost key is unknown if the file is damaged');
    $t->stop;

    begin_v1(lost_keys => 7);
    $t->run;
    is(answers('no'), '11?',
       'a lost key is unknown if version 1 could not write the file');
    cmp_ok(abs(control("$state/control")->{lost} / 1000 - time), '<', 60,
           'the time of that loss is taken to be now');
    $t->stop;
};


subtest 'a page of version 1 is found on a full disk' => sub {
    begin_v1(keys => \@pending);
    $disk->refuse('ENOSPC', 'grow');
    like($t->run_fails, qr/cannot create .*control\.tmp.*No space left/,
         'the start is refused');
    is(-s "$state/control", 266624, 'the page stays as it was');
    ok(!-e "$state/control.tmp", 'no temporary file is left next to the page');

    $disk->allow;
    $t->run;
    is(answers(@pending, 'no'), '11' . '1' x 20 . '0',
       'the pending keys are present after a start with room on the disk');
    $t->stop;
};


subtest 'another nginx uses a page of version 1' => sub {
    $t->run;
    rename "$state/control", "$state/aside" or die "rename: $!";
    write_control_v1("$state/control");

    my $mark = $t->log_mark;
    $t->expect_log(qr/\[emerg\].*another nginx uses it, with another version of the module/);
    $t->expect_log(qr/new binary process \d+ exited with code 1/);
    ok(!eval { $t->upgrade_begin }, 'an upgrade is refused');
    like($t->log_since($mark),
         qr/\[emerg\].*cannot use.*control.*another nginx uses it, with another version of the module; stop that nginx first/,
         'the log says what to do');
    $t->wait_for_log(qr/new binary process \d+ exited with code 1/, $mark);

    rename "$state/aside", "$state/control" or die "rename: $!";
    $t->stop;
};


subtest 'the page is of a newer version' => sub {
    set_control("$state/control", version => 3);
    like($t->run_fails,
         qr/cannot use.*control.*a newer version of the module has created it; start nginx with that version/,
         'the start is refused with what to do');
    is(control("$state/control")->{version}, 3, 'the page stays as it was');
    set_control("$state/control", version => 2);
};


# state-files.t tests pages that are damaged.

subtest 'the page is damaged' => sub {
    truncate "$state/control", 100_000 or die "truncate: $!";
    $t->run;
    is(answers('no'), '11?', 'a lost key is unknown if the page is cut off');
    $t->stop;

    unlink "$state/control" or die "unlink: $!";
    $t->run;
    is(answers('no'), '110', 'a page that is missing is made again');
    $t->stop;
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
    is($flags->read_file('flags'), "control.tmp: overwritten, size 0\n",
       'the file system is asked to overwrite the page where it is');
    $flags->stop;
};


subtest 'nginx dies while it takes over a page of version 1' => sub {
    $faults->needed;

    $t->expect_log(qr/the process that loads a bloom zone, \d+, died of signal 9/);

    my $deaths = 0;
    my $time = (time - 86400) * 1000;

    for my $step (1 .. STEPS) {
        begin_v1(keys => \@pending, lost_keys => 1);
        $t->write_file('state/ids/lost', "$time 9223372036854775807\n");

        $faults->kill_at('any', $step);

        last unless $t->run_may_die;

        $deaths++;
        $t->run;
        is(answers(@pending, 'no'), '11' . '1' x 20 . '?',
           "the pending keys are present, and a lost one is unknown, after a"
           . " death at step $step");
        is(control("$state/control")->{lost}, $time,
           "the time of the loss is known after a death at step $step");
        $t->kill_all;
    }

    # the new page is synchronised, renamed, and so on

    cmp_ok($deaths, '>=', 10,
           "a start completes after deaths at $deaths steps");

    # the last master has completed its start, unknown to the harness

    $faults->withdraw;
    my ($pid) = $t->read_file('nginx.pid') =~ /(\d+)/;
    kill 'QUIT', $pid;
    ok(wait_until(sub { !alive($pid) }), 'the last nginx stops');
};


done_testing;
