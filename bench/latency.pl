#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# This section measures the latency of requests while keys are added in bulk,
# and while a client without write=on tests hosts that cost most, compared with
# the same requests while nobody does so.

use strict;
use warnings;

use List::Util qw(sum min max);

use Bench;
use BloomTest::Process qw(alive spawn wait_until);

my $rounds = min(rounds(9), 22);            # keys are of nine digits
my $seconds = quick() ? 0.5 : 2;
my $bodies = quick() ? 100 : 400;           # of 100,000 keys: longer than that

my $t = Bench::server(['zone=ids capacity=200m fpr=0.001',
                       'zone=hosts capacity=1m fpr=0.001 form=host'], <<'CONF');
        location / { bloom_dry_run on; bloom_reject present $uri zone=ids; empty_gif; }
CONF

sub added { return $t->get('/bloom/zones/ids')->json->{counters}{added} }

sub latency {
    my @lines = client([first_on], 'ask', '-p', $t->port(8080), '-r', 1,
                       '-q', $seconds, '-a', 0, '-t',
                       '/bloom/zones/ids/checkpoint', '/');

    return (by_name('quiet', @lines))[0];
}

# a megabyte of hosts of 54 letters, each written as nine characters

$t->write_file('costly', join '', map { "\xe3\x8c\x96" x 9 . "$_.example\n" }
                                      1 .. 25_000);

section('Latency while keys are added or tested');

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

    $pid = spawn([second_on, 'curl', '-s', '-o', '/dev/null', '-H',
                  'Content-Type: text/plain', '--data-binary',
                  '@' . $t->testdir . '/costly',
                  ('http://127.0.0.1:' . $t->port(8080)
                   . '/bloom/zones/hosts/test') x 1000]);
    push @{ $of{testing} }, latency();

    alive($pid) or die "curl ended early\n";
    kill TERM => $pid;
    waitpid $pid, 0;
    until_idle($t);
}

my @rows;

for (['nobody adds', 'quiet'], ['keys are added', 'adding'],
     ['costly hosts are tested', 'testing'])
{
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
line('Costly hosts are of a client that tests internationalised hosts, in bodies'
     . ' of a megabyte, one after the other: each costs libidn2 most for its'
     . ' length. Such a client needs no write=on.');
line('');
