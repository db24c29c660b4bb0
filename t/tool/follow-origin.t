#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# `ngx-bloom follow` finds where a zone without changes begins, or says that it
# cannot: IDs of the stream may be no times, the clock of Redis may be wrong, and
# the stream may not exist.

use strict;
use warnings;

use POSIX qw(strftime);

use BloomTest;
use BloomTest::FakeServer qw(answering fake_server);
use BloomTest::Follow qw(ended follow log_of redis redis_server redis_stop
                         resp_array resp_string stop_follow stream_answers
                         wait_for_event);
use BloomTest::Ledger;
use BloomTest::Tool qw(tool_test);

my $t = tool_test();
my $server = redis_server($t, 6379);
my $zone = BloomTest::Ledger->new($t, 8081);

sub add { return redis($server, 'XADD', 's', @_) =~ s/-0$//r }
sub as_of { return strftime('%Y-%m-%dT%H:%M:%SZ', gmtime $_[0]) }

# A zone at position 0 whose image had all keys at a time.

sub reset_zone {
    my ($as_of) = @_;

    $zone->set(position => '0', changes => [], gaps => [], gap => 0,
               signs => 0, as_of => $as_of && as_of($as_of));
}

sub once {
    my ($status, $what, @options) = @_;

    my $follower = follow($t, '--once', '--timeout', 10, @options, '--zone',
                          $zone->url, $server->{url});

    is(ended($follower), $status, "--once exits with $status: $what")
        or diag explain [log_of($follower)];

    return $follower;
}

# The zone has no changes, is told nothing, and nothing is skipped.

sub untouched {
    my ($what) = @_;

    my $state = $zone->zone;
    is("$state->{position} $state->{signs} @{ $state->{changes} }"
       . " @{ $state->{gaps} }", '0 0  ', "the zone stays as it is: $what");
}


subtest 'IDs that are no times' => sub {
    for my $id ('4711-0', '1795773723-0', (time + 7200) . '000-0',
                time . '000000-0')
    {
        redis($server, 'DEL', 's');
        add($id, 'add', 'one');
        reset_zone(time - 60);

        my $f = once(1, "the ID is $id");
        my $text = $id =~ s/-0$//r;
        ok(wait_for_event($f, 'no_origin',
                          qr/the ID $text of the stream is not a recent time.*--source ids=POSITION, or use --from/),
           "the log names the ID $id, and what to do");
        untouched("the ID is $id");
    }

    # the first ID tells, too

    redis($server, 'DEL', 's');
    add('4711-0', 'add', 'one');
    add('*', 'add', 'two');
    reset_zone(time - 60);
    my $f = once(1, 'the first ID is no time');
    ok(wait_for_event($f, 'no_origin', qr/the ID 4711 of the stream/),
       'the log names the first ID');
    untouched('the first ID is no time');

    redis($server, 'DEL', 's');
    add('4711-0', 'add', 'one');
    reset_zone(time - 60);
    once(0, '--from beginning needs no times', '--from', 'beginning');
    is($zone->changes, '+one', 'and the zone gets the entry');
    reset_zone();
    once(0, '--from ID needs no times', '--from', '4710-0');
    is($zone->changes, '+one', 'and the zone gets the entry');
};


subtest 'a stream in which nothing happened lately' => sub {
    redis($server, 'DEL', 's');
    add((time - 86400) . '000-0', 'add', 'old');
    reset_zone(time - 60);
    once(0, 'the last entry is older than the image');
    is($zone->changes, '', 'the zone needs none of it');

    my $id = add('*', 'add', 'new');
    once(0, 'a new entry');
    is($zone->changes, '+new', 'the zone gets a new entry');
    is($zone->zone->{position}, $id, 'and is at its position');
    is_deeply($zone->zone->{gaps}, [], 'there is no gap');
};


subtest 'a zone that started empty' => sub {
    redis($server, 'DEL', 's');
    add("$_-0", 'add', "at-$_") for 1 .. 3;
    reset_zone();
    $zone->set(empty => 1);
    once(0, 'the zone needs all of the stream');
    is($zone->changes, '+at-1 +at-2 +at-3', 'and gets it');

    redis($server, 'XTRIM', 's', 'MAXLEN', 1);
    reset_zone();
    my $f = once(1, 'the stream was trimmed');
    ok(wait_for_event($f, 'gap_trimmed', qr/2 are missing/),
       'a trimmed stream is a gap');
    $zone->set(empty => 0);
};


# A server whose clock shows another time, when an entry was added.  A follower
# finds it if it asks for the last hour.

sub clock {
    my ($time) = @_;

    my $id = $time . '000-0';
    my $entry = resp_array(resp_string($id),
                           resp_array(resp_string('add'), resp_string('a')));
    my $found = $time > time - 3600 ? resp_array($entry) : resp_array();
    my ($pid, $port) = fake_server(answering(sub {
        return resp_array(resp_string($time), resp_string('12'))
            if $_[0] =~ /\bTIME\b/;
        return ($_[0] =~ /XREAD/ ? "*-1\r\n" : '')
               . stream_answers("role:master\r\n", $found, length => 1,
                                last => $id, first => $entry);
    }));

    return ($pid, "redis://127.0.0.1:$port");
}

subtest 'a clock that is behind' => sub {
    my ($pid, $url) = clock(time - 7200);

    reset_zone(time - 60);
    my $f = follow($t, '--zone', $zone->url, $url);
    ok(wait_for_event($f, 'no_origin',
                      qr/clock of \Q$url\E is 1[12]\d minutes behind/),
       'the log names the server');
    untouched('the clock is behind');
    stop_follow($f);
    kill 'KILL', $pid;

    # an image that was made where the clock is ahead

    reset_zone(time + 7200);
    redis($server, 'DEL', 's');
    add('*', 'add', 'one');
    $f = once(1, 'an as_of that is ahead');
    ok(wait_for_event($f, 'no_origin', qr/1[12]\d minutes behind/),
       'the log says so');
    untouched('as_of is ahead');

    # within the hour of grace

    ($pid, $url) = clock(time - 1200);
    reset_zone(time - 60);
    $f = follow($t, '--zone', $zone->url, $url);
    ok($zone->wait_for(sub { "@{ $_->{changes} }" eq '+a' }),
       'a small difference does not matter');

    # the entry is 20 minutes older than as_of says, and none before it remains:
    # the image may lack what was trimmed

    is(scalar @{ $zone->zone->{gaps} }, 1,
       'what an image has is counted by the clock of the server');
    stop_follow($f);
    kill 'KILL', $pid;
};


subtest 'a stream that does not exist' => sub {
    redis($server, 'DEL', 's');
    reset_zone(time - 60);

    my $f = once(1, 'no stream', '--from', 'beginning');
    ok(wait_for_event($f, 'no_stream',
                      qr/database 0 has no key "s"; check --stream and the database.*--empty/),
       'the log names the database and the key');
    untouched('there is no stream');

    $f = follow($t, '--from', 'beginning', '--zone', $zone->url,
                "$server->{url}/3");
    ok(wait_for_event($f, 'no_stream', qr/database 3/),
       'another database is named');
    untouched('the database is another one');
    redis($server, '-n', '3', 'XADD', 's', '1-0', 'add', 'one');
    ok($zone->wait_for(sub { $_->{signs} > 0 }),
       'the zone is up to date once the stream exists');
    is($zone->changes, '+one', 'and has its entry');
    ok(wait_for_event($f, 'recovered'), 'the log says so');
    stop_follow($f);

    # a zone that had changes

    $zone->set(position => '7', signs => 0);
    $f = follow($t, '--empty', '--zone', $zone->url, $server->{url});
    my $event = wait_for_event($f, 'no_stream');
    ok($event, 'a stream that is gone is named');
    like($event->{message}, qr/or Redis has lost the stream/,
         'which cannot be new');
    stop_follow($f);
    is_deeply([@{ $zone->zone }{qw(position signs)}], ['7', 0],
              'the zone stays where it is, without signs of life');
};


subtest '--empty' => sub {
    for my $from (['--from', 'beginning'], []) {
        my $what = @$from ? "@$from" : 'from an image';

        redis($server, 'DEL', 's');
        reset_zone(time - 60);
        once(0, "a new stream, $what", '--empty', @$from);

        my $f = follow($t, '--empty', @$from, '--zone', $zone->url,
                       $server->{url});
        ok($zone->wait_for(sub { $_->{signs} > 1 }),
           "the zone is up to date, $what");
        my $id = add('*', 'add', 'first');
        ok($zone->wait_for(sub { $_->{position} eq $id }),
           "the zone gets the first entry, $what");
        is($zone->changes, '+first', "which is the only one, $what");
        is_deeply($zone->zone->{gaps}, [], "there is no gap, $what");
        stop_follow($f);
    }
};


# The position of a zone survives a follower that ends before anything is added.

subtest '--from now' => sub {
    redis($server, 'DEL', 's');
    add("$_-0", 'add', "at-$_") for 1 .. 3;
    redis($server, 'XSETID', 's', '50-0');
    reset_zone();
    once(0, 'from now', '--from', 'now');
    is($zone->zone->{position}, '3', 'the zone is at the last entry');
    add('51-0', 'add', 'later');
    once(0, 'from now again', '--from', 'now');
    is($zone->changes, '+later', 'the zone gets what was added in between');
    is_deeply($zone->zone->{gaps}, [], 'there is no gap');
};

redis_stop($server);
$zone->kill;
done_testing;
