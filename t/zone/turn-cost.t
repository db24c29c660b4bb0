#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A worker that opens a slice or begins a layer does nothing in proportion to
# the filter: the addition in which it happens costs no more in a large zone than
# in a small one.  The helper, which might do the work instead, is stopped.
#
# The test counts the pages of shared memory that the worker reads or writes in
# each addition, as the kernel has marked them in the worker's page table.

use strict;
use warnings;

use List::Util qw(max min);

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

# TEST_NGINX_LARGE=1: slices and layers of 64 MiB instead of 8

my $times = $ENV{TEST_NGINX_LARGE} ? 8 : 1;

# An addition touches a few pages: those of the key's lines in each part, of the
# journal, and of the zone's counters.

use constant SOME => 16;

# What is measured, the zone, and how many keys its open part has room for

my @zones = (
    ['small', 'ring', 'capacity=88k', 11_000],
    ['large', 'ring', 'capacity=' . $times * 11_200 . 'k', $times * 1_400_000],
    ['few', 'layers', 'capacity=6k', 6000],
    ['many', 'layers', 'capacity=' . $times * 700 . 'k', $times * 700_000],
);
my %zone = (ring => 'fpr=1e-9 expire=24h',
            layers => 'fpr=1e-8 max_keys=20m');

my $t = BloomTest->new(log_level => 'notice');

$t->nginx_build !~ /fsanitize/
    or plan(skip_all => 'nginx with sanitizers touches more pages');

small_pages(1);
configure($t, [map { "zone=$_->[0] $_->[2] $zone{$_->[1]} removals=0" }
                @zones],
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

# Forgets which pages a process has touched.

sub forget {
    my ($pid) = @_;

    open my $fh, '>', "/proc/$pid/clear_refs" or die "clear_refs: $!";
    print $fh 1;
    close $fh or die "clear_refs: $!";
}

# Returns how many pages of shared memory a process has touched since then.

sub touched {
    my ($pid) = @_;
    my ($shared, $kib) = (0, 0);

    open my $fh, '<', "/proc/$pid/smaps" or die "smaps: $!";

    while (<$fh>) {
        $shared = $1 eq 's' if /^[\da-f]+-[\da-f]+ ...([sp]) /;
        $kib += $1 if $shared && /^Referenced: +(\d+) kB/;
    }

    return $kib / 4;
}

-w "/proc/$$/clear_refs"
    or plan(skip_all => 'the kernel does not say which pages a process touches');

my (%most, %size);

for (@zones) {
    my ($zone, $kind, undef, $room) = @$_;

    is(fill($zone, $room), 1, "zone $zone has one part, which is nearly full");

    my ($worker) = $t->workers;
    my $helper = $t->helper;

    kill STOP => $helper;
    wait_until(sub { `cat /proc/$helper/stat` =~ /\) T / })
        or die 'the helper does not stop';

    my (@keys, @touched);
    my $after = 0;

    while ($after < 10 && @touched < 500) {
        my ($key) = fresh(1);

        forget($worker);
        $t->get("/add/$zone?k=$key")->status == 200
            or die "bloom_add fails in zone $zone";
        push @touched, touched($worker);
        push @keys, $key;

        $after++ if $after || parts($zone) > 1;
    }

    is(scalar parts($zone), 2, "zone $zone goes on in another part without the"
                               . ' helper');
    cmp_ok(scalar @touched, '>', 11, "zone $zone: additions before and after"
                                        . ' are measured');
    is(ask($t, $zone, @keys), '1' x @keys, "zone $zone: no key is lost");

    $most{$zone} = max(@touched);
    cmp_ok(min(@touched), '>', 0, "zone $zone: pages are counted");
    $size{$zone} = (parts($zone))[-1]{bits} / 8;
    note("$zone: a part of $size{$zone} bytes, pages: @touched");

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
