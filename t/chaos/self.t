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
use Chaos::History;
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
    ['removal', 'the journal forgets removals',
     qr/^# returned: zone empty, key \w+: /m, qr/returned: [1-9]/],
    ['lift', 'an addition does not lift a removal',
     qr/^# lost: zone \w+, key x\w+: answered absent /m, qr/keys lost: [1-9]/],
    ['return', 'a removed key is present without an addition',
     qr/^# returned: zone \w+, key x\w+: answered present /m,
     qr/returned: [1-9]/],
    ['image', 'an older image has a removed key',
     qr/^# returned: zone shield, key base0: /m, qr/returned: [1-9]/],
    ['lost', 'nobody remembers that keys were lost',
     qr/^# lost: zone \w+, key long\d/m, qr/keys lost: [1-9]/],
    ['excepted', 'an excepted key counts as added',
     qr/^# lost: zone goods, key \d+g\d+: /m, qr/keys lost: [1-9]/],
    ['rows', 'the backend loses rows of added keys',
     qr/^# lost: zone (?:goods|items), key \d+[gi]\d+: /m,
     qr/keys lost: [1-9]/],
    ['early', 'keys expire too early',
     qr/^# lost: zone \w+, key \d+[vt]\d+: absent [4-7]\.\d+ s after/m,
     qr/keys lost: [1-9]/],
    ['outlived', 'keys live too long',
     qr/^# outlived: zone \w+, key \d+[vt]\d+: present 1\d\.\d+ s after/m,
     qr/lived too long: [1-9]/],
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
    like($output, qr/removed keys: [1-9]\d*, keys that returned: 0$/m,
         'the checker reports removed keys and none that returned');
    like($output, qr/excepted keys: at least [1-9]/m,
         'the checker reports excepted keys');
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

    # the life of a key in a zone that changes it, and what prolongs lives

    $writer->write(lives => 'z', 0, 8, 2);
    $writer->write(lives => 'z', 70, 16, 4);
    is_deeply([$reader->lives('z', 1, 60)], [8, 10], 'keys have one life');
    is_deeply([$reader->lives('z', 1, 75)], [8, 20],
              'a life may have changed already');
    $writer->write(lived => 'z', 80, 8, 2);
    is_deeply([$reader->lives('z', 75, 85)], [8, 20],
              'a key that was added before a change may have either life');
    is_deeply([$reader->lives('z', 81, 85)], [16, 20],
              'a key that is added after a change has the new life');
    is($reader->faults(2, 9), 0, 'the death of a worker is no fault');
    is(sprintf('%.1f', $reader->faults(35, 55)), '10.0',
       'faults count as long as they last');
    ok($reader->emptied(35, 36), 'a zone without a journal is emptied');
    ok(!$reader->emptied(41, 60), 'it is not emptied by a reload');
    $writer->write(flood => 9, 60, 'z');
    ok($reader->flooded('z', 61, 62), 'a zone is flooded until it is over');
    $writer->write(end => 9, 65);
    ok(!$reader->flooded('z', 66, 67), 'a flood is over');
    ok(!$reader->flooded('y', 61, 62), 'a flood is of one zone');

    ok(!$reader->full(1, 70), 'the disk is not full before it refuses');
    $writer->write(full => 4, 70, '-');
    ok($reader->full(71, 72), 'the disk is full while it refuses');
    $writer->write(end => 4, 80);
    ok(!$reader->full(81, 82), 'the disk is not full when it has room again');
};


# The history allows an answer only if an operation that may have been the last
# one gives it.

subtest 'the history judges answers' => sub {
    my $writer = Chaos::Ledger->new($t->testdir . '/events');
    my $history;
    my $id = 0;

    my $begins = sub {
        my ($value, $time) = @_;

        $history->line('begin', ++$id, $time, 1e9, 'z', $value, 'k');
        return $id;
    };
    my $operation = sub {
        my ($value, $from, $to, $how) = @_;

        my $number = $begins->($value, $from);
        $history->line('end', $number, $to, $how // 'acknowledged');
    };
    my $allowed = sub {
        my ($from, $to) = @_;

        return join ' ', grep { $history->allows('z', 'k', $_, $from, $to) }
                              qw(present absent unknown);
    };
    my $begin = sub {
        $history = Chaos::History->new(
            Chaos::Ledger->new($t->testdir . '/events'));
    };

    $begin->();
    is($allowed->(1, 2), 'absent unknown',
       'a key that nobody has added is absent');
    my $number = $begins->('present', 10);
    is($allowed->(8, 9), 'absent unknown',
       'a key is absent before its addition begins');
    is($allowed->(9, 11), 'present absent unknown',
       'a key is present or absent during its addition');
    is($allowed->(80, 90), 'present absent unknown',
       'a key is present or absent while its addition has no answer');
    $history->line('end', $number, 20, 'acknowledged');
    is($allowed->(19, 21), 'present absent unknown',
       'an answer may be older than an addition that ended meanwhile');
    is($allowed->(21, 22), 'present unknown',
       'a key is present after its acknowledged addition');

    $operation->('absent', 30, 40);
    is($allowed->(41, 42), 'absent unknown',
       'a key is absent after its acknowledged removal');
    $operation->('present', 35, 45);
    is($allowed->(46, 47), 'present absent unknown',
       'either of two operations at the same time may be the last one');
    $operation->('present', 50, 55);
    is($allowed->(56, 57), 'present unknown',
       'an operation overtakes those that ended before it began');

    $operation->('absent', 60, 65, 'cut');
    is($allowed->(66, 67), 'present absent unknown',
       'an operation that was cut may have been made');
    $operation->('absent', 70, 75);
    is($allowed->(76, 77), 'absent unknown',
       'an acknowledged operation overtakes one that was cut');
    $operation->('present', 80, 85, 'nothing');
    is($allowed->(86, 87), 'absent unknown',
       'a refused operation has no effect');

    $writer->write(doubt => 1, 130, '-');
    is($allowed->(131, 132), 'present absent unknown',
       'a removed key may be present in another instance');
    $writer->write(end => 1, 140);
    is($allowed->(141, 142), 'absent unknown',
       'a removed key is absent when one instance is left');

    $history->on_all_keys('z', 'any', 150, 155);
    is($allowed->(156, 157), 'present absent unknown',
       'nothing is known of a zone that was recreated');

    # what is forgotten changes no answer

    $operation->('present', 160, 165);
    $operation->('absent', 170, 175, 'cut');
    $history->judge(1000);
    is($allowed->(176, 177), 'present absent unknown',
       'an operation that was cut does not hide the one before');
    $writer->write(horizon => 1e9 + 1);
    $operation->('present', 180, 185);
    $history->judge(1001);
    is($allowed->(186, 187), 'present absent unknown',
       'a newer image may lack a key that was added long before');

    $begin->();
    $operation->('present', 1, 2);
    $history->line('read', 'z', 3, 4, 'k=present');
    is_deeply([$history->judge(10)], [], 'a right answer is no finding');
    $operation->('absent', 11, 12);
    $history->line('read', 'z', 13, 14, 'k=present');
    my @wrong = $history->judge(20);
    like($wrong[0], qr/^returned: zone z, key k: answered present between/,
         'a wrong answer is a finding');
};


done_testing;
