#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# This section measures `ngx-bloom follow`: the time from XADD to the answer of
# each of three nodes, idle and while 20,000 other changes a second arrive; and
# the changes that one follower carries to one node a second.  For comparison,
# the same bodies are sent to a `return 200`.

use strict;
use warnings;

use IO::Socket::INET;
use List::Util qw(max);
use Time::HiRes qw(sleep);

use Bench;
use BloomTest::Follow qw(follow redis redis_server redis_stop stop_follow);
use BloomTest::Process qw(now run_command spawn wait_until);
use BloomTest::Tool qw(tool_path);

my $rounds = rounds(5);
my $entries = quick() ? 50 : 2000;          # whose latency is measured
my $queued = quick() ? 50_000 : 1_000_000;  # changes in a round
my $target = 300_000;                       # changes a second
my $busy = 20_000;                          # changes a second meanwhile

if (system('command -v redis-server > /dev/null') != 0) {
    section('A fleet that follows a stream');
    line('Not measured: redis-server is not installed.');
    exit;
}

my @zones = ('zone=ids capacity=50m fpr=0.001;'
             . ' bloom_source zone=ids name=ids',
             map { "zone=rate$_ capacity=2m fpr=0.001;"
                   . " bloom_source zone=rate$_ name=ids" }
                 1 .. 2 * $rounds);
my @nodes = map {
    Bench::server($_ == 1 ? \@zones : [$zones[0]], <<'CONF');
        location = /ids { bloom_reject absent $arg_k zone=ids; empty_gif; }
        location = /discard { client_max_body_size 0; return 200; }
CONF
} 1 .. 3;

my $t = $nodes[0];
my $redis = redis_server($t, 6379);
system(second_on() ? ('taskset', '-cp', '1', $redis->{pid}) : 'true');

sub url {
    my ($node, $zone) = @_;

    return 'http://127.0.0.1:' . $node->port(8080) . "/bloom/zones/$zone";
}

sub connection {
    my ($port) = @_;

    my $socket = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port")
        or die "cannot connect to port $port: $!\n";
    $socket->autoflush(1);

    return $socket;
}


# Returns an entry as a command of Redis.

sub entry {
    my (@keys) = @_;

    my @words = ('XADD', 's', '*', map { ('add', $_) } @keys);

    return join '', '*' . @words . "\r\n",
                map { '$' . length($_) . "\r\n$_\r\n" } @words;
}


# Adds entries of 100 keys, as fast as $busy.

sub keep_busy {
    my $socket = connection($redis->{port});
    my $due = now();
    my $n = 0;

    while (1) {
        print $socket map { entry(map { 'busy' . $n++ } 1 .. 100) } 1 .. 4;
        defined <$socket> && defined <$socket> or return for 1 .. 4;

        $due += 400 / $busy;
        sleep $due - now() if $due > now();
    }
}


# Adds keys, one at a time, and asks all nodes until each has it.  Returns the
# milliseconds to each node's answer, and to the last one's.

my $next = 0;

sub latencies {
    my @sockets = map { connection($_->port(8080)) } @nodes;
    my $writer = connection($redis->{port});
    my (@each, @last);

    for (1 .. $entries) {
        my $key = 'latency' . $next++;
        my $begun = now();
        my @waiting = @sockets;
        my $time;

        print $writer entry($key);
        defined <$writer> && defined <$writer> or die "Redis is gone\n";

        while (@waiting) {
            print $_ "GET /ids?k=$key HTTP/1.1\r\nHost: a\r\n\r\n" for @waiting;
            @waiting = grep {
                my $has = answer($_);
                $time = 1000 * (now() - $begun);
                push @each, $time if $has;
                !$has;
            } @waiting;
            $time < 120_000 or die "a node does not get $key\n";
        }

        push @last, $time;
        sleep 0.001 * rand 5;
    }

    return (\@each, \@last);
}


# Reads a response.  Returns whether its status is 200.

sub answer {
    my ($socket) = @_;

    my $status = <$socket> // die "nginx is gone\n";
    my $length = 0;

    while ((my $line = <$socket>) ne "\r\n") {
        $length = $1 if $line =~ /^Content-Length: (\d+)/i;
    }

    read $socket, my $body, $length if $length;

    return $status =~ / 200 /;
}


sub at {
    my ($times, $share) = @_;

    my @sorted = sort { $a <=> $b } @$times;

    return sprintf '%.2f', $sorted[$share * $#sorted];
}


section('A fleet that follows a stream');

my $follower = follow($t, '--from', 'beginning', '--quiet',
                      map({ ('--zone', url($_, 'ids')) } @nodes),
                      $redis->{url});

redis($redis, 'XADD', 's', '*', 'add', 'first');

for my $node (@nodes) {
    wait_until(sub {
        $node->get('/bloom/zones/ids')->json->{source}{state} eq 'current'
    }, 60) or die "a node does not get the first key\n";
}

my @rows;

for my $load ('idle', 'busy') {
    my $pid = $load eq 'busy' ? spawn(\&keep_busy) : 0;
    sleep 1 if $pid;

    my ($each, $last) = latencies();

    kill 'KILL', $pid if $pid;
    push @rows, [$pid ? number($busy) . ' other changes a second' : 'idle',
                 map { at($_->[0], $_->[1]) } [$each, 0.5], [$each, 0.99],
                                              [$last, 0.5], [$last, 0.99]];
}

stop_follow($follower);

table(['from XADD to the answer of three nodes, in ms', 'median of the answers',
       'p99', 'median of the last answer', 'p99'], @rows);

line("$entries entries with one key each, by one follower. The client asks the"
     . ' three nodes in turn until each answers that the key is present, so the'
     . ' figures have a granularity of three requests, and the nodes serve these'
     . ' requests meanwhile. All workers run on the first processor.');
line('');


# Throughput

# Fills the stream.  Redis makes the entries itself.

sub fill {
    my ($keys) = @_;

    my $script = <<'LUA';
for i = ARGV[1], ARGV[2] - 1, ARGV[3] do
    local fields = {}
    for j = i, i + ARGV[3] - 1 do
        fields[#fields + 1] = 'add'
        fields[#fields + 1] = string.format('id%09d', j)
    end
    redis.call('XADD', 's', '*', unpack(fields))
end
LUA

    redis($redis, 'DEL', 's');

    for (my $i = 0; $i < $queued; $i += 10_000) {
        redis($redis, 'EVAL', $script, 0, $i, $i + 10_000, $keys);
    }
}


# Sends the bodies that the follower sends to a location that discards them.
# Returns the seconds.

sub discard {
    my ($keys, $max) = @_;

    my $socket = connection($t->port(8080));
    my $line = length "+id000000000\n";
    my $fit = int($max / $line / $keys) * $keys;
    my @bodies;

    for (my $i = 0; $i < $queued; $i += $fit) {
        my $end = $i + $fit < $queued ? $i + $fit : $queued;
        my $body = join '', map { sprintf "+id%09d\n", $_ } $i .. $end - 1;

        push @bodies, "POST /discard HTTP/1.1\r\nHost: a\r\nContent-Length: "
                      . length($body) . "\r\n\r\n$body";
    }

    my $begun = now();

    for (@bodies) {
        print $socket $_;
        answer($socket) or die "a body is not discarded\n";
    }

    return (now() - $begun, scalar @bodies);
}


my (%rate, %cost, %bodies);
my $zone = 0;

for my $keys (1, 100) {
    fill($keys);

    for (1 .. $rounds) {
        my $name = 'rate' . ++$zone;
        my $max = $t->get("/bloom/zones/$name")->json->{source}{max_body};
        my ($worker) = $t->workers;
        my @before = (processor_time($worker), processor_time($redis->{pid}),
                      (times)[2] + (times)[3], now());

        my ($exit, undef, $err) = run_command(
            [second_on, tool_path(), 'follow', '--once', '--quiet', '--timeout',
             600, '--from', 'beginning', '--stream', 's', '--source', 'ids',
             '--zone', url($t, $name), $redis->{url}], limit => 700);

        $exit == 0 or die "the follower fails: $err\n";

        my @after = (processor_time($worker), processor_time($redis->{pid}),
                     (times)[2] + (times)[3], now());
        my @spent = map { $after[$_] - $before[$_] } 0 .. 3;

        my $state = $t->get("/bloom/zones/$name")->json;
        $state->{counters}{added} >= 0.99 * $queued
            or die "only $state->{counters}{added} keys arrived\n";

        push @{ $rate{$keys} }, $queued / $spent[3];
        push @{ $cost{$keys}[$_] }, 1e6 * $spent[$_] / $queued for 0 .. 2;

        my ($seconds, $count) = discard($keys, $max);
        push @{ $rate{"discard $keys"} }, $queued / $seconds;
        $bodies{$keys} = $count;
    }
}

table(['changes in the stream', 'changes/s', 'best round',
       'the same bodies, `return 200`', 'ratio',
       'us of the worker', 'us of Redis', 'us of the follower', 'target'],
      map {
          my $keys = $_;
          my ($ratio, $least, $most) = ratios($rate{$keys},
                                              $rate{"discard $keys"});
          ["entries of $keys key" . ($keys == 1 ? '' : 's'),
           number(median(@{ $rate{$keys} })), number(max(@{ $rate{$keys} })),
           number(median(@{ $rate{"discard $keys"} })),
           sprintf('%.3f (%.3f to %.3f)', $ratio, $least, $most),
           map({ number(median(@{ $cost{$keys}[$_] })) } 0, 1, 2),
           number($target) . ': '
               . verdict(median(@{ $rate{$keys} }) >= $target)]
      } 1, 100);

line('`ngx-bloom follow --once` carries ' . number($queued) . ' queued changes'
     . " of keys of 11 bytes to one zone, in $bodies{1} and $bodies{100} bodies,"
     . ' one after the other. Its start is counted. The worker runs on the first'
     . ' processor, Redis and the follower on the second. Microseconds are of a'
     . ' processor, for each change.');
line('');

redis_stop($redis);
