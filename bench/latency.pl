#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# This section measures the latency of requests while keys are added in bulk,
# compared with the same requests while nobody adds keys.

use strict;
use warnings;

use List::Util qw(sum min max);

use Bench;
use BloomTest::Process qw(alive spawn wait_until);

my $rounds = min(rounds(9), 22);            # keys are of nine digits
my $seconds = quick() ? 0.5 : 2;
my $bodies = quick() ? 100 : 400;           # of 100,000 keys: longer than that

my $t = Bench::server(['zone=ids capacity=200m fpr=0.001'], <<'CONF');
        location / { bloom_dry_run on; bloom_reject present $uri zone=ids; empty_gif; }
CONF

sub added { return $t->get('/bloom/zones/ids')->json->{counters}{added} }

sub latency {
    my @lines = client([first_on], 'ask', '-p', $t->port(8080), '-r', 1,
                       '-q', $seconds, '-a', 0, '-t',
                       '/bloom/zones/ids/checkpoint', '/');

    return (by_name('quiet', @lines))[0];
}

section('Latency while keys are added');

my $program = ($ENV{BENCH_PROGRAMS} // 'build/bench') . '/send';
my (%of, @rate);
my $first = 100_000_000;

for (1 .. $rounds) {
    push @{ $of{quiet} }, latency();
    until_idle($t);

    my $before = added();
    my $pid = spawn([second_on, $program, '-p', $t->port(8080), '-f', $first,
                     "add,POST,/bloom/zones/ids/keys,$bodies,100000"]);

    # the client creates the bodies first, which takes seconds

    wait_until(sub { added() > $before }, 60) or die "no keys were added\n";
    push @{ $of{adding} }, latency();

    my $whole = alive($pid);
    kill TERM => $pid;
    waitpid $pid, 0;

    $whole or line('In this round all keys were added before the measurement'
                   . ' ended, so a part of it was quiet.');
    push @rate, added() - $before;

    $first += $bodies * 100_000;
    until_idle($t);
}

my @rows;

for (['nobody adds', 'quiet'], ['keys are added', 'adding']) {
    my ($title, $name) = @$_;
    my @lines = @{ $of{$name} };

    push @rows, [
        $title, sum(map { $_->{requests} } @lines),
        sum(map { $_->{failed} } @lines),
        number(sum(map { $_->{requests} } @lines)
               / sum(map { $_->{seconds} } @lines)),
        (map { my $what = $_; number(median(map { $_->{$what} } @lines)) }
             qw(p50 p99 p999)),
        number(max(map { $_->{max} } @lines))];
}

table(['16 connections, always busy', 'requests', 'failed', 'requests/s',
       'p50 us', 'p99 us', 'p99.9 us', 'longest us'], @rows);

my @ratio = map {
    my $what = $_;
    sprintf '%s %.2f (%.2f to %.2f)', $what,
        ratios([map { $_->{$what} } @{ $of{adding} }],
               [map { $_->{$what} } @{ $of{quiet} }]);
} qw(p50 p99 p999);

line('Ratios to the latency while nobody adds: ', join(', ', @ratio), '. A'
     . ' client on the second processor adds keys in bodies of 100,000, one'
     . ' after the other on one connection, ' . number(median(@rate)) . ' keys'
     . ' in a round. One worker on the first processor serves that client and'
     . ' the 16 connections, whose clients run there, too.');
line('');
