#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# The helper has a process for each file system with state directories, so a
# disk that does not answer stops no zone on another one.  A process that is
# stopped stands for one that waits for its disk, and a file system that is
# frozen for such a disk.
#
# The test needs root, to mount a file system: ext4 in a file, or where there
# are no loop devices one in memory, which cannot be frozen.

use strict;
use warnings;

use IO::Select;

use BloomTest;
use BloomTest::Api;
use BloomTest::Faults;
use BloomTest::Process qw(alive children resume_process run_command stop_process
                          title wait_until);
use BloomTest::Zones;

$> == 0 or plan(skip_all => 'only root can mount a file system');

my $t = BloomTest->new;
my $dir = $t->testdir;
my $faults = BloomTest::Faults->new($t);
my ($mounted, $frozen) = (0, 0);

# Makes a disk in a file, and returns whether it can be mounted.

sub has_loop_devices {
    mkdir "$dir/try" or die "mkdir: $!";
    open my $file, '>', "$dir/disk" or die "open: $!";
    truncate $file, 256 << 20 or die "truncate: $!";
    close $file or die "close: $!";

    for my $command (['mkfs.ext4', '-q', '-F', "$dir/disk"],
                     ['mount', '-o', 'loop', "$dir/disk", "$dir/try"]) {
        my ($exit) = eval { run_command($command) };

        return 0 if $exit // 1;
    }

    unmount('try');
    return 1;
}

my $disk = has_loop_devices();

sub mount {
    my $path = "$dir/$_[0]";

    return run_command($disk ? ['mount', '-o', 'loop', "$dir/disk", $path]
                             : ['mount', '-t', 'tmpfs', '-o', 'size=256m',
                                'bloom', $path]);
}

sub unmount { run_command(['umount', "$dir/$_[0]"]) }

sub freeze {
    my ($exit, $out, $err) = run_command(['fsfreeze', '-f', "$dir/state/far"]);

    $frozen = !$exit;
    return $frozen || "$out$err";
}

sub thaw {
    run_command(['fsfreeze', '-u', "$dir/state/far"]);
    $frozen = 0;
}

my ($exit, $out, $err) = mount('try');
plan(skip_all => "a file system cannot be mounted here: $out$err") if $exit;
unmount('try');

# nginx still runs if the test has died.

END {
    local $?;

    thaw() if $frozen;
    $t->kill_all if $mounted && $t->master;
    unmount('state/far') if $mounted;
}

configure($t, ['zone=near capacity=1k fpr=1e-3',
               'zone=far capacity=1k fpr=1e-3',
               'zone=memory capacity=1k fpr=1e-3 journal=off'], api => 1);
$t->run;

sub others {
    return grep { title($_) =~ /bloom helper/ } children($t->helper);
}

sub other {
    return wait_until(sub { (others())[0] });
}

sub waiting {
    my ($path, $body) = @_;

    my $c = $t->connect;

    $c->send($t->request_text(POST => "/bloom/zones/$path", body => $body));

    return $c;
}

sub is_waiting {
    my ($c, $name) = @_;

    ok(!IO::Select->new($c->{socket})->can_read(0.3), $name);
}

is(scalar(others()), 0, 'one file system needs no further process');
add($t, 'far', ['early'], durable => 1);
$t->stop;

# the directory with its owner and its files moves to another file system

run_command(['cp', '-a', "$dir/state/far", "$dir/moved"]);
mount('state/far');
$mounted = 1;
run_command(['rm', '-rf', "$dir/state/far/lost+found"]);
run_command(['cp', '-a', "$dir/moved/.", "$dir/state/far"]);

$t->run;


subtest 'each file system has a process' => sub {
    ok(other(), 'another process looks after the other one');
    is(ask_until_known($t, 'far', qw(early no)), '10', 'its zone has its keys');
    add($t, $_, ['first'], durable => 1) for qw(near far);
    is(api($t, POST => "zones/$_/checkpoint")->status, 200,
       "zone $_: jobs are done") for qw(near far);
};


subtest 'a disk does not answer' => sub {
    my $other = other();

    stop_process($other);

    add($t, 'near', ['during'], durable => 1);
    is(api($t, POST => 'zones/near/checkpoint')->status, 200,
       'the other zone has its jobs and its disk');
    is(api($t, POST => 'zones/memory/clear')->status, 200,
       'and so has a zone in memory');

    add($t, 'far', ['during']);
    my $durable = waiting('far/keys?durable=true', 'waits');
    my $job = waiting('far/checkpoint', '');

    is_waiting($durable, 'a durable addition waits');
    is_waiting($job, 'a checkpoint waits');
    is(scalar(ask($t, 'far', qw(early first during no))), '1110',
       'lookups are answered');

    resume_process($other);
    is($durable->response->status, 200, 'the addition is on disk then');
    is($job->response->status, 200, 'the checkpoint is written');
};


subtest 'a file system is frozen' => sub {
    $disk or plan(skip_all => 'there are no loop devices');

    # files and pages that were written are on disk: the next change of each
    # waits until the file system is thawed

    add($t, 'far', ['before'], durable => 1);
    is(freeze(), 1, 'the file system is frozen');

    my $job = waiting('far/checkpoint', '');

    is_waiting($job, 'a checkpoint waits');

    for my $when ('', ' after a reload', ' after another reload') {
        add($t, 'near', ["frozen$when"], durable => 1);
        is(api($t, POST => 'zones/near/checkpoint')->status, 200,
           "the other zone has its jobs and its disk$when");
        is(scalar(ask($t, 'far', qw(before no))), '10',
           "lookups are answered$when");
        $t->reload(keep_old => 1);
    }

    thaw();
    is($job->response->status, 200, 'the checkpoint is written');
    add($t, 'far', ['thawed'], durable => 1);
};


subtest 'the process dies' => sub {
    my $other = other();
    my $mark = $t->log_mark;

    kill KILL => $other;
    ok(wait_until(sub { my ($now) = others(); $now && $now != $other }),
       'another one takes its place');
    $t->wait_for_log(qr/process that looks after bloom zones on the file system/,
                     $mark);
    $t->excuse_log($mark);
    add($t, 'far', ['again'], durable => 1);
};


subtest 'the log is opened again' => sub {
    my $mark;

    rename "$dir/error.log", "$dir/error.1.log" or die "rename: $!";
    kill USR1 => $t->master;
    ok(wait_until(sub { -e "$dir/error.log" }), 'nginx has another log');

    # the process does so within a second

    ok(wait_until(sub {
        api($t, POST => 'zones/far/clear');
        $t->read_file('error.log') =~ /zone "far" is cleared/;
    }), 'it has what the process says');
};


subtest 'a reload replaces the process' => sub {
    my $other = other();

    $t->reload;
    ok(wait_until(sub { !alive($other) }), 'the process ends');
    ok(other(), 'the next helper has one');
    add($t, 'far', ['later'], durable => 1);
};


subtest 'a helper that exits leaves the jobs of the next one alone' => sub {
    $faults->needed;

    my $old = $t->helper;
    my $other = other();

    stop_process($_) for $other, $old;
    kill HUP => $t->master;
    ok(wait_until(sub { $t->helpers == 2 }), 'there is another helper');

    my $stop = $faults->stop_at('saving');
    my $c = waiting('far/checkpoint', '');
    my $job = $faults->stopped($stop);
    my $mark = $t->log_mark;

    resume_process($old);
    ok(wait_until(sub { !alive($old) && !alive($other) }), 'the old one exits');
    kill KILL => $job;
    is_error($c->response, 503, qr/was writing a checkpoint died on signal 9/,
             'a job that dies then is not repeated');
    $t->excuse_log($mark);
};


$t->stop;
unmount('state/far');
$mounted = 0;
done_testing;
