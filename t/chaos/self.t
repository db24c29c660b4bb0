#!/usr/bin/perl

# The model checker can fail: each promise is broken by hand once, and it says
# so, with what was broken and the seed to see it again.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use BloomTest;
use BloomTest::Process qw(run_command);
use Chaos::Ledger;

my $t = BloomTest->new(module => 0);

# Runs the checker; returns its exit status and all it said.

sub chaos {
    my (@arguments) = @_;

    my ($exit, $out, $err) = run_command(
        [$^X, map({ "-I$_" } @INC), "$FindBin::Bin/chaos.pl", '--seed', 7,
         '--keys', 50_000, @arguments], limit => 300);

    return ($exit, "$out$err");
}


my @broken = (
    ['acknowledged', 'keys that were never added and are said to be',
     qr/^# lost: zone empty, key \d+e\d+: verified/m, qr/keys lost: [1-9]/],
    ['journal', 'a journal that is taken away',
     qr/^# lost: zone empty, key \d+e\d+: /m, qr/keys lost: [1-9]/],
    ['base', 'an image without a key that it ought to have',
     qr/^# lost: zone shield, key base0: /m, qr/keys lost: [1-9]/],
    ['pair', 'a generation of parts that do not belong together',
     qr/^# (?:torn: |image \d+ was loaded, its pair is 1,0,1)/m,
     qr/not ok 1 - no promise was broken/],
    ['ledger', 'a worker that dies and nobody has killed it',
     qr/^# failed: \S+ \S+: worker \d+: answered '/m, qr/failed: [1-9]/],
);

for (@broken) {
    my ($break, $what, $message, $count) = @$_;

    subtest $what => sub {
        my ($exit, $output) = chaos('--break', $break, '--events', 2,
                                    '--only', 'checkpoint');
        isnt($exit, 0, 'is a failure');
        like($output, $message, 'that is told');
        like($output, $count, 'and counted');
        like($output, qr/^# seed 7, events: checkpoint checkpoint break_/m,
             'with the way to see it again');
    };
}


subtest 'nothing broken' => sub {
    my ($exit, $output) = chaos('--events', 3, '--only',
                                'reload,kill_worker,hup');
    is($exit, 0, 'is a success') or diag($output);
    like($output, qr/acknowledged keys: [1-9]\d*, keys lost: 0$/m,
         'with its counts');
    like($output, qr/operations: [1-9]\d*.*\n# events: 3, kills: [1-9]/,
         'of all that happened');
};


# Which failures are excused, and which are not

subtest 'the ledger' => sub {
    my $writer = Chaos::Ledger->new($t->testdir . '/ledger');
    my $reader = Chaos::Ledger->new($t->testdir . '/ledger');
    my $verdict = sub { $reader->verdict(@_) };

    is($verdict->(1, 2, undef, 0), 'failed', 'nothing was done to nginx');

    $writer->write(kill => 1, 10, '100,101');
    is($verdict->(1, 9, 100, 0), 'cut', 'a worker that was killed');
    is($verdict->(1, 9, undef, 0), 'failed', 'a connection before the kill');
    is($verdict->(11, 12, undef, 0), 'cut', 'one during it');
    is($verdict->(11, 12, 102, 0), 'failed', 'another worker');
    $writer->write(end => 1, 20);
    is($verdict->(15, 30, undef, 1), 'cut', 'one that began during it');
    is($verdict->(21, 22, undef, 0), 'failed', 'one after it');
    is($verdict->(21, 22, 100, 0), 'cut', 'the connection is noticed later');

    $writer->write(kill => 2, 30, '*');
    is($verdict->(31, 32, 102, 1), 'cut', 'all were killed');
    $writer->write(end => 2, 40);
    is($verdict->(41, 42, 103, 1), 'failed', 'a worker that came later');

    $writer->write(quit => 3, 50, '104');
    is($verdict->(51, 52, 104, 0), 'again', 'closed while idle');
    is($verdict->(51, 52, 104, 1), 'failed', 'within an answer');
    is($verdict->(51, 52, undef, 0), 'again', 'closed before a request');
    $writer->write(end => 3, 60);
    is($verdict->(61, 62, undef, 0), 'failed', 'when nobody ends any more');
    is($verdict->(61, 62, 105, 0), 'failed', 'by a worker that stays');

    ok(!$reader->full(1, 70), 'a disk with room');
    $writer->write(full => 4, 70, '-');
    ok($reader->full(71, 72), 'one without');
    $writer->write(end => 4, 80);
    ok(!$reader->full(81, 82), 'and with room again');
};


done_testing;
