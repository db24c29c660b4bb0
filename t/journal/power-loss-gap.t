#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A power failure may leave a gap in the journal: a later record is on disk and
# an earlier one is not.  If the missing record was never reported as durable,
# the journal ends there: the next start removes the records that follow, and no
# key becomes unknown.  A durable record is never removed, and a removed record
# never comes back.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Clock;
use BloomTest::Control;
use BloomTest::Faults;
use BloomTest::Image qw(patch_header);
use BloomTest::Journal;
use BloomTest::Process qw(wait_until alive);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;
my $state = "$dir/state/ids";

# more steps than a start has
use constant STEPS => 60;

use constant HOUR => 3600;

my $faults = BloomTest::Faults->new($t);

$t->expect_log(qr/the process that loads a bloom zone, \d+, died of signal 9/)
    if $faults->built_in;
my $clock = BloomTest::Clock->new($t);

another_image($t);
configure($t, ['zone=ids file=ids.bloom'], api => 1, add => 1);


# Sets the position up to which the control page says that the journal is
# synchronised.

sub synced_up_to {
    my ($position) = @_;

    set_control("$state/control", synced => $position);
}

# Creates a state directory as a power failure leaves it: synchronised up to a
# position, and with these segments.

my $control;

sub begin_with {
    my ($synced, @journals) = @_;

    if (!defined $control) {
        begin_state($t, 'ids');
        $t->run;
        $t->stop;
        $control = $t->read_file('state/ids/control');
    }

    begin_state($t, 'ids');
    $t->write_file('state/ids/control', $control);

    write_segments($t, 'ids', @journals);
    synced_up_to($synced);
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
    my (@how) = @_;

    my $journal = BloomTest::Journal->new;
    $journal->append(['k1']);
    my $synced = $journal->{used};
    lose($journal, 'gone', @how);
    $journal->append(["cut$_", "cut-$_"]) for 1 .. 3;

    return ($synced, $journal);
}

# The last records of the first segment are lost, and some of the second one.

sub three_segments {
    my $first = BloomTest::Journal->new;
    $first->append(['k1']);
    my $synced = $first->{used};
    $first->append(['k2']);
    lose($first, 'gone', "\xa5");
    lose($first, 'gone') for 1 .. 4;

    # when this segment was created, a lost record was the last one
    my $second = BloomTest::Journal->new(base => $first->{size},
                                         sequence => $first->{next} - 1);
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
    my $first = BloomTest::Journal->new;
    $first->append(['k1']);
    my $synced = $first->{used};

    my $second = BloomTest::Journal->new(base => 2 * $first->{size},
                                         sequence => 9);
    $second->append(["cut$_"]) for 1 .. 3;

    return ($synced, $first, $second);
}

my @cut = qw(cut1 cut2 cut3);

sub is_whole {
    my ($when) = @_;

    my ($exit, @segments) = read_journal($t, $state);
    is($exit, 0, "ngx-bloom accepts the journal $when");
    is(scalar(grep { $_->{missing} || $_->{broken} || $_->{torn} } @segments),
       0, "the journal has no gap $when");
}

# Tests that the given keys are present, and that others, among them those that
# were cut off, are absent.

sub ends_behind {
    my ($when, @keys) = @_;

    is(ask($t, 'ids', 'id1', @keys, @cut, 'no'), '1' . '1' x @keys . '0000',
       "what precedes the gap is present, and no key is unknown $when");
    is(zone_state($t, 'ids')->{state}, 'serving', "the zone is serving $when");
}

sub load_another {
    another_image($t);
    is(api($t, POST => 'zones/ids/reload')->status, 200,
       'another image is loaded');
}

# Loads an image whose as_of, three hours later, shows that it has all lost
# keys.

my $images = 0;

sub heal {
    $clock->ahead(3 * HOUR);
    $t->write_file('healing.bloom', patch_header(
        $t->read_file('ids.bloom'), 128 => pack('Q<', (time + 2 * HOUR) * 1000),
        136 => sprintf 'build id %7d', $images++));
    is(upload_image($t, 'ids', 'healing')->status, 200,
       'an image of two hours later is uploaded');
    is(zone_state($t, 'ids')->{state}, 'serving',
       'the zone is serving with the image of two hours later');
}


# Ends the master that has completed its start, unknown to the harness.

sub end_unknown {
    $faults->withdraw;
    my ($pid) = $t->read_file('nginx.pid') =~ /(\d+)/;
    kill 'QUIT', $pid;
    wait_until(sub { !alive($pid) }) or diag("master $pid stays");
}


my %gap = (
    'a gap has zeros' => [sub { one_segment() }, qw(k1)],
    'a gap has other bytes' => [sub { one_segment("\xa5") }, qw(k1)],
    'several segments have gaps' => [\&three_segments, qw(k1 k2)],
    'segments are missing' => [\&last_segment, qw(k1)],
);

for my $name (sort keys %gap) {
    my ($make, @keys) = @{ $gap{$name} };

    subtest $name => sub {
        begin_with($make->());

        my $mark = $t->log_mark;
        $t->run;
        like($t->log_since($mark), qr/\[notice\].*lacks additions that were not on disk/,
             'the log says that the journal ends before the gap');
        ends_behind('after the first start', @keys);
        is_whole('after the first start');
        load_another();
        ends_behind('after a load', @keys);

        add($t, 'ids', ["later$_"], durable => 1) for 1 .. 5;
        my @later = keys_of('later', 5);
        ends_behind('after durable additions', @keys, @later);
        load_another();
        ends_behind('after additions and a load', @keys, @later);

        for (['kill_all', 'kill -9'], ['stop', 'a stop']) {
            my ($method, $how) = @$_;

            $t->$method;
            $t->run;
            ends_behind("after $how", @keys, @later);
        }

        $t->stop;
        is_whole('after the last stop');
    };
}


subtest 'nginx dies while it cuts the journal' => sub {
    $faults->needed;

    my $deaths = 0;

    for my $name ('several segments have gaps', 'a gap has zeros',
                  'segments are missing')
    {
        my ($make, @keys) = @{ $gap{$name} };

        for my $step (1 .. STEPS) {
            begin_with($make->());

            $faults->kill_at('any', $step);

            last unless $t->run_may_die;

            $deaths++;
            $t->run;
            my $when = "after a death at step $step where $name";
            ends_behind($when, @keys);
            is_whole($when);

            # the records that were cut off had these numbers and positions

            add($t, 'ids', ["after$_"], durable => 1) for 1 .. 6;
            $t->kill_all;
            is_whole("$when and additions");
            $t->run;
            ends_behind("$when, additions and kill -9", @keys,
                        keys_of('after', 6));
            $t->kill_all;
        }

        end_unknown();
    }

    # segments are removed, the directory is synchronised, the tail is written
    # and synchronised

    cmp_ok($deaths, '>=', 14,
           "a start completes after deaths at $deaths steps");
};


# A segment that was prepared before the gap may have a higher sequence number
# than the next record has.

subtest 'a segment has been prepared for later records' => sub {
    my $first = BloomTest::Journal->new;
    $first->append(['k1']);
    my $synced = $first->{used};
    lose($first, 'gone') for 1 .. 5;

    begin_with($synced, $first, $first->next_segment);
    $t->run;

    # two records of about 120 KB fit into the first segment

    add($t, 'ids', [map { "$_-" . 'x' x 60_000 } "a$_", "b$_"], durable => 1)
        for 1 .. 3;
    $t->kill_all;
    $t->run;
    my @long = map { "$_-" . 'x' x 60_000 } map { ("a$_", "b$_") } 1 .. 3;
    is(join(' ', lookup_keys($t, 'ids', 'k1', @long, 'no')),
       'present ' x 7 . 'absent',
       'records are found in the segment that follows the gap');
    $t->stop;
    is_whole('after the last stop');
};


subtest 'a segment that waits for records stays' => sub {
    my $first = BloomTest::Journal->new;
    $first->append(['k1']);
    begin_with($first->{used}, $first, $first->next_segment);

    my ($second) = grep { /40000$/ } files("$state/journal.*");
    my $inode = (stat $second)[1];
    $t->run;
    is((stat $second)[1], $inode, 'the segment is not created again');
    $t->stop;
};


# From here on keys are lost, because the missing records were reported as
# durable.

$t->expect_log(qr/\[alert\].*"ids" has lost added keys/);


subtest 'a journal has a gap and damage' => sub {
    my $journal = BloomTest::Journal->new;
    lose($journal, 'lost', "\xa5");
    my $broken = $journal->{used} - BloomTest::Journal::HEADER;
    $journal->append(['k1']);
    my $synced = $journal->{used};
    lose($journal, 'gone');
    $journal->append(['cut1']);
    begin_with($synced, $journal);

    for my $start (1 .. 2) {
        $t->run;
        is(ask($t, 'ids', qw(id1 k1 cut1 no)), '11??',
           "keys are unknown at start $start since a durable record is"
           . " missing");
        $t->kill_all;
    }

    my ($exit, $segment) = read_journal($t, $state);
    is($exit, 1, 'ngx-bloom reports the damage when the journal is cut');
    is("@$segment{qw(broken missing)}", "$broken 0",
       'only the damaged record is broken');
};


subtest 'a journal has lost its end' => sub {
    my $journal = BloomTest::Journal->new;
    $journal->append(['k1']);
    lose($journal, 'lost');
    begin_with($journal->{used}, $journal);

    $t->run;
    is(ask($t, 'ids', qw(id1 k1 no)), '11?',
       'keys are unknown when durable records are missing at the end');
    $t->kill_all;
    $t->run;
    is(ask($t, 'ids', qw(id1 k1 no)), '11?',
       'keys are unknown at the next start, too');
    add($t, 'ids', ['later'], durable => 1);

    heal();
    is(ask($t, 'ids', qw(id1 later no)), '100', 'the image has all keys');
    $t->kill_all;
    $t->run;
    is(ask($t, 'ids', qw(id1 later no)), '100',
       'the loss is not seen again after a restart');
    $t->stop;
    $clock->right;
};


# The start records the loss before it does anything that would hide it.

subtest 'nginx dies while it starts with a lost end' => sub {
    $faults->needed;

    my $deaths = 0;

    for my $step (1 .. STEPS) {
        my $first = BloomTest::Journal->new;
        $first->append(['k1']);
        my $second = $first->next_segment;
        lose($second, 'lost', "\xa5");
        begin_with($second->{base} + $second->{used}, $first, $second);

        $faults->kill_at('any', $step);

        if (!$t->run_may_die) {
            end_unknown();
            last;
        }

        $deaths++;

        for my $start (1 .. 2) {
            $t->run;
            is(ask($t, 'ids', qw(id1 k1 no)), '11?',
               "keys are unknown at start $start after a death at step $step");
            $t->kill_all;
        }
    }

    cmp_ok($deaths, '>=', 8,
           "a start completes after deaths at $deaths steps");
};


subtest 'the last segment cannot be read' => sub {
    my $first = BloomTest::Journal->new;
    $first->append(['k1']);
    my $second = $first->next_segment;
    $second->append(['lost']);
    begin_with($second->{base} + $second->{used}, $first,
               $second);
    flip("$state/journal.0000000000040000", 40);

    $t->run;
    is(ask($t, 'ids', qw(id1 k1 lost no)), '11??',
       'keys are unknown when the last segment cannot be read');
    is(join(' ', map { s{.*/}{}r } files("$state/damaged.*")),
       'damaged.0000000000040000', 'the segment is put aside');
    add($t, 'ids', ['later'], durable => 1);
    $t->kill_all;
    $t->run;
    is(ask($t, 'ids', qw(id1 k1 later no)), '111?',
       'a key that is added then is present after a restart');

    heal();
    $t->kill_all;
    $t->run;
    is(zone_state($t, 'ids')->{state}, 'serving',
       'the loss is not seen again after a restart');
    $t->stop;
    $clock->right;
    is_whole('after the last stop');
};


# The records that a checkpoint has were on disk.

sub begin_with_checkpoint {
    begin_with(0);
    $t->run;
    add($t, 'ids', ["k$_"], durable => 1) for 1 .. 3;
    is(api($t, POST => 'zones/ids/checkpoint')->status, 200,
       'a checkpoint is written');
    $t->kill_all;
}

sub zero {
    my ($segment, $offset, $size) = @_;

    open my $fh, '+<:raw', $segment or die "$segment: $!";
    seek $fh, $offset, 0;
    print $fh "\0" x $size;
    close $fh or die "$segment: $!";
}

for my $lost ('the last record', 'a record in the middle', 'all records') {
    subtest "$lost before a checkpoint is lost" => sub {
        begin_with_checkpoint();

        my ($segment) = files("$state/journal.*");
        my $record = 40;
        my ($at, $size) = $lost =~ /last/ ? (2 * $record, $record)
                        : $lost =~ /middle/ ? ($record, $record)
                        : (0, 3 * $record);
        zero($segment, BloomTest::Journal::HEADER + $at, $size);

        # the control page is older than the checkpoint

        synced_up_to(BloomTest::Journal::HEADER + $record);

        my $mark = $t->log_mark;
        $t->run;
        $t->wait_for_log(qr/after a checkpoint/, $mark);
        is(ask($t, 'ids', qw(k1 k2 k3 no)), '111?',
           'the keys of the checkpoint are present, and others unknown');

        add($t, 'ids', ['later'], durable => 1);
        $t->kill_all;
        $mark = $t->log_mark;
        $t->run;
        $t->wait_for_log(qr/after a checkpoint/, $mark);
        is(ask($t, 'ids', qw(k1 k2 k3 later no)), '1111?',
           'a key that is added then is present after a restart');

        unlink files("$state/checkpoint.*");
        $t->kill_all;
        $t->run;
        is(ask($t, 'ids', qw(later no)), '1?',
           'that key is present after a restart without the checkpoint');

        heal();
        $t->kill_all;
        $t->run;
        is(zone_state($t, 'ids')->{state}, 'serving',
           'the loss is not seen again after a restart');
        $t->stop;
        $clock->right;
    };
}


# A start from a checkpoint reads only the last segment.

subtest 'the segment of a checkpoint is lost' => sub {
    my $first = BloomTest::Journal->new;
    $first->append(["k$_"]) for 1 .. 3;
    my $second = $first->next_segment;
    $second->append(['k4']);
    begin_with($second->{base} + $second->{used}, $first, $second);
    $t->run;
    is(api($t, POST => 'zones/ids/checkpoint')->status, 200,
       'a checkpoint is written');
    $t->kill_all;
    zero("$state/journal.0000000000040000", BloomTest::Journal::HEADER, 40);

    $t->run;
    is(ask($t, 'ids', qw(k1 k2 k3 k4 no)), '1111?',
       'the keys of the checkpoint are present, and others unknown');
    $t->kill_all;

    my ($exit, $out) = $t->run_tool('journal', '--keys', $state);
    is($out, "k1\nk2\nk3\n", 'the records before are still in the journal');
};


done_testing;
