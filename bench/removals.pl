#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# This section measures removing keys through the endpoint on one connection,
# beside adding the same keys.  Then it removes false positives, keys that were
# never added, from the zone, from a cuckoo filter in Redis and from one in Go,
# and asks for every key that was added.  Redis needs a RedisBloom module, which
# TEST_REDIS_MODULE names.

use strict;
use warnings;

use IO::Socket::UNIX;
use List::Util qw(sum max);

use Bench;
use BloomTest::Process qw(spawn alive wait_until);

my $rounds = rounds(9);
my $bodies = quick() ? 1 : 4;               # of 100,000 keys in a round
my $singles = quick() ? 1000 : 10_000;      # of one key
my $keys = quick() ? 100_000 : 1_000_000;   # of the comparison
my $false = $keys / 100;                    # of them are found and removed

system('scripts/install-deps.sh', 'bench');     # the report says what failed

my $t = Bench::server(['zone=large capacity=200m fpr=0.001 removals=1m',
                       "zone=ids capacity=$keys fpr=0.01 removals=$false"],
                      'location /return { return 200; }');


# ---- speed ----

section('Removals through the endpoint');

my @kinds = (
    ['add', 'keys', 'new keys are added'],
    ['remove', 'remove', 'these keys are removed', 'add'],
    ['again', 'keys', 'removed keys are added again', 'add'],
);

sub turns {
    my ($count, $keys, $first, $query) = @_;

    my @lines = client([second_on], 'send', '-p', $t->port(8080), '-r',
        $rounds, '-w', $t->workers, '-f', $first,
        map { "$_->[0],POST,/bloom/zones/large/$_->[1]$query,$count,$keys,200"
              . ($_->[3] ? ",$_->[3]" : '') } @kinds);

    for (@lines) {
        $_->{failed} == 0 && $_->{received} == $_->{keys}
            or die "$_->{name}: not all keys arrived\n";
        $_->{name} ne 'remove' || $_->{removed} == $_->{keys}
            or die "$_->{removed} of $_->{keys} keys were removed\n";
    }

    until_idle($t);

    return @lines;
}

my (@rows, $first);

for my $way (['', 'bodies of 100,000 keys', $bodies, 100_000],
             ['?durable=true', 'bodies of 100,000 keys, durable', $bodies,
              100_000],
             ['', 'bodies of one key', $singles, 1],
             ['?durable=true', 'bodies of one key, durable', $singles / 20, 1])
{
    my ($query, $title, $count, $each) = @$way;

    $first = ($first // 0) + 100_000_000;
    my @lines = turns($count, $each, $first, $query);
    my @add = map { $_->{seconds} } by_name('add', @lines);

    for (@kinds) {
        my ($name, undef, $what) = @$_;
        my @of = by_name($name, @lines);
        my ($ratio, $least, $most) = ratios(
            \@add, [map { $_->{seconds} } @of]);

        push @rows, [
            "$title: $what",
            number(median(map { $_->{keys} / $_->{seconds} } @of)),
            number(median(map { $_->{keys} / $_->{cpu} } @of)),
            $name eq 'add' ? '1'
                : sprintf('%.2f (%.2f to %.2f)', $ratio, $least, $most),
            $name ne 'remove' ? '' : '0.5: ' . verdict($ratio >= 0.5),
        ];
    }
}

table(['', 'keys/s', 'keys per second of the worker', 'rate to additions',
       'target'], @rows);

line('One connection. One worker runs on the first processor; the client, the'
     . ' helper and the disk use the second. In each turn the same keys are'
     . ' added, removed and added again.');
line('');


# ---- keys that are lost ----

section('Removing keys that were never added');

# Each returns how many keys were asked for, how many removals were reported,
# how many of the removed keys are found, and how many of the others are not.

sub of_the_module {
    my $send = sub {
        my ($what, @keys) = @_;
        my @all;

        while (my @some = splice @keys, 0, 100_000) {
            my $response = $t->post("/bloom/zones/ids/$what",
                                    join "\n", @some);
            $response->status == 200 or die "$what: $response";
            push @all, $response->body;
        }

        return @all;
    };
    my $ask = sub {
        return map { /"answers":\[(.*?)\]/ ? $1 =~ /"(\w+)"/g : () }
                   $send->('test', @_);
    };

    my @all = map { "id$_" } 1 .. $keys;
    my ($asked, @found) = (0);

    $send->('keys', @all);

    while (@found < $false) {
        my @never = map { 'never' . $asked++ } 1 .. 100_000;
        my @answers = $ask->(@never);
        push @found, map { $never[$_] } grep { $answers[$_] eq 'present' }
                                             0 .. $#never;
    }

    splice @found, $false;
    my $removed = sum(map { /"removed":(\d+)/ } $send->('remove', @found));

    return ($asked, $removed,
            scalar(grep { $_ eq 'present' } $ask->(@found)),
            scalar(grep { $_ eq 'absent' } $ask->(@all)));
}


# Sends commands to Redis and returns its replies, which are numbers or lists of
# numbers.

sub redis {
    my ($socket, @commands) = @_;
    my @replies;

    while (my @some = splice @commands, 0, 1000) {
        for my $command (@some) {
            print $socket '*' . @$command . "\r\n",
                          map { '$' . length . "\r\n$_\r\n" } @$command;
        }

        $socket->flush;

        for (@some) {
            my $line = readline $socket // die "Redis has ended\n";
            die "Redis: $line" if $line =~ /^-/;
            push @replies, $line =~ /^\*(\d+)/
                ? map { readline($socket) =~ /^:(\d)/ } 1 .. $1
                : $line =~ /^[:+](\w+)/;
        }
    }

    return @replies;
}


sub of_redis {
    my $path = $t->testdir . '/redis';
    my $pid = spawn(['redis-server', '--port', 0, '--unixsocket', $path,
                     '--save', '', '--loadmodule', $ENV{TEST_REDIS_MODULE}]);
    my $socket = wait_until(sub {
        alive($pid) or die "Redis does not start with TEST_REDIS_MODULE\n";
        return IO::Socket::UNIX->new(Peer => $path);
    });

    my @all = map { "id$_" } 1 .. $keys;
    my ($asked, @found) = (0);

    my $ask = sub {
        my @keys = @_;
        my @commands;

        while (my @some = splice @keys, 0, 100) {
            push @commands, ['CF.MEXISTS', 'ids', @some];
        }

        return redis($socket, @commands);
    };

    redis($socket, ['CF.RESERVE', 'ids', $keys]);
    redis($socket, map { ['CF.ADD', 'ids', $_] } @all);

    while (@found < $false) {
        my @never = map { 'never' . $asked++ } 1 .. 100_000;
        my @answers = $ask->(@never);
        push @found, map { $never[$_] } grep { $answers[$_] } 0 .. $#never;
    }

    splice @found, $false;
    my $before = sum($ask->(@all));
    my $removed = sum(redis($socket, map { ['CF.DEL', 'ids', $_] } @found));
    my @result = ($asked, $removed, sum($ask->(@found)),
                  $before - sum($ask->(@all)));

    kill 'TERM', $pid;
    wait_until(sub { !alive($pid) }) or die "Redis does not end\n";

    return @result;
}


sub of_go {
    my $out = 'build/bench';

    system("GO111MODULE=off GOPATH=/usr/share/gocode GOCACHE=\$PWD/$out/go"
           . " go build -o $out/cuckoofilter bench/others/cuckoofilter.go"
           . " > $out/build.log 2>&1") == 0
        or die "the Go library is not installed\n";

    return split ' ', `$out/cuckoofilter $keys $false`;
}


my @missing;
@rows = ();

for (['this module', \&of_the_module],
     ['Redis with RedisBloom, `CF.DEL`',
      $ENV{TEST_REDIS_MODULE} ? \&of_redis
                              : sub { die "TEST_REDIS_MODULE is not set\n" }],
     ['Go, seiflotfy/cuckoofilter', \&of_go])
{
    my ($name, $run) = @$_;
    my @result = eval { $run->() };

    if (@result != 4) {
        push @missing, "$name ($@)" =~ s/\s+\)$/)/r;
        next;
    }

    push @rows, [$name, sprintf('%.1f %%', 100 * $false / $result[0]),
                 map { $_ =~ s/\B(?=(?:\d{3})+$)/,/gr } @result[1 .. 3]];
}

table([number($keys) . ' keys, ' . number($false) . ' removals',
       'false positives', 'removals reported', 'removed keys still found',
       'added keys lost'], @rows);

line('The removed keys were never added: each is a false positive that was'
     . ' found by asking. Afterwards all added keys were asked for.');
line('');
line('Not measured: ' . join('; ', @missing) . '.') if @missing;
line('') if @missing;
