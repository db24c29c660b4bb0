#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A process stalls while it appends to the journal.  Requests with bloom_add do
# not wait for it one after the other: their keys become pending at once, and
# there is room for them.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Faults;
use BloomTest::Process qw(resume_process);
use BloomTest::Zones;

my $t = BloomTest->new;
my $faults = BloomTest::Faults->new($t);
$faults->needed;

$t->build_image('ids.bloom', ['id1'], '-p', '1e-9', '-n', '50k');
configure($t, ['zone=ids file=ids.bloom'], api => 1, add => 1, workers => 2,
          server => 'location = /list { bloom_add $arg_k zone=ids split=,;
                                        return 200; }');
$t->run;

# a segment exists, so that the next key does not become pending

add($t, 'ids', ['first'], durable => 1);

my $stop = $faults->stop_at('publish');
my $c = $t->connect;
$c->send($t->request_text(GET => '/add/ids?k=stalled'));
my $worker = $faults->stopped($stop);


# The test counts waits.  A worker that has waited waits again after a second,
# so fifty waits would take fifty seconds.

subtest 'a worker waits once for a stalled process' => sub {
    my @keys = map { "short$_" } 1 .. 100;

    $faults->kill_at('wait', 50);

    my @responses = $t->pipeline(map { "/add/ids?k=$_" } @keys);
    is(scalar(grep { $_->status == 200 } @responses), 100,
       'bloom_add answers 100 requests');
    ok($faults->pending, 'not even half of 100 requests have waited');
    $faults->withdraw;

    is(ask($t, 'ids', @keys, 'no'), '1' x 100 . '0', 'their keys are present');
    is(zone_state($t, 'ids')->{journal}{pending_keys}, 100,
       'their keys are pending');
};


subtest 'the keys of a list wait once together' => sub {
    my @keys = map { "list$_" } 1 .. 100;

    $faults->kill_at('wait', 2);
    is($t->get('/list?k=' . join ',', @keys)->status, 200,
       'a request with a list is answered');
    ok($faults->pending, 'at most one of its keys has waited');
    $faults->withdraw;

    is(ask($t, 'ids', @keys, 'no'), '1' x 100 . '0', 'its keys are present');
    is(zone_state($t, 'ids')->{journal}{pending_keys}, 200,
       'its keys are pending');
};


my @keys = map { "long$_-" . 'x' x 4000 } 1 .. 500;

subtest 'the pending keys have room' => sub {
    my @responses = $t->pipeline(map { "/add/ids?k=$_" } @keys);
    is(scalar(grep { $_->status == 200 } @responses), 500,
       'bloom_add answers 500 requests with long keys');
    is(zone_state($t, 'ids')->{journal}{lost_keys}, 0, 'no key is lost');
};


subtest 'the stalled process continues' => sub {
    resume_process($worker);
    is($c->response->status, 200,
       'the request of the stalled process is answered');
    ok(settled($t, 'ids', sub { !$_[0]{journal}{pending_keys} }),
       'the pending keys are written to the journal');

    is($t->get('/add/ids?k=later')->status, 200,
       'bloom_add answers another request');

    $t->kill_all;
    $t->run;
    is(ask_until_known($t, 'ids', 'stalled', 'later', 'short1', 'short100',
                       'list1', 'list100', @keys, 'no'), '1' x 506 . '0',
       'all keys are present after kill -9 of all processes');
};


done_testing;
