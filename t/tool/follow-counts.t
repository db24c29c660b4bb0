#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# The counts of `ngx-bloom follow` add up, in each of its outputs, whatever a
# real stream has for a real zone: keys that are new, known, absent, replaced,
# invalid or refused.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Follow qw(ended follow log_of redis redis_server redis_stop
                         stop_follow wait_for_event);
use BloomTest::Process qw(spawn wait_until);
use BloomTest::Tool qw(tool_path);
use BloomTest::Zones;

my $t = BloomTest->new;
my $redis = redis_server($t, 6379);
my $long = 'x' x 65536;

configure($t, [map { "zone=$_ capacity=1k fpr=1e-9 form=url removals=3;"
                     . " bloom_source zone=$_ name=ids max_lag=off" }
               qw(one seen)], api => 1);
$t->run;

sub zone { return "http://127.0.0.1:" . $t->port(8080) . "/bloom/zones/$_[0]" }

# Adds an entry.  Returns how many changes it has.

sub entry { redis($redis, 'XADD', 's', '*', @_); return @_ / 2 }

sub url { return map { "http://$_.example/" } @_ }

# What the stream has is sent in one request.

my %has = (added => 3, already_present => 1, removed => 1, absent => 1,
           superseded => 2, invalid => 4);
my $all = 0;

$all += $_ for values %has;

redis($redis, 'XADD', 's', '1-1', 'add', 'before');

is(api($t, POST => "zones/$_/changes?source=ids&after=0&position=1-1",
       body => join '', map { "+$_\n" } url(qw(known gone)))->json->{added}, 2,
   "zone $_ has two keys") for qw(one seen);

my $changes = entry(map({ ('add', $_) } url(qw(a b known)), '', 'mailto:x',
                        $long),
                    map { ('remove', $_) } url(qw(gone none)), 'javascript:y');

$changes += entry((map { ('add', $_) } url('c')),
                  (map { ('remove', $_) } url('c')),
                  (map { ('add', $_) } url('c')));

is($changes, $all, 'the stream has a change of each kind');

my $sent = "the zone received $all changes: 3 added, 1 already present, "
           . '1 removed, 1 absent, 2 superseded, 4 invalid';

subtest 'the log' => sub {
    my $f = follow($t, '--once', '--zone', zone('one'), $redis->{url});

    is(ended($f), 0, 'the stream is sent');

    my ($received) = grep { $_->{event} eq 'received' } log_of($f);

    is($received->{message}, $sent, 'the counts are those of the stream');
    is($received->{level}, 'info', 'they are no warning');
    like($received->{zone}, qr{/one$}, 'they are those of a zone');

    my ($total, @counts) = $received->{message} =~ /(\d+)/g;

    is(sum(@counts), $total, 'they add up');

    is(sum(map { $_->{message} =~ /^left out (\d+) invalid key/ }
           grep { $_->{event} eq 'invalid_keys' } log_of($f)),
       $has{invalid}, 'as many invalid keys are named');

    my $counters = zone_state($t, 'one')->{counters};

    is_deeply([@$counters{qw(added already_present removed_keys
                             removals_absent invalid)}],
              [2 + $has{added},
               @has{qw(already_present removed absent invalid)}],
              'the zone counts the same');
};

subtest 'the terminal' => sub {
    plan(skip_all => 'script(1) is not installed')
        if system('command -v script > /dev/null') != 0;

    my $tool = tool_path();
    my $path = $t->testdir . '/terminal';
    my $pid = spawn(['script', '-qefc',
                     "echo \$\$ > $path.pid; exec '$tool' follow --stream s"
                     . " --source ids --zone '" . zone('seen')
                     . "' $redis->{url}", $path]);
    my $shown = sub { return eval { $t->read_file('terminal') } // '' };

    ok(wait_until(sub {
        $shown->() =~ m{\r1 of 1 zone up to date, 0 failing, $all changes (?#
                        )sent, $has{invalid} invalid, \S+(?: k)?/s\e\[K}
    }), 'the progress line has the invalid keys') or diag($shown->());

    kill 'TERM', $t->read_file('terminal.pid');
    wait_until(sub { waitpid($pid, 1) == $pid });
    like($shown->(), qr/^(?:\r?\e\[K)*ngx-bloom follow: \S+: \Q$sent\E\r?$/m,
         'the last lines have the counts');
};

subtest 'what the zone refuses' => sub {
    entry('remove', url('a'), 'add', url('d'));
    entry('remove', url('b'), 'add', '');

    my $f = follow($t, '--zone', zone('one'), $redis->{url});

    ok(wait_for_event($f, 'no_room'), 'an entry is refused');
    stop_follow($f);

    my ($received) = grep { $_->{event} eq 'received' } log_of($f);

    is($received->{message},
       'the zone received 2 changes: 1 added, 0 already present, 1 removed, '
       . '0 absent, 0 superseded, 0 invalid',
       'nothing of it is counted as received') or diag explain [log_of($f)];
};

subtest 'nothing' => sub {
    my $f = follow($t, '--once', '--from', 'now', '--zone', zone('seen'),
                   $redis->{url}, '--timeout', 20);

    ended($f);
    $f = follow($t, '--once', '--zone', zone('seen'), $redis->{url},
                '--timeout', 2);
    ended($f);
    is(scalar(grep { $_->{event} eq 'received' } log_of($f)), 0,
       'no counts are logged if nothing was sent');
};

redis_stop($redis);

done_testing();


sub sum {
    my $sum = 0;

    $sum += $_ for @_;

    return $sum;
}
