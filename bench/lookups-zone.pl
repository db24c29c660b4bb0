#!/usr/bin/perl

# Keys asked for together: POST .../test of a zone that no cache holds, against
# one that a cache does, and against random lines of as much memory.

use strict;
use warnings;

use Carp qw(croak);
use JSON::PP ();

use Bench;
use BloomTest::Process qw(run_command);

my $rounds = rounds(9);
my ($capacity, $memory) = quick() ? ('30m', '64m') : ('560m', '1g');
my $keys = 1000;                          # an answer that the client takes

my $t = Bench::server(["zone=cached capacity=100k fpr=0.001 journal=off",
                       "zone=large capacity=$capacity fpr=0.001 journal=off"],
                      '');
my ($worker) = $t->workers;

# Pages that nobody wrote to are the same zeros: keys are added until each has
# one, and those that are asked for are others.

my ($added) = client([second_on], 'send', '-p', $t->port(8080),
                     "add,POST,/bloom/zones/large/keys,"
                     . (quick() ? 4 : 40) . ",100000");
$added->{failed} == 0 or croak 'keys are not added';
until_idle($t);

my @lines = client([second_on], 'send', '-p', $t->port(8080), '-r', $rounds,
                   '-f', 500_000_000, '-w', $worker,
                   map { "$_,POST,/bloom/zones/$_/test,300,$keys" }
                       qw(cached large));

my %ns;

for my $line (@lines) {
    $line->{failed} == 0 or croak "keys are not asked for in $line->{name}";
    push @{ $ns{ $line->{name} } }, $line->{cpu} / $line->{keys} * 1e9;
}

$t->stop;

my ($exit, $out, $err) = run_command([first_on, $t->{tool} // 'build/ngx-bloom',
                                      'bench', '-m', $memory, '--way', 'batch',
                                      '--json'], limit => 300);
$exit == 0 or croak "ngx-bloom bench: $err";

my $limit = JSON::PP::decode_json($out);
my @more = map { $ns{large}[$_] - $ns{cached}[$_] } 0 .. $#{ $ns{large} };
my $ratio = median(@more) / $limit->{limit_ns};

section("Keys asked for together in a zone of $memory");

table(['bodies of 1,000 keys', 'ns of the worker, a key', 'to reach'],
      ['zone of 100,000 keys', number(median(@{ $ns{cached} })), ''],
      ["zone of $memory", number(median(@{ $ns{large} })), ''],
      ['what the memory costs', number(median(@more)),
       'a random line x 1.5: ' . verdict($ratio <= 1.5)],
      ['a random line, several under way', number($limit->{limit_ns}), ''],
      ['ratio', sprintf('%.2f', $ratio), '']);

line('What is read of a body and written into an answer is the same in both.'
     . ' The random line is that of `ngx-bloom bench --way batch`, which found'
     . sprintf(' %.2f of it for a lookup of the core.', $limit->{ratio}));
line('');
