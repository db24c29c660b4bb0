#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A process stalls while it holds the lock of the zone.  Requests with bloom_add
# do not wait for it one after the other: the worker owes their keys, and the zone
# is unknown meanwhile.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Control;
use BloomTest::Disk;
use BloomTest::Faults;
use BloomTest::Process qw(resume_process wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;
my $faults = BloomTest::Faults->new($t);
$faults->needed;

my $disk = BloomTest::Disk->new($t, 'state');

$t->build_image('ids.bloom', ['id1'], '-p', '1e-9', '-n', '50k');
configure($t, ['zone=ids file=ids.bloom'], api => 1, add => 1, workers => 2,
          server => 'location = /list { bloom_add $arg_k zone=ids split=,;
                                        return 200; }
                     location = /unlist { bloom_remove $arg_k zone=ids split=,;
                                          return 200; }');
$t->run;

add($t, 'ids', ['first'], durable => 1);

my $stop = $faults->stop_at('required');
my $c = $t->connect;
$c->send($t->request_text(GET => '/add/ids?k=stalled'));
my $worker = $faults->stopped($stop);


# The test counts waits, and not the attempts of a worker that owes keys.

subtest 'a worker waits once for a stalled process' => sub {
    my @keys = map { "short$_" } 1 .. 100;

    $faults->kill_at('wait', 2);

    my @responses = $t->pipeline(map { "/add/ids?k=$_" } @keys);
    is(scalar(grep { $_->status == 200 } @responses), 100,
       'bloom_add answers 100 requests');
    ok($faults->pending, 'at most one of 100 requests has waited');
    $faults->withdraw;

    unlike(ask($t, 'ids', @keys), qr/0/, 'none of their keys is absent');
    is(ask($t, 'ids', 'id1', 'no'), '1?', 'others are unknown');
    is(zone_state($t, 'ids')->{journal}{owing_workers}, 1,
       'the worker owes them');
};


subtest 'the keys of a list do not wait' => sub {
    my @keys = map { "list$_" } 1 .. 100;

    $faults->kill_at('wait');
    is($t->get('/list?k=' . join ',', @keys)->status, 200,
       'a request with a list is answered');
    ok($faults->pending, 'none of its keys has waited');
    $faults->withdraw;

    unlike(ask($t, 'ids', @keys), qr/0/, 'none of its keys is absent');
};


subtest 'the removals of a list wait once together' => sub {
    my $before = zone_state($t, 'ids')->{counters}{removals_refused};

    $faults->kill_at('wait', 2);
    is($t->get('/unlist?k=' . join ',', map { "gone$_" } 1 .. 100)->status,
       200, 'a request with a list is answered');
    ok($faults->pending, 'at most one of its keys has waited');
    $faults->withdraw;
    is(zone_state($t, 'ids')->{counters}{removals_refused}, $before + 100,
       'all of them are counted as refused');
    $t->expect_log(qr/bloom_remove could not remove a key/);
};


my @keys = map { "long$_-" . 'x' x 4000 } 1 .. 50;

subtest 'owed keys have room' => sub {
    my @responses = $t->pipeline(map { "/add/ids?k=$_" } @keys);
    is(scalar(grep { $_->status == 200 } @responses), 50,
       'bloom_add answers 50 requests with long keys');
    is(zone_state($t, 'ids')->{journal}{lost_keys}, 0, 'no key is lost');
};


# The helper looks after the zone at least once a second, and sees that the worker
# that owes keys lives (I13).

subtest 'the helper leaves the mark of a worker that lives' => sub {
    my $begun = time;

    ok(wait_until(sub {
        (zone_state($t, 'ids')->{helper}{heartbeat} // '') gt rfc3339($begun + 1);
    }), 'the helper goes on');

    my $journal = zone_state($t, 'ids')->{journal};
    is($journal->{owing_workers}, 1, 'the worker still owes its keys');
    is($journal->{lost_keys}, 0, 'and none is lost');
    is(ask($t, 'ids', 'id1', 'no'), '1?', 'others are unknown');
};


subtest 'removals and clears wait until the keys are added' => sub {
    my $remove = $t->connect;

    $remove->send($t->request_text(POST => '/bloom/zones/ids/remove',
                                   body => 'short1'));
    resume_process($worker);
    is($c->response->status, 200,
       'the request of the stalled process is answered');
    is($remove->response->json->{removed}, 1, 'an owed key is removed');
    ok(settled($t, 'ids', sub { !$_[0]{journal}{owing_workers} }),
       'nothing is owed any more');

    is($t->get('/add/ids?k=later')->status, 200,
       'bloom_add answers another request');

    for ('', ' after kill -9 of all processes') {
        is(ask_until_known($t, 'ids', 'short1', 'no', 'stalled', 'later',
                           'short2', 'short100', 'list1', 'list100', @keys),
           '00' . '1' x 56, "all other keys are present$_");
        next if $_;
        $t->kill_all;
        $t->run;
    }
};


# What a worker owes dies with it.

subtest 'a worker dies that owes keys' => sub {
    $stop = $faults->stop_at('locked');
    $c = $t->connect;
    $c->send($t->request_text(GET => '/add/ids?k=stalled'));
    $worker = $faults->stopped($stop);

    my ($other) = grep { $_ != $worker } $t->workers;

    is($t->get('/add/ids?k=owed')->status, 200, 'a key is owed');
    is(zone_state($t, 'ids')->{journal}{owing_workers}, 1, 'by a worker');

    $t->expect_log(qr/exited on signal 9/);
    $t->expect_log(qr/\[alert\].*"ids" has lost keys of bloom_add/);

    # the mark stays until the loss is on disk

    $disk->refuse('EIO', 'sync');
    $t->kill_worker('KILL', $other);
    resume_process($worker);
    ok(settled($t, 'ids', sub { $_[0]{journal}{lost_keys} == 1 }),
       'the helper records the loss');

    my $lost = control($t->testdir . '/state/ids/control')->{lost};

    select undef, undef, undef, 1.5;
    is(zone_state($t, 'ids')->{journal}{owing_workers}, 1,
       'the mark stays while the disk refuses');
    is(control($t->testdir . '/state/ids/control')->{lost}, $lost,
       'the loss is recorded once');
    $disk->allow;
    ok(settled($t, 'ids', sub { !$_[0]{journal}{owing_workers} }),
       'it goes when the disk allows');
    is(zone_state($t, 'ids')->{journal}{lost_keys}, 1, 'one key is lost');
    is(ask($t, 'ids', 'id1', 'later', 'owed', 'no'), '11??',
       'the zone does not know which keys are absent');
    $t->stop;
    $t->expect_log(qr/\[alert\].*"ids" has lost added keys/);
    $t->run;
    is(ask($t, 'ids', 'id1', 'later', 'owed', 'no'), '11??',
       'nor does it after a start');
};

done_testing;
