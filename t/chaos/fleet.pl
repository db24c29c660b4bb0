#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A model checker of a fleet: a writer adds and removes keys by a stream of
# Redis, two followers carry them to three nodes, and random events happen to
# all of these.  A checker compares the answers of the nodes with the writer's
# ledger all the time, and in the end for all keys.
#
#   perl -It/lib t/chaos/fleet.pl --time 10m
#
# The files are in lib/Fleet: Events.pm has the servers and the events,
# Writer.pm and Checker.pm are processes of their own, and Ledger.pm is what
# they share.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use Getopt::Long;
use List::Util qw(shuffle);
use Time::HiRes qw(sleep);

use BloomTest;
use BloomTest::Process qw(alive now spawn time_limit wait_until);

use Fleet::Checker;
use Fleet::Events;
use Fleet::Writer;

my %option = (time => '30s', seed => int rand 1e9, keys => 20_000,
              rate => 5000, only => '', break => '', 'keep-rate' => 0);

my @breaks = qw(ledger gap lateness removal);

GetOptions(\%option, 'time=s', 'seed=i', 'keys=i', 'rate=i', 'only=s',
           'break=s', 'keep-rate')
    && !@ARGV && (!$option{break} || grep { $_ eq $option{break} } @breaks)
    or die <<"USAGE";
usage: fleet.pl [--time 10m] [--seed N] [--keys N] [--rate N] [--keep-rate]
                [--only EVENT,...] [--break WHAT]

  --time     starts events for this time, and each at least once: seconds, or a
             number with s, m or h
  --seed     draws the same events again
  --keys     adds and removes this many different keys
  --rate     makes this many changes a second
  --keep-rate  fails if it makes less than 90 % of them while Redis is up
  --only     lets only these events happen, in turn
  --break    breaks a promise on purpose: ledger (notes keys that it does not
             send), gap (no node learns of a gap), lateness (nodes wait longer
             than max_lag), removal (images have removed keys)
USAGE

my %unit = ('' => 1, s => 1, m => 60, h => 3600);
my ($amount, $unit) = $option{time} =~ /^(\d+)([smh]?)$/
    or die "--time $option{time}: a number and s, m or h\n";
my $seconds = $amount * $unit{$unit};
my @only = split /,/, $option{only};

for (@only) {
    Fleet::Events->can($_) or die "there is no event \"$_\"\n";
}

srand $option{seed};
STDOUT->autoflush;
print "# seed $option{seed}, $option{rate} changes/s, $seconds s\n";

my @nodes = map {
    my $node = BloomTest->new(log_level => 'notice');
    $node->{name} = "node $_";
    $node;
} 1 .. Fleet::Events->NODES;

my $dir = $nodes[0]->testdir;
my ($ledger, $acks) = ("$dir/ledger", "$dir/acks");
my (@history, $problem);

$nodes[0]->write_file($_, '') for qw(ledger acks wrong);

my $events = Fleet::Events->new(nodes => \@nodes, keys => $option{keys},
                                max_lag => 5, ledger => $ledger,
                                writing => \&writing, hold => \&hold,
                                break => $option{break});

$events->start;

my %process = (writer => begin(\&write_entries, 1),
               checker => begin(\&check_answers, 2));
my $start = now();
my @events = @only ? @only : $events->all;
my @turn;

$problem = attempt(\&writing);

# Each event happens at least once.

while (!$problem && (now() - $start < $seconds || @history < @events)) {
    @turn = @only ? @only : shuffle(@events) unless @turn;
    my $event = shift @turn;

    push @history, $event;
    $problem = attempt(sub {
        my $gaps = $events->gaps;
        $events->$event;
        sleep rand 1;
        check_processes();
        die "a gap is reported, but no change is missing:\n", $events->gaps
            if !$events->makes_gap($event) && $events->gaps > $gaps;
    });
}

$problem //= attempt(\&finish);
$nodes[0]->write_file('stop', '');
wait_until(sub { !grep { alive($_) } values %process }, 60);
$problem //= attempt(\&check_processes);
report();
$events->stop;
done_testing;


# Starts a process that runs until the file `stop` or `stop.writer` exists.

sub begin {
    my ($code, $number) = @_;

    open my $stderr, '>&', \*STDERR or die "stderr: $!";

    return spawn(sub {
        srand $option{seed} + $number;
        eval { $code->(); 1 } or wrong("a process ends: $@");
    }, stderr => $stderr);
}


sub write_entries {
    my $writer = Fleet::Writer->new(
        port => $events->{proxy}{redis}{listen}, stream => $events->STREAM,
        ledger => $ledger, acks => $acks, keys => $option{keys},
        rate => $option{rate}, lie => $option{break} eq 'ledger',
        stop => sub { -e "$dir/stop" || -e "$dir/stop.writer" },
        hold => sub {
            -e "$dir/hold" or return 0;
            $nodes[0]->write_file('held', '') if $_[0] && !-e "$dir/held";
            return 1;
        });

    $writer->run;
    $nodes[0]->write_file('written',
                          "changes $writer->{changes}\n"
                          . "seconds $writer->{seconds}\n");
}


sub check_answers {
    my $checker = Fleet::Checker->new(
        nodes => \@nodes, ledger => $ledger, acks => $acks,
        max_lag => $events->{max_lag}, patience => time_limit(1),
        stop => sub { -e "$dir/stop" }, wrong => \&wrong);

    $checker->run;
    $nodes[0]->write_file('counts', join '', map {
        "$_ $checker->{count}{$_}\n"
    } sort keys %{ $checker->{count} });
}


sub wrong {
    my ($text) = @_;

    open my $file, '>>', "$dir/wrong" or die "wrong: $!";
    print $file "$text\n";
}


sub attempt {
    my ($code) = @_;

    return eval { $code->(); 1 } ? undef : $@;
}


# Dies with what the processes found wrong.

sub check_processes {
    my @wrong = split /^/, $nodes[0]->read_file('wrong');

    splice @wrong, 10 if @wrong > 10;
    die @wrong if @wrong;
}


# Waits until Redis has acknowledged further entries.  Returns the last ID.

sub writing {
    my $size = -s $acks;

    wait_until(sub { -s $acks > $size }, 60) or die "the writer stands still\n";

    return last_written();
}


# Makes the writer pause, or go on.  Returns the last ID.

sub hold {
    my ($pause) = @_;

    if ($pause) {
        $nodes[0]->write_file('hold', '');
        wait_until(sub { -e "$dir/held" }, 60)
            or die "the writer does not pause\n";
    } else {
        unlink "$dir/hold", "$dir/held";
    }

    return last_written();
}


sub last_written {
    return ($nodes[0]->read_file('acks') =~ /(\S+)\n[^\n]*\z/)[0];
}


# Ends the writer, waits for the nodes, and compares the answers for all keys.

sub finish {
    $nodes[0]->write_file('stop.writer', '');
    wait_until(sub { !alive($process{writer}) }, 120)
        or die "the writer does not end\n";
    check_processes();

    $events->quiesce(last_written());
    check_all();
    $events->compare_nodes;
}


sub check_all {
    my $end = Fleet::Ledger->new($ledger);
    $end->read_until;

    my $last = $end->{last};
    my @keys = sort keys %$last;

    for my $node (@nodes) {
        my (undef, $answers) = Fleet::Checker::ask($node, @keys)
            or die "$node->{name} does not answer\n";
        my @differ = grep {
            $answers->[$_]
                ne ($last->{$keys[$_]}[1] eq '+' ? 'present' : 'absent')
        } 0 .. $#keys;

        die "$node->{name}: of " . @keys . ' keys, ' . @differ . " differ from"
            . " the ledger, such as $keys[$differ[0]], which is"
            . " $answers->[$differ[0]]\n" if @differ;
    }
}


sub report {
    my %count = counts('counts');
    my %written = counts('written');
    my $rate = ($written{changes} // 0) / ($written{seconds} || 1);
    my ($asked, $current) = (0, $count{state_current} // 0);
    $asked += $count{$_} for grep { /^state_/ } keys %count;

    print "# events: @history\n";
    printf "# changes: %d, %.0f/s while Redis was up\n",
           $written{changes} // 0, $rate;
    print '# checks: ', join(', ', map { "$_ $count{$_}" } sort keys %count),
          "\n";

    ok(!defined $problem, 'no promise was broken')
        or diag("$problem\nseed $option{seed}, events: @history\n");
    cmp_ok($count{judged} // 0, '>', 0, 'answers were judged');
    cmp_ok($count{answer_absent} // 0, '>', 0, 'keys are absent');
    cmp_ok($count{answer_present} // 0, '>', 0, 'keys are present');
    cmp_ok($count{fresh} // 0, '>', 0,
           'zones that are current were compared with what is old');
    cmp_ok($current, '>', $asked / 2, 'zones are current most of the time');
    cmp_ok($rate, '>=', 0.9 * $option{rate}, 'the writer keeps its rate')
        if $option{'keep-rate'};
}


# Reads counts that a process has written: "NAME NUMBER".

sub counts {
    my ($file) = @_;

    return map { split / / } split /\n/,
           eval { $nodes[0]->read_file($file) } // '';
}
