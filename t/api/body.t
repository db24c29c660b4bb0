#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that the endpoint reads bodies of any size.  It keeps and reports the keys
# of bodies that end early, break off or are mirrored.

use strict;
use warnings;

use BloomTest;
use JSON::PP ();
use BloomTest::Api;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;

configure($t, ['zone=seen capacity=4m fpr=1e-9',
               'zone=copy capacity=1m fpr=1e-9'],
          api => 1, workers => 2, server => <<'SERVER', http => <<'CONF');
        location /mirrored/ {
            client_max_body_size 0;
            bloom_api write=on;
            mirror /to-bloom;
            mirror /to-backend;
        }
        location /in-file/ {
            client_body_in_file_only clean;
            bloom_api write=on;
            mirror /to-bloom;
            mirror /to-backend;
        }
        location = /to-bloom {
            internal;
            proxy_pass http://127.0.0.1:%%PORT_8085%%/bloom/zones/copy/keys;
        }
        location = /to-backend {
            internal;
            proxy_pass http://127.0.0.1:%%PORT_8086%%$request_uri;
        }
SERVER
    server {
        listen 127.0.0.1:%%PORT_8083%%;
        client_max_body_size 1k;
        location /bloom/ { bloom_api write=on; }
    }
    server {
        listen 127.0.0.1:%%PORT_8084%%;
        client_max_body_size 0;
        client_body_buffer_size 4m;
        location /bloom/ { bloom_api write=on; }
    }
    server {
        listen 127.0.0.1:%%PORT_8085%%;
        client_max_body_size 0;
        location /bloom/ { bloom_api write=on; }
    }
CONF
$t->write_file_expand('nginx.conf', $t->read_file('nginx.conf'));
my $backend = $t->backend(8086);
$t->run;

sub post { return api($t, POST => 'zones/seen/keys', @_) }

# Tests that all keys from PREFIX1 to PREFIXcount are in the zone.

sub all_in {
    my ($prefix, $count, $name, $zone) = @_;

    my $r = api($t, POST => 'zones/' . ($zone // 'seen') . '/test',
                body => join "\n", keys_of($prefix, $count));
    my $results = $r->json->{answers};

    is(scalar @$results, $count, "$name: all keys are looked up");
    is(scalar(grep { $_ ne 'present' } @$results), 0,
       "$name: all keys are in the zone");
}


subtest 'bodies of many megabytes are read' => sub {
    my $count = 500_000;
    my $lines = sub {
        my ($prefix) = @_;
        return join '', map { sprintf "%s%d\n", $prefix, $_ } 1 .. $count;
    };

    my $mark = $t->log_mark;

    is_added(post(body => $lines->('a-rather-long-key-')), $count, $count, 0,
             undef,
             'a body over HTTP/1.1 is read whole');
    all_in('a-rather-long-key-', $count, 'HTTP/1.1');

    my $body = $lines->('another-long-key-');
    is_added(post(chunks => [$body =~ /(.{1,50000})/gs]), $count, $count, 0,
             undef,
             'a body in chunks is read whole');
    all_in('another-long-key-', $count, 'chunks');

    is_added(post(body => $body, headers => { Expect => '100-continue' }),
             $count, 0, $count, undef,
             'a body after a 100 Continue is read whole');

    unlike($t->log_since($mark), qr/buffered to a temporary file/,
           'nginx writes no body into a temporary file');
};


# The keys have all lengths, so wherever a turn ends, it ends within a key.

subtest 'a body that a buffer holds whole is read' => sub {
    my @keys = map { "whole$_-" . 'x' x ($_ % 61) } 1 .. 50_000;
    my %of = ('text/plain' => join("\n", @keys),
              'application/json' => JSON::PP::encode_json(
                                        [map { "json-$_" } @keys]));

    for my $type (sort keys %of) {
        my @how = (body => $of{$type}, headers => { 'Content-Type' => $type });

        is_added(post(@how, port => 8084), 50_000, 50_000, 0, undef,
                 "a body of $type in a large buffer is read whole");

        # now in chunks, which end within keys, too

        is(api($t, POST => 'zones/seen/test', @how)->json->{present}, 50_000,
           "$type: all keys are in the zone");
    }
};


# "mirror" reads the body before the endpoint does, and sends it afterwards.

subtest 'a mirrored body is read by both endpoints' => sub {
    my $mirrored = 0;

    my $check = sub {
        my ($r, $prefix, $count, $body, $name) = @_;

        is_added($r, $count, $count, 0, undef, "$name: the keys are added");
        all_in($prefix, $count, "$name: here");
        ok(wait_until(sub { $backend->requests > $mirrored }),
           "$name: the body is mirrored");
        is(($backend->requests)[$mirrored++]{body}, $body,
           "$name: the mirrored body is whole");
        ok(wait_until(sub {
            return ask($t, 'copy', "${prefix}1", "$prefix$count") eq '11';
        }), "$name: the keys are added at the mirror");
        all_in($prefix, $count, "$name: there", 'copy');
    };

    for (['short', 3], ['buffers', 500], ['file', 20_000]) {
        my ($what, $count) = @$_;
        my $path = 'zones/seen/keys';

        my $body = join "\n", keys_of("$what-", $count);
        my $mark = $t->log_mark;
        $check->($t->request(POST => "/mirrored/$path", body => $body),
                 "$what-", $count, $body, $what);
        is($t->log_since($mark) =~ /buffered to a temporary file/ ? 1 : 0,
           $what eq 'file' ? 1 : 0,
           "$what: nginx puts only a long body into a file");

        $body = join "\n", keys_of("$what-f-", $count);
        $check->($t->request(POST => "/in-file/$path", body => $body),
                 "$what-f-", $count, $body, "$what, to a file");

        $body = JSON::PP::encode_json([keys_of("$what-j-", $count)]);
        $check->($t->request(POST => "/mirrored/$path",
                             chunks => [$body =~ /(.{1,1000})/gs],
                             headers => { 'Content-Type'
                                          => 'application/json' }),
                 "$what-j-", $count, $body, "$what, in chunks");
    }

    my $body = "short-1\nshort-9\n";
    my $r = $t->request(POST => '/mirrored/zones/seen/test', body => $body);
    is($r->json->{present} . $r->json->{absent}, '11',
       'keys of a mirrored POST test are looked up');
    ok(wait_until(sub { $backend->requests > $mirrored }),
       'a POST test is mirrored');
    is(($backend->requests)[$mirrored]{body}, $body,
       'the mirrored body of a POST test is whole');
};


subtest 'other requests are served while a body arrives' => sub {
    my $body = join '', map { "beside$_\n" } 1 .. 300_000;
    my $c = $t->connect;
    my $text = $t->request_text(POST => '/bloom/zones/seen/keys',
                                body => $body, keepalive => 1);

    $c->send(substr($text, 0, 2_000_000));
    is(ask($t, 'seen', 'no1'), '0', 'a key is looked up while a body arrives');
    $c->send(substr($text, 2_000_000));
    is_added($c->response, 300_000, 300_000, 0, undef,
             'a body whose end arrives later is read whole');

    $c->send($t->request_text(POST => '/bloom/zones/seen/keys',
                              body => "next\n", keepalive => 1));
    is_added($c->response, 1, 1, 0, undef,
             'a connection stays open after a long body');

    my @r = $t->pipeline(map {
        $t->request_text(POST => '/bloom/zones/seen/keys',
                         body => "p$_\n", keepalive => 1)
    } 1 .. 50);
    is(scalar(grep { $_->status == 200 && $_->json->{added} == 1 } @r), 50,
       'fifty pipelined requests add a key each');
};


subtest 'a body with a broken chunk is refused' => sub {
    my $head = "POST /bloom/zones/seen/keys HTTP/1.1\r\nHost: localhost\r\n"
               . "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n";

    my $good = join '', map { "broken$_\n" } 1 .. 50_000;
    my $broken = $t->connect;

    $broken->send($head . sprintf "%x\r\n%s\r\n", length $good, $good);
    wait_until(sub { ask($t, 'seen', 'broken1') eq '1' })
        or die 'nothing of a long body is added before its end';
    $broken->send("nonsense\r\n");

    my $r = $broken->response;
    is_error($r, 400, qr/chunk/, 'a body with a broken chunk is refused');
    my $taken = $r->json->{received} // 0;
    is_added($r, $taken, $taken, 0, undef,
             'the response to a broken chunk counts the keys before it');
    cmp_ok($taken, '>', 1000,
           'nearly all keys before a broken chunk are received');
    all_in('broken', $taken, 'before a broken chunk');

    # the response counts the keys that came together with the header

    $r = $t->http($head . "12\r\nat-once1\nat-once2\n\r\nnonsense\r\n");
    is_error($r, 400, qr/chunk/,
             'a broken chunk that comes with the header is refused');
    my ($in) = ask($t, 'seen', 'at-once1', 'at-once2') =~ tr/1//;
    is($r->json->{received}, $in,
       'the response to a broken chunk after the header counts added keys');

    # a client that has closed its side might not get a response over HTTP/1.1

    my $first = join '', map { "first$_\n" } 1 .. 50_000;
    my $c = $t->connect;
    $c->send($head . sprintf "%x\r\n%s\r\n", length $first, $first);
    wait_until(sub { ask($t, 'seen', 'first1') eq '1' })
        or die 'nothing of a long body is added before its end';
    $c->send("e\r\ncut1\ncut2\ncut3\r\n");
    $c->end;
    my $cut = $c->response;
    ok($cut->status == 400 || $cut->status == 0,
       'a body without a last chunk is refused or gets no response')
        or diag($cut);
    is(ask($t, 'seen', 'cut1', 'cut2', 'cut3', 'cut'), '1100',
       'the keys of whole lines before a missing last chunk are added');

    # The end of the connection may arrive together with the header.  freenginx
    # then drops the bytes between them, and the response counts no key.

    my $drops = $t->nginx_build =~ m{version: freenginx/};

    for my $i (1 .. 50) {
        my @keys = map { sprintf 'end%02d-%d', $i, $_ } 1 .. 3;
        my $end = $t->connect;
        $end->send($head . sprintf "%x\r\n%s\r\n", 23, join "\n", @keys);
        $end->end;
        my $r = $end->response;

        is_error($r, 400, qr/connection ended before the body/,
                 "a body that ends with the connection is refused, $i");
        my $taken = $r->json->{received};
        ok($taken == 2 || $drops && $taken == 0,
           "the response counts the keys of whole lines, $i")
            or diag($r->body);
        is(ask($t, 'seen', @keys), $taken ? '110' : '000',
           "only the keys that the response counts are added, $i");
    }
};


subtest 'keys of a client that disconnects are added' => sub {
    my $mark = $t->log_mark;
    my $text = $t->request_text(
        POST => '/bloom/zones/seen/keys', headers => { 'X' => 1 },
        body => join '', map { "away$_\n" } 1 .. 100_000);

    $t->http_abort($text, after => int(length($text) / 2));

    ok(wait_until(sub { ask($t, 'seen', 'away1', 'away2',
                            'away1000') eq '111' }),
       'keys that a client sent before it disconnected are added');
    is(ask($t, 'seen', 'away99999'), '0',
       'keys that a client did not send are absent');

    for my $after (1, 50, 100, 150, 200, 300) {
        $t->http_abort($text, after => $after);
    }
    is(ask($t, 'seen', 'away1', 'no'), '10',
       'the zone answers after several clients disconnected');

    like($t->wait_for_log(qr/client went away/, $mark),
         qr/\[info\].*while it sent a body for bloom zone "seen"/,
         'the log says that a client disconnected');
};


subtest 'a body over client_max_body_size is refused' => sub {
    my $r = $t->post('/bloom/zones/seen/keys', "limited\n" x 1000,
                     port => 8083);
    is($r->status, 413, 'a body that is too long is refused');
    is(ask($t, 'seen', 'limited'), '0',
       'no key of a body that is too long is added');

    $r = $t->request(POST => '/bloom/zones/seen/keys', port => 8083,
                     chunks => [("chunked\n" x 100) x 20]);
    is($r->status, 413, 'a body in chunks that is too long is refused');
    is($t->post('/bloom/zones/seen/keys', "fits\n", port => 8083)->status,
       200, 'a body that fits is taken');
};


subtest 'a body that a request does not need is skipped' => sub {
    my @r = $t->pipeline(
        $t->request_text(GET => '/bloom/zones/seen', body => 'x' x 10000,
                         keepalive => 1),
        $t->request_text(POST => '/bloom/zones/seen/checkpoint',
                         body => 'y' x 10000, keepalive => 1),
        $t->request_text(POST => '/bloom/zones/none/keys',
                         body => 'z' x 10000, keepalive => 1),
        $t->request_text(GET => '/bloom/zones/seen', keepalive => 1));
    is(join(' ', map { $_->status } @r), '200 200 404 200',
       'requests after skipped bodies are answered');
};


# A worker that shuts down reads the body of a request to its end.

subtest 'a body that arrives while nginx reloads is read whole' => sub {
    my $c = $t->connect;
    my $text = $t->request_text(
        POST => '/bloom/zones/seen/keys',
        headers => { Expect => '100-continue' },
        body => join '', map { "reload$_\n" } 1 .. 10_000);

    $c->send(substr $text, 0, 1000);
    is($c->interim, 100, 'a worker waits for the body before the reload');
    $t->reload(keep_old => 1);
    $c->send(substr $text, 1000);
    is_added($c->response, 10_000, 10_000, 0, undef,
             'all keys of a body are taken after a reload');
    $c->close;
    all_in('reload', 10_000, 'after the reload');
};


done_testing;
