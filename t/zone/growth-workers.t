#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Several workers add keys at the same time while layers begin.  No key is lost,
# each layer begins once, and no part gets many more keys than it has room for.

use strict;
use warnings;

use POSIX ();

use BloomTest;
use BloomTest::Api;
use BloomTest::Zones;

my $t = BloomTest->new;

my $capacity = 1000;
my $workers = 3;
my $clients = 6;
my @keys = keys_of('k', 24 * $capacity);

# A worker adds so many keys before it looks for another layer:
# NGX_BLOOM_ZONE_GROUP.

my $group = 32;

configure($t, ["zone=seen capacity=$capacity fpr=0.02 max_keys=100k"],
          api => 1, workers => $workers);
$t->run;

my @children;

for my $client (0 .. $clients - 1) {
    my $pid = fork // die "fork: $!";

    push @children, $pid and next if $pid;

    my @mine = @keys[grep { $_ % $clients == $client } 0 .. $#keys];
    my $rc = eval {
        add($t, 'seen', [splice @mine, 0, 50]) while @mine;
        1;
    };
    warn $@ if !$rc;
    POSIX::_exit($rc ? 0 : 1);
}

my $failed = 0;

for my $pid (@children) {
    waitpid $pid, 0;
    $failed++ if $?;
}

is($failed, 0, 'all keys are acknowledged');
is(scalar(grep { $_ ne 'present' } lookup_keys($t, 'seen', @keys)), 0,
   'all keys are present');

my $filter = zone_state($t, 'seen')->{filter};

is($filter->{layers}, 4, 'each layer begins once');
cmp_ok(abs($filter->{estimated_items} / @keys - 1), '<', 0.03,
       'the keys are counted');

# What the state estimates has an error of few percent.

for my $part (@{ $filter->{parts} }[0 .. 3]) {
    cmp_ok($part->{estimated_items}, '>=', $part->{capacity},
           "a part of $part->{capacity} keys is full before the next one");
    cmp_ok($part->{estimated_items}, '<=',
           1.03 * ($part->{capacity} + $workers * $group),
           'and has few keys more');
}

done_testing;
