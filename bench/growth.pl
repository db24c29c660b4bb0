#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# This section fills filters beyond the capacity that they began with, and
# measures their false-positive rate, their bytes and the time of a lookup. It
# compares layers (max_keys) with the published algorithm of RedisBloom and with
# a filter that has room for all keys from the beginning.

use strict;
use warnings;

use Bench;

my $rounds = rounds(5);
my $fpr = 0.001;
my $times = 16;
my $absent = quick() ? 1_000_000 : 10_000_000;

# in the processor's caches, and beyond them

my @sizes = quick() ? (100_000) : (100_000, 4_000_000);

my %what = (layers => 'layers', links => 'links of RedisBloom',
            one => 'one filter for all');

section('Growth');

for my $capacity (@sizes) {
    my (%last, %ns);

    for my $round (1 .. $rounds) {
        for my $kind (qw(layers links one)) {
            for my $line (client([first_on], 'growth', $kind, $capacity, $fpr,
                                 $times, $round == 1 ? $absent : 1000))
            {
                my $at = $line->{times};

                $last{$kind}{$at} //= $line;
                push @{ $ns{$kind}{$at}{$_} }, $line->{$_}
                    for 'absent_ns', 'present_ns';
            }
        }
    }

    my @rows;

    for my $at (sort { $a <=> $b } keys %{ $last{layers} }) {
        for my $kind (qw(layers links one)) {
            my $line = $last{$kind}{$at};
            my $limit = $kind eq 'layers'
                        && verdict($line->{fpr}
                                   <= $fpr + 3 * sqrt($fpr / $absent));

            push @rows, [$at, $what{$kind}, $line->{parts},
                         number($line->{bytes}),
                         sprintf('%.1f', 8 * $line->{bytes} / $line->{keys}),
                         sprintf('%.4f %%', 100 * $line->{fpr}),
                         number(median(@{ $ns{$kind}{$at}{absent_ns} })),
                         number(median(@{ $ns{$kind}{$at}{present_ns} })),
                         $limit ? "$fpr: $limit" : ''];
        }
    }

    line('Filters for ' . number($capacity) . " keys at a rate of $fpr that"
         . " get up to $times times as many:");
    line('');
    table(['times the capacity', 'filter', 'parts', 'bytes', 'bits per key',
           'measured rate', 'absent key, ns', 'present key, ns', 'target'],
          @rows);
}

line("The rate is measured with $absent absent keys. The links are those that"
     . ' RedisBloom makes with its defaults (expansion 2; the first link has'
     . ' half the rate, and each further one half of the one before), tested by'
     . " this project's code for imported filters. Lookups are one at a time,"
     . ' of random keys, without hashing.');
line('');
