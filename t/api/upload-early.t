#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that PUT image refuses an image that the zone cannot take as early as
# possible: by its length, by the bytes that have arrived, or by its header.
# The file of a worker that dies is removed.

use strict;
use warnings;

use FindBin;

use BloomTest;
use BloomTest::Api;
use BloomTest::Image qw(image_of read_vector);
use BloomTest::Process qw(wait_until);
use BloomTest::Protocols;
use BloomTest::Zones;

my $t = BloomTest->new;
my $listen = listen_for_all($t);
my $state = $t->testdir . '/state/ids';
my $path = '/bloom/zones/ids/image';

$t->build_image('one.bloom', ['id1', 'one'], '-p', '1e-6', '-n', '100k');
$t->build_image('two.bloom', ['id1', 'two'], '-p', '1e-6', '-n', '100k');
$t->build_image('url.bloom', ['id1/'], '-p', '1e-6', '-n', '100k', '--form',
                'url');
$t->build_image('large.bloom', ['id1'], '-p', '1e-6', '-n', '300k');

install_image($t, 'one');
configure($t, ['zone=ids:1200k file=ids.bloom form=raw removals=0',
               'zone=memory:1m capacity=1k fpr=1e-6 journal=off'], api => 1,
          server => $listen);
$t->run;

my $two = $t->read_file('two.bloom');
my $large = $t->read_file('large.bloom');
my $slices = image_of(read_vector("$FindBin::Bin/../golden/slices.txt"));

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
    (map { ("version $_" => [changed(8, pack 'V', $_), 422,
                             qr/has version $_, but this program reads version 3/])
         } 1, 2, 4, 99),
    'a checkpoint of a zone whose keys expire' => [substr($slices, 0, 4096), 422,
                                       qr/is a checkpoint of a zone whose keys/,
                                       length($slices) - length $two],
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


over_each($t, sub {
    my ($class) = @_;

    for (['a length that is too large', length $large, '', 413,
          qr/zone=ids:\d+k/],
         ['no image', length $two, 'x' x 4096, 422,
          qr/not a Bloom filter image/])
    {
        my ($what, $length, $body, $status, $message) = @$_;
        my $c = $class->new($t);
        my $stream = $c->open(PUT => $path,
                              headers => ['content-length' => $length]);

        $c->data($stream, $body) if length $body;
        is_error($c->response($stream), $status, $message,
                 "$what is refused before the body ends");
    }
    unchanged($class->name);
});


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
