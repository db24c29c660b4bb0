#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Keys of zones with expire= against a ledger: a key is present until its life
# has passed since it was last added, and absent a slice later.  The order of
# additions, removals, questions and disturbances is random.  EXPIRE_SEED repeats
# it, and EXPIRE_STEPS is the number of events.

use strict;
use warnings;

use BloomTest;
use BloomTest::Clock;
use BloomTest::Expiry;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

use constant { HOUR => 3600, DAY => 86400 };

my $seed = $ENV{EXPIRE_SEED} // int rand 1e6;
my $steps = $ENV{EXPIRE_STEPS} // 600;

srand $seed;
diag("EXPIRE_SEED=$seed");

my $t = BloomTest->new;
my $clock = BloomTest::Clock->new($t);
my $time = BloomTest::Expiry->new($t, $clock);
my $state = $t->testdir . '/state/ids';

# how long a key of zone ids lives; a reload changes it

my ($life, $capacity) = (8 * HOUR, '2k');

sub conf {
    configure($t, ["zone=ids capacity=$capacity fpr=1e-9 removals=5k"
                   . " expire=${life}s",
                   'zone=memory capacity=2k fpr=1e-9 removals=5k expire=4h'
                   . ' journal=off', 'zone=tick capacity=8k fpr=0.001'],
              api => 1, add => 1, workers => 2);
}

conf();
$t->run;

my $ids = $time->ledger('ids', life => $life, slices => 8);
my $memory = $time->ledger('memory', life => 4 * HOUR, slices => 8);
my @ledgers = ($ids, $memory);
my $number = 0;

sub any { return $_[rand @_] }

sub some_keys {
    my ($ledger, $count) = @_;

    my @keys = $ledger->known_keys;

    return @keys ? map { any(@keys) } 1 .. $count : ();
}

sub adds {
    my ($ledger) = @_;

    $ledger->add([map { 'k' . $number++ } 1 .. 1 + rand 8],
                 by => any('bloom_add', 'endpoint'));
}

sub adds_again {
    my ($ledger) = @_;

    my @keys = some_keys($ledger, 3) or return;
    $ledger->add(\@keys, by => any('bloom_add', 'endpoint'));
}

sub removes {
    my ($ledger) = @_;

    my @keys = some_keys($ledger, 2) or return;
    $ledger->remove(\@keys);
    $ledger->add([$keys[0]]) if rand() < 0.3;
}

sub asks {
    my ($ledger) = @_;

    my @keys = some_keys($ledger, 10) or return;
    ask_until_known($t, $ledger->{zone}, @keys);
}

# Sets the system's clock.

sub jumps {
    my $by = any(-DAY, DAY);

    $clock->ahead($clock->{ahead} + $by);
    $_->lead(-$by) for @ledgers;
}

sub passes { $time->passes(any(10, 60, 600, 1800, HOUR, 2 * HOUR)) }

# The names of the disturbances, and what they do.  The memory of a zone without
# a journal does not survive a new master.

my %disturb = (
    'a restart' => sub { $t->stop; $t->run; $memory->forget },
    'kill -9 of all' => sub { $t->kill_all; $t->run; $memory->forget },
    'a stop for some time' => sub {
        $t->stop;
        $clock->pass_all(int rand 5 * HOUR);
        $t->run;
        $memory->forget;
    },
    'kill -9 of the helper' => sub { $t->kill_helper },
    'kill -9 of a worker' => sub { $t->kill_worker },
    'a reload' => sub { $t->reload },
    'an upgrade' => sub {
        $t->upgrade_begin;

        # both instances add

        $ids->add(['u' . $number++], by => 'bloom_add') for 1 .. 20;
        $ids->check('while two instances add');
        $t->upgrade_finish;
        $memory->forget;
    },
    'a clock that jumps while nginx runs' => sub {
        jumps();
        $time->settle;
    },
    'a clock that jumps while nginx is stopped' => sub {
        $t->kill_all;
        jumps();
        $t->run;
        $memory->forget;
    },
    'a boot' => sub {
        my $off = any(0, int rand 20 * HOUR);

        $time->settle;
        any(0, 1) ? $t->stop : $t->kill_all;
        $clock->pass_all($off);
        $clock->reboot;
        $ids->prolong($off + 10);
        $ids->lead(-$off);
        $t->run;
        $memory->forget;
    },
    'a reload with other parameters' => sub {
        ($life, $capacity)
            = any([8 * HOUR, '2k'], [4 * HOUR, '2k'], [12 * HOUR, '3k'],
                  [8 * HOUR, '4k']) ->@*;
        conf();
        $t->reload;
        $ids->change(life => $life, slices => 8);
    },
);

# those that leave the zone without a journal its keys

my @kind = ('a reload', 'kill -9 of the helper', 'kill -9 of a worker',
            'a clock that jumps while nginx runs',
            'a reload with other parameters');

$clock->right;
$t->expect_log(qr/exited on signal 9/);
$t->kill_worker;

for my $step (1 .. $steps) {
    my $event = rand 100;
    my $name = "at event $step";

    if ($event < 30) {
        adds($_) for @ledgers;
    } elsif ($event < 45) {
        adds_again($_) for @ledgers;
    } elsif ($event < 52) {
        removes($_) for @ledgers;
    } elsif ($event < 60) {
        asks($_) for @ledgers;
    } elsif ($event < 90) {
        passes();
    } else {
        my $what = any($step < $steps / 2 ? @kind : sort keys %disturb);
        $disturb{$what}->();
        $name = "after $what $name";
    }

    next if $step % 4 && $event < 90;

    my $right = 1;
    $right &= $_->check($name) for @ledgers;
    last if !$right;
    $_->prune for @ledgers;
}

# In the end both clocks agree, and all keys expire.

my $lead = $ids->{lead};

$ids->add([map { "last$_" } 1 .. 40]);

if ($lead > 0) {
    $clock->ahead($clock->{ahead} + $lead);
    $_->lead(-$lead) for @ledgers;
}

$time->settle;
$time->passes(3 * DAY);
$_->check('at the end') for @ledgers;

cmp_ok($_->{seen}{present}, '>', 200, "zone $_->{zone} has had present keys")
    for @ledgers;
cmp_ok($_->{seen}{absent}, '>', 30, "zone $_->{zone} has had expired keys")
    for @ledgers;
cmp_ok($_->{seen}{removed}, '>', 30, "zone $_->{zone} has had removed keys")
    for @ledgers;

done_testing;
