#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# `ngx-bloom follow` carries changes from a stream of a real Redis to zones, each
# exactly once and in order, whatever their servers do.

use strict;
use warnings;

use POSIX qw(strftime);

use BloomTest;
use BloomTest::Follow qw(ended follow log_of redis redis_server redis_stop
                         stop_follow wait_for_event);
use BloomTest::Ledger;
use BloomTest::Process qw(wait_until);
use BloomTest::Tool qw(json_lines tool tool_memory tool_test);

my $t = tool_test();
my $server = redis_server($t, 6379);

# Add an entry and return its position, which has no second part if that is 0.

sub entry_at { return redis($server, 'XADD', 's', @_) =~ s/-0$//r }
sub entry { return entry_at('*', @_) }


# Two zones, from the beginning; several fields in an entry; other fields.

my $one = BloomTest::Ledger->new($t, 8081);
my $two = BloomTest::Ledger->new($t, 8082);

entry_at('1-1', 'add', 'a');
entry_at('1-2', 'add', 'b', 'remove', 'a', 'add', 'c');
entry_at('2-0', 'other', 'x', 'add', 'd');
my $last = entry_at('3-5', 'nothing', 'y');

my $f = follow($t, '--from', 'beginning', '--answer-timeout', 3, '--zone', $one->url, '--zone',
               $two->url, $server->{url});

ok($_->wait_for(sub { $_->{position} eq '3-5' }),
   'a zone is at the last entry, which has no keys') for $one, $two;
is($_->changes, '+a +b -a +c +d', 'a zone has all changes in order')
    for $one, $two;
ok(wait_for_event($f, 'other_fields', qr/entry \S+ of the stream has the field "\w+"/),
   'other fields are named');

ok($one->wait_for(sub { $_->{signs} > 2 }), 'an idle zone gets signs of life');
my $signs = $one->zone->{signs};
entry('add', 'e');
ok($one->wait_for_changes(6), 'a new entry is sent');
ok($one->wait_for(sub { $_->{signs} > $signs + 2 }), 'and more signs of life');
is(scalar(grep { $_->{level} eq 'error' } log_of($f)), 0,
   'the log has no error') or diag explain [log_of($f)];


# One zone hangs or fails: the other one goes on.

for my $mode ('hang', 'reset', 'close', '503 busy') {
    my $before = @{ $two->zone->{changes} };

    $one->set(mode => $mode);
    entry('add', "during-$before");
    ok($two->wait_for_changes($before + 1),
       "the other zone goes on while one answers '$mode'");
    ok(wait_for_event($f, $mode =~ /503/ ? 'nginx_failed' : 'unreachable'),
       "the failure '$mode' is named");
    $one->set(mode => '');
}

my $sent = entry('add', 'after');
ok($_->wait_for(sub { $_->{position} eq $sent }),
   'both zones are at the end at last') for $one, $two;
is($one->changes, $two->changes, 'both have the same changes, each once');
ok(wait_for_event($f, 'recovered'), 'the log says that the zone is up to date');


# nginx restarts with an older position; another follower moves the zone.

$one->kill;
entry('add', 'while-down');
ok($two->wait_for(sub { $_->{changes}[-1] eq '+while-down' }),
   'the other zone goes on while one is down');
my @kept = @{ $two->zone->{changes} }[0 .. 3];
$one->start(position => '1-2', changes => \@kept);
ok($one->wait_for(sub { $_->{changes}[-1] eq '+while-down' }),
   'a zone that returns with an older position is brought up to date');
is($one->changes, $two->changes, 'it has each change once');

my $moved = $one->set(position => '1-2', changes => \@kept);
$last = entry('add', 'moved-back');
ok($one->wait_for(sub { $_->{position} eq $last }),
   'a zone that moved back is brought up to date');
is($one->changes, $two->changes, 'it has each change once')
    if $two->wait_for(sub { $_->{position} eq $last });

# Another follower that wins each race is no reason to log anything.

my $connected = () = grep { $_->{event} eq 'connected' } log_of($f);

for (1 .. 3) {
    $one->set(position => '1-2', changes => \@kept);
    $last = entry('add', "race-$_");
    ok($one->wait_for(sub { $_->{position} eq $last }), 'a race is lost');
}

is(scalar(grep { $_->{event} eq 'connected' } log_of($f)), $connected,
   'which is not logged');

my ($exit, $seconds) = stop_follow($f);
is($exit, 0, 'SIGTERM ends it with 0');
cmp_ok($seconds, '<', 5 * ($ENV{TEST_PATIENCE} // 1), 'SIGTERM ends it soon');


# SIGTERM while everything hangs

$one->set(mode => 'hang');
$f = follow($t, '--zone', $one->url, $server->{url});
my $requests = $one->zone->{requests};
ok($one->wait_for(sub { $_->{requests} > $requests }), 'a request hangs');
($exit, $seconds) = stop_follow($f);
is($exit, 0, 'SIGTERM ends it with 0 while a request hangs');
cmp_ok($seconds, '<', 5 * ($ENV{TEST_PATIENCE} // 1), 'and soon');
$one->set(mode => '');


# Large bodies; 413 although the body is small enough; keys with any bytes.

redis($server, 'DEL', 's');
entry_at("5-$_", 'add', "key-$_") for 1 .. 50;
$one->set(position => '0', changes => [], gaps => [], bodies => 0,
          max_body => 100);
$f = follow($t, '--from', 'beginning', '--zone', $one->url, $server->{url});
ok($one->wait_for(sub { $_->{position} eq '5-50' }), 'small bodies are sent');
is($one->changes, join(' ', map { "+key-$_" } 1 .. 50), 'in order');
cmp_ok($one->zone->{bodies}, '>', 4, 'in several requests');

$one->set(really => 40);
entry_at("6-$_", 'add', "more-$_") for 1 .. 20;
ok($one->wait_for(sub { $_->{position} eq '6-20' }),
   'smaller bodies are sent after 413');

# Once nginx has refused a body, the next ones are smaller from the start.

$one->set(refused => 0, position => '5', changes => [], really => 40);
ok($one->wait_for(sub { $_->{position} eq '6-20' }),
   'the zone gets all again, in smaller bodies');
cmp_ok($one->zone->{refused}, '<', 6, 'and few of them are refused');

entry_at('6-21', 'add', 'y' x 30);
ok($one->wait_for(sub { $_->{position} eq '6-21' }),
   'an entry that is larger than bodies are then is sent alone');

$one->set(really => 100);
entry_at('7-0', 'add', "two\nlines", 'remove', "cr\r", 'add', "q\"\\\x01");
ok($one->wait_for(sub { $_->{position} eq '7' }),
   'a key with a line feed is sent');
is_deeply([@{ $one->zone->{changes} }[-3 .. -1]],
          ["+two\nlines", "-cr\r", "+q\"\\\x01"], 'byte for byte');

entry_at('7-1', 'add', 'some invalid key');
ok(wait_for_event($f, 'invalid_keys', qr/^left out 1 invalid key: it is in change 1 of the entry 7-1, and is invalid; correct/),
   'an invalid key is named with its entry');

# An entry of several bodies; a key that no body has room for

$one->set(changes => []);
entry_at('8-0', map { ('add', "part-$_") } 1 .. 40);
ok($one->wait_for(sub { $_->{position} eq '8' }), 'a large entry is sent');
is($one->changes, join(' ', map { "+part-$_" } 1 .. 40), 'in parts, in order');

entry_at('8-1', 'add', 'before');
entry_at('8-2', 'add', 'x' x 200);
entry_at('8-3', 'add', 'behind');
ok(wait_for_event($f, 'too_large', qr/entry 8-2 of the stream: .*client_max_body_size/),
   'an entry whose key no request has room for is named');
ok($one->wait_for(sub { $_->{position} eq '8-1' }),
   'the entries before it are sent');
$one->set(really => 1000);
ok($one->wait_for(sub { $_->{changes}[-1] eq '+behind' }, 30),
   'the zone goes on when the limit is raised');
is_deeply($one->zone->{gaps}, [], 'without a gap');

# Entries that nginx refuses

entry_at("9-$_", 'add', $_ == 7 ? 'no-400-key' : "nine-$_") for 1 .. 9;
ok(wait_for_event($f, 'refused', qr/entry 9-7 of the stream: nginx answered 400/),
   'an entry that nginx refuses is named');
ok($one->wait_for(sub { $_->{position} eq '9-6' }),
   'the entries before it are applied');
stop_follow($f);


# --once, and where a zone begins

redis($server, 'DEL', 's');
my $now = time - 30_000;
my @ids = map { entry_at($_, 'add', "at-$_") }
          map { $now + $_ . '000' } 0, 10_000, 20_000;

sub once {
    my ($status, $expected, $what, $zone, @options) = @_;

    $one->set(position => '0', changes => [], gaps => [], gap => 0,
              max_body => 65000, really => 65000, as_of => undef, %$zone);
    my $follower = follow($t, '--once', '--timeout', 30, @options, '--zone',
                          $one->url, $server->{url});

    is(ended($follower), $status, "--once exits with $status: $what")
        or diag explain [log_of($follower)];
    is($one->changes, $expected, "--once sends what it has to: $what");

    return $follower;
}

once(0, "+at-$ids[0] +at-$ids[1] +at-$ids[2]", 'from the beginning', {},
     '--from', 'beginning');
once(0, '', 'from now', {}, '--from', 'now');
is($one->zone->{position}, $ids[2], 'from now, the zone is at the end');
once(0, "+at-$ids[1] +at-$ids[2]", 'from an ID', {}, '--from', $ids[0]);
once(0, "+at-$ids[2]", 'from an hour before as_of',
     { as_of => strftime('%Y-%m-%dT%H:%M:%SZ', gmtime $now + 13_600) });
once(0, '', 'the zone is at the end', { position => $ids[2] });
$f = once(1, '', 'no as_of', {});
ok(wait_for_event($f, 'no_origin', qr/use --from/), 'a missing as_of is named');
ok(wait_for_event($f, 'not_up_to_date'), 'the zone is named');
$f = once(1, '', 'another source', { source => 'others' });
ok(wait_for_event($f, 'wrong_source', qr/"others", not "ids"/),
   'another source is named');
$f = once(1, '', 'no source', { source => undef });
ok(wait_for_event($f, 'no_source'), 'no source is named');


# Whatever a server answers is named, with advice, in bounded time and memory.

$one->set(source => 'ids');

for (['404', 'refused', qr/404 failed.*check the URL/],
     ['401', 'refused', qr/--netrc/],
     ['403 read_only', 'refused', qr/needs write=on/],
     ['409 not_possible', 'refused', qr/needs a bloom_source and an image/],
     ['409 wrong_source', 'wrong_source', qr/correct --source/],
     ['400', 'refused', qr/check the versions/],
     ['413', 'too_large', qr/entry $ids[0] .*too large/],
     ['507 no_room', 'no_room', qr/load an image/],
     ['redirect', 'redirect', qr/is not followed/],
     ['503 busy', 'nginx_failed', qr/503 busy/],
     ['502', 'nginx_failed', qr/502/],
     ['409 wrong_position', 'wrong_position', qr/another position/],
     ['200', 'bad_answer|no_source', qr/check that the URL/],
     ['body garbage', 'bad_answer', qr/check that the URL/],
     ['body {"applied":true}', 'bad_answer|no_source', qr/check that the URL/],
     ['body {"applied":true,"position":"1"}', 'bad_answer|no_source', qr/check/],
     ["body \e[31m", 'bad_answer', qr/check/],
     ['body ' . '[' x 1000, 'bad_answer', qr/check/],
     ['close', 'unreachable', qr/look at its log/],
     ['reset', 'unreachable', qr/look at its log/],
     ['hang', 'unreachable', qr/within 2000 ms/],
     ['slow', 'unreachable', qr/within 2000 ms/],
     ['header', 'unreachable', qr/headers .* longer than/],
     ['line', 'unreachable', qr/; /],
     ['endless', 'unreachable', qr/body .* longer than/])
{
    my ($mode, $event, $message) = @$_;
    my $name = $mode =~ s/[^ -~]/?/gr;

    # to the first request, which asks for the state, or to the changes

    for my $where ('', 'GET') {
        next if $where eq '' && $mode =~ /^(?:413|409 wrong_position)/;

        my $asked = $where ? 'changes' : 'a request';

        $one->set(position => '0', changes => [], mode => $mode,
                  where => $where);
        my ($exit, undef, $err, $peak) = tool_memory(
            {}, 'follow', '--once', '--timeout', 5, '--answer-timeout', 2,
            '--from', 'beginning', '--stream', 's', '--source', 'ids',
            '--zone', $one->url, $server->{url});

        is($exit, 1, "--once exits with 1 if $asked gets '$name'");

        my ($found) = grep { $_->{event} =~ /^(?:$event)$/ }
                           json_lines($err);
        like($found->{message}, $message, "the log says why: '$name'")
            or diag $err;
        unlike($err, qr/\e/, 'nothing reaches the terminal');
        cmp_ok($peak, '<', ($ENV{TEST_NGINX_SANITIZED} ? 600 : 100) << 20,
               "memory is bounded: '$name'");
    }
}

$one->set(source => 'ids', position => '0', mode => 'hang', where => '');
$two->set(position => '0', changes => []);
$f = follow($t, '--once', '--timeout', 2, '--from', 'beginning', '--zone',
            $one->url, '--zone', $two->url, $server->{url});
is(ended($f), 1, '--once exits with 1 if a zone hangs');
is(scalar @{ $two->zone->{changes} }, 3, 'the other zone has all');
is_deeply([map { $_->{zone} } grep { $_->{event} eq 'not_up_to_date' }
                              log_of($f)], [$one->url], 'it names the zone');


# The command line

my @good = ('--stream', 's', '--source', 'ids', '--zone', $one->url);

tool(2, qr/--zone/, 'follow', '--stream', 's', '--source', 'x',
     $server->{url});
tool(2, qr/name one Redis server/, 'follow', @good);
tool(2, qr/must be a redis:/, 'follow', @good, 'http://x');
tool(2, qr/^(?!.*secret).*is not the address of a Redis server/s, 'follow',
     @good, 'redis://u:secret@:x');
tool(2, qr/^(?!.*secret).*must be the URL of a zone/s, 'follow', '--stream',
     's', '--source', 'ids', '--zone', 'ftp://u:secret@h/', $server->{url});
tool(2, qr/must be beginning, now/, 'follow', @good, '--from', 'x',
     $server->{url});
tool(2, qr/letters, digits/, 'follow', '--stream', 's', '--source', 'a b',
     '--zone', $one->url, $server->{url});
tool(2, qr/--from beginning, not with --from now/, 'follow', @good, '--empty',
     '--from', 'now', $server->{url});
tool(2, qr/--timeout is for --once/, 'follow', @good, '--timeout', 5,
     $server->{url});

$one->kill;
$two->kill;
redis_stop($server);
done_testing;
