#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# The end of the journal is missing, although its records were reported to be on
# disk.  A start notices this by the control page.  From then on the zone
# answers "unknown" instead of "absent", even if the disk is full or the process
# dies right after it has noticed.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Control;
use BloomTest::Disk;
use BloomTest::Faults;
use BloomTest::Journal;
use BloomTest::Process qw(wait_until alive);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;
my $state = "$dir/state/ids";
my $disk = BloomTest::Disk->new($t, 'state');
my $faults = BloomTest::Faults->new($t);

# more steps than a start has
use constant STEPS => 60;

another_image($t);
configure($t, ['zone=ids file=ids.bloom'], api => 1, add => 1);
$t->run;
$t->stop;

# Leaves a journal that has lost its last synchronised record.  The next start
# cuts off the rest of that record.

sub lose_end {
    my $journal = BloomTest::Journal->new;
    $journal->append(['kept']);

    my $end = $journal->{used};
    $journal->append(['gone']);
    my $synced = $journal->{used};
    substr($journal->{data}, $end) = "\xa5" x ($synced - $end);

    unlink files("$state/{journal,checkpoint}.*");
    write_segments($t, 'ids', $journal);
    set_control("$state/control", synced => $synced, lost => 0);
}

sub is_unknown {
    my ($when) = @_;

    is(ask($t, 'ids', qw(id1 kept gone no)), '11??',
       "the lost key is unknown $when");
}

$t->expect_log(qr/\[alert\].*"ids" has lost added keys.*has lost its end/);
$t->expect_log(qr/\[alert\].*"ids" has lost added keys.*see the error log of that time/);


subtest 'the disk is full when the loss is seen' => sub {
    lose_end();
    $disk->refuse('ENOSPC', qw(grow rename));

    $t->run;
    is_unknown('after the first start');
    is(zone_state($t, 'ids')->{state}, 'damaged', 'the zone is damaged');

    $t->kill_all;
    $t->run;
    is_unknown('after a second start');

    $disk->allow;
    $t->stop;
    $t->run;
    is_unknown('after a third start, with room on the disk');

    add($t, 'ids', ['added'], durable => 1);
    is(api($t, POST => 'zones/ids/checkpoint')->status, 200,
       'a checkpoint is written');
    $t->stop;
    $t->run;
    is_unknown('after a start from a checkpoint');
    is(ask($t, 'ids', 'added'), '1', 'a key that was added later is present');

    cmp_ok(abs(control("$state/control")->{lost} / 1000 - time), '<', 60,
           'the control page has the time when the loss was seen');
    $t->stop;
};


subtest 'nginx dies when the loss is seen' => sub {
    $faults->needed;
    $t->expect_log(qr/the process that loads a bloom zone, \d+, died of signal 9/);

    my $deaths = 0;

    for my $step (1 .. STEPS) {
        lose_end();
        $faults->kill_at('any', $step);

        last unless $t->run_may_die;

        $deaths++;
        $t->run;
        is_unknown("after a death at step $step");
        $t->kill_all;
    }

    # the loss is recorded and synchronised before the tail is cut off

    cmp_ok($deaths, '>=', 6, "a start completes after deaths at $deaths steps");

    # the last master has completed its start, unknown to the harness

    $faults->withdraw;
    my ($pid) = $t->read_file('nginx.pid') =~ /(\d+)/;
    kill 'QUIT', $pid;
    ok(wait_until(sub { !alive($pid) }), 'the last nginx stops');
};


done_testing;
