#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# This section looks absent keys up in rings of slices, as zones with expire=
# have. A key has one line in each slice or, at lower rates, two or three. Its
# first lines in all slices are requested from memory together. The target is that
# nine slices, the usual number, cost no more than two random lines, the second of
# which is requested after the first is read.

use strict;
use warnings;

use Bench;

my $rounds = rounds(21);
my $bytes = (quick() ? 256 : 4096) << 20;

# SLICES, with one line for each key, and SLICES@FPR, as zones have

my @rings = qw(1 2 5 9 17 9@0.001 9@1e-6 17@0.001 17@1e-6);

my @ways = qw(alone many batch);

section('Rings of slices');

for my $pages (qw(small huge)) {
    my (%ns, %line);

    for my $line (client([first_on], 'ring', $pages, $bytes, $rounds, @rings))
    {
        my $name = $line->{name};

        $line{$name} = $line;
        push @{ $ns{$name}{$_} }, $line->{"${_}_ns"} for @ways;
    }

    my @rows;

    for my $name ('one', 'two', @rings) {
        my ($ratio, $least, $most) = ratios($ns{$name}{alone},
                                            $ns{two}{alone});

        push @rows, [what($line{$name}),
                     sprintf('%.0f', median(@{ $ns{$name}{alone} })),
                     sprintf('%.2f (%.2f to %.2f)', $ratio, $least, $most),
                     map({ sprintf('%.0f', median(@{ $ns{$name}{$_} })) }
                         qw(many batch)),
                     $line{$name}{slices} == 9 ? '1: ' . verdict($ratio <= 1)
                                               : ''];
    }

    line('Filters in ' . number($bytes >> 20) . " MiB of memory on $pages"
         . ' pages:');
    line('');
    table(['filter', 'a lookup alone, ns', 'ratio to two filters',
           'one of many, ns', 'one of a batch of 64, ns', 'target'], @rows);
}

line('A lookup alone begins when the one before has answered, as the lookup of'
     . ' a request does; many begin without waiting. All filters lie in the same'
     . ' memory, with 17/32 of the bits set, as full slices of `fpr=0.001` have.'
     . ' One filter and two filters have one line for each key. Keys are absent,'
     . ' and without hashing. The ratio is the median over the rounds, with the'
     . ' least and the greatest in parentheses.');
line('');


# Describes the filter of a line of results.

sub what {
    my ($line) = @_;
    my ($name, $slices, $lines) = @$line{qw(name slices lines)};

    return 'one filter' if $name eq 'one';
    return 'two filters, one after the other' if $name eq 'two';

    my $what = ($slices == 1 ? '1 slice' : "$slices slices")
               . ($lines == 1 ? ', 1 line' : ", $lines lines");

    return $name =~ /@(.*)/ ? "$what: `fpr=$1`" : $what;
}
