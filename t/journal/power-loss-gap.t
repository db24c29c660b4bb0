#!/usr/bin/perl

# A loss of power may leave a gap in the journal: a later record is on disk and
# an earlier one is not.  If the missing record was never reported as durable,
# the next start closes the gap, and no key becomes unknown.

use strict;
use warnings;

use File::Path qw(remove_tree);

use BloomTest;
use BloomTest::Api;
use BloomTest::Faults;
use BloomTest::Journal;
use BloomTest::Process qw(wait_until alive);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;
my $state = "$dir/state/ids";

# the place of `synced` and its complement in the control page (docs/state.md)
use constant SYNCED => 248;

# more steps than a start has
use constant STEPS => 60;

my $faults = BloomTest::Faults->new($t);

another_image($t);
configure($t, ['zone=ids file=ids.bloom'], api => 1, add => 1);


# Makes the control page say that the journal is synchronised up to a position.

sub synced_up_to {
    my ($position) = @_;

    open my $fh, '+<:raw', "$state/control" or die "control: $!";
    seek $fh, SYNCED, 0;
    print $fh pack 'Q<Q<', $position, ~$position;
    close $fh or die "control: $!";
}

# Makes the state directory as a loss of power leaves it: synchronised up to a
# position, and with these segments.

sub begin_with {
    my ($synced, @journals) = @_;

    if (!-e "$state/control") {
        $t->run;
        $t->stop;
    }

    unlink files("$state/journal.*"), "$state/lost";

    write_segments($t, 'ids', @journals);
    synced_up_to($synced);
}

# Puts zeros, or other bytes, in the place of a record that was not written.

sub lose {
    my ($journal, $key, $byte) = @_;

    my $at = $journal->append([$key]);
    my $size = $journal->{used} - $at;
    substr($journal->{data}, $at, $size) = ($byte // "\0") x $size;
}

# A first record, up to which the journal is synchronised, one that is lost, and
# three more.

sub one_segment {
    my (@how) = @_;

    my $journal = BloomTest::Journal->new;
    $journal->append(['k1']);
    my $synced = $journal->{used};
    lose($journal, 'gone', @how);
    $journal->append(['k3', "k3-$_"]) for 1 .. 3;

    return ($synced, $journal);
}

# The last records of the first segment are lost, and some of the second one.

sub three_segments {
    my $first = BloomTest::Journal->new;
    $first->append(['k1']);
    my $synced = $first->{used};
    $first->append(['k2']);
    lose($first, 'gone') for 1 .. 5;

    # when this segment was created, the last record was one that is lost
    my $second = BloomTest::Journal->new(base => $first->{size},
                                         sequence => $first->{next} - 1);
    lose($second, 'gone');
    $second->append(['k3']);
    lose($second, 'gone', "\xa5");
    $second->append(['x' x 60_000, 'k4']);

    my $third = $second->next_segment;
    $third->append(['k5']);

    return ($synced, $first, $second, $third);
}

sub is_whole {
    my ($when) = @_;

    my ($exit, @segments) = read_journal($t, $state);
    is($exit, 0, "ngx-bloom accepts the journal $when");
    is(scalar(grep { $_->{missing} || $_->{broken} || $_->{torn} } @segments),
       0, "the journal has no gap $when");
}

sub all_present {
    my ($when, @keys) = @_;

    is(ask($t, 'ids', 'id1', @keys, 'no'), '11' . '1' x $#keys . '0',
       "all keys are present and no key is unknown $when");
    is(zone_state($t, 'ids')->{state}, 'serving', "the zone is serving $when");
}

sub load_another {
    another_image($t);
    is(api($t, POST => 'zones/ids/reload')->status, 200,
       'another image is loaded');
}


my %gap = (
    'a gap has zeros' => [sub { one_segment() }, qw(k1 k3)],
    'a gap has other bytes' => [sub { one_segment("\xa5") }, qw(k1 k3)],
    'several segments have gaps' => [\&three_segments, qw(k1 k2 k3 k4 k5)],
);

for my $name (sort keys %gap) {
    my ($make, @keys) = @{ $gap{$name} };

    subtest $name => sub {
        begin_with($make->());
        $t->run;
        all_present('after the first start', @keys);
        is_whole('after the first start');
        load_another();
        all_present('after a load', @keys);

        add($t, 'ids', ['later'], durable => 1);
        all_present('after a durable addition', @keys, 'later');
        load_another();
        all_present('after an addition and a load', @keys, 'later');

        for (['kill_all', 'kill -9'], ['stop', 'a stop']) {
            my ($method, $how) = @$_;

            $t->$method;
            $t->run;
            all_present("after $how", @keys, 'later');
        }

        $t->stop;
        is_whole('after the last stop');
    };
}


# The journal becomes shorter when the gap is closed, and then ends before the
# position of the checkpoint.

subtest 'a gap is before the position of a checkpoint' => sub {
    remove_tree("$dir/state");
    $t->run;
    add($t, 'ids', ["k$_"], durable => 1) for 1 .. 3;
    is(api($t, POST => 'zones/ids/checkpoint')->status, 200,
       'a checkpoint is written');
    $t->kill_all;

    my ($segment) = files("$state/journal.*");
    my $record = 40;
    open my $fh, '+<:raw', $segment or die "$segment: $!";
    seek $fh, BloomTest::Journal::HEADER + $record, 0;
    print $fh "\0" x $record;
    close $fh or die "$segment: $!";
    synced_up_to(BloomTest::Journal::HEADER + $record);

    my $mark = $t->log_mark;
    $t->run;
    $t->wait_for_log(qr/behind a checkpoint/, $mark);
    all_present('after a start with the checkpoint', qw(k1 k2 k3));

    add($t, 'ids', ['later'], durable => 1);
    load_another();
    all_present('after an addition and a load', qw(k1 k3 later));
    $t->kill_all;
    $t->run;
    all_present('after kill -9 of all processes', qw(k1 k3 later));
    $t->stop;
    is_whole('after the last stop');
};


subtest 'a journal has a gap and damage' => sub {
    my $journal = BloomTest::Journal->new;
    lose($journal, 'lost', "\xa5");
    my $broken = $journal->{used} - BloomTest::Journal::HEADER;
    $journal->append(['k1']);
    my $synced = $journal->{used};
    lose($journal, 'gone');
    $journal->append(['k3']);
    begin_with($synced, $journal);

    $t->expect_log(qr/\[alert\].*"ids" has lost added keys/);

    for my $start (1 .. 2) {
        $t->run;
        is(ask($t, 'ids', qw(id1 k1 k3 no)), '111?',
           "keys are unknown at start $start since a durable record is"
           . " missing");
        $t->kill_all;
        unlink "$state/lost";
    }

    my ($exit, $segment) = read_journal($t, $state);
    is($exit, 1, 'ngx-bloom reports the damage after the gap is closed');
    is("@$segment{qw(broken missing)}", "$broken 0",
       'the damaged record is all that is broken');
};


subtest 'nginx dies while it closes gaps' => sub {
    $faults->needed;

    my ($make, @keys) = @{ $gap{'several segments have gaps'} };
    my ($deaths, $mark) = (0);

    for my $step (1 .. STEPS) {
        begin_with($make->());

        $faults->kill_at('any', $step);
        $mark = $t->log_mark;

        last unless $t->run_may_die;

        $deaths++;
        $t->run;
        all_present("after a death at step $step", @keys);
        $t->kill_all;
        is_whole("after a death at step $step");
    }

    # two segments are replaced: written, synchronised, renamed, and so on

    cmp_ok($deaths, '>=', 16,
           "a start completes after deaths at $deaths steps");

    # the last master has completed its start, unknown to the harness; the fault
    # that is left kills its helper, which synchronises the journal

    $t->expect_log(qr/cache manager process \d+ exited on signal 9/);
    $t->wait_for_log(qr/exited on signal 9/, $mark);
    my ($pid) = $t->read_file('nginx.pid') =~ /(\d+)/;
    kill 'QUIT', $pid;
    wait_until(sub { !alive($pid) }) or diag("master $pid stays");
};


done_testing;
