#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# `ngx-bloom follow` reaches Redis by a Unix socket, as a user with the permissions
# that docs/fleet.md names, after connections that Redis closes, and at a node of
# a Redis Cluster.  It reads on where an answer exceeds the server's limit for a
# client.

use strict;
use warnings;

use FindBin;

use BloomTest;
use BloomTest::Follow qw(follow log_of redis redis_server redis_stop stop_follow
                         wait_for_event);
use BloomTest::Ledger;
use BloomTest::Process qw(run_command wait_until);
use BloomTest::Redis qw(redis_program);
use BloomTest::Tool qw(content_of tool tool_test);

my $t = tool_test();
my $socket = $t->testdir . '/redis.sock';
my $server = redis_server($t, 6379, "unixsocket $socket");
my $zone = BloomTest::Ledger->new($t, 8081);

# Starts a follower of a zone without changes.

sub begin {
    my (@arguments) = @_;

    $zone->set(position => '0', changes => [], gaps => [], gap => 0, signs => 0,
               as_of => undef);

    return follow($t, '--from', 'beginning', '--zone', $zone->url, @arguments);
}

# Adds an entry to a database.

sub entry {
    my ($db, @fields) = @_;

    redis($server, '-n', $db, 'XADD', 's', '*', @fields);
}

sub errors { return grep { $_->{level} eq 'error' } log_of($_[0]) }

sub gets {
    my ($follower, $key, $what) = @_;

    ok($zone->wait_for(sub { grep { $_ eq "+$key" } @{ $_->{changes} } }), $what)
        or diag explain [log_of($follower)];
}


# A Unix socket

entry(3, 'add', 'three');
my $f = begin("unix://$socket?db=3");
gets($f, 'three', 'a follower reads a database by a Unix socket');
stop_follow($f);

entry(0, 'add', 'zero');
$f = begin("unix://$socket");
gets($f, 'zero', 'a follower reads database 0 by a Unix socket');
stop_follow($f);

for (['missing', "unix://$socket.missing",
      qr/cannot connect: No such file or directory; check the path, and that the server is running with this unixsocket/],
     ['a file', 'unix://' . $t->testdir . '/redis-6379.conf',
      qr/cannot connect: .*; it is not a socket; use the path in the server's unixsocket/],
     ['too long', 'unix:///' . 'x' x 200,
      qr/cannot connect: the path of the socket has more than 107 bytes; use a shorter one/])
{
    my ($what, $url, $message) = @$_;

    $f = begin($url);
    ok(wait_for_event($f, 'redis_failed', $message),
       "a follower names a socket that is $what")
        or diag explain [log_of($f)];
    stop_follow($f);
}

for ('unix://', 'unix:x', 'unix://redis.sock', 'unix:///x?db=', 'unix:///x?db=x',
     'unix:///x?db=1&db=2', 'unix:///x?other=1', 'unix:///x?db=1&', 'unix:///x?',
     'unix:///x%00y', 'unix:///x?key=ids', 'unix://secret/x@/y',
     'unix:///secret@x?db=3')
{
    my (undef, undef, $err)
        = tool(2, qr{: is not the address of a Redis server; write redis://host:port/database or unix:///path\?db=database, },
               'follow', '--stream', 's', '--source', 'ids', '--zone',
               $zone->url, $_);
    unlike($err, qr/secret/, "the message about $_ shows no password")
        if /secret/;
}


# The permissions of docs/fleet.md, with a password and a database

SKIP: {
    skip 'this server has no access control lists', 3
        if redis($server, 'ACL', 'WHOAMI') =~ /unknown command/;

    my ($line) = content_of("$FindBin::Bin/../../docs/fleet.md")
                 =~ /^(ACL SETUSER .*)$/m;
    my @words = map { s/^~ids$/~s/r } split / /, $line // '';

    is(redis($server, @words), 'OK', 'a server takes the ACL of docs/fleet.md')
        or diag $line;
    entry(3, 'remove', 'three');

    for (["redis://bloom:password\@127.0.0.1:$server->{port}/3", {}],
         ["unix://bloom:password\@$socket?db=3", {}],
         ["unix://bloom:\@$socket?db=3", { REDISCLI_AUTH => 'password' }])
    {
        my ($url, $environment) = @$_;

        $f = begin($url, $environment);
        gets($f, 'three', 'a user with these permissions follows ' . $url
                          =~ s/:\d+//r =~ s/\Q$socket\E/SOCKET/r);
        ok($zone->wait_for(sub { $_->{signs} > 1 }), 'and gives signs of life');
        is_deeply([errors($f)], [], 'without an error');
        stop_follow($f);
    }
}


# A connection that Redis closed: a new one is no failure.

$f = begin($server->{url});
ok($zone->wait_for(sub { $_->{signs} > 0 }), 'a follower waits for entries');

# Returns the ID of the follower's connection.

sub connection {
    return wait_until(sub {
        return redis($server, 'CLIENT', 'LIST') =~ /^id=(\d+) .* cmd=xread\b/m
               && $1;
    });
}

for my $n (1 .. 8) {
    my $before = connection();
    my $signs = $zone->zone->{signs};

    # a sign of life follows an answer over this connection

    $zone->wait_for(sub { $_->{signs} > $signs });
    redis($server, 'CLIENT', 'KILL', 'ID', $before);
    ok(wait_until(sub { connection() != $before }),
       "a follower connects again after closed connection $n");
}

entry(0, 'add', 'after');
gets($f, 'after', 'a follower reads on after closed connections');
is_deeply([errors($f)], [], 'a closed connection is not logged as a failure');
stop_follow($f);


# Answers over the server's limit for a client's output

redis($server, 'DEL', 's');
run_command(['sh', '-c', 'for i in $(seq 4000); do echo "XADD s * add key-$i pad '
                         . 'x' x 2000 . '"; done | redis-cli -p '
                         . $server->{port}]);
is(redis($server, 'XLEN', 's'), 4000, 'a stream has entries of 2 KB');
redis($server, 'CONFIG', 'SET', 'client-output-buffer-limit', 'normal 100000 0 0');

$f = begin($server->{url});
ok($zone->wait_for(sub { @{ $_->{changes} } == 4000 }),
   'a follower reads a stream in answers that the server allows')
    or diag explain [log_of($f)];
is_deeply([grep { $_->{level} eq 'error' } log_of($f)], [],
          'which is not logged as a failure');
stop_follow($f);

SKIP: {
    skip 'Redis 5 closes a connection after such an answer', 2
        if redis_version() < 6;

    redis($server, 'DEL', 's');
    entry(0, 'add', 'large', map { ('pad', 'x' x 100000) } 1 .. 4);
    $f = begin($server->{url});
    ok(wait_for_event($f, 'redis_failed', qr/closed the connection during .*; look at its log, and if that speaks of output buffer limits, raise client-output-buffer-limit for normal clients/),
       'an entry that exceeds the limit alone is a failure, and the limit is named')
        or diag explain [log_of($f)];
    redis($server, 'CONFIG', 'SET', 'client-output-buffer-limit', 'normal 0 0 0');
    gets($f, 'large', 'a follower reads on when the limit is raised');
    stop_follow($f);
}


# A Redis Cluster

# Before Redis 7, the port of a node's bus is that of the node plus 10,000.

my @bus = redis_version() >= 7 ? map { $t->port($_) } 7011, 7012 : ();
my @node = map { redis_server($t, 7001 + $_, 'cluster-enabled yes',
                              @bus ? "cluster-port $bus[$_]" : ()) } 0, 1;
my $slot = redis($node[0], 'CLUSTER', 'KEYSLOT', 's');

redis($node[0], 'CLUSTER', 'ADDSLOTS', $slot);
redis($node[1], 'CLUSTER', 'ADDSLOTS', grep { $_ != $slot } 0 .. 16383);
redis($node[0], 'CLUSTER', 'MEET', '127.0.0.1', $node[1]{port},
      @bus ? $bus[1] : ());
ok(wait_until(sub {
    return !grep { redis($_, 'CLUSTER', 'INFO')
                   !~ /cluster_state:ok.*cluster_known_nodes:2/s } @node;
}), 'two servers are a Redis Cluster') or diag redis($node[0], 'CLUSTER', 'INFO');
redis($node[0], 'XADD', 's', '*', 'add', 'clustered');

$f = begin($node[0]{url});
gets($f, 'clustered', 'a follower reads a stream at the node that has it');
is_deeply([errors($f)], [], 'which is no error');
stop_follow($f);

$f = begin($node[1]{url});
ok(wait_for_event($f, 'redis_failed', qr/MOVED $slot 127\.0\.0\.1:$node[0]{port}; the key is on the node of a Redis Cluster that is named here: use its address, /),
   'another node is an error that names the node')
    or diag explain [log_of($f)];
is_deeply($zone->zone->{gaps}, [], 'which is no gap');
stop_follow($f);

$f = begin("$node[0]{url}/1");
ok(wait_for_event($f, 'redis_failed', qr/; a Redis Cluster has database 0 only/),
   'another database of a Redis Cluster is an error')
    or diag explain [log_of($f)];
stop_follow($f);

redis_stop($_) for $server, @node;
$zone->kill;
done_testing;


# Returns the first number of the version of Redis that the server is like.

sub redis_version {
    return (redis($server, 'INFO', 'server') =~ /^redis_version:(\d+)/m)[0];
}
