#!/usr/bin/perl

# A machine that loses its power may have written what was added later and not
# what was added first.  Nobody was told that this is on disk, so nothing is
# lost: the gap is closed at the start, and nobody finds it later.

use strict;
use warnings;

use File::Path qw(remove_tree);
use JSON::PP ();

use BloomTest;
use BloomTest::Api;
use BloomTest::Journal;
use BloomTest::Process qw(wait_until alive);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;
my $state = "$dir/state/ids";

# of the control page: `synced` and its complement, see docs/state.md
use constant SYNCED => 248;

# more steps than a start has
use constant STEPS => 60;

my $faults = $t->nginx_build =~ /NGX_BLOOM_FAULTS/;

mkdir "$dir/faults" or die "mkdir: $!";
my $fault = "$dir/faults/next";
$ENV{NGX_BLOOM_FAULT_FILE} = $fault;

another_image($t);
configure($t, ['zone=ids file=ids.bloom'], api => 1, add => 1,
          main => 'env NGX_BLOOM_FAULT_FILE;');


# The disk as power failure leaves it: synchronised up to a position, with these
# segments.

sub synced_up_to {
    my ($position) = @_;

    open my $fh, '+<:raw', "$state/control" or die "control: $!";
    seek $fh, SYNCED, 0;
    print $fh pack 'Q<Q<', $position, ~$position;
    close $fh or die "control: $!";
}

sub begin_with {
    my ($synced, @journals) = @_;

    if (!-e "$state/control") {
        $t->run;
        $t->stop;
    }

    unlink files("$state/journal.*"), "$state/lost";

    $t->write_file(sprintf('state/ids/journal.%016x', $_->{base}), $_->segment)
        for @journals;

    synced_up_to($synced);
}

# A record that was not written, where one was to be: in a journal of
# BloomTest::Journal zeros, or other bytes.

sub lose {
    my ($journal, $key, $byte) = @_;

    my $at = $journal->append([$key]);
    my $size = $journal->{used} - $at;
    substr($journal->{data}, $at, $size) = ($byte // "\0") x $size;
}

# Three records, of which the second was lost; synchronised up to it.

sub one_segment {
    my (@how) = @_;

    my $journal = BloomTest::Journal->new;
    $journal->append(['k1']);
    my $synced = $journal->{used};
    lose($journal, 'gone', @how);
    $journal->append(['k3', "k3-$_"]) for 1 .. 3;

    return ($synced, $journal);
}

# The last of one segment, some of the next, and so on.

sub three_segments {
    my $first = BloomTest::Journal->new;
    $first->append(['k1']);
    my $synced = $first->{used};
    $first->append(['k2']);
    lose($first, 'gone') for 1 .. 5;

    # made when the last number was that of one which was lost
    my $second = BloomTest::Journal->new(base => $first->{size},
                                         sequence => $first->{next} - 1);
    lose($second, 'gone');
    $second->append(['k3']);
    lose($second, 'gone', "\xa5");
    $second->append(['x' x 60_000, 'k4']);

    my $third = BloomTest::Journal->new(base => 2 * $first->{size},
                                        sequence => $second->{next});
    $third->append(['k5']);

    return ($synced, $first, $second, $third);
}

sub whole {
    my ($name) = @_;

    my ($exit, $out) = $t->run_tool('journal', '--json', $state);
    my @segments = JSON::PP->new->incr_parse($out);
    is($exit, 0, "$name, the journal is whole");
    is(scalar(grep { $_->{missing} || $_->{broken} || $_->{torn} } @segments),
       0, 'without a gap');
}

sub sure_of {
    my ($name, @keys) = @_;

    is(ask($t, 'ids', 'id1', @keys, 'no'), '11' . '1' x $#keys . '0', $name);
    is(zone_state($t, 'ids')->{state}, 'serving', 'and nothing is damaged');
}

sub load_another {
    another_image($t);
    is(api($t, POST => 'zones/ids/reload')->status, 200, 'another image');
}


my %gap = (
    'a gap of zeros' => [sub { one_segment() }, qw(k1 k3)],
    'a gap with something in it' => [sub { one_segment("\xa5") }, qw(k1 k3)],
    'gaps in several segments' => [\&three_segments, qw(k1 k2 k3 k4 k5)],
);

for my $name (sort keys %gap) {
    my ($make, @keys) = @{ $gap{$name} };

    subtest $name => sub {
        begin_with($make->());
        $t->run;
        sure_of('the first start is sure', @keys);
        whole('at once');
        load_another();
        sure_of('so is a load', @keys);

        add($t, 'ids', ['later'], durable => 1);
        sure_of('what is added is synchronised', @keys, 'later');
        load_another();
        sure_of('and read by another load', @keys, 'later');

        for my $how ('kill_all', 'stop') {
            $t->$how;
            $t->run;
            sure_of("after $how", @keys, 'later');
        }

        $t->stop;
        whole('in the end');
    };
}


# It has a position that the journal, once it has moved up, does not reach.

subtest 'a gap before a checkpoint' => sub {
    remove_tree("$dir/state");
    $t->run;
    add($t, 'ids', ["k$_"], durable => 1) for 1 .. 3;
    is(api($t, POST => 'zones/ids/checkpoint')->status, 200, 'a checkpoint');
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
    sure_of('the first start is sure', qw(k1 k2 k3));

    add($t, 'ids', ['later'], durable => 1);
    load_another();
    sure_of('and so is a load', qw(k1 k3 later));
    $t->kill_all;
    $t->run;
    sure_of('and another start', qw(k1 k3 later));
    $t->stop;
    whole('in the end');
};


subtest 'a gap and damage' => sub {
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
           "what was promised is missing at start $start");
        $t->kill_all;
        unlink "$state/lost";
    }

    my ($exit, $out) = $t->run_tool('journal', '--json', $state);
    my ($segment) = JSON::PP->new->incr_parse($out);
    is($exit, 1, 'the damage stays');
    is("@$segment{qw(broken missing)}", "$broken 0",
       'and is all that is broken');
};


subtest 'the start dies' => sub {
    plan skip_all => 'nginx without injected faults (-DNGX_BLOOM_FAULTS)'
        unless $faults;

    my ($make, @keys) = @{ $gap{'gaps in several segments'} };
    my ($deaths, $mark) = (0);

    for my $step (1 .. STEPS) {
        begin_with($make->());

        $t->write_file('fault.tmp', "any $step\n");
        rename "$dir/fault.tmp", $fault or die "rename: $!";

        $mark = $t->log_mark;

        last unless $t->run_may_die;

        $deaths++;
        $t->run;
        sure_of("a death at step $step: the next one is sure", @keys);
        $t->kill_all;
        whole('and then');
    }

    # two segments are replaced: written, synchronised, renamed, and so on

    cmp_ok($deaths, '>=', 16, "$deaths deaths, and then it gets through");

    # the last one lives, outside of what the harness knows, and its helper dies
    # of what was left: it has something to synchronise

    $t->expect_log(qr/cache manager process \d+ exited on signal 9/);
    $t->wait_for_log(qr/exited on signal 9/, $mark);
    my ($pid) = $t->read_file('nginx.pid') =~ /(\d+)/;
    kill 'QUIT', $pid;
    wait_until(sub { !alive($pid) }) or diag("master $pid stays");
};


done_testing;
