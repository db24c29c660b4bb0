#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# This section measures how long nginx takes to replay a journal when it starts:
# as the log says, and as the difference to a start without a journal. Then it
# compares zones whose keys expire, and zones that grow, with a plain one and, if
# TEST_NGINX_OLD_MODULE names one, with an earlier module.

use strict;
use warnings;

use List::Util qw(min);

use Bench;

my $rounds = rounds(7);

# When a journal is longer than the zone's image and than 64 MiB, nginx writes a
# checkpoint. These journals are about as long as possible without one.

my @zones = (['zone=cached capacity=10m fpr=0.001', quick() ? 1 : 6],
             ['zone=large capacity=200m fpr=0.001', quick() ? 1 : 30]);

section('Replay of a journal at start');

my @rows;

for (@zones) {
    my ($zone, $millions) = @$_;
    my $t = Bench::server([$zone], '');
    my ($name) = $zone =~ /=(\w+)/;
    my $state = $t->testdir . '/state';
    my $aside = $t->testdir . '/aside';

    my ($added) = client([second_on], 'send', '-p', $t->port(8080),
                         "add,POST,/bloom/zones/$name/keys,"
                         . $millions * 10 . ',100000');
    $added->{failed} == 0 or die "keys are not added\n";
    until_idle($t);
    $t->stop;

    my (@log, @with, @without, @cpu);

    for my $round (1 .. $rounds) {
        my $mark = $t->log_mark;
        my ($seconds, $cpu) = started($t);

        my ($keys, $ms) = $t->log_since($mark)
            =~ /replayed (\d+) keys? in \d+ records? of its journal, in (\d+) ms/
            or die "the log does not say that the journal was replayed\n";
        $keys == $added->{keys}
            or die "$keys of $added->{keys} keys were replayed\n";

        stop_started($t);

        rename $state, $aside or die "rename: $!";
        my ($other, $other_cpu) = started($t);
        stop_started($t);
        system('rm', '-rf', $state);
        rename $aside, $state or die "rename: $!";

        push @log, $ms / 1000;
        push @with, $seconds;
        push @without, $other;
        push @cpu, $cpu - $other_cpu;
    }

    my $keys = $added->{keys};
    my @outside = map { $with[$_] - $without[$_] } 0 .. $#with;

    push @rows, [
        'zone of ' . ($name eq 'cached' ? '10 million' : '200 million')
        . ' keys', number($keys), number(median(@log)),
        number($keys / median(@log)), number($keys / min(@log)),
        number($keys / median(@outside)), number($keys / median(@cpu)),
        '10 M: ' . verdict($keys / median(@log) >= 1e7),
    ];
}

table(['', 'keys', 'seconds by the log', 'keys/s', 'best round',
       'keys/s of the command', 'keys per second of a processor', 'target'],
      @rows);

line('"Keys/s of the command" uses the time until the command returns, less'
     . ' that of a start without a journal, in turns. The time of a processor'
     . ' is measured in the same way. The journal is in the page cache.');
line('');


# Seven million keys in each zone, which start in turns.  A journal of 64 MiB, a
# little more, would be replaced by a checkpoint.  Each start has a copy of the
# state, for the same reason.

my $million = quick() ? 1 : 7;

@zones = (
    ['plain', 'capacity=10m fpr=0.001', 'plain'],
    ['expire', 'capacity=10m fpr=0.001 expire=24h', 'keys expire'],
    ['grow', 'capacity=1m fpr=0.001 max_keys=15m', 'grows'],
);

unshift @zones, ['old', 'capacity=10m fpr=0.001', 'plain, earlier module',
                 $ENV{TEST_NGINX_OLD_MODULE}]
    if $ENV{TEST_NGINX_OLD_MODULE};

my (%t, %ms, %cpu);

for (@zones) {
    my ($name, $zone, undef, $module) = @$_;
    my $t = $t{$name} = Bench::server(["zone=$name $zone"], '', $module);

    my ($added) = client([second_on], 'send', '-p', $t->port(8080), '-d', 8,
                         '-f', 10_000_000, "add,POST,/bloom/zones/$name/keys,"
                         . $million * 10 . ',100000');
    $added->{failed} == 0 && $added->{keys} == $million * 1e6
        or die "keys are not added\n";
    until_idle($t);

    $t->kill_all;
    rename $t->testdir . '/state', $t->testdir . '/full'
        or die "rename: $!";
}

for my $round (1 .. $rounds) {
    for (@zones) {
        my ($name) = @$_;
        my $t = $t{$name};
        my $dir = $t->testdir;

        system('cp', '-a', "$dir/full", "$dir/state") == 0
            or die "the journal cannot be copied\n";

        my $mark = $t->log_mark;
        my (undef, $cpu) = started($t);
        my ($keys, $ms) = $t->log_since($mark)
            =~ /replayed (\d+) keys? in \d+ records? of its journal, in (\d+) ms/
            or die "the log does not say that the journal was replayed\n";
        $keys == $million * 1e6
            or die "$keys keys were replayed in the zone $name\n";

        stop_started($t);
        system('rm', '-rf', "$dir/state");

        push @{ $ms{$name} }, $ms;
        push @{ $cpu{$name} }, $cpu;
    }
}

@rows = ();

for (@zones) {
    my ($name, $zone, $what) = @$_;
    my ($ratio, $least, $most) = ratios($cpu{$name}, $cpu{plain});
    my $rate = $million * 1e6 / (median(@{ $ms{$name} }) / 1000);

    push @rows, [
        $what, "`$zone`", number(median(@{ $ms{$name} }) / 1000), number($rate),
        number($million * 1e6 / (min(@{ $ms{$name} }) / 1000)),
        number($million * 1e6 / median(@{ $cpu{$name} })),
        sprintf('%.2f (%.2f to %.2f)', $ratio, $least, $most),
        '10 M: ' . verdict($rate >= 1e7),
    ];
}

line("The replay of $million million keys, in turns:");
line('');
table(['zone', 'parameters', 'seconds by the log', 'keys/s', 'best round',
       'keys per second of a processor', 'time of a processor, ratio to plain',
       'target'], @rows);
line('The time of a processor is that of the whole start. No earlier module was'
     . ' measured: TEST_NGINX_OLD_MODULE names none.')
    if !$ENV{TEST_NGINX_OLD_MODULE};
line('');
