#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that PUT image refuses an image that the zone cannot take as early as
# possible: by its length, by the bytes that have arrived, or by its header.
# The file of a worker that dies is removed.

use strict;
use warnings;

use JSON::PP ();

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;
my $state = $t->testdir . '/state/ids';
my $path = '/bloom/zones/ids/image';

$t->build_image('one.bloom', ['id1', 'one'], '-p', '1e-6', '-n', '100k');
$t->build_image('two.bloom', ['id1', 'two'], '-p', '1e-6', '-n', '100k');
$t->build_image('url.bloom', ['id1/'], '-p', '1e-6', '-n', '100k', '--form',
                'url');
$t->build_image('large.bloom', ['id1'], '-p', '1e-6', '-n', '300k');

install_image($t, 'one');
my $http2 = $t->has_http2 ? <<"CONF" : '';
    server {
        @{[$t->http2('127.0.0.1:%%PORT_8081%%')]}
        location /bloom/ { client_max_body_size 0; bloom_api write=on; }
    }
CONF
configure($t, ['zone=ids:1200k file=ids.bloom form=raw',
               'zone=memory:1m capacity=1k fpr=1e-6 journal=off'], api => 1,
          http => $http2);
$t->run;

my $two = $t->read_file('two.bloom');
my $large = $t->read_file('large.bloom');

sub bodies { return files("$state/body.*"), files("$state/*.tmp") }

sub head {
    my (@headers) = @_;

    return join "\r\n", "PUT $path HTTP/1.1", 'Host: localhost', @headers, '',
                '';
}

sub chunk { return sprintf("%x\r\n%s\r\n", length $_[0], $_[0]) }

sub unchanged {
    my ($what) = @_;

    is(ask($t, 'ids', 'id1', 'one', 'two'), '110',
       "the old image answers after $what");
    ok(wait_until(sub { !bodies() }), "no file is left after $what");
}


# The clients send no byte of the body.

subtest 'a length that the zone cannot take is refused at once' => sub {
    for (['alone', 'Content-Length: 400000000'],
         ['with Expect', 'Content-Length: 400000000', 'Expect: 100-continue'])
    {
        my ($what, @headers) = @$_;
        my $c = $t->connect;
        $c->send(head(@headers));

        my $r = is_error($c->response, 413, qr/400000000 bytes.*zone=ids:\d+k/,
                         "a length is refused $what");
        is($r->json->{error}{code}, 'too_large', 'the error has its code');
        is_deeply($r->{interim}, [], 'nginx does not send "100 Continue"');
        $c->close;
    }

    is_error($t->put($path, $large), 413, qr/zone=ids:\d+k/,
             'a client that sends its body nevertheless gets the error');
    is_error($t->http(join "\r\n", 'PUT /bloom/zones/memory/image HTTP/1.1',
                      'Host: localhost', 'Content-Length: 1000',
                      'Connection: close', '', ''),
             409, qr/no state directory/,
             'a zone that takes no images refuses before the body arrives');
    unchanged('refused lengths');
};


subtest 'chunks that exceed what the zone can take are refused' => sub {
    my $c = $t->connect;
    $c->send(head('Transfer-Encoding: chunked'));

    my $good = substr($two, 0, 4096);
    $c->send(chunk($good) . chunk('x' x 1_000_000));

    my $r = is_error($c->response, 413, qr/at least \d+ bytes.*zone=ids:\d+k/,
                     'chunks are refused before they end');
    is($r->header('Connection'), 'close', 'the connection is closed');
    unchanged('refused chunks');
};


# Only the first page of the body is sent.

sub changed {
    my ($at, $bytes) = @_;

    my $page = substr($two, 0, 4096);
    substr($page, $at, length $bytes) = $bytes;

    return $page;
}

my %pages = (
    'no image' => ['x' x 4096, 422, qr/not a Bloom filter image/],
    'another version' => [changed(8, pack 'V', 99), 422, qr/version 99/],
    'a damaged header' => [changed(100, "\xff"), 422,
                           qr/checksum of its header/],
    'an image of another key form' => [substr($t->read_file('url.bloom'), 0,
                                              4096), 422,
                                       qr/has the key form "url"/],
    'a truncated image' => [substr($two, 0, 4096), 422, qr/truncated/, -100],
    'an image with extra bytes at its end' => [substr($two, 0, 4096), 422,
                                       qr/is too long/, 1],
);

subtest 'an image is refused when its header has arrived' => sub {
    for my $what (sort keys %pages) {
        my ($page, $status, $message, $more) = @{ $pages{$what} };
        my $length = length($two) + ($more // 0);
        my $loads = sub {
            return join '', grep { /loads_total.*refused/ && /"ids"/ }
                            split /^/, $t->get('/bloom/metrics')->body;
        };
        my $before = $loads->();
        my $mark = $t->log_mark;

        my $c = $t->connect;
        $c->send(head("Content-Length: $length"));
        $c->send(substr($page, 0, 1000));
        $c->send(substr($page, 1000));

        my $r = is_error($c->response, $status, $message,
                         "$what is refused by the header");
        is($r->header('Connection'), 'close',
           "the connection is closed after $what");
        is($r->json->{zone}{load}{result}, 'refused',
           "the state has the refusal of $what");
        isnt($loads->(), $before, "the refusal of $what is counted");
        like($t->log_since($mark),
             qr/\[error\].*uploaded image.*continues with/,
             "the log has the refusal of $what");
        unchanged($what);
    }

    my $c = $t->connect;
    $c->send(head('Transfer-Encoding: chunked') . chunk(substr($large, 0, 5000)));
    is_error($c->response, 507, qr/too small.*zone=ids:\d+k/,
             'chunks of an image that is too large are refused by the header');
    unchanged('a large image');
};


subtest 'Expect: 100-continue' => sub {
    my $c = $t->connect;
    my $length = length $two;
    $c->send(head("Content-Length: $length", 'Expect: 100-continue'));
    is($c->interim, 100,
       'nginx sends "100 Continue" for a body that the zone can take');
    $c->send(substr($two, 0, 4000) . 'x' x 96);
    is_error($c->response, 422, qr/checksum of its header/,
             'an image is refused when its header has arrived');
    unchanged('Expect: 100-continue');
};


# Uploads over HTTP/2 frame by frame, since curl shows no response that arrives
# before the end of its body.  Returns the status and the error.

sub refused_http2 {
    my ($length, $body) = @_;

    my $frame = sub {
        my ($type, $flags, $stream, $payload) = @_;
        return substr(pack('N', length $payload), 1)
               . pack('CCN', $type, $flags, $stream) . $payload;
    };
    my $c = $t->connect(8081);

    # HPACK: names by index, values as text

    $c->send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" . $frame->(4, 0, 0, '')
             . $frame->(1, 4, 1, "\x86" . pack('CC/aCC/aCC/aCCC/a', 2, 'PUT',
                                               4, $path, 1, 'localhost',
                                               15, 13, $length)));
    $c->send($frame->(0, 0, 1, $body)) if defined $body;

    my ($status, $text) = ('', '');

    while (1) {
        my ($high, $low, $type, $flags, $stream)
            = unpack 'CnCCN', $c->_take(9) // last;
        my $payload = $c->_take($high << 16 | $low) // last;

        ($status) = $payload =~ /(\d{3})/ if $type == 1;
        $text .= $payload if $type == 0;
        last if $type < 2 && $flags & 1;
    }

    $c->abort;
    return $status . ' ' . (eval {
        JSON::PP::decode_json($text)->{error}{message}
    } // $text);
}

subtest 'HTTP/2' => sub {
    plan skip_all => 'curl or nginx without HTTP/2' unless $t->has_http2;

    like(refused_http2(length $large), qr/^413 .*zone=ids:\d+k/,
         'a length is refused before the body arrives');
    like(refused_http2(length $two, 'x' x 4096),
         qr/^422 .*not a Bloom filter image/,
         'an image is refused when its header has arrived');
    unchanged('HTTP/2');
    is($t->request_http2(PUT => $path, port => 8081, body => $two)->status, 200,
       'an image is loaded over HTTP/2');
    is($t->put($path, $t->read_file('one.bloom'))->status, 200,
       'another image is loaded over HTTP/1.1');
    unchanged('uploads that were loaded');
};


sub half {
    my $c = $t->connect;

    $c->send(head('Content-Length: ' . length $two));
    $c->send(substr($two, 0, 100_000));
    ok(wait_until(sub { my ($b) = files("$state/body.*"); $b && -s $b }),
       'half of the body is in its file');

    return $c;
}


subtest 'the file of a worker that dies is removed' => sub {
    my $c = half();

    # the helper may look for such files at any time

    kill 'STOP', $t->helpers;
    $t->kill_worker;
    is(scalar(my @b = files("$state/body.*")), 1,
       'a killed worker leaves its file');
    $t->kill_helper;
    ok(wait_until(sub { !bodies() }),
       'the next helper removes the file of a killed worker');
};


subtest 'the file of a worker that lives is kept' => sub {
    my $c = half();

    $t->kill_helper;
    wait_until(sub { $t->get('/bloom/zones/ids')->json->{helper}{heartbeat} });
    is(api($t, POST => 'zones/ids/checkpoint')->status, 200,
       'the next helper works');
    $c->send(substr($two, 100_000));
    is($c->response->status, 200, 'the image is loaded');
    is(ask($t, 'ids', 'id1', 'one', 'two'), '101', 'it serves');
    ok(wait_until(sub { !bodies() }), 'no file is left after the load');

    $c = half();
    $c->abort;
    ok(wait_until(sub { !bodies() }),
       'the file of a client that disconnects is removed');
};


done_testing;
