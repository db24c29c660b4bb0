#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# The helper has a process for each file system with state directories, so a
# disk that does not answer stops no zone on another one.  A process that is
# stopped stands for one that waits for its disk.
#
# The test needs root, to mount a file system.

use strict;
use warnings;

use IO::Select;

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(alive children resume_process run_command stop_process
                          title wait_until);
use BloomTest::Zones;

$> == 0 or plan(skip_all => 'only root can mount a file system');

my $t = BloomTest->new;
my $dir = $t->testdir;
my $mounted = 0;

sub mount {
    return run_command(['mount', '-t', 'tmpfs', '-o', 'size=256m,mode=700',
                        'bloom', "$dir/$_[0]"]);
}

sub unmount { run_command(['umount', "$dir/$_[0]"]) }

mkdir "$dir/try" or die "mkdir: $!";
my ($exit, $out, $err) = mount('try');
plan(skip_all => "a file system cannot be mounted here: $out$err") if $exit;
unmount('try');

# nginx still runs if the test has died.

END {
    local $?;

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


$t->stop;
unmount('state/far');
$mounted = 0;
done_testing;
