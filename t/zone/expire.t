#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A key of a zone with expire= lives at least as long as it should, and at most
# one slice longer: through additions, restarts, kills, reloads and clocks that
# jump.  The time is injected.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Clock;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

use constant { EXPIRE => 8 * 3600, SLICE => 3600 };

my $t = BloomTest->new;
my $clock = BloomTest::Clock->new($t);

configure($t, ['zone=ids capacity=8k fpr=0.0001 expire=8h',
               'zone=flood capacity=800 fpr=1e-6 expire=8h'],
          api => 1, add => 1, workers => 2);
$t->run;

# Lets time pass, in steps of a quarter of a slice.  The helper has looked after
# the zone in each of them, when it has synchronised the journal twice.

sub passes {
    my ($seconds) = @_;

    while ($seconds > 0) {
        my $step = $seconds < SLICE / 4 ? $seconds : SLICE / 4;

        $clock->pass_all($step);
        $seconds -= $step;

        for (1 .. 2) {
            wait_until(sub {
                $t->request(POST => '/bloom/zones/ids/keys?durable=true',
                            body => "other\n")->status == 200
            }) or die 'the helper does nothing';
        }
    }
}

subtest 'a key lives as long as it should' => sub {
    add($t, 'ids', ['a']);
    passes(EXPIRE - 60);
    is(ask($t, 'ids', 'a', 'b'), '10', 'until its life ends');
    passes(SLICE + 120);
    is(ask($t, 'ids', 'a'), '0', 'and not longer than a slice after it');
};


# A flood must leave ready slices: without one, the open slice is not closed in
# time, and its keys live for another life.

subtest 'keys that are added after a flood expire in time' => sub {
    for my $batch (0 .. 39) {
        add($t, 'flood', [map { "flood$_" } 100 * $batch .. 100 * $batch + 99]);
    }

    add($t, 'flood', ['last']);
    passes(EXPIRE - 60);
    is(ask($t, 'flood', 'flood0', 'flood3999', 'last'), '111',
       'all keys are present until their life ends');
    passes(SLICE + 120);
    is(ask($t, 'flood', 'flood0', 'flood3999', 'last'), '000',
       'and absent not longer than a slice after it');
};

done_testing;
