#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# This section looks absent keys up in rings of slices, as zones with expire=
# have. A key has one line in each slice, and the lines are requested from
# memory together. The target is that nine slices, the usual number, cost no
# more than two random lines, the second of which is requested after the first
# is read.

use strict;
use warnings;

use Bench;

my $rounds = rounds(21);
my $bytes = (quick() ? 256 : 4096) << 20;
my @slices = (1, 2, 5, 9, 17);
my $usual = 9;

my %what = (one => 'one filter', two => 'two filters, one after the other',
            map { ("ring $_" => $_ == 1 ? '1 slice' : "$_ slices") } @slices);
my @ways = qw(alone many batch);

section('Rings of slices');

for my $pages (qw(small huge)) {
    my %ns;

    for my $line (client([first_on], 'ring', $pages, $bytes, $rounds, @slices))
    {
        my $name = $line->{name};

        $name .= " $line->{slices}" if $name eq 'ring';
        push @{ $ns{$name}{$_} }, $line->{"${_}_ns"} for @ways;
    }

    my @rows;

    for my $name ('one', 'two', map { "ring $_" } @slices) {
        my ($ratio, $least, $most) = ratios($ns{$name}{alone},
                                            $ns{two}{alone});

        push @rows, [$what{$name},
                     sprintf('%.0f', median(@{ $ns{$name}{alone} })),
                     sprintf('%.2f (%.2f to %.2f)', $ratio, $least, $most),
                     map({ sprintf('%.0f', median(@{ $ns{$name}{$_} })) }
                         qw(many batch)),
                     $name eq "ring $usual" ? '1: ' . verdict($ratio <= 1)
                                            : ''];
    }

    line('Filters in ' . number($bytes >> 20) . " MiB of memory on $pages"
         . ' pages:');
    line('');
    table(['filter', 'a lookup alone, ns', 'ratio to two filters',
           'one of many, ns', 'one of a batch of 64, ns', 'target'], @rows);
}

line('A lookup alone begins when the one before has answered, as the lookup of'
     . ' a request does; many begin without waiting. All filters have one line'
     . ' for each key and lie in the same memory. Keys are absent, and without'
     . ' hashing. The ratio is the median over the rounds, with the least and'
     . ' the greatest in parentheses.');
line('');
