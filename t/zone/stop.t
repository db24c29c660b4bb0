#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Keys that are added while nginx stops or reloads get to disk, although the
# helper has exited or no longer has the zone.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Control;
use BloomTest::Disk;
use BloomTest::Process qw(alive wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;
my $disk = BloomTest::Disk->new($t, 'state');

$t->build_image('ids.bloom', ['id1'], '-p', '1e-9', '-n', '300k');

my @ids = ('zone=ids file=ids.bloom');
my @both = (@ids, 'zone=seen capacity=20k fpr=1e-9');

configure($t, \@both, api => 1, add => 1);
$t->run;


# The positions at which a zone's journal ends, and up to which it is on disk,
# from the control page.

sub positions {
    my ($zone) = @_;

    return @{ control($t->testdir . "/state/$zone/control") }{qw(end synced)};
}

sub is_synced {
    my ($zone, $what) = @_;

    my ($tail, $synced) = positions($zone);
    is($synced, $tail, $what);
}

sub synced_soon {
    my ($zone, $what) = @_;

    ok(wait_until(sub {
        my ($tail, $synced) = positions($zone);
        return $synced == $tail;
    }), $what);
}


# Sends the beginning of a request to the worker, which then does not exit
# before it has answered it.

sub begin {
    my ($text) = @_;

    my $connection = $t->connect;
    $connection->send($text);

    # the only worker has it when it has answered another one that came later

    ask($t, 'ids', 'id1');

    return $connection;
}

sub begin_post {
    my ($zone, $body) = @_;

    return begin("POST /bloom/zones/$zone/keys?durable=true HTTP/1.1\r\n"
                 . "Host: localhost\r\nConnection: close\r\n"
                 . 'Content-Length: ' . length($body) . "\r\n\r\n");
}

sub begin_get {
    my ($path) = @_;

    return begin("GET $path HTTP/1.1\r\nConnection: close\r\n");
}

sub rest { return "Host: localhost\r\n\r\n" }


# Sends the rest of a request, returns the response and closes the connection,
# so that nginx does not wait for it.

sub finish {
    my ($connection, $text) = @_;

    $connection->send($text);
    my $response = $connection->response;
    $connection->close;

    return $response;
}


# Tells nginx to stop, and returns when the helper has exited.

sub quit {
    my $helper = $t->helper;

    kill 'QUIT', $t->master;
    wait_until(sub { !alive($helper) }) or diag("helper $helper stays");
}


subtest 'nginx stops while keys are added' => sub {
    my @large = map { sprintf 'large-%06d', $_ } 1 .. 100_000;

    my %body = (few => "few1\nfew2\n", many => join("\n", @large));
    my %post = map { $_ => begin_post('ids', $body{$_}) } sort keys %body;

    my $late = begin_get('/add/ids?k=late');
    my $last = begin_get('/add/ids?k=last');

    is($t->get('/add/ids?k=before')->status, 200,
       'a key is added just before the stop');
    quit();

    is_added(finish($post{few}, $body{few}), 2, 2, 0, 1,
             'a request during the stop adds keys durably');
    is_synced('ids', 'the durable keys are on disk');

    is(finish($late, rest())->status, 200,
       'bloom_add adds a key during the stop');
    synced_soon('ids',
                'the key of bloom_add gets to disk before the last request');

    cmp_ok(length $body{many}, '>', 1024 * 1024,
           'the large request has more keys than the segments have room for');
    is_added(finish($post{many}, $body{many}), 100_000, undef, undef, 1,
             'the large request adds keys durably during the stop');

    is(finish($last, rest())->status, 200,
       'bloom_add adds a key as the last request');

    ok($t->stop(told => 1), 'nginx stops');
    is_synced($_, "the whole journal of zone $_ is on disk")
        for qw(ids seen);

    $t->run;
    is(ask_until_known($t, 'ids', qw(id1 before few1 few2 late last), @large[0, -1], 'no'),
       '111111110',
       'all keys added during the stop are present after a start');
};


for my $signal (qw(QUIT TERM)) {
    subtest "$signal stops nginx right after additions" => sub {
        is($t->get("/add/$_?k=at-$signal")->status, 200,
           "a key is added to zone $_ before $signal")
            for qw(ids seen);

        kill $signal, $t->master;
        ok($t->stop(told => 1), "nginx stops by $signal");
        is_synced($_, "the whole journal of zone $_ is on disk after $signal")
            for qw(ids seen);

        $t->run;
        is(ask_until_known($t, $_, "at-$signal"), '1',
           "the key added to zone $_ before $signal is present")
            for qw(ids seen);
    };
}


subtest 'a reload removes a zone' => sub {
    my $post = begin_post('seen', "removed1\nremoved2\n");
    my $add = begin_get('/add/seen?k=removed3');
    my @old = $t->workers;

    configure($t, \@ids, api => 1, add => 1);
    $t->reload(keep_old => 1);

    is_added(finish($post, "removed1\nremoved2\n"), 2, 2, 0, 1,
             'an old worker adds keys durably to the removed zone');
    is(finish($add, rest())->status, 200,
       'bloom_add in an old worker adds a key to the removed zone');
    ok(wait_until(sub { !grep { alive($_) } @old }),
       'the old worker exits after its last request');
    is_synced('seen', 'the whole journal of the removed zone is on disk');

    configure($t, \@both, api => 1, add => 1);
    $t->reload;
    is(ask_until_known($t, 'seen', map { "removed$_" } 1 .. 3), '111',
       'all keys are present when the zone is configured again');
};


subtest 'the disk refuses to synchronise at the end' => sub {
    is($t->get('/add/ids?k=refused')->status, 200,
       'a key is added before the disk refuses');
    $disk->refuse('EIO', 'sync');

    my $mark = $t->log_mark;
    $t->stop;
    like($t->log_since($mark),
         qr/bloom zone "ids": the journal .* could not be synchronised at exit/,
         'the log says that the journal could not be synchronised');

    $disk->allow;
    $t->run;
    is(ask_until_known($t, 'ids', 'refused'), '1',
       'the key is present since no power was lost');
};


subtest 'nginx stops without a master process' => sub {
    $t->stop;
    configure($t, \@both, api => 1, add => 1, main => 'master_process off;');
    $t->run;

    is($t->get("/add/$_?k=single")->status, 200,
       "a key is added to zone $_ without a master process")
        for qw(ids seen);
    $t->stop;
    is_synced($_, "the whole journal of zone $_ is on disk after the stop")
        for qw(ids seen);
};


# A child does the load, and the process reads what other processes and clients
# send: nginx tells it to exit in this way, too.

subtest 'the only process answers requests and exits during a load' => sub {
    $t->stop;
    $t->build_image('large.bloom', ['id1'], '-p', '1e-2', '-n', '120m');
    configure($t, ['zone=large file=large.bloom'], api => 1,
              main => 'master_process off;');
    $t->run;

    # begins a load, and returns whether another request is answered during it.
    # Twenty are sent at once, so that nginx has them whenever this script runs.
    # The load may be quicker still, so each is tried repeatedly

    my $loading = sub {
        my ($reload, $others) = map { $t->connect } 1, 2;

        $reload->send($t->request_text(POST => '/bloom/zones/large/reload'));
        $others->send($t->request_text(GET => '/bloom/zones/large',
                                       keepalive => 1) x 20);

        for (1 .. 20) {
            my $load = $others->response->json->{load};
            return 1 if $load->{in_progress} && $load->{done_bytes} > 0;
        }

        return 0;
    };
    my $ended = sub {
        wait_until(sub { !zone_state($t, 'large')->{load}{in_progress} });
    };

    my $answered;
    for (1 .. 50) {
        $answered = $loading->();
        $ended->();
        last if $answered;
    }
    ok($answered, 'a request during a load is answered before the load ends');

    my $left;
    for (1 .. 50) {
        my $mark = $t->log_mark;
        my $seen = $loading->();
        $t->stop or die 'nginx does not stop';
        $left = $seen
                && $t->log_since($mark) !~ /zone "large" serves generation/;
        last if $left;
        $t->run;
    }
    ok($left, 'nginx stops during a load, without the rest of the load');
};


done_testing;
