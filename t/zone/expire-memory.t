#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# The memory of a slice is touched when keys are added to it, and given back when
# the slice is dropped, and each line of it is cleared.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Clock;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

use constant { LIFE => 8 * 3600, SLICE => 3600, KEYS => 10_000 };

my $t = BloomTest->new(log_level => 'notice');

$t->nginx_build !~ /NGX_DEBUG_MALLOC/
    or plan(skip_all => 'nginx is built to fill all shared memory at start');

my $clock = BloomTest::Clock->new($t);

sub resident {
    my ($zone) = sort { $b->{size} <=> $a->{size} } zone_memory($t->master);

    return $zone->{resident};
}

sub begin {
    my ($pages, $zone) = @_;

    configure($t, ["zone=ids $zone removals=0",
                   'zone=beat capacity=1k fpr=0.1'],
              api => 1, workers => 2);
    $t->stop;
    small_pages($pages eq 'small');
    system 'rm', '-rf', $t->testdir . '/state';
    $t->run;
}

# Time passes in steps of half a slice, and the helper looks after the zone in
# each of them: it has, when it has synchronised the journal twice.

sub passes {
    my ($seconds) = @_;

    for (my $passed = 0; $passed < $seconds; $passed += SLICE / 2) {
        $clock->pass_all(SLICE / 2);
        add($t, 'beat', ['key'], durable => 1) for 1 .. 2;
    }
}

sub fill {
    my ($name) = @_;

    for my $from (0 .. KEYS / 1000 - 1) {
        add($t, 'ids', [map { "$name$_" }
                        1000 * $from + 1 .. 1000 * $from + 1000]);
    }
}

for my $pages ('small', 'huge') {
    subtest "on $pages pages" => sub {
        begin($pages, 'capacity=8m fpr=1e-6 expire=8h');

        zone_memory($t->master)
            or plan(skip_all => 'not allowed to look into /proc/PID/map_files;'
                                . ' run as root');

        my ($zone) = sort { $b->{size} <=> $a->{size} } zone_memory($t->master);
        my $began = resident();

        cmp_ok($began, '<', $zone->{size} / 50,
               'a zone that expires takes no memory before a key is added');

        # in two banks of 17 slices, of which ten thousand keys touch most

        my $slice = $zone->{size} / 34;
        my @took;

        for my $n (0 .. 2) {
            fill("s$n-");
            push @took, resident() - $began;
            passes(SLICE);
        }

        cmp_ok($took[$_], '<', ($_ + 1.2) * $slice,
               "the zone takes the memory of $_ slices and the open one")
            for 0 .. 2;
        cmp_ok($took[2], '>', 1.2 * $slice, 'slices are in memory');

        my $was = resident();

        lookup_keys($t, 'ids', map { "no$_" } 1 .. 5000);

        # the open slice, too, though no key has been added to it yet

        cmp_ok(resident() - $was, '<', 1.2 * $slice,
               'lookups touch no slice that is not live');

        $was = resident();
        $t->reload;
        cmp_ok(resident() - $was, '<', $slice / 2,
               'a reload without a change takes no more memory');

        passes(LIFE + 2 * SLICE);
        ok(wait_until(sub { resident() - $began < 1.2 * $slice }),
           'the memory of dropped slices is given back, except the open'
           . ' one')
            or diag(resident() - $began, " bytes; a slice has $slice");
        is_deeply([lookup_keys($t, 'ids', 's0-1', 's1-1', 's2-1')],
                  [('absent') x 3], 'the keys have expired');

        for my $time (1 .. 20) {
            fill("t$time-") if $time % 4 == 1;
            passes(SLICE);
        }

        cmp_ok(resident() - $began, '<', 4 * $slice,
               'the memory does not grow over lives');
        $t->stop;
    };
}


# The slices of the first zone have several pages each, and begin and end within
# a page.  Those of the second are smaller than a page.  Each slice is used again
# in the hours after the keys have expired: a line that was not cleared would still
# have its keys, whose bits are all in one line at this rate.

for my $capacity (80_000, 1000) {
    subtest "each line of a dropped slice is cleared, capacity=$capacity"
        => sub
    {
        begin('small', "capacity=$capacity fpr=0.05 expire=8h");

        my @keys = map { "w$_" } 1 .. $capacity;

        add($t, 'ids', [splice @{ [@keys] }, 500 * $_, 500])
            for 0 .. $capacity / 500 - 1;
        is(scalar(grep { $_ ne 'present' } lookup_keys($t, 'ids', @keys)), 0,
           'all keys are present');
        passes(LIFE + 2 * SLICE);

        my $present = 0;

        for my $hour (1 .. 18) {
            add($t, 'ids', ["hour$hour"]);
            $present += grep { $_ eq 'present' } lookup_keys($t, 'ids', @keys);
            passes(SLICE);
        }

        cmp_ok($present, '<', 5, 'none of them comes back with its slice');
        $t->stop;
    };
}


done_testing;
