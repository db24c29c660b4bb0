#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# This section measures lookups of many keys at once, by POST .../test, in a
# zone larger than the processor's caches and in one that fits into them. For
# comparison, it fetches random lines of as much memory.

use strict;
use warnings;

use Carp qw(croak);

use Bench;
use BloomTest::Zones qw(small_pages);

my $rounds = rounds(9);
my ($capacity, $memory) = quick() ? ('30m', '64m') : ('560m', '1g');
my $size = quick() ? '64 MiB' : '1 GiB';
my $keys = 1000;                          # an answer that the client takes

small_pages(1);

my $t = Bench::server(["zone=cached capacity=100k fpr=0.001 journal=off",
                       "zone=large capacity=$capacity fpr=0.001 journal=off"],
                      '');
my ($worker) = $t->workers;

# Untouched pages all map one page of zeros, so keys are added until each page
# has one. Other keys are looked up.

my ($added) = client([second_on], 'send', '-p', $t->port(8080),
                     "add,POST,/bloom/zones/large/keys,"
                     . (quick() ? 4 : 40) . ",100000");
$added->{failed} == 0 or croak 'keys are not added';
until_idle($t);

# Returns the nanoseconds of the worker for a key in each zone, and the
# nanoseconds that pass per key: those are more, because the worker waits for
# bodies.  Looks up other keys at each call.

my $first = 500_000_000;

sub asked {
    my (%ns, %passed);

    for my $line (client([second_on], 'send', '-p', $t->port(8080), '-r', 1,
                         '-f', $first, '-w', $worker,
                         map { "$_,POST,/bloom/zones/$_/test,1000,$keys" }
                             qw(cached large)))
    {
        $line->{failed} == 0 or croak "keys are not asked for: $line->{name}";
        $ns{ $line->{name} } = $line->{cpu} / $line->{keys} * 1e9;
        $passed{ $line->{name} } = $line->{seconds} / $line->{keys} * 1e9;
    }

    $first += 1000 * $keys;

    return (\%ns, \%passed);
}

# Fetches random lines in batches, on the worker's processor, with that many
# nanoseconds of other work per key between two batches.

sub limit {
    my ($work) = @_;

    return lookups([first_on], '-m', $memory, '--way', 'batch', '--work', $work,
                   '-r', 3);
}

my (%ns, @more, @passed, @dense, @paced);

asked();                                  # to warm up

for (1 .. $rounds) {
    my ($ns, $passed) = asked();

    push @{ $ns{$_} }, $ns->{$_} for qw(cached large);
    push @more, $ns->{large} - $ns->{cached};
    push @passed, $passed->{cached};
    push @dense, limit(0);
    push @paced, limit(int($passed->{cached} + 0.5));
}

$t->stop;

sub beside {
    my ($name, @limits) = @_;

    my @ns = map { $_->{limit_ns} } @limits;
    my ($middle, $least, $most) = ratios(\@more, \@ns);

    return [$name, number(median(@ns)),
            sprintf('%.2f (%.2f to %.2f)', $middle, $least, $most),
            '1.5: ' . verdict($middle <= 1.5)];
}

section("Lookups of many keys at once in a zone of $size");

table(['bodies of 1,000 keys', 'ns per key', 'cost of memory / random line',
       'target'],
      ['zone of 100,000 keys', number(median(@{ $ns{cached} })), '', ''],
      ["zone of $size", number(median(@{ $ns{large} })), '', ''],
      ['cost of memory: the difference', number(median(@more)), '', ''],
      beside('a random line, batches right after each other', @dense),
      beside(sprintf('a random line, %s ns of other work per key in between',
                     number(median(@passed))), @paced));

line('Reading bodies and writing answers costs the same in both zones, so the'
     . ' difference is the cost of memory. The random lines are those of'
     . ' `lookups --way batch`, without and with `--work`; there a lookup costs'
     . sprintf(' %.2f and %.2f of a random line.',
               map { median(map { $_->{ratio} } @$_) } \@dense, \@paced)
     . ' The other work takes as long as passes per key in the first zone, and'
     . ' uses no memory. But with it page tables are used less often, so they'
     . ' are found in a cache less often.');
line('');
