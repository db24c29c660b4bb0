#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Two containers with the same process ids may share a state directory: nginx
# touches no file that another process writes, whatever the clocks say.  Files
# that a process has left behind are removed by the next helper of its instance,
# by any helper once that instance has ended, and by a start that is alone.

use strict;
use warnings;

use Fcntl qw(:flock);

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;
my $state = "$dir/state/ids";

my @kinds = qw(save);
my $random = '0123456789abcdef';
my $other = reverse $random;

$t->build_image('ids.bloom', ['one'], '-p', '1e-9');
configure($t, ['zone=ids file=ids.bloom'], api => 1, workers => 2);
$t->run;

# a checkpoint of a journal without records would have nothing

add($t, 'ids', ['two']);


# Creates files with their age in one step, since a helper may remove a file at
# any moment.

sub leave {
    my ($age, @names) = @_;

    for my $name (@names) {
        my $path = $t->write_file('left', 'half of it');
        utime time - $age, time - $age, $path or die "utime: $!";
        rename $path, "$state/$name" or die "rename: $!";
    }
}

sub left { return map { s{.*/}{}r } files("$state/*.tmp"), files("$state/snap*") }

sub all_tasks {
    my ($when) = @_;

    is(api($t, POST => 'zones/ids/checkpoint')->status, 200,
       "a checkpoint is written $when");
    is(api($t, GET => 'zones/ids/image')->status, 200, "an image is sent $when");
    is(upload_image($t, 'ids', 'ids')->status, 200,
       "an image is uploaded $when");
}


# Makes the helper of instance 0 look for files to remove.

sub clean {
    leave(0, "save.5.$random.tmp");
    $t->kill_helper;
    ok(wait_until(sub { !-e "$state/save.5.$random.tmp" }),
       'the next helper removes what an instance that has ended has left');
}


subtest 'another container has a process of the same id' => sub {
    my $helper = $t->helper;
    my @names = ("save.$helper.tmp",
                 map({ "snapshot.$helper.$_.bloom" } 1 .. 3));

    leave(0, @names);
    all_tasks('beside files of another container');
    is_deeply([grep { !-e "$state/$_"
                      || $t->read_file("state/ids/$_") ne 'half of it' } @names],
              [], 'the files of the other container are as they were');
    like(join(' ', grep { /snapshot/ && !/\.$helper\./ } left()),
         qr/^snapshot\.0\.[0-9a-f]{16}\.bloom$/,
         'the image was sent from a file of its own');

    unlink map { "$state/$_" } left();
};


subtest 'the helper dies' => sub {
    my @own = map { "$_.0.$random.tmp" } @kinds;
    my @ended = map { "$_.1.$random.tmp" } @kinds;
    my @before = map { "$_.4711.tmp" } @kinds;
    my @kept = @before;

    leave(60, @own);
    leave(0, @ended, "snapshot.1.$random.bloom");
    leave(7200, @before);
    leave(0, "snapshot.0.$random.bloom", "body.0.$random.tmp",
          "body.1.$random.tmp");

    # a process that reads or writes such a file holds a lock on it until it
    # dies

    open my $used, '<', $t->write_file("state/ids/body.0.$other.tmp", 'x')
        or die "body: $!";
    flock $used, LOCK_SH or die "flock: $!";
    push @kept, "body.0.$other.tmp";

    # the upload that serves, and its checkpoint

    is(api($t, POST => 'zones/ids/checkpoint')->status, 200,
       'a checkpoint is written');

    clean();
    ok(wait_until(sub { join(' ', sort(left())) eq join(' ', sort @kept) }),
       'the next helper removes what its own instance has left')
        or diag(join ' ', left());
    is(files("$state/{upload,checkpoint}.*.bloom"), 2,
       'the upload and the checkpoint are not removed');
    all_tasks('with the next helper');

    unlink map { "$state/$_" } left();
};


subtest 'another nginx works in the directory' => sub {
    my @theirs = map { "$_.1.$random.tmp" } @kinds;

    $t->upgrade_begin;
    ok(wait_until(sub { -e "$state/instance.1" }),
       'the other nginx is instance 1');
    all_tasks('by one of the two');

    leave(7200, @theirs);
    clean();
    is_deeply([sort grep { /\.tmp$/ } left()], [sort @theirs],
              'files of the other nginx are kept, however old they seem');

    $t->upgrade_back;
    clean();
    ok(wait_until(sub { !grep { /\.tmp$/ } left() }),
       'files of the other nginx are removed once it has ended')
        or diag(join ' ', left());
};


subtest 'nginx starts' => sub {
    leave(0, map { "$_.3.$random.tmp" } @kinds);
    $t->kill_all;
    $t->run;
    is(join(' ', left()), '', 'a start that is alone removes all');
    is(ask($t, 'ids', 'one', 'no'), '10', 'the zone serves');

    leave(0, map { "$_.0.$random.tmp" } @kinds);
    $t->upgrade_begin;
    is(scalar left(), scalar @kinds,
       'a start beside another nginx removes none');
    $t->upgrade_finish;
};


done_testing;
