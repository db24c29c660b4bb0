#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A worker that opens a slice or begins a layer does nothing in proportion to
# the filter: the addition in which it happens costs no more in a large zone than
# in a small one.  The helper, which might do the work instead, is stopped.
#
# The test counts how often the kernel has to map memory into the worker (minor
# faults).  The worker is a new one, which has none of the zone's memory mapped
# yet, so each page that it writes is a fault, and each 16 pages that it reads.

use strict;
use warnings;

use List::Util qw(max min);

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

# TEST_NGINX_LARGE=1: slices and layers of 64 MiB instead of 8

my $times = $ENV{TEST_NGINX_LARGE} ? 8 : 1;

# An addition writes a few pages: those of the key's lines, of the journal, and
# of the zone's counters.

use constant SOME => 16;

# What is measured, the zone, and how many keys its open part has room for

my @zones = (
    ['small', 'ring', 'capacity=22k', 11_000],
    ['large', 'ring', 'capacity=' . $times * 2800 . 'k', $times * 1_400_000],
    ['few', 'layers', 'capacity=6k', 6000],
    ['many', 'layers', 'capacity=' . $times * 700 . 'k', $times * 700_000],
);
my %zone = (ring => 'fpr=1e-9 expire=24h slices=2',
            layers => 'fpr=1e-8 max_keys=20m');

my $t = BloomTest->new(log_level => 'notice');

configure($t, [map { "zone=$_->[0] $_->[2] $zone{$_->[1]} removals=0"
                     . ' huge_pages=off' } @zones],
          api => 1, add => 1);
$t->run;

my $next = 0;

sub fresh { return map { 'key' . $next++ } 1 .. $_[0] }

sub parts { return @{ zone_state($t, $_[0])->{filter}{parts} } }

# Fills a zone until about 30 more keys make its open part full.

sub fill {
    my ($zone, $room) = @_;

    while ((my $left = $room - (parts($zone))[-1]{estimated_items}) > 60) {
        add($t, $zone, [fresh(min(50_000, int(0.98 * $left) - 20))]);
    }

    return scalar parts($zone);
}

sub faults {
    my ($pid) = @_;

    open my $fh, '<', "/proc/$pid/stat" or die "/proc/$pid/stat: $!";
    my ($fields) = <$fh> =~ /.*\) (.*)/;

    return (split ' ', $fields)[7];
}

my (%most, %size);

for (@zones) {
    my ($zone, $kind, undef, $room) = @$_;

    is(fill($zone, $room), 1, "zone $zone has one part, which is nearly full");

    $t->reload;

    my ($worker) = $t->workers;
    my ($helper) = $t->helpers;

    kill STOP => $helper;
    wait_until(sub { `cat /proc/$helper/stat` =~ /\) T / })
        or die 'the helper does not stop';

    # the first additions load what the worker needs for any zone

    my (@keys, @faults);
    my $after = 0;

    while ($after < 10 && @faults < 500) {
        my ($key) = fresh(1);
        my $before = faults($worker);

        $t->get("/add/$zone?k=$key")->status == 200
            or die "bloom_add fails in zone $zone";
        push @faults, faults($worker) - $before;
        push @keys, $key;

        $after++ if $after || parts($zone) > 1;
    }

    is(scalar parts($zone), 2, "zone $zone goes on in another part without the"
                               . ' helper');
    cmp_ok(scalar @faults, '>', 5 + 10, "zone $zone: additions before and after"
                                        . ' are measured');
    is(ask($t, $zone, @keys), '1' x @keys, "zone $zone: no key is lost");

    splice @faults, 0, 5;
    $most{$zone} = max(@faults);
    $size{$zone} = (parts($zone))[-1]{bits} / 8;
    note("$zone: a part of $size{$zone} bytes, faults: @faults");

    kill CONT => $helper;
}

for (['ring', 'small', 'large'], ['layers', 'few', 'many']) {
    my ($kind, $small, $large) = @$_;

    cmp_ok($size{$small}, '<', 128 << 10, "$kind: the small part is small");
    cmp_ok($size{$large}, '>', $times * (7 << 20), "$kind: the large one is large");
    cmp_ok($most{$large}, '<=', $most{$small} + SOME,
           "$kind: an addition that goes on in another part costs no more in a"
           . ' large zone than in a small one');
}

done_testing;
