#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests the endpoint under HTTP/2 and HTTP/3: bodies of all kinds, uploads and
# downloads of images, conditions, limits, and many streams at once.
# t/api/http2-http3-frames.t tests frames of every size.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Protocols;
use BloomTest::Zones;

my $t = BloomTest->new;
my $listen = listen_for_all($t);

# an image of more than three megabytes, and another one

$t->build_image("$_->[0].bloom", [@$_], '-p', '1e-9', '-n', '600k')
    for ['one', 'id1'], ['two', 'id1'];
install_image($t, 'one');

configure($t, ['zone=ids file=ids.bloom', 'zone=seen capacity=300k fpr=1e-9'],
          api => 1, server => $listen . <<'CONF');

    lingering_timeout 1s;
    location /small/ { client_max_body_size 100; bloom_api write=on; }
CONF
$t->run;


# Returns keys that no other call returns.

my $calls = 0;

sub new_keys {
    my ($count) = @_;

    $calls++;

    return map { "new$calls-$_" } 1 .. $count;
}


# Tests that all of the keys are present, by HTTP/1.1.

sub are_present {
    my ($what, @keys) = @_;

    is(scalar(grep { $_ eq 'present' } lookup_keys($t, 'seen', @keys)),
       scalar @keys, "all keys are present: $what");
}


sub test_bodies {
    my ($class, $c) = @_;

    # nginx 1.22 to 1.26 closes a connection of HTTP/2 on which trailers arrive

    my @trailed = new_keys(50);
    my $trailing = $class->new($t)->ask(
        POST => '/bloom/zones/seen/keys', body => join("\n", @trailed),
        unsized => 1, trailers => ['x-checksum' => 'abc']);

    if ($class->name eq 'HTTP/3' || $trailing->status) {
        is_added($trailing, 50, 50, 0, undef, 'a body with trailers');
        are_present('a body with trailers', @trailed);
    }

    my @keys = new_keys(2000);
    is_added($c->ask(POST => '/bloom/zones/seen/keys?durable=true',
                     body => join("\n", @keys), piece => 16384),
             2000, 2000, 0, 1, 'a durable body in the largest frames');
    are_present('a durable body', @keys);

    my @strings = new_keys(500);
    is_added($c->ask(POST => '/bloom/zones/seen/keys', unsized => 1, piece => 3,
                     headers => ['content-type' => 'application/json'],
                     body => JSON::PP::encode_json(\@strings)),
             500, 500, 0, undef, 'a JSON body in frames of 3 bytes');
    are_present('a JSON body', @strings);

    my $r = $c->ask(POST => '/bloom/zones/seen/test', piece => 7,
                    unsized => 1, body => join("\n", @strings, 'never'));
    is(join(' ', @{ $r->json->{answers} }), 'present ' x 500 . 'absent',
       'POST test finds all keys and no other key');

    is($c->ask(POST => '/bloom/zones/seen/remove?durable=true', unsized => 1,
               body => "$strings[0]\n$strings[1]", piece => 1)->json->{removed},
       2, 'POST remove removes keys');
    is($c->ask(DELETE => "/bloom/zones/seen/keys?key=$strings[2]")
           ->json->{removed}, 1, 'DELETE removes a key');
    is(join(' ', lookup_keys($t, 'seen', @strings[0 .. 3])),
       'absent absent absent present', 'removed keys are absent');

    is($c->ask(POST => '/bloom/zones/seen/keys')->json->{received}, 0,
       'a POST request whose headers end the stream has no keys');
    is($c->ask(POST => '/bloom/zones/seen/keys', body => '', unsized => 1)
           ->json->{received}, 0, 'an empty frame is an empty body');
}


sub test_images {
    my ($class, $c) = @_;

    my $path = '/bloom/zones/ids/image';
    my $before = generation($t, 'ids');

    my $r = $c->ask(PUT => $path, body => $t->read_file('two.bloom'));
    is($r->status, 200, 'an image of several megabytes is uploaded')
        or diag($r);
    is(generation($t, 'ids'), $before + 1, 'the image is the next generation');
    is(ask($t, 'ids', qw(id1 one two)), '101', 'the image has its keys');
    is($r->json->{generation}, $before + 1,
       'the response has the generation');

    $r = $c->ask(PUT => $path, body => $t->read_file('one.bloom'),
                 unsized => 1, piece => 1000);
    is($r->status, 200, 'an image is uploaded without a length');

    my $token = $c->ask(GET => '/bloom/zones/ids')->json->{token};

    $r = $c->ask(PUT => "$path?serving=1-0",
                 body => $t->read_file('two.bloom'));
    is_error($r, 412, qr/generation/, 'serving= refuses another generation');
    is(generation($t, 'ids'), $before + 2, 'the refused image is not loaded');

    # HTTP/3 has no largest frame

    $r = $c->ask(PUT => "$path?serving=$token",
                 body => $t->read_file('two.bloom'),
                 $class->name eq 'HTTP/3' ? (piece => 2 ** 24) : ());
    is($r->status, 200, 'serving= accepts the generation');

    $r = $c->ask(PUT => $path, body => 'no image' x 1000);
    is_error($r, 422, qr/image/, 'another file is refused');

    my $expected = $t->get($path)->body;

    for my $window (undef, 1000, 65536) {
        my $client = $class->new($t, window => $window);
        my $image = $client->ask(GET => $path);
        my $what = defined $window ? "a window of $window bytes"
                                   : 'a large window';

        ok($image->complete, "the download with $what ends");
        ok($image->body eq $expected, "the download with $what is whole");
    }

    cmp_ok(length $expected, '>', 3_000_000, 'the image is large');
}


sub test_limits {
    my ($class) = @_;

    my $body = join "\n", new_keys(100);

    my $c = $class->new($t);

    is($c->ask(POST => '/small/zones/seen/keys', body => $body)->status, 413,
       'a length over client_max_body_size is refused');
    is_error($c->ask(POST => '/small/zones/seen/keys', body => $body,
                     unsized => 1),
             413, qr/client_max_body_size/,
             'a body without a length is refused over client_max_body_size');
    is($c->ask(GET => '/seen?k=never')->status, 200,
       'the connection serves on after refusals');
}


sub test_streams {
    my ($class, $c) = @_;

    my @keys = new_keys(100);
    my @posts = map {
        $c->open(POST => '/bloom/zones/seen/keys?durable=true')
    } 1 .. 50;
    my @gets = map { $c->request(GET => '/seen?k=never') } 1 .. 50;

    # one byte of each body in turn

    my @bodies = map { "$keys[2 * $_]\n$keys[2 * $_ + 1]\n" } 0 .. 49;

    while (grep { length } @bodies) {
        for my $i (grep { length $bodies[$_] } 0 .. $#bodies) {
            my $byte = substr $bodies[$i], 0, 1, '';
            $c->data($posts[$i], $byte, end => $bodies[$i] eq '');
        }
    }

    my @added = map { $c->response($_) } @posts;
    is(scalar(grep { $_->status == 200 && $_->json->{added} == 2
                     && $_->json->{durable} } @added),
       50, 'each of 50 interleaved bodies adds its keys');
    is(scalar(grep { $c->response($_)->body =~ /^0 of / } @gets), 50,
       'each of 50 lookups beside them is answered');
    are_present('interleaved bodies', @keys);

    # additions, lookups and downloads in parallel, in large frames

    my @many = new_keys(6000);
    my @streams = map {
        my @some = @many[200 * $_ .. 200 * $_ + 199];
        ($c->request(POST => '/bloom/zones/seen/keys', unsized => 1,
                     piece => 100, body => join("\n", @some)),
         $c->request(GET => '/ids?k=id1'),
         $c->request(POST => '/bloom/zones/seen/test', body => $keys[$_]));
    } 0 .. 29;
    my $image = $c->request(GET => '/bloom/zones/ids/image');

    is(join(' ', grep { $_ != 200 }
                      map { $c->response($_)->status } @streams), '',
       'mixed streams are all answered');
    is($c->response($image)->status, 200,
       'an image is downloaded beside other streams');
    are_present('mixed streams', @many);
}


over_each($t, sub {
    my ($class) = @_;

    my $c = $class->new($t);

    subtest 'bodies' => sub { test_bodies($class, $c) };
    subtest 'images' => sub { test_images($class, $c) };
    subtest 'limits' => sub { test_limits($class) };
    subtest 'streams at once' => sub { test_streams($class, $c) };
});


done_testing;
