#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# The false-positive rate of a zone with expire= is at most what was promised, at
# each time of weeks, as long as no life has more than capacity= keys; and no key
# dies early even if more keys are added.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Clock;
use BloomTest::Expiry;
use BloomTest::Zones;

use constant { HOUR => 3600, LIFE => 8 * 3600, DAY => 86400, KEYS => 4000,
               RATE => 0.01, ASKED => 20000 };

my $t = BloomTest->new;
my $clock = BloomTest::Clock->new($t);
my $time = BloomTest::Expiry->new($t, $clock);
my $zone = 'capacity=' . KEYS . ' fpr=' . RATE . ' expire=8h journal=off';

configure($t, ["zone=even $zone", "zone=burst $zone",
               "zone=grows $zone max_keys=" . 3 * KEYS, "zone=flood $zone",
               'zone=tick capacity=8k fpr=0.001'],
          api => 1, workers => 2);
$t->run;

my ($number, $asked) = (0, 0);

sub new_keys { return map { 'key' . $number++ } 1 .. $_[0] }

# Returns the number of ASKED keys that were never added and are present.

sub wrong {
    my ($zone) = @_;

    return scalar grep { $_ eq 'present' }
                       lookup_keys($t, $zone, map { 'never' . $asked++ }
                                                  1 .. ASKED);
}

# A measurement may be above the promise by five standard errors.

use constant MOST => RATE * ASKED + 5 * sqrt(RATE * ASKED);

sub lost {
    my ($zone, @keys) = @_;

    return scalar grep { $_ ne 'present' } lookup_keys($t, $zone, @keys);
}


subtest 'keys arrive evenly for two weeks' => sub {
    my ($most, $lost, $sum, $n, @live) = (0, 0, 0, 0);

    for my $quarter (1 .. 14 * 24 * 4) {
        my @new = new_keys(KEYS / 32);

        add($t, 'even', \@new);
        push @live, \@new;
        shift @live if @live > 32;
        $time->passes(HOUR / 4);
        next if $quarter % 29;

        my $wrong = wrong('even');
        $most = $wrong if $wrong > $most;
        $sum += $wrong;
        $n++;
        $lost += lost('even', map { @$_ } @live[1 .. $#live]);
    }

    cmp_ok($most, '<=', MOST, 'the rate is never above the promise');
    cmp_ok($sum / $n, '<=', RATE * ASKED, 'nor is it on average');
    cmp_ok($sum / $n, '>=', RATE * ASKED / 20, 'the memory is not wasted');
    is($lost, 0, 'no key dies early');
};


subtest 'keys arrive in bursts' => sub {
    my ($most, $lost) = (0, 0);

    for my $round (1 .. 30) {
        my @new = new_keys(KEYS);

        add($t, 'burst', [splice @{ [@new] }, 1000 * $_, 1000]) for 0 .. 3;
        $time->settle;       # the helper notes when slices were closed
        my $wrong = wrong('burst');
        $most = $wrong if $wrong > $most;
        $time->passes(LIFE - 60);
        $lost += lost('burst', @new);
        $time->passes(120 + ($round % 3) * HOUR / 2);
    }

    cmp_ok($most, '<=', MOST, 'the rate is never above the promise');
    is($lost, 0, 'no key dies early');
};


subtest 'max_keys= is reached' => sub {
    my ($most, $lost) = (0, 0);

    for my $round (1 .. 10) {
        my @new = new_keys(3 * KEYS);

        add($t, 'grows', [@new[2000 * $_ .. 2000 * $_ + 1999]]) for 0 .. 5;
        $time->settle;
        my $wrong = wrong('grows');
        $most = $wrong if $wrong > $most;
        $time->passes(LIFE - 60);
        $lost += lost('grows', @new);
        $time->passes(120);
    }

    cmp_ok($most, '<=', MOST, 'the rate is never above the promise');
    is($lost, 0, 'no key dies early');
};


subtest 'more keys than capacity= are added' => sub {
    my ($lost, @live) = (0);

    for my $hour (1 .. 60) {
        my @new = new_keys($hour > 24 && $hour < 36 ? KEYS : KEYS / 8);

        add($t, 'flood', \@new);
        push @live, \@new;
        shift @live if @live > 8;
        $time->passes(HOUR);
        $lost += lost('flood', map { @$_ } @live[1 .. $#live]);
    }

    is($lost, 0, 'no key dies early');
    cmp_ok(wrong('flood'), '<=', MOST,
           'the rate is as promised again when the flood has expired');
};

done_testing;
