#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests the whole way of a change: from a stream of a real Redis, by a real
# `ngx-bloom follow`, to the answers of a real nginx, through restarts of each
# of the three, and a gap, which an image closes.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Follow qw(ended follow log_of redis redis_server redis_stop
                         stop_follow wait_for_event);
use BloomTest::Process qw(run_command wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;
my @durable = ('appendonly yes', 'appendfsync always');
my $redis = redis_server($t, 6379, @durable);

$t->build_image('at0.bloom', ['base', 'old'], '-p', '1e-9', '-n', '200k',
                '--source', 'ids=0');
install_image($t, 'at0');
configure($t, ['zone=ids file=ids.bloom;'
               . ' bloom_source zone=ids name=ids max_lag=10s'],
          api => 1, workers => 2);
$t->run;

my $url = 'http://127.0.0.1:' . $t->port(8080) . '/bloom/zones/ids';

sub begin {
    return follow($t, '--from', 'beginning', '--empty', @_, '--zone', $url,
                  $redis->{url});
}

sub entry { return redis($redis, 'XADD', 's', '*', @_) =~ s/-0$//r }
sub source { return zone_state($t, 'ids')->{source} }

# Waits until the zone is current at a position, and tests its answers.

sub holds {
    my ($position, $keys, $answers, $name) = @_;

    my $state = settled($t, 'ids', sub {
        return $_[0]{source}{position} eq $position
               && $_[0]{source}{state} eq 'current';
    });

    ok($state, "$name: the zone is current at the position")
        or diag explain [source(), $position];
    is(ask($t, 'ids', @$keys), $answers, "$name: the answers");
}

my $follower = begin();

subtest 'entries reach the answers' => sub {
    holds('0', ['base', 'new'], '10', 'an empty stream');

    my $position = entry('add', 'new', 'remove', 'old', 'add', 'x', 'remove',
                         'x');
    holds($position, [qw(base new old x)], '1100', 'an entry');

    $position = entry('add', "two\nlines", 'add', "cr\r", 'remove', "q\"\\");
    holds($position, ['two', 'cr'], '00', 'keys with line ends');
    is(api($t, POST => 'zones/ids/test',
           body => '["two\\nlines","cr\\r","q\\"\\\\"]',
           headers => { 'Content-Type' => 'application/json' })
       ->json->{present}, 2, 'keys with line ends are present');
};

subtest 'each of the three restarts' => sub {
    kill 'KILL', $follower->{pid};
    is(ended($follower), 128 + 9, 'the follower dies');
    my $position = entry('add', 'while-follower', 'remove', 'new');
    $follower = begin();
    holds($position, ['while-follower', 'new'], '10', 'the follower');

    $t->stop;
    $position = entry('add', 'while-nginx', 'remove', 'base');
    ok(wait_for_event($follower, 'unreachable'), 'nginx is missed');
    $t->run;
    holds($position, ['while-nginx', 'while-follower', 'base'], '110',
          'nginx');

    $t->kill_all;
    $position = entry('add', 'while-dead');
    $t->run;
    holds($position, ['while-dead', 'while-nginx'], '11', 'nginx by SIGKILL');

    redis_stop($redis);
    ok(wait_for_event($follower, 'redis_failed'), 'Redis is missed');
    $redis = redis_server($t, 6379, @durable);
    $position = entry('add', 'after-redis');
    holds($position, ['after-redis'], '1', 'Redis');

    is(scalar(grep { $_->{event} =~ /^gap/ } log_of($follower)), 0,
       'nothing of this is a gap');
};

subtest 'without Redis, absent becomes unknown' => sub {
    redis_stop($redis);
    ok(wait_until(sub { ask($t, 'ids', 'nobody', 'while-dead') eq '?1' }),
       'after max_lag');
    is(source()->{state}, 'late', 'the source is late');
    $redis = redis_server($t, 6379, @durable);
    ok(wait_until(sub { ask($t, 'ids', 'nobody', 'while-dead') eq '01' }),
       'until Redis returns');
};

subtest '100,000 changes at once' => sub {
    my $commands = join '', map {
        my $n = $_;
        join(' ', 'XADD s *', map { "add k" . ($n * 100 + $_) } 1 .. 100) . "\n"
    } 0 .. 999;

    my (undef, $out) = run_command(['redis-cli', '-p', $redis->{port}],
                                   stdin => $commands);
    my @ids = $out =~ /^"?(\d+-\d+)"?$/mg;
    is(scalar @ids, 1000, '1,000 entries of 100 keys');

    (my $position = $ids[-1]) =~ s/-0$//;
    holds($position, ['k1', 'k50000', 'k100000', 'k100001'], '1110',
          'all of them');

    my @answers = lookup_keys($t, 'ids', map { "k$_" } 1 .. 100_000);
    is(scalar(grep { $_ eq 'present' } @answers), 100_000, 'each is present');
};

subtest 'a trimmed stream is a gap, which an image closes' => sub {
    is((stop_follow($follower))[0], 0, 'the follower ends');
    entry('add', 'lost');
    my $position = entry('add', 'kept');
    redis($redis, 'XTRIM', 's', 'MAXLEN', 1);
    $follower = begin();

    my $event = wait_for_event($follower, 'gap_trimmed');
    ok($event, 'the follower names the gap');
    ok(settled($t, 'ids', sub { $_[0]{source}{position} eq $position
                                && $_[0]{source}{state} eq 'gap' }),
       'the zone goes on, and says that changes are missing');
    is(ask($t, 'ids', 'lost', 'kept', 'nobody', 'k7'), '?1?1',
       'it answers unknown instead of absent');

    $t->build_image('late.bloom', ['lost', 'from-image'], '-p', '1e-9',
                    '-n', '200k', '--source', "ids=$position");
    install_image($t, 'late');
    is(api($t, POST => 'zones/ids/reload')->status, 200,
       'an image is loaded');
    holds($position, [qw(lost from-image nobody)], '110', 'the image');

    $position = entry('add', 'later', 'remove', 'lost');
    holds($position, [qw(lost from-image later)], '011', 'a later entry');
    is((stop_follow($follower))[0], 0, 'the follower ends');
};

subtest '--once' => sub {
    my $position = entry('add', 'once');
    is(ended(begin('--once', '--timeout', 60)), 0, 'it exits with 0');
    is(source()->{position}, $position, 'the zone is at the last entry');
    is(ask($t, 'ids', 'once', 'nobody'), '10', 'and answers so');

    redis_stop($redis);
    is(ended(begin('--once', '--timeout', 1)), 1,
       'it exits with 1 without Redis');
};

done_testing;
