#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# One client sends keys in bulk, and seven add single keys by bloom_add, all
# against the same lock: no key is lost, and POST and bloom_add both go on.  Then
# the helper is stopped, which prepares the journal: POST waits when only the
# reserve is left, and bloom_add goes on into it.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(stop_process resume_process);
use BloomTest::Zones;

use constant { CLIENTS => 7, EACH => 1500, BULK => 60, KEYS => 2000 };

my $t = BloomTest->new;

configure($t, ['zone=seen capacity=2m fpr=1e-9'], api => 1, add => 1,
          workers => 8);
$t->run;

sub bulk { return map { "bulk$_[0]-$_-" . 'x' x 20 } 1 .. KEYS }

# Runs functions in processes of their own.  Returns how many have failed.

sub all_of {
    my (@functions) = @_;

    my $failed = 0;
    my @children = map {
        my $function = $_;
        my $pid = fork // die "fork: $!";

        if (!$pid) {
            my $rc = eval { $function->(); 1 };
            warn $@ if !$rc;
            POSIX::_exit($rc ? 0 : 1);
        }

        $pid;
    } @functions;

    for my $pid (@children) {
        waitpid $pid, 0;
        $failed++ if $?;
    }

    return $failed;
}

sub single {
    my ($client, $from, $to) = @_;

    # a connection takes 1000 requests

    for (my $n = $from; $n <= $to; $n += 500) {
        my @keys = map { "/add/seen?k=one$client-$_" } $n .. $n + 499;

        $_->status == 200 or die $_->status for $t->pipeline(@keys);
    }
}

# Tests that the zone has lost nothing, and has these keys.

sub has_all {
    my ($when, @keys) = @_;

    is(scalar(grep { $_ ne 'present' } lookup_keys($t, 'seen', @keys)), 0,
       "all keys are present $when");

    my $state = zone_state($t, 'seen');

    is($state->{journal}{lost_keys}, 0, "none is lost $when");
    is($state->{state}, 'serving', "the zone serves $when");
}


my @keys = ((map { my $c = $_; map { "one$c-$_" } 1 .. EACH } 1 .. CLIENTS),
            map { bulk($_) } 1 .. BULK);

is(all_of(sub { add($t, 'seen', [bulk($_)]) for 1 .. BULK },
          map { my $c = $_; sub { single($c, 1, EACH) } } 1 .. CLIENTS), 0,
   'all keys are acknowledged');
has_all('after the flood', @keys);


# What is prepared takes a part of the bulk.

my $helper = $t->helper;

stop_process($helper);

my $pid = fork // die "fork: $!";

if (!$pid) {
    my $rc = eval {
        for my $n (1 .. 3) {
            my $body = join '', map { "late$n-$_-" . 'x' x 1000 . "\n" }
                                    1 .. 20_000;
            my $r = api($t, POST => 'zones/seen/keys', body => $body);
            $r->status == 200 or die $r;
        }
        1;
    };
    warn $@ if !$rc;
    POSIX::_exit($rc ? 0 : 1);
}

single('late', 1, EACH);
is(zone_state($t, 'seen')->{journal}{lost_keys}, 0,
   'bloom_add goes on while the helper is stopped');
resume_process($helper);
waitpid $pid, 0;
is($?, 0, 'POST has waited for the helper');

push @keys, (map { "onelate-$_" } 1 .. EACH),
            map { "late$_-1-" . 'x' x 1000, "late$_-20000-" . 'x' x 1000 }
                1 .. 3;
has_all('after the helper was stopped', @keys);
$t->kill_all;
$t->run;
has_all('after kill -9 of all processes', @keys);

done_testing;
