#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# This section measures adding keys through the endpoint on one connection, in
# bodies of 100,000 keys and in bodies of one key.  For comparison, the
# connection sends the same bodies, and requests without a body, to a `return
# 200`.

use strict;
use warnings;

use List::Util qw(sum max);

use Bench;

my $rounds = rounds(9);
my $bodies = quick() ? 2 : 5;               # of 100,000 keys in a round
my $singles = quick() ? 2000 : 10_000;      # of one key

my @zones = ('zone=cached capacity=10m fpr=0.001',
             'zone=large capacity=200m fpr=0.001');

my $t = Bench::server(\@zones, <<'CONF');
        location = /return  { return 200; }
        location = /discard { client_max_body_size 0; return 200; }
        location = /add {
            bloom_add $arg_k zone=large;
            return 200;
        }
CONF

my %capacity = (cached => '10 million', large => '200 million');
my $next = 100_000_000;

sub turns {
    my (@kinds) = @_;

    my @lines = client([second_on], 'send', '-p', $t->port(8080), '-r',
                       $rounds, '-w', $t->workers, '-f', $next, @kinds);

    $next += sum(map { $_->{keys} } @lines);

    for my $line (@lines) {
        $line->{failed} == 0 or die "$line->{name}: requests failed\n";
        $line->{name} eq 'discard' || $line->{name} eq 'return'
            || $line->{received} == $line->{keys}
            or die "$line->{name}: $line->{received} of $line->{keys} keys"
                   . " arrived\n";
    }

    return @lines;
}


section('Additions through the endpoint');

my @rows;
my %rate;

for my $zone ('cached', 'large') {
    my @lines = turns("plain,POST,/bloom/zones/$zone/keys,$bodies,100000",
                      "durable,POST,/bloom/zones/$zone/keys?durable=true,"
                      . "$bodies,100000",
                      "discard,POST,/discard,$bodies,100000");

    until_idle($t);

    for my $name (qw(plain durable discard)) {
        my @of = by_name($name, @lines);
        my @rates = map { $_->{keys} / $_->{seconds} } @of;

        $name ne 'durable' || sum(map { $_->{durable} } @of)
            == $bodies * $rounds or die "not all bodies are durable\n";

        $rate{$zone}{$name} = median(@rates);

        next if $name eq 'discard' && $zone eq 'large';

        push @rows, [
            $name eq 'discard' ? 'the same bodies, discarded by `return 200`'
                               : "$name, zone of $capacity{$zone} keys",
            number(median(@rates)), number(max(@rates)),
            number(median(map {
                $_->{keys} / max($_->{cpu}, $_->{seconds} - $_->{waited})
            } @of)),
            number(median(map { $_->{keys} / $_->{cpu} } @of)),
            $name eq 'discard' ? ''
                : ($name eq 'plain' ? '5 M: ' : '3 M: ')
                  . verdict(median(@rates) >= ($name eq 'plain' ? 5e6 : 3e6)),
        ];
    }
}

table(['bodies of 100,000 keys of 9 bytes', 'keys/s', 'best round',
       'keys/s without waiting', 'keys per second of the worker', 'target'],
      @rows);

line('One connection. One worker runs on the first processor; the client, the'
     . ' helper and the disk use the second. The client is not the limit: the'
     . ' same bodies are discarded '
     . sprintf('%.0f', $rate{large}{discard} / $rate{large}{plain})
     . ' times as fast as they are added. "Without waiting" leaves out the time'
     . ' in which the worker was ready to run and other processes had its'
     . ' processor, as the kernel counts it. On an idle machine it equals the'
     . ' column "keys/s".');
line('');


my @lines = turns("return,GET,/return,$singles,0",
                  "discard,POST,/discard,$singles,1",
                  "key,POST,/bloom/zones/large/keys,$singles,1",
                  "durable,POST,/bloom/zones/large/keys?durable=true,"
                  . int($singles / 20) . ',1');

my %title = (
    return => '`GET`, `return 200`',
    discard => '`POST` of a key, `return 200`',
    key => '`POST .../keys` of one new key',
    durable => '`POST .../keys?durable=true` of one new key',
);

@rows = ();
my @return = by_name('return', @lines);

for my $name (qw(return discard key durable)) {
    my @of = by_name($name, @lines);
    my @row = ($title{$name});

    for my $what (qw(seconds cpu)) {
        my @each = map { 1e6 * $_->{$what} / $_->{requests} } @of;
        my @base = map { 1e6 * $_->{$what} / $_->{requests} } @return;
        my ($ratio, $least, $most) = ratios(\@each, \@base);

        push @row, number(median(@each)), $name eq 'return' ? '1'
                   : sprintf '%.2f (%.2f to %.2f)', $ratio, $least, $most;

        $rate{$name}{$what} = $ratio;
    }

    push @rows, [@row, $name ne 'key' ? ''
                       : '1.5: ' . verdict($rate{key}{seconds} <= 1.5
                                           && $rate{key}{cpu} <= 1.5)];
}

table(['single requests', 'us each', 'ratio', 'us of the worker', 'ratio',
       'target'], @rows);

line('One connection. Each request is sent when the previous one is answered,'
     . ' and the kinds take turns. The first ratio includes the way to nginx'
     . ' and back; the second is the worker\'s own time.');
line('');
