#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# This section measures lookups of many keys at once, by POST .../test, in a
# zone that no cache holds, in one that a cache holds, and beside random lines
# of as much memory.

use strict;
use warnings;

use Carp qw(croak);

use Bench;

my $rounds = rounds(9);
my ($capacity, $memory) = quick() ? ('30m', '64m') : ('560m', '1g');
my $size = quick() ? '64 MiB' : '1 GiB';
my $keys = 1000;                          # an answer that the client takes

my $t = Bench::server(["zone=cached capacity=100k fpr=0.001 journal=off",
                       "zone=large capacity=$capacity fpr=0.001 journal=off"
                       . ' huge_pages=off'],
                      '');
my ($worker) = $t->workers;

# Pages that nobody wrote to are the same zeros: keys are added until each has
# one, and those that are asked for are others.

my ($added) = client([second_on], 'send', '-p', $t->port(8080),
                     "add,POST,/bloom/zones/large/keys,"
                     . (quick() ? 4 : 40) . ",100000");
$added->{failed} == 0 or croak 'keys are not added';
until_idle($t);

# Nanoseconds that the worker takes for a key in each zone, and that pass until
# the next one: those are more, since bodies are awaited.  Other keys each time.

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

# A random line of many, where the worker runs, with so many nanoseconds of other
# work a key between one batch and the next.

sub limit {
    my ($work) = @_;

    return lookups([first_on], '-m', $memory, '--way', 'batch', '--work', $work,
                   '-r', 3);
}

my (%ns, @more, @passed, @dense, @paced);

asked();                                  # for nothing, to be awake

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

section("Keys asked for together in a zone of $size");

table(['bodies of 1,000 keys', 'ns, a key', 'what the memory costs, to that',
       'to reach'],
      ['zone of 100,000 keys', number(median(@{ $ns{cached} })), '', ''],
      ["zone of $size", number(median(@{ $ns{large} })), '', ''],
      ['what the memory costs', number(median(@more)), '', ''],
      beside('a random line of many, one batch right after the other', @dense),
      beside(sprintf('the same, with %s ns a key of other work between',
                     number(median(@passed))), @paced));

line('What is read of a body and written into an answer is the same in both'
     . ' zones. The random lines are those of `lookups --way batch`,'
     . ' without and with `--work`, which found'
     . sprintf(' %.2f and %.2f of them for a lookup of the core.',
               map { median(map { $_->{ratio} } @$_) } \@dense, \@paced)
     . ' That work is as long as in the first zone passes from key to key, and'
     . ' takes nothing from the memory; but page tables that are walked more'
     . ' seldom for it are found in a cache more seldom, too.');
line('');
