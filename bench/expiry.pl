#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# This section lets keys expire, in simulated time, in rings of slices, of which
# a zone with expire= has eight in a life, and in the rotating filters of KrakenD, and measures how
# long keys live, the memory, the false-positive rate and the time of a lookup.

use strict;
use warnings;

use Bench;

my $rounds = rounds(3);
my $fpr = 0.001;
my @sizes = quick() ? (100_000) : (100_000, 4_000_000);

my @kinds = (['2 slices', 'slices', 2], ['8 slices', 'slices', 8],
             ['20 slices', 'slices', 20],
             ['rotation, 2 TTLs a life', 'rotation', 2],
             ['rotation, 1 TTL a life', 'rotation', 1]);

section('Expiry');

for my $capacity (@sizes) {
    for my $burst (0, 1) {
        my (%line, %ns);

        for (1 .. $rounds) {
            for my $kind (@kinds) {
                my ($name, @arguments) = @$kind;
                my ($line) = client([first_on], 'expiry', $arguments[0],
                                    $capacity, $fpr, $arguments[1], $burst);

                $line{$name} = $line;
                push @{ $ns{$name} }, $line->{absent_ns};
            }
        }

        my @rows = map {
            my ($name, $kind) = @$_;
            my $line = $line{$name};

            [$name, sprintf('%.2f', $line->{least}),
             sprintf('%.2f', $line->{greatest}), number($line->{bytes}),
             number($line->{in_use}), sprintf('%.4f %%', 100 * $line->{fpr}),
             number(median(@{ $ns{$name} })),
             $kind eq 'slices'
             ? verdict($line->{least} >= 1
                       && $line->{greatest} <= 1 + 1 / $_->[2] + 2 / 1024
                       && $line->{fpr} <= $fpr * 1.25)
             : '']
        } @kinds;

        line('Filters for ' . number($capacity) . " keys in a life at a rate of"
             . " $fpr, which arrive "
             . ($burst ? 'all at once, once in each life:' : 'evenly:'));
        line('');
        table(['filter', 'least life', 'greatest life', 'bytes reserved',
               'bytes in use', 'greatest rate', 'absent key, ns', 'promised'],
              @rows);
    }
}

line('A life is 1; time moves on by 1/1024. The rate is measured with 200,000'
     . ' absent keys at each of many moments, and the greatest one is shown, so'
     . ' it may exceed the promise by chance, by up to a quarter. The longest 1 % of'
     . ' the lives are left out: these keys are false positives when they are'
     . ' gone. The rotation'
     . ' has the sizes that its formulas give for the keys of two TTLs and half'
     . " the rate, and this project's hash function.");
line('');
