#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A real ext4 loses what it has not written: it is shut down after the
# operations of t/journal/power-loss.t, and mounted again.  Durable changes are
# kept, and of all others a prefix.
#
# The test needs root, loop devices and mkfs.ext4.

use strict;
use warnings;

use Fcntl;

use BloomTest;
use BloomTest::Clock;
use BloomTest::Durable;
use BloomTest::Process qw(run_command);

use constant {
    EXT4_IOC_SHUTDOWN => 0x8004587d,
    MIB => 1024 * 1024,

    # whether ext4 writes its own journal before it stops
    LOG => 1,
    NO_LOG => 2,
};

$> == 0 or plan(skip_all => 'only root can mount a file system');

my $t = BloomTest->new;
my $dir = $t->testdir;
my $mounted = 0;

sub try_command {
    my ($exit, $out, $err) = eval { run_command([@_]) };

    return !defined $exit ? $@ : $exit ? $out . $err : '';
}

sub mount {
    return try_command('mount', '-o', 'loop', "$dir/ext4", "$dir/disk");
}

sub unmount { return try_command('umount', "$dir/disk") }

# nginx still runs if the test has died.

END {
    local $?;

    if ($mounted) {
        $t->kill_all if $t->master;
        unmount();
    }
}

mkdir "$dir/disk" or die "mkdir: $!";
open my $image, '>', "$dir/ext4" or die "$dir/ext4: $!";
truncate $image, 256 * MIB or die "truncate: $!";
close $image;

my $failure = try_command('mkfs.ext4', '-q', '-F', "$dir/ext4") || mount();
plan(skip_all => "an image of ext4 cannot be mounted here: $failure")
    if $failure;
$mounted = 1;


package Programs {

    # What other programs do with images.

    use IO::Handle;

    sub store {
        my ($self, $name, $data) = @_;
        $t->write_file("disk/$name", $data);
    }

    sub sync {
        my ($self, $name) = @_;
        open my $fh, '<', "$dir/disk/$name" or die "$name: $!";
        $fh->sync or die "$name: $!";
    }

    sub rename {
        my ($self, @names) = @_;
        rename "$dir/disk/$names[0]", "$dir/disk/$names[1]" or die "rename: $!";
    }
}


my $moment = 0;
my $clock = BloomTest::Clock->new($t);
my $zones = BloomTest::Durable->new($t, 'disk', disk => bless({}, 'Programs'),
                                    mark => sub { ++$moment });


# Stops the file system, kills nginx, and mounts the file system again.

sub lose_power {
    my ($flags) = @_;

    my $mark = $t->log_mark;
    open my $root, '<', "$dir/disk" or die "$dir/disk: $!";
    ioctl $root, EXT4_IOC_SHUTDOWN, pack('L', $flags)
        or die "EXT4_IOC_SHUTDOWN: $!";
    close $root;

    # workers that touch the control page now may die of SIGBUS

    $t->kill_all;
    $t->excuse_log($mark);
    $clock->reboot;

    my $failure = unmount() || mount();
    die "ext4 is not mounted again: $failure" if $failure;
}


my $lost = 0;

for my $sequence (sequences()) {
    my ($name, $kinds, $changes, %option) = @$sequence;

    subtest "ext4 stops after $name" => sub {
        $zones->begin(@$kinds);
        $zones->first_keys;
        my $failure = try_command('sync', '-f', "$dir/disk");
        die $failure if $failure;

        $t->run;
        $zones->run(@$_) for @$changes;
        lose_power(NO_LOG);
        is(join("\n", $zones->check($moment, once => 1)), '',
           'all promises are kept when its journal is not written');

        $lost += $zones->settle;
        $zones->run(@$_) for @{ $option{then} // [[durable => 'second1'],
                                                  [add => 'second2']] };
        lose_power(LOG);
        is(join("\n", $zones->check($moment)), '',
           'nothing that was lost comes back when its journal is written');
        $t->kill_all if $t->master;
    };
}

cmp_ok($lost, '>', 0, "ext4 has lost $lost changes that were not durable");


done_testing;
