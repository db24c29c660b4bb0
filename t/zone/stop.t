#!/usr/bin/perl

# Stops and reloads while workers have requests to finish: the helper has gone,
# or knows nothing of a zone any more, and what is added gets to disk all the
# same.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Disk;
use BloomTest::Process qw(alive wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;
my $disk = BloomTest::Disk->new($t, 'state');

$t->build_image('ids.bloom', ['id1'], '-p', '1e-9', '-n', '300k');

my @ids = ('zone=ids file=ids.bloom');
my @both = (@ids, 'zone=seen capacity=20k fpr=1e-9');

configure($t, \@both, api => 1, add => 1);
$t->run;


# Where a zone's journal ends, and what of it is on disk, as its control page
# has it: docs/state.md.

sub positions {
    my ($zone) = @_;

    my $page = $t->read_file("state/$zone/control");
    my $which = unpack 'x136 Q<', $page;
    my $at = 144 + 40 * ($which & 1);

    return (unpack("x$at Q<", $page), unpack 'x248 Q<', $page);
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


# A request that a worker has begun to read: it does not go before that is
# answered.

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


# The response, after which nginx need not wait for us.

sub finish {
    my ($connection, $text) = @_;

    $connection->send($text);
    my $response = $connection->response;
    $connection->close;

    return $response;
}


# Tells nginx to stop, and returns when the helper has gone.

sub quit {
    my ($helper) = $t->helpers;

    kill 'QUIT', $t->master;
    wait_until(sub { !alive($helper) }) or diag("helper $helper stays");
}


subtest 'a stop while keys are added' => sub {
    my @large = map { sprintf 'large-%06d', $_ } 1 .. 100_000;

    my %body = (few => "few1\nfew2\n", many => join("\n", @large));
    my %post = map { $_ => begin_post('ids', $body{$_}) } sort keys %body;

    my $late = begin_get('/add/ids?k=late');
    my $last = begin_get('/add/ids?k=last');

    is($t->get('/add/ids?k=before')->status, 200, 'added right before');
    quit();

    is_added(finish($post{few}, $body{few}), 2, 2, 0, 1, 'keys that are to be durable');
    is_synced('ids', 'are');

    is(finish($late, rest())->status, 200, 'a key of bloom_add');
    synced_soon('ids', 'is on disk while the worker has other requests');

    cmp_ok(length $body{many}, '>', 1024 * 1024,
           'more than there is room for in the segments there are');
    is_added(finish($post{many}, $body{many}), 100_000, undef, undef, 1,
             'are added, too, and durable');

    is(finish($last, rest())->status, 200, 'and one more key');

    ok($t->stop(told => 1), 'nginx stops');
    is_synced($_, "all of $_ is on disk") for qw(ids seen);

    $t->run;
    is(sure($t, 'ids', qw(id1 before few1 few2 late last), @large[0, -1], 'no'),
       '111111110', 'and found after a start');
};


for my $signal (qw(QUIT TERM)) {
    subtest "a stop right after additions, by $signal" => sub {
        is($t->get("/add/$_?k=at-$signal")->status, 200, "to $_")
            for qw(ids seen);

        kill $signal, $t->master;
        ok($t->stop(told => 1), 'nginx stops');
        is_synced($_, "all of $_ is on disk") for qw(ids seen);

        $t->run;
        is(sure($t, $_, "at-$signal"), '1', "$_ has it") for qw(ids seen);
    };
}


subtest 'a zone that is no more after a reload' => sub {
    my $post = begin_post('seen', "removed1\nremoved2\n");
    my $add = begin_get('/add/seen?k=removed3');
    my @old = $t->workers;

    configure($t, \@ids, api => 1, add => 1);
    $t->reload(keep_old => 1);

    is_added(finish($post, "removed1\nremoved2\n"), 2, 2, 0, 1,
             'durable keys of a request begun');
    is(finish($add, rest())->status, 200, 'a key of bloom_add');
    ok(wait_until(sub { !grep { alive($_) } @old }), 'the old worker goes');
    is_synced('seen', 'all is on disk');

    configure($t, \@both, api => 1, add => 1);
    $t->reload;
    is(sure($t, 'seen', map { "removed$_" } 1 .. 3), '111',
       'and found when the zone is there again');
};


subtest 'a disk that refuses at the end' => sub {
    is($t->get('/add/ids?k=refused')->status, 200, 'a key');
    $disk->refuse('EIO', 'sync');

    my $mark = $t->log_mark;
    $t->stop;
    like($t->log_since($mark),
         qr/bloom zone "ids": the journal .* could not be synchronised at the/,
         'the log says that it is not on disk');

    $disk->allow;
    $t->run;
    is(sure($t, 'ids', 'refused'), '1', 'it is there as long as power is');
};


subtest 'master_process off' => sub {
    $t->stop;
    configure($t, \@both, api => 1, add => 1, main => 'master_process off;');
    $t->run;

    is($t->get("/add/$_?k=single")->status, 200, "a key of $_")
        for qw(ids seen);
    $t->stop;
    is_synced($_, "all of $_ is on disk") for qw(ids seen);
};


done_testing;
