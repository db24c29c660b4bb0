#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# The model checker fails if a promise is broken: the test breaks each promise
# by hand, and the checker reports it with the seed that reproduces it.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use BloomTest;
use BloomTest::Process qw(run_command);
use Chaos::Ledger;

my $t = BloomTest->new(module => 0);

# Runs the checker and returns its exit status and its output.

sub chaos {
    my (@arguments) = @_;

    my ($exit, $out, $err) = run_command(
        [$^X, map({ "-I$_" } @INC), "$FindBin::Bin/chaos.pl", '--seed', 7,
         '--keys', 50_000, @arguments], limit => 300);

    return ($exit, "$out$err");
}


my @broken = (
    ['acknowledged', 'keys are acknowledged that were never added',
     qr/^# lost: zone empty, key \d+e\d+: /m, qr/keys lost: [1-9]/],
    ['journal', 'a journal is taken away',
     qr/^# lost: zone empty, key \d+e\d+: /m, qr/keys lost: [1-9]/],
    ['base', 'an image lacks a key that it should have',
     qr/^# lost: zone shield, key base0: /m, qr/keys lost: [1-9]/],
    ['pair', 'a generation consists of parts of two images',
     qr/^# (?:torn: |image \d+ was loaded, its pair is 1,0,1)/m,
     qr/not ok 1 - no promise was broken/],
    ['ledger', 'a worker dies without an entry in the ledger',
     qr/^# failed: \S+ \S+: worker \d+: answered '/m, qr/failed: [1-9]/],
    ['lost', 'nobody remembers that keys were lost',
     qr/^# lost: zone \w+, key long\d/m, qr/keys lost: [1-9]/],
    ($> == 0 ? ['root', "root opens a file of a zone",
                qr{^# root did what it should not: \d+ open \S+/control}m,
                qr/not ok 1 - no promise was broken/] : ()),
);

for (@broken) {
    my ($break, $what, $message, $count) = @$_;

    subtest $what => sub {
        my ($exit, $output) = chaos('--break', $break, '--events', 2,
                                    '--only', 'checkpoint');
        isnt($exit, 0, "the checker fails if $what");
        like($output, $message, "the checker reports that $what");
        like($output, $count, "the checker counts that $what");
        like($output, qr/^# seed 7, events: checkpoint checkpoint break_/m,
             "the checker prints the seed and the events if $what");
    };
}


subtest 'no promise is broken' => sub {
    my ($exit, $output) = chaos('--events', 3, '--only',
                                'reload,kill_worker,hup');
    is($exit, 0,
       'the checker succeeds if no promise is broken') or diag($output);
    like($output, qr/acknowledged keys: [1-9]\d*, keys lost: 0$/m,
         'the checker reports acknowledged keys and no lost ones');
    like($output, qr/operations: [1-9]\d*.*\n# events: 3, kills: [1-9]/,
         'the checker reports operations, events and kills');
};


# The ledger excuses only the failures that its lines explain: a connection that
# a kill may have cut, and an idle one that nginx may have closed.

subtest 'the ledger excuses failures' => sub {
    my $writer = Chaos::Ledger->new($t->testdir . '/ledger');
    my $reader = Chaos::Ledger->new($t->testdir . '/ledger');
    my $verdict = sub { $reader->verdict(@_) };

    is($verdict->(1, 2, undef, 0), 'failed',
       'no failure is excused while nothing is done to nginx');

    $writer->write(kill => 1, 10, '100,101');
    is($verdict->(1, 9, 100, 0), 'cut',
       'a failure of a killed worker is excused');
    is($verdict->(1, 9, undef, 0), 'failed',
       'a failure on a new connection before the kill is not excused');
    is($verdict->(11, 12, undef, 0), 'cut',
       'a failure on a new connection during the kill is excused');
    is($verdict->(11, 12, 102, 0), 'failed',
       'a failure of another worker is not excused');
    $writer->write(end => 1, 20);
    is($verdict->(15, 30, undef, 1), 'cut',
       'a request that began during the kill is excused');
    is($verdict->(21, 22, undef, 0), 'failed',
       'a failure on a new connection after the kill is not excused');
    is($verdict->(21, 22, 100, 0), 'cut',
       'a failure of a killed worker is excused when it is noticed later');

    $writer->write(kill => 2, 30, '*');
    is($verdict->(31, 32, 102, 1), 'cut',
       'a failure is excused when all workers are killed');
    $writer->write(end => 2, 40);
    is($verdict->(41, 42, 103, 1), 'failed',
       'a failure of a worker that started after the kill is not excused');

    $writer->write(quit => 3, 50, '104');
    is($verdict->(51, 52, 104, 0), 'again',
       'a request on a connection closed while idle is sent again');
    is($verdict->(51, 52, 104, 1), 'failed',
       'a connection closed within a response is a failure');
    is($verdict->(51, 52, undef, 0), 'again',
       'a request on a new connection is sent again while workers end');
    $writer->write(end => 3, 60);
    is($verdict->(61, 62, undef, 0), 'failed',
       'a failure after the end of the old workers is not excused');
    is($verdict->(61, 62, 105, 0), 'failed',
       'a failure of a worker that stays is not excused');

    ok(!$reader->full(1, 70), 'the disk is not full before it refuses');
    $writer->write(full => 4, 70, '-');
    ok($reader->full(71, 72), 'the disk is full while it refuses');
    $writer->write(end => 4, 80);
    ok(!$reader->full(81, 82), 'the disk is not full when it has room again');
};


done_testing;
