#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# This section loads an image while nginx serves.  It measures how the load
# affects requests, how fast it is compared with a plain read() of the same file
# into new shared memory, and how much memory stays in use.

use strict;
use warnings;

use List::Util qw(sum max min);

use Bench;
use BloomTest::Zones qw(zone_memory);

my $rounds = rounds(9);
my $capacity = quick() ? '32m' : '546m';    # of 64 MiB, of 1 GiB
my $few = quick() ? 100_000 : 5_000_000;    # keys that are in it

my $t = BloomTest->new(log_level => 'notice');
my $image = $t->testdir . '/big.bloom';

$t->write_file('keys', join '', map { "key$_\n" } 1 .. $few);
my ($exit, undef, $error)
    = $t->run_tool('build', '-q', '-o', $image, '-n', $capacity,
                   $t->testdir . '/keys', { limit => 600 });
$exit == 0 or die "the image cannot be built: $error";
unlink $t->testdir . '/keys';

my $size = -s $image;

Bench::configure($t, ["zone=big file=$image"], <<'CONF');
        location / { bloom_reject present $uri zone=big; empty_gif; }
CONF
$t->run;

my ($helper) = $t->helpers;
system("taskset -p -c 1 $helper > /dev/null") == 0 or die "taskset fails\n"
    if second_on;

my ($before) = sort { $b->{size} <=> $a->{size} } zone_memory($t->master);

my $of = sprintf '%.0f MiB', $size / 2 ** 20;


section("Reload of an image of $of");

# While nobody sends requests: a load, read(), and read() with the computations
# of a load, in turns.

my (%seconds, %cpu, @took);
my @post = ('send', '-p', $t->port(8080),
            'load,POST,/bloom/zones/big/reload,1,0');

system("cat $image > /dev/null");

for (1 .. $rounds) {
    my $used = Bench::processor_time_with_children($helper);
    my ($line) = client([first_on], @post);

    $line->{failed} == 0 or die "a reload failed\n";
    push @{ $seconds{load} }, $line->{seconds};

    until_idle($t);
    push @{ $cpu{load} },
         Bench::processor_time_with_children($helper) - $used;
    push @took, $t->get('/bloom/zones/big')->json->{load}{duration_ms};

    for (['read'], ['check', '-c']) {
        my ($name, @option) = @$_;
        my ($line) = client([second_on], 'read_shm', @option, $image);

        push @{ $seconds{$name} }, $line->{seconds};
        push @{ $cpu{$name} }, $line->{cpu};
    }
}

sub rate { return sprintf '%.2f GB/s', $size / $_[0] / 1e9 }

sub ratio { return sprintf '%.2f (%.2f to %.2f)', @_ }

sub row {
    my ($title, $name) = @_;

    return ($title, number(median(@{ $seconds{$name} })),
            rate(median(@{ $seconds{$name} })), rate(min(@{ $seconds{$name} })),
            ratio(ratios($seconds{read}, $seconds{$name})),
            number(median(@{ $cpu{$name} })),
            ratio(ratios($cpu{read}, $cpu{$name})));
}

my $reached = (ratios($seconds{read}, $seconds{load}))[0];

table(['without requests', 'seconds', 'rate', 'best round', 'ratio to read()',
       'seconds of a processor', 'ratio', 'target'],
      [row('`read()` of the file into fresh shared memory', 'read'), ''],
      [row('the same, with checksums and counting of bits', 'check'), ''],
      [row('`POST .../reload`, until it is answered', 'load'),
       '0.8: ' . verdict($reached >= 0.8)]);

line('In turns, all on the second processor, with the file in the page cache.'
     . ' By the endpoint, the load itself takes '
     . sprintf('%.0f', median(@took))
     . ' ms. The seconds do not include what the job does after the answer: it'
     . ' gives the old pages back. Those of a processor do.');
line('');


# Memory in use

my ($after) = sort { $b->{size} <=> $a->{size} } zone_memory($t->master);


# While many clients send requests

my @lines = client([first_on], 'ask', '-p', $t->port(8080), '-r', $rounds,
                   '-t', '/bloom/zones/big/reload', '/');

for (by_name('during', @lines)) {
    $_->{status} == 200 or die "a reload was answered $_->{status}\n";
}

my @rows;
my %of;
my $failed = sum(map { $_->{failed} } @lines);

for my $phase (qw(quiet during after)) {
    my @of = by_name($phase, @lines);
    my @row = ($phase, sum(map { $_->{requests} } @of),
               sum(map { $_->{failed} } @of),
               number(sum(map { $_->{requests} } @of)
                      / sum(map { $_->{seconds} } @of)));

    for my $what (qw(p50 p99 p999)) {
        push @row, number(median(map { $_->{$what} } @of));
        $of{$phase}{$what} = [map { $_->{$what} } @of];
    }

    push @row, number(max(map { $_->{max} } @of));
    push @rows, \@row;
}

$rows[0][0] = 'before';
$rows[1][0] = 'while it is loaded';
$rows[2][0] = '0.3 s after it, as the old pages are returned';

table(['16 connections, always busy', 'requests', 'failed', 'requests/s',
       'p50 us', 'p99 us', 'p99.9 us', 'longest us'], @rows);

my @ratio = ratios($of{during}{p999}, $of{quiet}{p999});
my @later = ratios($of{after}{p999}, $of{quiet}{p999});

line(sprintf 'Failed requests: %d (target 0: %s). p99.9 during the load divided'
     . ' by p99.9 before: %.2f (rounds %.2f to %.2f; target 1.5: %s); after the'
     . ' load: %.2f (%.2f to %.2f). Percentiles are medians of %d rounds. One'
     . ' worker and the clients share the first processor; the helper has the'
     . ' second to itself. With these requests a reload takes %s s (%.2f of'
     . ' `read()` without requests).',
     $failed, verdict($failed == 0), @ratio, verdict($ratio[0] <= 1.5), @later,
     $rounds, number(median(map { $_->{seconds} } by_name('during', @lines))),
     median(@{ $seconds{read} })
       / median(map { $_->{seconds} } by_name('during', @lines)));
line('');

if (defined $after) {
    until_idle($t);
    my ($end) = sort { $b->{size} <=> $a->{size} } zone_memory($t->master);

    table(['memory of the zone in use', 'MiB', 'ratio to one image',
           'target'],
          (map {
              my ($name, $memory) = @$_;
              [$name, sprintf('%.1f', $memory->{resident} / 2 ** 20),
               sprintf('%.4f', $memory->{resident} / $size),
               $name =~ /after/
               ? '1.05: ' . verdict($memory->{resident} <= 1.05 * $size) : ''];
          } (['after the start', $before],
             ["after $rounds reloads", $after],
             ["after $rounds more, under load", $end])));

} else {
    line('Memory in use was not measured: only root can see it.');
    line('');
}
