#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# `ngx-bloom follow` reports no gap where a stream lost nothing that the zone
# lacks: an entry may be trimmed or deleted after a zone had it, and the last ID
# of a stream may move without an entry.  What cannot be known is said to be
# possible, not certain.

use strict;
use warnings;

use IO::Socket::INET;

use BloomTest;
use BloomTest::Follow qw(follow log_of redis redis_server redis_stop stop_follow
                         wait_for_event);
use BloomTest::Ledger;
use BloomTest::Process qw(resume_process spawn stop_process wait_until);
use BloomTest::Tool qw(tool_test);

my $t = tool_test();
my $server = redis_server($t, 6379, 'save 3600 1', 'appendonly no');
my $zone = BloomTest::Ledger->new($t, 8081);
my $follower;

sub entry_at { return redis($server, 'XADD', 's', @_) =~ s/-0$//r }

# Begins a stream with entries 1 to 5, all of which the zone has.

sub begin {
    redis($server, 'DEL', 's');
    entry_at("$_-0", 'add', "at-$_") for 1 .. 5;
    $zone->set(position => '5', changes => [], gaps => [], gap => 0,
               signs => 0, as_of => undef);
}

sub start {
    $zone->set(signs => 0);
    $follower = follow($t, '--zone', $zone->url, $server->{url});
    ok($zone->wait_for(sub { $_->{signs} > 0 || @{ $_->{gaps} } }),
       'the zone is up to date, or hears of a gap');
}

# Adds an entry, which the zone gets.  The gaps until then are as expected.

sub goes_on {
    my ($id, $what, @gaps) = @_;

    my $text = $id =~ s/-0$//r;

    entry_at($id, 'add', "at-$text");
    ok($zone->wait_for(sub { $_->{position} eq $text
                             && $_->{changes}[-1] eq "+at-$text" }),
       "the zone gets a new entry: $what");
    is_deeply($zone->zone->{gaps}, \@gaps,
              @gaps ? "there is a gap: $what" : "that is no gap: $what");
}

# An entry is added while no follower runs.

sub goes_to_later {
    my ($id, $what, @gaps) = @_;

    my $text = $id =~ s/-0$//r;

    entry_at($id, 'add', "at-$text");
    $follower = follow($t, '--zone', $zone->url, $server->{url});
    ok($zone->wait_for(sub { $_->{position} eq $text
                             && ($_->{changes}[-1] // '') eq "+at-$text" }),
       "the zone gets the entry: $what");
    is_deeply($zone->zone->{gaps}, \@gaps,
              @gaps ? "there is a gap: $what" : "that is no gap: $what");
    stop_follow($follower);
}

sub signs_go_on {
    my ($what) = @_;

    my $signs = $zone->zone->{signs};
    ok($zone->wait_for(sub { $_->{signs} > $signs + 1 }),
       "the zone is up to date: $what");
}


subtest 'XSETID moves the last ID forwards' => sub {
    begin();
    start();
    redis($server, 'XSETID', 's', '100-0');
    signs_go_on('the last ID moved');
    is($zone->zone->{position}, '5', 'the zone stays at the last entry');
    goes_on('101-0', 'XSETID, then XADD');
    stop_follow($follower);

    redis($server, 'XSETID', 's', '200-0');
    start();
    signs_go_on('the last ID moved before the start');
    stop_follow($follower);
    goes_to_later('201-0', 'XSETID, XADD, then a start');
};

subtest 'the last entry is deleted after the zone had it' => sub {
    begin();
    start();
    redis($server, 'XDEL', 's', '5-0');
    signs_go_on('the last entry is deleted');
    goes_on('6-0', 'XDEL, then XADD');
    stop_follow($follower);

    redis($server, 'XDEL', 's', '6-0');
    goes_to_later('7-0', 'XDEL, XADD, then a start');
};


subtest 'all entries are trimmed after the zone had them' => sub {
    begin();
    start();
    redis($server, 'XTRIM', 's', 'MAXLEN', 0);
    signs_go_on('the stream is empty');
    goes_on('6-0', 'XTRIM, then XADD');
    stop_follow($follower);

    redis($server, 'XTRIM', 's', 'MAXLEN', 0);
    start();
    goes_on('7-0', 'XTRIM, a start, then XADD');

    # the connection is lost, but the data is the same

    redis($server, 'XTRIM', 's', 'MAXLEN', 0);
    redis($server, 'CLIENT', 'KILL', 'TYPE', 'normal');
    goes_on('8-0', 'XTRIM, a new connection, and XADD');

    stop_process($follower->{pid});
    redis($server, 'XTRIM', 's', 'MAXLEN', 0);
    redis($server, 'XSETID', 's', '20-0');
    entry_at('21-0', 'add', 'at-21');
    redis($server, 'CLIENT', 'KILL', 'TYPE', 'normal');
    resume_process($follower->{pid});
    ok($zone->wait_for(sub { $_->{position} eq '21' }), 'the zone goes on');
    is_deeply($zone->zone->{gaps}, [],
              'XTRIM, XSETID and XADD while a follower slept are no gap');
    stop_follow($follower);
};


# Nobody can know what happened while no follower ran.

subtest 'what cannot be known may be missing' => sub {
    begin();
    redis($server, 'XTRIM', 's', 'MAXLEN', 0);
    goes_to_later('6-0', 'XTRIM and XADD while no follower ran',
                  '5-18446744073709551615');
    ok(wait_for_event($follower, 'gap_trimmed', qr/may have been among/),
       'the log says that entries may be missing');

    begin();
    entry_at('6-0', 'add', 'six');
    $zone->set(position => '2-1');
    start();
    ok(wait_for_event($follower, 'gap_replaced', qr/entries may be missing/),
       'the log says so of a position that is no entry\'s');
    stop_follow($follower);
};


subtest 'entries that are missing are counted' => sub {
    begin();
    start();
    redis($server, 'EVAL', q{for i = 6, 9 do
                                 redis.call('XADD', 's', i .. '-0', 'add', i)
                             end
                             redis.call('XTRIM', 's', 'MAXLEN', 1)}, 0);
    ok(wait_for_event($follower, 'gap_trimmed',
                      qr/before this zone had all entries: 3 are missing/),
       'the log says how many');
    ok($zone->wait_for(sub { $_->{position} eq '9' }), 'the zone goes on');
    is_deeply($zone->zone->{gaps}, ['8-18446744073709551615'],
              'the zone is told');
    stop_follow($follower);
};


# A failover begins another history, so what was seen before proves nothing.

subtest 'a failover that loses entries is a gap' => sub {
    begin();

    my $replica = redis_server($t, 6380,
                               "replicaof 127.0.0.1 $server->{port}");
    wait_until(sub { redis($replica, 'INFO', 'replication')
                     =~ /master_link_status:up/ });

    # a port that moves from one server to the other

    my $proxy = proxy($server->{port}, $replica->{port});
    $follower = follow($t, '--zone', $zone->url,
                       "redis://127.0.0.1:$proxy->{port}");
    ok($zone->wait_for(sub { $_->{signs} > 0 }), 'the zone is up to date');

    redis($replica, 'REPLICAOF', 'NO', 'ONE');
    goes_on('7-0', 'on the old primary');
    redis($replica, 'XADD', 's', '6-0', 'add', 'six');
    redis($replica, 'XADD', 's', '9-0', 'add', 'nine');
    kill 'USR1', $proxy->{pid};
    ok($zone->wait_for(sub { $_->{position} eq '9' }), 'the zone goes on');
    is_deeply($zone->zone->{gaps}, ['7'],
              'an entry that the zone passed is missing: a gap');

    stop_follow($follower);
    kill 'KILL', $proxy->{pid};
    redis_stop($replica);
};

# Relays connections to the first port, and from SIGUSR1 on to the other one.

sub proxy {
    my ($from, $to) = @_;

    my $listen = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 5)
        or die "cannot listen: $!";
    my $pid = spawn(sub {
        my $port = $from;
        my ($client, $server);

        local $SIG{USR1} = sub {
            $port = $to;
            close $client if $client;
            close $server if $server;
        };

        while (1) {
            $client = $listen->accept or next;
            $server = IO::Socket::INET->new(PeerAddr => '127.0.0.1',
                                            PeerPort => $port) or next;
            relay($client, $server);
        }
    });

    return { port => $listen->sockport, pid => $pid };
}

sub relay {
    my (@ends) = @_;

    while (defined fileno $ends[0] && defined fileno $ends[1]) {
        my $bits = '';
        vec($bits, fileno $_, 1) = 1 for @ends;
        next if select(my $ready = $bits, undef, undef, 1) <= 0;

        for my $i (0, 1) {
            return if !defined fileno $ends[$i];
            next if !vec($ready, fileno $ends[$i], 1);
            sysread $ends[$i], my $bytes, 65536 or return;
            syswrite $ends[1 - $i], $bytes;
        }
    }
}


subtest 'a Redis without memory can be read' => sub {
    begin();
    redis($server, 'CONFIG', 'SET', 'maxmemory-policy', 'noeviction');
    redis($server, 'CONFIG', 'SET', 'maxmemory', 1);
    like(redis($server, 'XADD', 's', '6-0', 'add', 'six'), qr/OOM/,
         'Redis takes no entries');
    start();
    signs_go_on('Redis has used up its memory');
    is(scalar(grep { $_->{event} eq 'redis_failed' }
              log_of($follower)), 0, 'nothing failed');
    redis($server, 'CONFIG', 'SET', 'maxmemory', 0);
    goes_on('6-0', 'once there is memory');
    stop_follow($follower);
};


subtest 'the last possible ID' => sub {
    my $max = '18446744073709551615';

    begin();
    start();
    goes_on("$max-$max", 'the last ID of all');
    signs_go_on('at the last ID');
    is(scalar @{ $zone->zone->{changes} }, 1, 'nothing is sent again');
    stop_follow($follower);
    start();
    signs_go_on('at the last ID, after a start');
    is(scalar @{ $zone->zone->{changes} }, 1, 'nothing is sent again');
    is_deeply($zone->zone->{gaps}, [], 'there is no gap');
    stop_follow($follower);
};

redis_stop($server);
$zone->kill;
done_testing;
