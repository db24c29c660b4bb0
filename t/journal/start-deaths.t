#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# nginx dies at each step of a start that finds the journal as a loss of power
# has left it: with a gap that it cuts off, or without an end that was promised.
# The next start answers as this one would have: what was cut never comes back,
# and a loss is not forgotten.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Control;
use BloomTest::Faults;
use BloomTest::Journal;
use BloomTest::Process qw(wait_until alive);
use BloomTest::Zones;

# more steps than a start has
use constant STEPS => 60;

my $t = BloomTest->new;
my $state = $t->testdir . '/state/ids';

my $faults = BloomTest::Faults->new($t);
$faults->needed;

$t->expect_log(qr/the process that loads a bloom zone, \d+, died of signal 9/);

another_image($t);
configure($t, ['zone=ids file=ids.bloom'], api => 1, add => 1);


# Creates a state directory as a loss of power leaves it: synchronised up to a
# position, and with these segments.

sub begin_with {
    my ($synced, @journals) = @_;

    begin_state($t, 'ids', @journals);
    set_control("$state/control", synced => $synced);
}

# Overwrites a record that was not written with zeros or other bytes.

sub lose {
    my ($journal, $key, $byte) = @_;

    my $at = $journal->append([$key]);
    my $size = $journal->{used} - $at;
    substr($journal->{data}, $at, $size) = ($byte // "\0") x $size;
}

# A journal of five records: the first is synchronised, the second is lost.

sub one_segment {
    my $journal = BloomTest::Journal->new(durable => 1);
    $journal->append(['k1']);
    my $synced = $journal->{used};
    lose($journal, 'gone');
    $journal->append(["cut$_", "cut-$_"]) for 1 .. 3;

    return ($synced, $journal);
}

# The last records of the first segment are lost, and some of the second one.

sub three_segments {
    my $first = BloomTest::Journal->new(durable => 1);
    $first->append(['k1']);
    my $synced = $first->{used};
    lose($first, 'gone', "\xa5");
    lose($first, 'gone') for 1 .. 4;

    # when this segment was created, a lost record was the last one
    my $second = $first->next_segment(sequence => $first->{next} - 1);
    lose($second, 'gone');
    $second->append(['cut1']);
    lose($second, 'gone', "\xa5");
    $second->append(['x' x 60_000, 'cut2']);

    my $third = $second->next_segment;
    $third->append(['cut3']);

    return ($synced, $first, $second, $third);
}

# Of everything that was not synchronised only the last segment is left.

sub last_segment {
    my $first = BloomTest::Journal->new(durable => 1);
    $first->append(['k1']);
    my $synced = $first->{used};

    my $second = $first->next_segment(base => 2 * $first->{size},
                                      sequence => 9);
    $second->append(["cut$_"]) for 1 .. 3;

    return ($synced, $first, $second);
}

# The last segment was synchronised, and its record is lost.

sub lost_end {
    my $first = BloomTest::Journal->new;
    $first->append(['k1']);
    my $second = $first->next_segment;
    lose($second, 'lost', "\xa5");

    return ($second->{base} + $second->{used}, $first, $second);
}

# The proof that the second record was on disk is behind a gap that is cut off.

sub proof_behind_gap {
    my $journal = BloomTest::Journal->new(durable => 1);
    $journal->append(['k1']);
    my $synced = $journal->{used};
    lose($journal, 'lost');
    $journal->append(['between']);
    lose($journal, 'gone');
    $journal->append(['cut2'], durable => 2);

    return ($synced, $journal);
}

my @asked = qw(id1 k1 cut1 cut2 cut3 no);

# Each row: what was lost, the directory, the answers, and how many steps there
# are at least: segments are removed, the directory is synchronised, the tail is
# written and synchronised; a loss is recorded before.

for (['a gap has zeros', \&one_segment, '110000', 3],
     ['several segments have gaps', \&three_segments, '110000', 8],
     ['segments are missing', \&last_segment, '110000', 3],
     ['the end is lost', \&lost_end, '11????', 8],
     ['a gap hides a loss', \&proof_behind_gap, '11????', 4])
{
    my ($what, $make, $answers, $least) = @$_;

    subtest "nginx dies while it starts where $what" => sub {
        $t->expect_log(qr/\[alert\].*"ids" has lost added keys/)
            if $answers =~ /\?/;

        my $deaths = 0;

        for my $step (1 .. STEPS) {
            begin_with($make->());
            $faults->kill_at('any', $step);

            last unless $t->run_may_die;

            $deaths++;
            $t->run;
            is(ask($t, 'ids', @asked), $answers,
               "the answers after a death at step $step");

            # the records that were cut off had these numbers and positions

            add($t, 'ids', ["after$_"], durable => 1) for 1 .. 6;
            $t->kill_all;
            $t->run;
            is(ask($t, 'ids', @asked, keys_of('after', 6)),
               $answers . '111111',
               "the answers after a death at step $step, additions and kill"
               . ' -9');
            $t->kill_all;

            next if $answers =~ /\?/;

            my ($exit, @segments) = read_journal($t, $state);
            is($exit, 0, "ngx-bloom accepts the journal after step $step");
        }

        # the last master has completed its start, unknown to the harness

        $faults->withdraw;
        my ($pid) = $t->read_file('nginx.pid') =~ /(\d+)/;
        kill 'QUIT', $pid;
        ok(wait_until(sub { !alive($pid) }), 'the last nginx stops');

        cmp_ok($deaths, '>=', $least,
               "a start completes after deaths at $deaths steps");
    };
}


done_testing;
