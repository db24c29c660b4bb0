#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A file of a state directory is emptied, truncated, changed by one bit, as it
# was an hour ago, that of another zone, or gone; alone, and together with
# another file.  Either the start is refused and names the file, or the zone
# says that it does not know, or all keys are answered right.  No key is ever
# wrongly absent, and no removed key is present in a zone that serves.
#
# STATE_FILES_SEED repeats the random bits and pairs, and STATE_FILES_STATES is
# the number of random pairs of each zone.

use strict;
use warnings;

use List::Util qw(min shuffle);

use BloomTest;
use BloomTest::Api;
use BloomTest::Base;
use BloomTest::Control;
use BloomTest::Durable;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

# How many bits are changed in each file.

use constant BITS => 16;

my $seed = $ENV{STATE_FILES_SEED} // time ^ $$;
my $states = $ENV{STATE_FILES_STATES} // 12;

diag("STATE_FILES_SEED=$seed");
srand $seed;

my $t = BloomTest->new;
my $moment = 0;
my $zones = BloomTest::Durable->new($t, 'disk', mark => sub { ++$moment });
my $kind;


# The files of the zone that have contents, by name.

sub look {
    my @names = map { m{([^/]*)$} }
                grep { -s } glob $t->testdir . "/disk/state/$kind/*";

    return map { $_ => $t->read_file("disk/state/$kind/$_") } @names;
}

sub place {
    my (%file) = @_;

    unlink glob $t->testdir . "/disk/state/$kind/*";
    $t->write_file("disk/state/$kind/$_", $file{$_}) for sort keys %file;
}

# Adds and removes keys, and returns the files after it.

sub begin {
    my ($name) = @_;

    $t->run if !$t->master;
    $zones->run(durable => "${name}1", "${name}2", "${name}3");
    $zones->run(durable_remove => "${name}1");
    $zones->run(durable => "${name}4");
    $t->kill_all;

    return look();
}


my (%ago, %other, %now);

# Returns the bytes of another zone's file.  The positions in the names may
# differ.

sub of_other {
    my ($name) = @_;

    my ($like) = grep { (split /\./)[0] eq (split /\./, $name)[0] }
                      reverse sort keys %other;

    return $other{$name} // $other{$like // ''};
}

# Each damage returns the bytes of a file, given its name and its bytes; undef
# if the file is gone.

my %damage = (
    'emptied' => sub { '' },
    'truncated' => sub { substr $_[1], 0, length($_[1]) / 2 },
    'truncated to its header' => sub { substr $_[1], 0, 128 },
    'changed by a bit' => sub {
        my @places = places($_[1]);
        flipped($_[1], $places[rand @places], int rand 8);
    },
    'as it was an hour ago' => sub { $ago{$_[0]} },
    'from another zone' => sub { of_other($_[0]) },
    'gone' => sub { undef },
);

# Returns where bytes are not 0.

sub places {
    return grep { ord substr $_[0], $_, 1 } 0 .. min(length $_[0], 16384) - 1;
}

sub flipped {
    my ($bytes, $at, $bit) = @_;

    substr($bytes, $at, 1) ^= chr(1 << $bit);

    return $bytes;
}


# Returns what a file is called in the name of a state.

sub called {
    my ($name) = @_;

    return $name =~ /^journal\.0+$/ ? 'the first segment'
           : $name =~ /^journal/ ? 'the last segment'
           : $name =~ /^checkpoint/ ? 'the checkpoint' : $name;
}

# Tests the zone with damaged files; with $twice, also by a second start.

our $twice = 0;

sub is_kept {
    my ($what, %damaged) = @_;

    my %files = (%now, %damaged);

    place(map { defined $files{$_} ? ($_ => $files{$_}) : () } keys %files);
    my @problems = $zones->check($moment, lies => 1, refuses => 1,
                                 once => !$twice);
    $t->kill_all if $t->master;

    is(join("\n", @problems), '', "no answer is wrong when $what");
}

# Tests files, each with a damage.

sub are_kept {
    my ($when, %how) = @_;

    my %damaged = map { $_ => $damage{$how{$_}}->($_, $now{$_}) } keys %how;

    is_kept($when . join(' and ', map { called($_) . " is $how{$_}" }
                                      sort keys %how), %damaged);
}


for (qw(image expiring)) {
    $kind = $_;

    $zones->begin($kind);
    begin('other');
    $t->run;
    $zones->run('checkpoint');
    %other = begin('others');

    $zones->begin($kind);
    begin('ago');
    $t->run;
    $zones->run('checkpoint');
    $t->kill_all;
    %ago = look();
    begin('now');

    $t->run;
    $zones->run(durable_remove => 'ago2');
    $zones->run('checkpoint');
    $zones->run(durable => 'last');
    $t->kill_all;
    %now = look();

    my @names = sort keys %now;
    my @hows = sort keys %damage;

    subtest "a file of the zone $kind is damaged" => sub {
        local $twice = 1;

        for my $name (@names) {
            are_kept('', $name => $_) for @hows;
        }
    };

    subtest "two files of the zone $kind are damaged" => sub {
        for my $n (1 .. $#names) {
            for my $m (0 .. $n - 1) {
                are_kept('', $names[$n] => $_, $names[$m] => $_) for @hows;
            }
        }

        my ($journal) = grep { /^journal/ } @names;
        my $end = length $now{$journal} =~ s/\0+\z//r;

        is_kept('control is as it was an hour ago and the last record is'
                . ' changed by a bit', control => $ago{control},
                $journal => flipped($now{$journal}, $end - 16, 3));

        for (1 .. $states) {
            my ($one, $other) = shuffle(0 .. $#names);

            are_kept('', $names[$one] => $hows[rand @hows],
                     $names[$other] => $hows[rand @hows]);
        }
    };

    subtest "a bit in a file of the zone $kind is changed" => sub {
        for my $name (grep { $_ ne 'control' } @names) {
            my @places = places($now{$name});

            for (1 .. BITS) {
                my $at = $places[@places * ($_ - 0.5) / BITS];
                is_kept("a bit of byte $at of " . called($name) . ' is changed',
                        $name => flipped($now{$name}, $at, int rand 8));
            }
        }
    };

    # what is a time is nine hours later, or more

    subtest "a number in the control page of the zone $kind is greater" => sub {
        for my $at (map { 8 * $_ } 0 .. 1535) {
            my $number = unpack "x$at Q<", $now{control} or next;
            my ($bit) = grep { !($number >> $_ & 1) } 25 .. 63;

            is_kept("the number at $at of control of the zone $kind is greater",
                    control => flipped($now{control}, $at + int($bit / 8),
                                       $bit % 8)) if defined $bit;
        }
    };

    # the page says that a key was lost

    subtest "the control page of the zone $kind knows of a loss" => sub {
        local $twice = 1;

        $zones->{ledger}{$kind}->begin('add', ['lost'], 0);
        $zones->{ledger}{$kind}{changes}[-1]{done} = 0;
        $zones->{ledger}{$kind}->durable(0);

        my $state = $t->testdir . "/disk/state/$kind";
        my $lost = time * 1000;

        my $mark = $t->log_mark;

        place(%now);
        set_control("$state/control", lost => $lost);
        $t->run;
        ok(wait_until(sub { read_base("$state/base")->{lost} == $lost }),
           'base knows of it soon');
        $t->kill_all;
        $t->excuse_log($mark);
        %now = look();

        is_kept('a loss is known');
        is_kept('a loss is known, and control has another magic',
                control => flipped($now{control}, 0, 1));
        are_kept('a loss is known, and ', control => $_) for @hows;
    };
}


# An administrator may want to look at a segment that could not be read.

subtest 'the last segment cannot be read' => sub {
    $zones->begin($kind);
    %now = begin('aside');

    my ($last) = reverse sort grep { /^journal/ } keys %now;

    is_kept('the header of the last segment is changed',
            $last => flipped($now{$last}, 40, 0));
    is(join(' ', map { s{.*/}{}r } glob $t->testdir
                                        . "/disk/state/$kind/damaged.*"),
       $last =~ s/^journal/damaged/r, 'the segment is put aside');
};


done_testing;
