#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests GET image, which sends a zone's filter with its secret and writes it to
# disk: it needs write=on or image=on, and no number of requests fills the disk.

use strict;
use warnings;

use JSON::PP ();

use BloomTest;
use BloomTest::Api;
use BloomTest::Disk;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;
my $disk = BloomTest::Disk->new($t, 'state');
my $state = $t->testdir . '/state/ids';

$t->build_image('ids.bloom', ['id1'], '-p', '1e-9', '-n', '2m', '--hash',
                'siphash');
$t->build_image('other.bloom', ['id2'], '-p', '1e-9', '-n', '2m');
configure($t, ['zone=ids:40m file=ids.bloom', 'zone=memory:1m capacity=1k fpr=1e-6 journal=off'],
          api => 1, server => <<'CONF');
    location /reading/ { bloom_api; }
    location /images/ { bloom_api image=on; }
    location /none/ { client_max_body_size 0; bloom_api write=on image=off; }
CONF
$t->run;

my @snapshots = ();

sub snapshots { return files("$state/snapshot.*") }

sub verify {
    my ($image, $what) = @_;

    my ($exit, $out, $err) = $t->run_tool('verify',
                                          $t->write_file('got.bloom', $image));
    is($exit, 0, "$what is whole") or diag($err);
}


subtest 'an image needs a permission of its own' => sub {
    for my $prefix ('/reading', '/none') {
        for my $method (qw(GET HEAD)) {
            my $r = $t->request($method, "$prefix/zones/ids/image");
            is($r->status, 403, "$method $prefix/zones/ids/image is refused");
        }
        my $r = is_error($t->get("$prefix/zones/ids/image"), 403,
                         qr/"bloom_api image=on"/,
                         "the refusal of $prefix says what allows it");
        is($r->json->{error}{code}, 'no_image', 'the refusal has a code');
    }

    is(snapshots(), 0, 'no refused request writes an image');
    is($t->get('/images/zones/ids/image')->status, 200,
       'GET image works with image=on');
    is($t->get('/bloom/zones/ids/image')->status, 200,
       'GET image works with write=on');
    is_error($t->post('/images/zones/ids/keys', "new\n"), 403, qr/write=on/,
             'image=on allows no changes');

    my ($request) = grep { $_->{request} eq 'GET /zones/NAME/image' }
                         @{ $t->get('/images/')->json->{requests} };
    is($t->get('/images/')->json->{image}, JSON::PP::true(),
       'the index says that images are sent');
    is($t->get('/reading/')->json->{image}, JSON::PP::false(),
       'the index says that no images are sent');
};


subtest 'a page of another site gets no image' => sub {
    for (['Sec-Fetch-Site' => 'cross-site'], ['Sec-Fetch-Site' => 'same-site'],
         ['Origin' => 'http://evil.example'])
    {
        my ($name, $value) = @$_;
        is_error($t->get('/images/zones/ids/image',
                         headers => { $name => $value }),
                 403, qr/another site/,
                 "GET image is refused with $name: $value");
    }
    is($t->get('/images/zones/ids/image',
               headers => { 'Sec-Fetch-Site' => 'same-origin' })->status, 200,
       'the page itself gets an image');
};


subtest 'HEAD writes no image' => sub {
    my $r = $t->get('/bloom/zones/ids/image');
    unlink snapshots();

    my $h = $t->head('/bloom/zones/ids/image');
    is($h->status, 200, 'HEAD image answers with 200');
    is($h->header($_), $r->header($_), "HEAD image has the $_ of GET")
        for qw(Content-Length Content-Type ETag);
    is(snapshots(), 0, 'HEAD image writes no file');
    is($t->head('/bloom/zones/memory/image')->status,
       $t->get('/bloom/zones/memory/image')->status,
       'HEAD image answers as GET does where there is no image');
};


subtest 'requests for the same filter share a file' => sub {
    my $first = $t->get('/images/zones/ids/image');
    my @names = snapshots();
    is(scalar @names, 1, 'the first request writes one file');

    my @clients = map {
        my $c = $t->connect;
        $c->send($t->request_text(GET => '/images/zones/ids/image'));
        $c;
    } 1 .. 12;
    my @responses = map { $_->response } @clients;

    is(scalar(grep { $_->body eq $first->body } @responses), 12,
       'twelve requests at once get the same image');
    is(scalar(grep { $_->header('ETag') eq $first->header('ETag') } @responses),
       12, 'twelve requests at once get the same ETag');
    is_deeply([snapshots()], \@names,
              'twelve requests at once write no other file');
    verify($first->body, 'the shared image');
};


subtest 'an image has all keys acknowledged before the request' => sub {
    for my $n (1 .. 5) {
        add($t, 'ids', ["added$n"]);
        my $r = $t->get('/images/zones/ids/image');
        my $file = $t->write_file('got.bloom', $r->body);
        my ($exit) = $t->run_tool('test', '-q', $file,
                                  { stdin => "added$n\nid1\n" });
        is($exit, 0, "the image has the key that was added before it ($n)");
        is(scalar snapshots(), 1, "there is one file ($n)");
    }

    is(upload_image($t, 'ids', 'other')->status, 200, 'an image is uploaded');
    my $r = $t->get('/images/zones/ids/image');
    is($r->header('ETag'), '"' . zone_state($t, 'ids')->{token} . '"',
       'an image after an upload has the ETag of the new generation');
    my ($exit) = $t->run_tool('test', '-q', $t->write_file('got.bloom', $r->body),
                              { stdin => "id2\nadded5\n" });
    is($exit, 0, 'an image after an upload has the keys of the new generation');
};


# The clients read slowly, so the files that they read stay.

subtest 'images that are being sent are bounded' => sub {
    my (@slow, $refused);

    for my $n (1 .. 8) {
        add($t, 'ids', ["slow$n"]);
        my $c = $t->connect;
        $c->send($t->request_text(GET => '/images/zones/ids/image'));
        my $head = $c->_until("\r\n\r\n");

        if ($head !~ m{^HTTP/1.1 200 }) {
            $refused = $head . $c->rest;
            last;
        }
        push @slow, $c;
    }

    cmp_ok(scalar @slow, '<=', 4, 'at most four images are sent at a time');
    like($refused // '', qr{^HTTP/1.1 503 .*still being sent}s,
         'a further image is refused with the reason');
    cmp_ok(scalar snapshots(), '<=', 4, 'there are at most four files');

    my $size = length $t->read_file('other.bloom');
    verify($slow[0]->_take($size), 'the image of the slowest client');

    $_->abort for @slow;
    ok(wait_until(sub { $t->get('/images/zones/ids/image')->status == 200 }),
       'an image is sent when the other clients are done');
    is(scalar snapshots(), 1, 'the files of the others are removed');
};


subtest 'a file that was removed is written again' => sub {
    unlink snapshots();
    is($t->get('/images/zones/ids/image')->status, 200,
       'an image is sent although its file was removed');

    $t->kill_helper;
    is($t->get('/images/zones/ids/image')->status, 200,
       'an image is sent by the next helper');
    is(scalar snapshots(), 1,
       'the next helper removes the files of the previous one');
};


subtest 'an image leaves room for the journal' => sub {
    add($t, 'ids', ['full']);
    $disk->refuse('ENOSPC', 'room');
    my $r = is_error($t->get('/images/zones/ids/image'), 507,
                     qr/\Q$state\E.*\d+ bytes.*journal/,
                     'an image is refused if it would take the room of the '
                     . 'journal');
    is($r->json->{error}{code}, 'no_room', 'the refusal has the code no_room');
    is_added(api($t, POST => 'zones/ids/keys?durable=true', body => 'full2'),
             1, 1, 0, 1, 'keys are added while images are refused');
    $disk->allow;
    ok(wait_until(sub { $t->get('/images/zones/ids/image')->status == 200 }),
       'an image is sent when there is room');
};


done_testing;
