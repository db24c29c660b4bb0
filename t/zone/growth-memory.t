#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# The memory of a layer is not touched before the layer begins, whichever pages
# the zone has.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Zones;

my $t = BloomTest->new;

$t->nginx_build !~ /NGX_DEBUG_MALLOC/
    or plan(skip_all => 'nginx is built to fill all shared memory at start');

my $capacity = 20_000;
my @zone = ("zone=ids capacity=$capacity fpr=1e-6 removals=0 max_keys=10m");

sub resident {
    my ($zone) = sort { $b->{size} <=> $a->{size} } zone_memory($t->master);

    return $zone->{resident};
}

# Bytes that the parts of the filter that are in use take.

sub parts {
    my $bits = 0;

    $bits += $_->{bits} for @{ zone_state($t, 'ids')->{filter}{parts} };

    return $bits / 8;
}

for my $pages ('small', 'huge') {
    subtest "on $pages pages" => sub {
        configure($t, \@zone, api => 1, workers => 2);
        $t->stop;
        small_pages($pages eq 'small');
        system 'rm', '-rf', $t->testdir . '/state';
        $t->run;

        zone_memory($t->master)
            or plan(skip_all => 'not allowed to look into /proc/PID/map_files;'
                                . ' run as root');

        my ($zone) = sort { $b->{size} <=> $a->{size} } zone_memory($t->master);
        my $most = $zone->{size};
        my $began = resident();

        cmp_ok($began, '<', $most / 50,
               'a zone that grows takes no memory before a key is added');

        my $from = 1;

        for my $times (1, 3, 7) {
            while ($from < $times * $capacity) {
                add($t, 'ids', [map { "k$_" } $from .. $from + 999]);
                $from += 1000;
            }

            # a huge page is taken as a whole; parts share the first and the
            # last one with their neighbours

            my $page = $pages eq 'small' ? 4096 : 2 << 20;

            cmp_ok(resident() - $began, '<=', parts() + 16 * $page,
                   "at $times times the capacity the zone takes the memory of"
                   . ' the parts in use');
            cmp_ok(resident() - $began, '>=', parts() / 4,
                   'the parts are in memory');
        }

        cmp_ok(zone_state($t, 'ids')->{filter}{layers}, '>=', 2,
               'the zone has grown');

        # of lookups, too

        my $was = resident();

        lookup_keys($t, 'ids', map { "no$_" } 1 .. 10_000);
        cmp_ok(resident() - $was, '<=', parts(),
               'lookups touch no unused layer');
    };
}

done_testing;
