#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A model checker of additions and removals: clients use a real nginx while
# random events happen to it.  The checker stops at the first broken promise,
# and ends with its counts.
#
#   perl -It/lib t/chaos/chaos.pl --time 10m
#
# The files are in lib/Chaos: Events.pm, Removals.pm, Feedback.pm, Expiring.pm,
# Failures.pm and Attacks.pm have the events; Client.pm, ClientRemovals.pm,
# ClientFeedback.pm, ClientExpiring.pm and SharedKeys.pm have what the clients
# do and check;
# Rows.pm is the backend behind zones that except keys; Ledger.pm decides which
# failures of a request are excused, and History.pm which answers are allowed
# about keys that clients share.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use Getopt::Long;
use IO::Handle;
use List::Util qw(min max);

use BloomTest;
use BloomTest::Clock;
use BloomTest::Disk;
use BloomTest::Hostile;
use BloomTest::Memory;
use BloomTest::Witness;
use BloomTest::Process qw(spawn now alive wait_until time_limit);

use Chaos::Client;
use Chaos::Events;
use Chaos::History;
use Chaos::Ledger;

use constant CLIENTS => 3;

my %option = (time => '30s', seed => int rand 1e9, keys => 0, events => 0,
              only => '', skip => '', break => '');

GetOptions(\%option, 'time=s', 'seed=i', 'keys=i', 'events=i', 'only=s',
           'skip=s', 'break=s')
    && !@ARGV or die <<"USAGE";
usage: chaos.pl [--time 10m] [--seed N] [--keys N] [--events N]
                [--only EVENT,...] [--skip EVENT,...] [--break WHAT]

  --time    starts events for this time: seconds, or a number with s, m or h
  --seed    draws the same events again
  --keys    makes each filter for this many keys (default: by the time)
  --events  stops after this many events
  --only    draws only these events, in turn
  --skip    draws none of these events
  --break   breaks a promise by hand: journal, ledger, pair, base, acknowledged,
            lost, root, removal, lift, return, image, rows, excepted, early,
            outlived
USAGE

my %unit = ('' => 1, s => 1, m => 60, h => 3600);
my ($amount, $unit) = $option{time} =~ /^(\d+)([smh]?)$/
    or die "--time $option{time}: a number and s, m or h\n";
my $seconds = $amount * $unit{$unit};
my @only = split /,/, $option{only};
my @skip = split /,/, $option{skip};

for (@only, @skip, $option{break} ? "break_$option{break}" : ()) {
    Chaos::Events->can($_) or die "there is no event \"$_\"\n";
}

srand $option{seed};
my $workers = 2 + int rand 3;
$option{keys} ||= $seconds < 30 ? 200_000 : $seconds < 250 ? 8000 * $seconds
                                             : 2_000_000;
STDOUT->autoflush;
print "# seed $option{seed}, $workers workers, ", CLIENTS,
      " clients, $seconds s\n";

# As root, the workers run as another user, and a library records what processes
# of root do.  Otherwise no event of an attacker in a worker is drawn.

my $user = $> == 0 && eval { hostile_user() };
my $t = BloomTest->new($user ? (user => $user->{conf}) : ());
my $dir = $t->testdir;
my $ledger = Chaos::Ledger->new("$dir/ledger");
my $history = Chaos::History->new(Chaos::Ledger->new("$dir/ledger"));
my $removals = max(2000, int $option{keys} / 50);
my $disk = BloomTest::Disk->new($t, 'state');
my $witness = $user ? BloomTest::Witness->new($t, 'state') : undef;
my $memory = BloomTest::Memory->new;
my $clock = BloomTest::Clock->new($t);
my (@clients, @history, $problem);

my $events = Chaos::Events->new(
    t => $t, ledger => $ledger, history => $history, disk => $disk,
    keys => $option{keys}, removals => $removals,
    workers => $workers, break => $option{break},
    user => $user, witness => $witness, clock => $clock, memory => $memory,
    skip => { map { $_ => 1 } @skip },
    command => \&command, note => sub { $history[-1] .= "($_[0])" });

$events->prepare;
$t->run;
$events->add_stock;
begin_client($_) for 1 .. CLIENTS;


my $start = now();
my $number = 0;

while (now() - $start < $seconds) {
    last if $option{events} && $number >= $option{events};

    $number++;
    happens(@only ? $only[($number - 1) % @only] : $events->draw);
    last if $problem;
}

happens("break_$option{break}") if $option{break} && !$problem;
$problem //= attempt(sub {
    $events->await_feedback;
    $events->kill_all;
    command('verify all');
    $events->rest;
    command('verify all');
}) unless $option{break};

for (@clients) {
    syswrite $_->{commands}, "quit\n";
    wait_until(sub { !alive($_->{pid}) }) or $problem //= 'a client stays';
}

$problem //= attempt(sub { judge(now()) });

$memory->give_back if $memory;
report();
done_testing;


sub begin_client {
    my ($number) = @_;

    pipe my $commands, my $command or die "pipe: $!";
    pipe my $answer, my $answers or die "pipe: $!";
    open my $stderr, '>&', \*STDERR or die "stderr: $!";

    my $client = Chaos::Client->new(
        t => $t, number => $number, ledger => Chaos::Ledger->new("$dir/ledger"),
        zones => ['shield', 'empty'], feedback_zones => $events->FEEDBACK,
        expiring_zones => $events->EXPIRING,
        expiring_limit => int($events->EXPIRING_CAPACITY * 0.9
                              / CLIENTS),
        limit => int($option{keys} * 0.9 / CLIENTS),
        removals => int($removals * 0.5 / CLIENTS),
        feedback_removals => int($events->FEEDBACK_REMOVALS * 0.45
                                 / CLIENTS),
        disk_full => sub { -e "$dir/disk.refuses" },
        commands => $commands, answers => $answers);

    my $pid = spawn(sub {
        close $command;
        close $answer;
        close $_->{commands} for @clients;
        srand $option{seed} + $number;
        $client->run;
    }, stderr => $stderr);

    close $commands;
    close $answers;
    push @clients, { number => $number, pid => $pid, commands => $command,
                     answers => $answer };
}


# Sends a command to all clients and waits for them.  Dies with what they found
# wrong.

sub command {
    my ($command) = @_;

    syswrite $_->{commands}, "$command\n" for @clients;

    for (@clients) {
        my $bits = '';
        vec($bits, fileno $_->{answers}, 1) = 1;

        select($bits, undef, undef, time_limit(120)) > 0
            && (readline($_->{answers}) // '') eq "done\n"
            or die "client $_->{number} does not answer\n";
    }

    my @wrong = map { "$_\n" } map { split /\n/, $t->read_file($_) }
                grep { -s "$dir/$_" }
                map { "client.$_->{number}.wrong" } @clients;

    die @wrong if @wrong;
}


sub attempt {
    my ($code) = @_;

    return eval { $code->(); 1 } ? undef : $@;
}


sub happens {
    my ($event) = @_;

    push @history, $event;
    $events->{count}{events}++;

    $problem = attempt(sub {
        $events->$event;
        command($number % 10 == 0 ? 'verify all' : 'verify some');
        $events->check;
        judge(now() - 1);
    });
}


# Judges the answers about shared keys that clients got before this time.

sub judge {
    my ($before) = @_;

    $history->read_files(map { "$dir/client.$_->{number}.history" } @clients);
    my @wrong = $history->judge($before);

    $events->{count}{/^(\w+)/ ? $1 : 'failed'}++ for @wrong;
    splice @wrong, 10 if @wrong > 10;
    die map { "$_\n" } @wrong if @wrong;
}


sub report {
    my %sum = (%{ $events->{count} });
    my %extreme;

    for my $client (@clients) {
        my $counts = eval {
            $t->read_file("client.$client->{number}.counts")
        } // '';
        my $wrong = eval {
            $t->read_file("client.$client->{number}.wrong")
        } // '';

        # a client writes its counts when it verifies keys, and at once what it
        # has found wrong

        my (%count, %found);
        $count{$1} = $2 while $counts =~ /^(\w+) (\d+)$/mg;
        push @{ $extreme{$1} }, $2
            while $counts =~ /^(\w+) (-?\d+\.\d+)$/mg;
        $found{$1}++ while $wrong =~ /^(\w+): /mg;
        $count{$_} = max($count{$_} // 0, $found{$_}) for keys %found;
        $sum{$_} += $count{$_} for keys %count;
    }

    $sum{$_} //= 0 for qw(requests acked removed asked unknown again cut
                          refused lost returned torn failed images absent
                          false events rows passed rejected revived late
                          outlived expired turns);

    my $rate = int($sum{requests} / (now() - $start));

    print map { "# $_\n" } (
        "operations: $sum{requests} ($rate/s), answers about keys: $sum{asked},"
            . " of which unknown: $sum{unknown}",
        "events: $sum{events}, kills: $sum{kills}, reloads: $sum{reloads},"
            . " images read: $sum{images}",
        map({ "not drawn: $_" } $events->not_drawn),
        "requests cut by a kill: $sum{cut}, closed while idle and sent again:"
            . " $sum{again}, refused by the disk: $sum{refused}, failed:"
            . " $sum{failed}",
        "torn answers: $sum{torn}",
        "answers about shared keys: $history->{answers}, of which unknown:"
            . " $history->{unknown}",
        "acknowledged keys: $sum{acked}, keys lost: $sum{lost}",
        "removed keys: $sum{removed}, keys that returned: $sum{returned}",
        'excepted keys: at least ' . $events->excepted . ', rejected and then'
            . " added: $sum{revived}",
        'layers: at most ' . ($events->{layers} // 0),
        "requests that the backend denied: $sum{passed}, found: $sum{rows},"
            . " late: $sum{late}, rejected: $sum{rejected}",
        "expired keys: $sum{expired}, lived too long: $sum{outlived}, least"
            . ' life: ' . (min(@{ $extreme{least} // [] }) // '-')
            . ' s, greatest life: '
            . (max(@{ $extreme{greatest} // [] }) // '-')
            . ' s, without faults: '
            . (max(@{ $extreme{greatest_calm} // [] }) // '-')
            . " s, turns seen: $sum{turns}",
        'longer than a life, a slice and all faults: at most '
            . (max(@{ $extreme{excess} // [] }) // '-') . ' s',
    );

    ok(!defined $problem, 'no promise was broken')
        or diag("$problem\nseed $option{seed}, events: @history\n");
    is($sum{lost}, 0, "of $sum{acked} acknowledged keys none is lost");
    is($sum{returned}, 0,
       "of $sum{removed} removed keys none is present");
    is($sum{outlived}, 0, "of $sum{expired} expired keys none is present");
    is($sum{torn}, 0, 'each answer is of one generation');
    is($sum{failed}, 0, 'no request failed but those that a kill cut');
    cmp_ok($sum{acked}, '>', 0, 'keys were acknowledged');
    cmp_ok($sum{removed}, '>', 0, 'keys were removed');
    cmp_ok($events->excepted, '>', 0, 'keys were excepted');
    cmp_ok($sum{expired}, '>', 0, 'keys have expired');
    cmp_ok($events->{layers} // 0, '>', 0, 'a filter has grown');

    # a filter that answers "present" to everything would lose no key

    cmp_ok($sum{absent}, '>', 100 * $sum{false},
           'what was never added is absent');
}
