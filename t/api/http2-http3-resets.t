#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Clients of HTTP/2 and HTTP/3 reset streams, or disappear, in the middle of
# bodies, downloads and waits for the disk.  The zone serves on, other streams
# are answered, nothing is left behind, and nginx stops.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Http2;
use BloomTest::Http3;
use BloomTest::Process qw(stop_process resume_process wait_until alive);
use BloomTest::Zones;

my $t = BloomTest->new;
my @protocols = grep { !$_->impossible($t) }
                     qw(BloomTest::Http2 BloomTest::Http3);
my $listen = join "\n", map { $_->listen($t) } @protocols;
my $keys_path = '/bloom/zones/seen/keys';
my $image_path = '/bloom/zones/ids/image';

plan skip_all => 'nginx has neither HTTP/2 nor HTTP/3' unless @protocols;

$t->build_image('ids.bloom', ['id1'], '-p', '1e-9', '-n', '600k');

sub configured {
    my ($lines) = @_;

    configure($t, ['zone=ids file=ids.bloom',
                   'zone=seen capacity=100k fpr=1e-9'],
              api => 1, server => "$listen\n$lines");
}

configured('lingering_timeout 1s;');
$t->run;


# Returns how often a worker has noticed since the mark that a client of POST
# keys went away.

sub gone { return scalar(() = $t->log_since($_[0]) =~ /client went away/g) }

sub noticed {
    my ($mark, $count) = @_;

    return wait_until(sub { gone($mark) >= $count });
}

sub serves {
    my ($c, $what) = @_;

    my $key = 'after' . ++$t->{after};

    is($c->ask(GET => '/ids?k=id1')->body =~ /^1/, 1,
       "a lookup on the connection is answered after $what");
    is_added($c->ask(POST => "$keys_path?durable=true", body => $key), 1, 1, 0,
             1, "a key is added on the connection after $what");
}

sub no_bodies {
    my ($what) = @_;

    ok(wait_until(sub { !files($t->testdir . '/state/ids/body.*') }),
       "no file of an upload is left after $what");
}


# Returns when nothing waits for the disk.

sub is_settled {
    my ($what) = @_;

    ok(settled($t, 'seen', sub {
        my $journal = $_[0]{journal};
        return !$journal->{unsynced_bytes};
    }), "the journal is settled after $what");
}


# Returns the memory of the worker, in KiB.

sub memory {
    my ($worker) = $t->workers;

    open my $fh, '<', "/proc/$worker/status" or die "/proc/$worker: $!";
    local $/;

    return (<$fh> =~ /^RssAnon:\s+(\d+)/m)[0];
}


sub test_bodies {
    my ($class) = @_;

    my $c = $class->new($t);
    my $other = $c->open(POST => $keys_path);
    my $mark = $t->log_mark;

    for my $type ('text/plain', 'application/json') {
        my $json = $type =~ /json/ ? 1 : 0;
        my $stream = $c->open(POST => $keys_path,
                              headers => ['content-type' => $type]);
        my $key = $class->name . $json;

        $c->data($stream, $json ? qq(["$key", "cu) : "$key\ncu");
        $c->ask(GET => '/ids?k=id1');
        $c->reset($stream);
        ok(wait_until(sub { ask($t, 'seen', $key) eq '1' }),
           "the whole keys of a body of type $type are added");
    }

    ok(noticed($mark, 2), 'nginx notices that bodies are cut');
    $c->data($other, 'other', end => 1);
    is_added($c->response($other), 1, undef, undef, undef,
             'another body on the connection is taken');
    is(join(' ', lookup_keys($t, 'seen', 'cu')), 'absent',
       'a key that was cut is not added');
    serves($c, 'bodies that were cut');
}


# A batch of keys, and each request, has memory that must be freed.

sub test_memory {
    my ($class) = @_;

    my $resets = sub {
        my ($count) = @_;

        my $mark = $t->log_mark;

        for (1 .. $count / 50) {
            my $c = $class->new($t);
            my @streams = map {
                my $stream = $c->open(POST => $keys_path);
                $c->data($stream, "many\nmany\nma");
                $stream;
            } 1 .. 50;
            $c->ask(GET => '/ids?k=id1');
            $c->reset($_) for @streams;
            $c->ask(GET => '/ids?k=id1');
        }

        noticed($mark, $count) or diag(gone($mark));
        return memory();
    };

    # connections that end late on a busy machine take memory once, so as many
    # begin before the memory is measured

    $resets->(200);
    my $before = $resets->(1000);
    my $after = $resets->(1000);

    cmp_ok($after - $before, '<', 4096,
           'a thousand resets take no memory for good');
}


sub test_images {
    my ($class) = @_;

    my $c = $class->new($t);
    my $image = $t->read_file('ids.bloom');
    my $before = generation($t, 'ids');

    my $put = $c->open(PUT => $image_path,
                       headers => ['content-length' => length $image]);
    $c->data($put, substr $image, $_ * 16384, 16384) for 0 .. 20;
    ok(wait_until(sub { files($t->testdir . '/state/ids/body.*') }),
       'an upload has a file');
    $c->reset($put);
    no_bodies('an upload that was reset');
    is(generation($t, 'ids'), $before, 'the cut image is not loaded');
    serves($c, 'an upload that was cut');

    my $slow = $class->new($t, window => 10_000);
    my $get = $slow->request(GET => $image_path);

    cmp_ok($slow->wait_for_body($get, 30_000), '<', length $image,
           'a download has begun');
    $slow->reset($get);
    serves($slow, 'a download that was reset');

    if ($slow->can('stop_sending')) {
        $get = $slow->request(GET => $image_path);
        $slow->wait_for_body($get, 30_000);
        $slow->stop_sending($get);
        ok(!$slow->response($get)->complete, 'nginx stops a download');
        serves($slow, 'a download that was stopped');
    }

    ok($c->ask(GET => $image_path)->complete,
       'a download afterwards is complete');
}


sub test_durable {
    my ($class) = @_;

    my $c = $class->new($t);
    my $helper = $t->helper;
    my $name = $class->name =~ s/\W//gr;
    my @keys = map { "$name-wait$_" } 1 .. 100;

    stop_process($helper);

    my @streams = map {
        $c->request(POST => "$keys_path?durable=true", body => $_)
    } @keys;

    ok(wait_until(sub { ask($t, 'seen', @keys) eq '1' x 100 }),
       'the keys of requests that wait are present');

    $c->reset($streams[2 * $_]) for 0 .. 49;
    is($c->ask(GET => '/ids?k=id1')->status, 200,
       'a lookup is answered while streams wait and are reset');
    resume_process($helper);

    is(scalar(grep { $c->response($streams[2 * $_ + 1])->status == 200 }
              0 .. 49), 50, 'the streams that were not reset are answered');
    is_settled('resets of streams that wait');
    serves($c, 'resets of streams that wait');

    $t->kill_all;
    $t->run;
    is(ask_until_known($t, 'seen', @keys), '1' x 100,
       'all keys are present after kill -9 and a start');
}


sub test_quit {
    my ($class) = @_;

    my $c = $class->new($t);
    my $helper = $t->helper;
    my ($worker) = $t->workers;
    my $name = $class->name =~ s/\W//gr;

    stop_process($helper);
    my $wait = $c->request(POST => "$keys_path?durable=true",
                           body => "$name-quit1");
    my $post = $c->open(POST => "$keys_path?durable=true");
    $c->data($post, "$name-quit2\n");
    ok(wait_until(sub { ask($t, 'seen', "$name-quit1") eq '1' }),
       'a request waits for the disk');

    kill 'QUIT', $t->master;
    ok($c->goaway, 'nginx tells the client that it stops');
    resume_process($helper);
    ok(wait_until(sub { !alive($helper) }), 'the helper exits');
    ok(alive($worker), 'the worker waits for the streams');

    $c->data($post, "$name-quit3", end => 1);
    is_added($c->response($wait), 1, 1, 0, 1,
             'the request that waited is answered');
    is_added($c->response($post), 2, 2, 0, 1, 'the body is taken whole');
    undef $c;

    ok($t->stop(told => 1), 'nginx stops');
    $t->run;
    is(ask_until_known($t, 'seen', map { "$name-quit$_" } 1 .. 3), '111',
       'the keys are present after a start');
}


# nginx notices that a client of HTTP/3 is gone when nothing has come from it
# for a while.

sub test_vanish {
    my ($class) = @_;

    my $image = $t->read_file('ids.bloom');
    my $name = $class->name =~ s/\W//gr;
    my $helper = $t->helper;

    for my $how ('vanish', $class->can('close') ? 'close' : ()) {
        my $c = $class->new($t);
        my $put = $c->open(PUT => $image_path,
                           headers => ['content-length' => length $image]);
        $c->data($put, substr $image, 0, 16384);
        my $post = $c->open(POST => $keys_path);
        $c->data($post, "$name-$how-whole\n$name-$how-cut");
        ok(wait_until(sub { files($t->testdir . '/state/ids/body.*') }),
           'an upload has begun');
        $c->ask(GET => '/ids?k=id1');

        my $mark = $t->log_mark;
        $c->$how;
        ok(noticed($mark, 1), "nginx notices that the client is gone ($how)");

        # nginx ends a request of HTTP/3 without a word, so its last batch is
        # lost

        is(ask($t, 'seen', "$name-$how-whole"), $name =~ /3/ ? '0' : '1',
           "whether a key that was whole is added ($how)");
        no_bodies("a client that is gone ($how)");
        is(join(' ', lookup_keys($t, 'seen', "$name-$how-cut")), 'absent',
           'the key that was cut is not added');

        stop_process($helper);
        $c = $class->new($t);
        $c->request(POST => "$keys_path?durable=true", body => "$name-$how");
        ok(wait_until(sub { ask($t, 'seen', "$name-$how") eq '1' }),
           'a request waits for the disk');
        $c->$how;
        resume_process($helper);
        is_settled("a client that is gone while it waits ($how)");
    }

    serves($class->new($t), 'clients that are gone');
}


for my $class (@protocols) {
    subtest $class->name => sub {
        subtest 'bodies' => sub { test_bodies($class) };
        subtest 'memory' => sub {
            plan skip_all => 'the address sanitizer keeps freed memory'
                if $ENV{TEST_NGINX_SANITIZED};
            test_memory($class);
        };
        subtest 'images' => sub { test_images($class) };
        subtest 'waits for the disk' => sub { test_durable($class) };
        subtest 'nginx stops' => sub { test_quit($class) };
    };
}

$t->stop;
configured("lingering_timeout 1s;\nkeepalive_timeout 4s;\n"
           . 'client_body_timeout 4s;');
$t->run;

for my $class (@protocols) {
    subtest $class->name . ': clients disappear' => sub {
        test_vanish($class);
    };
}


done_testing;
