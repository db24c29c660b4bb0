#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# `ngx-bloom follow` notices everything that a Redis stream can lose, tells the
# zone, and never takes a failure to read for a loss.  The servers are real ones,
# except for hostile ones.

use strict;
use warnings;

use JSON::PP qw(decode_json);
use POSIX qw(strftime);

use BloomTest;
use BloomTest::FakeServer qw(answering fake_server);
use BloomTest::Follow qw(follow log_of redis redis_server redis_stop resp_array
                         resp_string stop_follow stream_answers wait_for_event);
use BloomTest::Ledger;
use BloomTest::Process qw(resume_process stop_process wait_until);
use BloomTest::Tool qw(tool_memory tool_test);

my $t = tool_test();
my $server = redis_server($t, 6379);
my $zone = BloomTest::Ledger->new($t, 8081);

sub entry_at { return redis($server, 'XADD', 's', @_) =~ s/-0$//r }
sub entry { return entry_at('*', @_) }

# Starts a follower with a zone at a position.

sub begin {
    my ($position, @options) = @_;

    $zone->set(position => $position, changes => [], gaps => [], gap => 0,
               signs => 0, as_of => undef);

    return follow($t, @options, '--zone', $zone->url, $server->{url});
}

sub gaps_are {
    my ($follower, $gaps, $event, $what) = @_;

    ok($zone->wait_for(sub { "@{ $_->{gaps} }" eq "@$gaps" }),
       "the zone is told of the gap: $what")
        or diag explain [$zone->zone, log_of($follower)];
    my $from = $gaps->[-1] eq '0'
        ? 'the ID of an entry that the stream gets from now on'
        : "$gaps->[-1] or later";

    ok(wait_for_event($follower, $event, qr/load an image built with --source ids=P, where P is \Q$from\E$/),
       "the gap is named: $what") or diag explain [log_of($follower)];
}

sub fresh {
    my (@ids) = @_;

    redis($server, 'DEL', 's');
    entry_at($_, 'add', "at-$_") for @ids;
}

sub max { return '18446744073709551615' }


# Each row has what happened to a stream while no follower ran: the IDs that it
# had, a command, the position of the zone, options of the follower, the gaps that
# the zone is told of, their event, the position in the end, and the IDs that are
# sent.

my @large = map { $_ . '000000' } 1 .. 9;
my @begin = ('--from', 'beginning');

for (['trimmed', [1 .. 9], 'XTRIM s MAXLEN 4', 3, [], ['5-' . max()],
      'gap_trimmed', 9, 6 .. 9],
     ['trimmed, but the zone has everything', [1 .. 11], 'XTRIM s MAXLEN 0', 11,
      [], []],
     ['everything is trimmed', [1 .. 11], 'XTRIM s MAXLEN 0', 9, [], ['11'],
      'gap_trimmed'],
     ['recreated without an entry', [], 'XGROUP CREATE s g 0 MKSTREAM', 3, [],
      ['0'], 'gap_lost_end', 0],
     ['an entry is deleted', [1 .. 9], 'XDEL s 6-0', 3, [], ['6'],
      'gap_entry_deleted', 9, 4, 5, 7, 8, 9],
     ['recreated with later entries', [20, 21], undef, 12, [], ['19-' . max()],
      'gap_replaced', 21, 20, 21],
     ['recreated with earlier entries', [5, 6], undef, 12, [], ['6'],
      'gap_lost_end'],

     # where a zone begins decides what can be missing

     ['trimmed, and a zone is to have all from the beginning', \@large,
      'XTRIM s MAXLEN 4', 0, \@begin, ['5999999-' . max()], 'gap_trimmed',
      9000000, @large[5 .. 8]],
     ['trimmed, and a zone begins by an ID with what remains', \@large,
      'XTRIM s MAXLEN 4', 0, ['--from', '5999999-' . max()], [], undef, 9000000,
      @large[5 .. 8]],
     ['everything is trimmed that a zone is to have', \@large,
      'XTRIM s MAXLEN 0', 0, \@begin, ['9000000'], 'gap_trimmed'])
{
    my ($what, $ids, $command, $position, $options, $gaps, $event, $end, @sent)
        = @$_;

    fresh(map { "$_-0" } @$ids);
    redis($server, split / /, $command) if defined $command;

    my $f = begin("$position", @$options);

    gaps_are($f, $gaps, $event, $what) if @$gaps;
    ok($zone->wait_for(sub { $_->{signs} > 1 }), "no gap and signs of life: $what")
        if !@$gaps;

    if (defined $end) {
        ok($zone->wait_for(sub { $_->{position} eq $end }),
           "the follower goes on: $what");
        is($zone->changes, join(' ', map { "+at-$_-0" } @sent),
           "the zone gets what remains: $what");
    }

    is_deeply($zone->zone->{gaps}, $gaps, "there is no other gap: $what");
    stop_follow($f);
}


# Trimmed, but another follower has brought the zone past that meanwhile

fresh(map { "$_-0" } 1 .. 5);
my $f = begin('5');
ok($zone->wait_for(sub { $_->{signs} > 0 }), 'the zone is at the end');
stop_process($f->{pid});
entry_at("$_-0", 'add', "at-$_-0") for 6 .. 9;
redis($server, 'XTRIM', 's', 'MAXLEN', 2);
$zone->set(position => '8');
resume_process($f->{pid});
ok($zone->wait_for(sub { $_->{position} eq '9' }), 'the follower goes on there');
is_deeply($zone->zone->{gaps}, [], 'and does not move the zone back by a gap');


# Deleted, and recreated, while a follower runs

redis($server, 'DEL', 's');
ok(wait_for_event($f, 'no_stream', qr/no key "s"/), 'a deleted stream is named');
is(scalar @{ $zone->zone->{gaps} }, 0, 'but that alone is no gap');
entry_at('12-0', 'add', 'new');
gaps_are($f, ['11-' . max()], 'gap_replaced', 'deleted and recreated');
ok($zone->wait_for(sub { $_->{changes}[-1] eq '+new' }),
   'the follower goes on with the new stream');
is(scalar @{ $zone->zone->{gaps} }, 1, 'and there is no further gap');
is(scalar(grep { $_->{event} eq 'recovered' } log_of($f)), 0,
   'a zone with a gap has not recovered');
stop_follow($f);

# A server that does not count what was added, as before Redis 7

sub before_redis_7 {
    my ($id, $last) = @_;

    my $entry = resp_array(resp_string($id),
                           resp_array(resp_string('add'), resp_string('a')));
    my ($pid, $port) = fake_server(answering(sub {
        return ($_[0] =~ /XREAD/ ? "*-1\r\n" : '')
               . stream_answers('role:master', resp_array($entry), length => 1,
                                last => $last, first => $entry);
    }));

    return ($pid, "redis://127.0.0.1:$port");
}

my ($old, $url) = before_redis_7('9-0', '9-0');
$zone->set(position => '0', changes => [], gaps => [], gap => 0);
$f = follow($t, '--from', 'beginning', '--zone', $zone->url, $url);
ok(wait_for_event($f, 'beginning_unknown',
                  qr/first entry that remains, 9, is taken for the beginning/),
   'a server that does not count is named, and what it means');
ok($zone->wait_for(sub { $_->{position} eq '9' }), 'the zone gets the entry');
is_deeply($zone->zone->{gaps}, [], 'there is no gap');
stop_follow($f);
kill 'KILL', $old;

# From an image: IDs are times, and two of them are after as_of.

my $base = time - 30000;
my @times = map { ($base + 3000 * $_) . '000-0' } 1 .. 9;
my $last = $times[-1] =~ s/-0$//r;

sub as_of { return strftime('%Y-%m-%dT%H:%M:%SZ', gmtime $_[0]) }

fresh(@times);
redis($server, 'XTRIM', 's', 'MAXLEN', 4);
$zone->set(position => '0', changes => [], gaps => [], gap => 0,
           as_of => as_of($base + 3000 * 7.5));
$f = follow($t, '--zone', $zone->url, $server->{url});
$zone->set(position => '0', changes => []);
ok($zone->wait_for(sub { $_->{position} eq $last }),
   'a zone begins an hour before its image');
is_deeply($zone->zone->{gaps}, [], 'what the image has need not remain');
stop_follow($f);

$f = begin('0');
$zone->set(as_of => as_of($base + 3000 * 4));
my $before = ($base + 3000 * 6) * 1000 - 1 . '-' . max();
gaps_are($f, [$before], 'gap_trimmed', 'trimmed after the image');
stop_follow($f);


# Redis dies and returns; the password changes and changes back; an ACL lacks
# permissions: all of these are named, and none is a gap.

redis_stop($server);
$server = redis_server($t, 6379, 'appendonly yes', 'appendfsync always');
entry_at('1-0', 'add', 'one');
$f = begin('0', '--from', 'beginning');
ok($zone->wait_for(sub { $_->{position} eq '1' }), 'the zone is at the end');
redis_stop($server);
ok(wait_for_event($f, 'redis_failed', qr/closed the connection|cannot connect/),
   'a dead Redis is named');
$server = redis_server($t, 6379, 'appendonly yes', 'appendfsync always');
entry_at('2-0', 'add', 'two');
ok($zone->wait_for(sub { $_->{position} eq '2' }), 'the follower goes on');
ok(wait_for_event($f, 'recovered'), 'and says so');

redis($server, 'CONFIG', 'SET', 'requirepass', 'new');
redis($server, '-a', 'new', '--no-auth-warning', 'CLIENT', 'KILL', 'TYPE',
      'normal');
ok(wait_for_event($f, 'redis_failed', qr/NOAUTH/), 'a new password is named');
redis($server, '-a', 'new', '--no-auth-warning', 'CONFIG', 'SET',
      'requirepass', '');
entry_at('3-0', 'add', 'three');
ok($zone->wait_for(sub { $_->{position} eq '3' }),
   'the follower goes on with the old password');
is_deeply($zone->zone->{gaps}, [], 'there is no gap');
stop_follow($f);

redis($server, 'ACL', 'SETUSER', 'bob', 'on', '>secret', '~s', '+xread',
      '+xrange', '+info');
$f = follow($t, '--zone', $zone->url, "redis://bob:secret\@127.0.0.1:"
                                      . $server->{port});
ok(wait_for_event($f, 'redis_failed', qr/NOPERM.*xinfo/i),
   'a permission that is missing is named');
redis($server, 'ACL', 'SETUSER', 'bob', '+xinfo');
my $signs = $zone->zone->{signs};
ok($zone->wait_for(sub { $_->{signs} > $signs }), 'it is enough to grant it');
stop_follow($f);

$f = follow($t, '--zone', $zone->url, $server->{url},
            { REDISCLI_AUTH => 'wrong secret' });
ok(wait_for_event($f, 'redis_failed', qr/WRONGPASS|without any password/),
   'a wrong password is named');
ok(!(grep { $_->{message} =~ /wrong secret/ } log_of($f)), 'but not shown');
stop_follow($f);

redis($server, 'SET', 's2', 'x');
$f = follow($t, '--stream', 's2', '--zone', $zone->url, $server->{url});
ok(wait_for_event($f, 'redis_failed', qr/WRONGTYPE/), 'another type is named');
stop_follow($f);
is_deeply($zone->zone->{gaps}, [], 'there is no gap');


# A Redis that hangs gives no sign of life.

$f = follow($t, '--answer-timeout', 2, '--zone', $zone->url, $server->{url});
ok($zone->wait_for(sub { $_->{signs} > $signs + 1 }), 'signs of life');
stop_process($server->{pid});
ok(wait_for_event($f, 'redis_failed', qr/did not answer .* within 2 s; .*--answer-timeout/),
   'a Redis that hangs is named');
$signs = $zone->zone->{signs};
resume_process($server->{pid});
ok($zone->wait_for(sub { $_->{signs} > $signs }), 'it goes on');
stop_follow($f);


# A replica: it may follow, but not say that it is up to date while its link is
# down; a failover to one that lacks the end.

my $replica = redis_server($t, 6380, "replicaof 127.0.0.1 $server->{port}");
wait_until(sub { redis($replica, 'INFO', 'replication')
                 =~ /master_link_status:up/ });
$f = follow($t, '--zone', $zone->url, $replica->{url});
$signs = $zone->zone->{signs};
ok($zone->wait_for(sub { $_->{signs} > $signs + 1 }),
   'a replica gives signs of life');
entry_at('4-0', 'add', 'four');
ok($zone->wait_for(sub { $_->{position} eq '4' }), 'and changes');
redis_stop($server);
wait_until(sub { redis($replica, 'INFO', 'replication')
                 =~ /master_link_status:down/ });
sleep 1;
$signs = $zone->zone->{signs};
sleep 2;
is($zone->zone->{signs}, $signs,
   'no signs of life from a replica whose link is down');

stop_follow($f);
$zone->set(position => '7');
$f = follow($t, '--zone', $zone->url, $replica->{url});
ok(wait_for_event($f, 'replica_behind'), 'a replica that lacks the end is named');
is_deeply($zone->zone->{gaps}, [], 'but that is no gap');
redis($replica, 'REPLICAOF', 'NO', 'ONE');
gaps_are($f, ['4'], 'gap_lost_end', 'the replica becomes the primary');

# New entries came before the follower looked.

stop_follow($f);
redis($replica, 'XADD', 's', '9-0', 'add', 'nine');
$zone->set(position => '7', gap => 0, gaps => []);
$f = follow($t, '--zone', $zone->url, $replica->{url});
gaps_are($f, ['7'], 'gap_replaced', 'a failover, and new entries');
ok($zone->wait_for(sub { $_->{position} eq '9' }), 'the follower goes on');
is(scalar @{ $zone->zone->{gaps} }, 1, 'there is one gap');
stop_follow($f);

# The image that serves is from the very position at which the stream has no
# entry, so it closes the gap at once.

$zone->set(position => '8', gap => 0, gaps => [], image => '8');
$f = follow($t, '--zone', $zone->url, $replica->{url});
ok(wait_for_event($f, 'gap_replaced',
                  qr/does not wait for a newer one.*P is later than 8/),
   'a gap that an image closes at once is named as such');
ok(!wait_until(sub { grep { $_->{message} =~ /answers unknown/ } log_of($f) },
               1), 'and the log does not say that the zone answers unknown');
$zone->set(image => undef);
stop_follow($f);
redis_stop($replica);


# A primary that is silent, though its link is up: no signs of life

sub silent_replica {
    my ($role) = @_;

    my ($pid, $port) = fake_server(answering(sub {
        select undef, undef, undef, 0.05;
        return ($_[0] =~ /XREAD/ ? "*-1\r\n" : '')
               . stream_answers($role, resp_array(), length => 0, last => '9-0',
                                first => "*-1\r\n");
    }));

    return ($pid, "redis://127.0.0.1:$port");
}

for (['silent for 16 seconds', "link_status:up\r\nmaster_last_io_seconds_ago:16"],
     ['down', "link_status:down\r\nmaster_last_io_seconds_ago:1"],
     ['never heard of', "link_status:up\r\nmaster_last_io_seconds_ago:-1"],
     ['up, and alive', "link_status:up\r\nmaster_last_io_seconds_ago:15"])
{
    my ($what, $lines) = @$_;
    my ($pid, $at) = silent_replica("role:slave\r\nmaster_$lines\r\n");

    $zone->set(position => '9', gap => 0, gaps => [], signs => 0);
    $f = follow($t, '--zone', $zone->url, $at);

    if ($what =~ /alive/) {
        ok($zone->wait_for(sub { $_->{signs} > 0 }),
           "a replica gives signs of life if its primary is $what");
    } else {
        ok(wait_for_event($f, 'replica_behind', qr/down or silent/),
           "a replica is named if its primary is $what");
        sleep 2;
        is($zone->zone->{signs}, 0,
           "a replica gives no sign of life if its primary is $what");
    }

    stop_follow($f);
    kill 'KILL', $pid;
}


# Hostile servers: each answer is refused in bounded memory.

sub hostile {
    my ($what, @answers) = @_;

    my ($pid, $port) = fake_server(sub {
        my ($client) = @_;

        sysread $client, my $command, 65536;
        ref $_ ? $_->($client) : syswrite $client, $_ for @answers;
    });

    $zone->set(position => '9', gaps => []);
    my ($exit, undef, $err, $peak) = tool_memory(
        {}, 'follow', '--once', '--timeout', 4, '--answer-timeout', 1,
        '--stream', 's', '--source', 'ids', '--zone', $zone->url,
        "redis://127.0.0.1:$port");

    kill 'KILL', $pid;

    is($exit, 1, "$what: the zone is not brought up to date");
    like($err, qr/"redis_failed"/, "$what is named") or diag $err;
    cmp_ok($peak, '<', ($ENV{TEST_NGINX_SANITIZED} ? 900 : 300) << 20,
           "$what is refused in bounded memory");
    is_deeply($zone->zone->{gaps}, [], "$what is no gap");

    return $err;
}

# Returns the messages of a log, decoded.

sub log_messages {
    my ($log) = @_;

    return join "\n", map { decode_json($_)->{message} } split /\n/, $log;
}

my $info = resp_string('role:master');
my $about = stream_answers('', '', length => 1, last => '2-0', first => "*-1\r\n")
            =~ s/^\$0\r\n\r\n//r;

sub some { return resp_array(resp_string($_[0]), resp_array(@_[1 .. $#_])) }

sub flood {
    my ($again) = @_;

    return sub { 1 while syswrite $_[0], $again x 10000 };
}

hostile('no answer', sub { sleep 3600 });
hostile('a closed connection');
hostile('garbage', "HTTP/1.1 400 Bad Request\r\n\r\n");
hostile('another answer', "+OK\r\n" x 3);
hostile('an error', $info, resp_array(), "-WRONGTYPE no\r\n");

# A control of a terminal, C0, C1 or alone, and a change of direction

my $said = hostile('an error that controls terminals',
                   "-ERR \e[2J\"\xc2\x9b1A\xe2\x80\xae\x9b\\\x7fx\r\n");

unlike($said, qr/[\x00-\x09\x0b-\x1f\x7f-\xff]/,
       'the log has nothing of a server that a terminal obeys');
ok(index(log_messages($said),
         'ERR \x1b[2J"\xc2\x9b1A\xe2\x80\xae\x9b' . '\\\\x7fx') >= 0,
   'a reader that decodes the log finds the server\'s text escaped')
    or diag $said;

hostile('no facts', $info, resp_array(), resp_array());
hostile('odd fields', $info, resp_array(some('10-0', resp_string('a'))),
        $about);
hostile('an invalid ID', $info, resp_array(some('xx')), $about);
hostile('an ID before the position', $info, resp_array(some('1-0')), $about);
hostile('an ID twice', $info, resp_array(some('10-0'), some('10-0')), $about);
hostile('many values', $info, "*1000000\r\n", flood("\$0\r\n\r\n"));
hostile('a large string', $info, "*4\r\n\$2000000000\r\n",
        flood('x' x 100));
hostile('arrays in arrays', $info, flood("*2\r\n"));

# Types of RESP3, which hiredis knows from 1.0 on, in arrays that are within the
# limits

hostile('booleans', $info, "*1000000\r\n",
        flood("*100\r\n" . "#t\r\n" x 100));
hostile('doubles', $info, "*1000000\r\n",
        flood("*100\r\n" . ",1.5\r\n" x 100));
hostile('maps in maps', $info, flood("%1\r\n#t\r\n"));
hostile('a large map', $info, "%2000000000\r\n", flood("#t\r\n"));

$zone->kill;
done_testing;
