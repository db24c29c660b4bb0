#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# This section measures how much prefetching helps requests with several rules:
# the cache lines of all rules are requested before the first rule is tested.
# For comparison, it uses the same rules with keys that the module does not
# prefetch: "${arg_a}", which is a composed text, instead of $arg_a.  A zone
# that fits into the processor's cache shows what else differs between the two.

use strict;
use warnings;

use Bench;
use BloomTest::Zones qw(small_pages);

my $rounds = rounds(51);
my $requests = quick() ? 500 : 600;       # of each kind in a round
my @rules = (1, 2, 4, 8);
my %zones = (big => quick() ? '5m' : '554m',           # 1 GiB, without quick
             small => '100k');
my %key = (ahead => '$arg_%s', alone => '"${arg_%s}"');

sub locations {
    my ($zone, $how, $n) = @_;

    return "location /$zone-$how-$n/ { empty_gif; "
           . join(' ', map { sprintf "bloom_reject present $key{$how} zone=%s;",
                             $_, $zone } ('a' .. 'h')[0 .. $n - 1])
           . ' }';
}

my @kinds = map { my $zone = $_;
                  map { my $n = $_; map { [$zone, $_, $n] } qw(ahead alone) }
                      @rules } qw(big small);

small_pages(1);

my $t = Bench::server(
    [map { "zone=$_ capacity=$zones{$_} fpr=0.001 journal=off" }
         sort keys %zones],
    join "\n", map { locations(@$_) } @kinds);

my ($worker) = $t->workers;

# first makes the worker touch all pages

client([second_on], 'send', '-p', $t->port(8080),
       "warm,POST,/bloom/zones/big/test," . (quick() ? 10 : 600) . ",5000");

my $number = '{1000000000-1999999999}';
my $keys = join '&', map { "$_=$number" } 'a' .. 'h';

my %us;

for my $line (client([second_on], 'send', '-p', $t->port(8080), '-w', $worker,
                     '-r', $rounds,
                     map { my $name = join '-', @$_;
                           "$name,GET,/$name/?$keys,$requests,0" } @kinds))
{
    $line->{failed} == 0 or die "$line->{name}: requests have failed\n";
    push @{ $us{$line->{name}} }, $line->{cpu} / $requests * 1e6;
}

section('Requests with several rules');

sub row {
    my ($n) = @_;

    return [$n, map {
        my ($ahead, $alone) = ($us{"$_-ahead-$n"}, $us{"$_-alone-$n"});
        (map { sprintf '%.2f', median(@$_) } $alone, $ahead),
        sprintf '%.3f (%.3f to %.3f)', ratios($ahead, $alone);
    } qw(big small)];
}

# The cost of each rule after the first, from the differences within a round.

sub more {
    my ($zone, $how) = @_;

    my ($few, $many) = map { $us{"$zone-$how-$_"} } @rules[0, -1];

    return map { ($many->[$_] - $few->[$_]) / ($rules[-1] - $rules[0]) }
           0 .. $#$few;
}

table(['rules', map { ("$_, one by one, us", 'prefetched, us', 'ratio') }
                quick() ? '10 MiB' : '1 GiB', 'in the cache'],
      (map { row($_) } @rules),
      ['each rule more', map {
          (map { sprintf '%.3f', median($_->@*) } [more($_, 'alone')],
               [more($_, 'ahead')]), '';
      } qw(big small)]);

line("The worker's time on a processor for a request that passes all its rules."
     . " Each rule has its own random absent key. $requests requests of each"
     . " kind in each of $rounds rounds. Both zones are on small pages.");
line('');
