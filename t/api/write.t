#!/usr/bin/perl

# Writes by the endpoint: If-Match and pages of other sites, both before
# anything changes; loads, uploads, images and checkpoints, and their refusals.

use strict;
use warnings;

use IO::Select;

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;

my @ids = keys_of('id', 30);
my @others = keys_of('other', 30);
my ($all, $none) = ('1' x 30, '0' x 30);

$t->build_image('one.bloom', \@ids, '-p', '1e-6');
$t->build_image('two.bloom', \@others, '-p', '1e-6');
$t->build_image('large.bloom', [keys_of('large', 300_000)], '-p', '1e-6');

sub install {
    my ($image) = @_;

    unlink "$dir/ids.bloom";
    link "$dir/$image.bloom", "$dir/ids.bloom" or die "link: $!";
}

install('one');
configure($t, ['zone=ids:600k file=ids.bloom', 'zone=seen capacity=1k fpr=1e-6',
               'zone=memory capacity=1k fpr=1e-6 journal=off'],
          api => 1, workers => 2, http => <<'CONF');
    server {
        listen 127.0.0.1:%%PORT_8081%%;
        client_max_body_size 1k;
        location /bloom/ { bloom_api write=on; }
    }
CONF
$t->run;

# Each write: method, path, body

my @writes = (
    ['POST', 'zones/ids/keys', "new\n"],
    ['POST', 'zones/ids/reload', ''],
    ['POST', 'zones/ids/checkpoint', ''],
    ['PUT', 'zones/ids/image', $t->read_file('two.bloom')],
);

sub refused_all {
    my ($status, $message, $what, %headers) = @_;

    my $before = generation($t, 'ids');

    for (@writes) {
        my ($method, $path, $body) = @$_;
        is_error(api($t, $method, $path, body => $body, headers => \%headers),
                 $status, $message, "$what: $method $path");
    }

    is(generation($t, 'ids'), $before, 'no generation later');
    is(ask($t, 'ids', 'new', @ids, @others), "0$all$none",
       'and nothing is changed');
}


subtest 'If-Match' => sub {
    my $etag = api($t, GET => 'zones/ids')->header('ETag');

    refused_all(412, qr/generation/, $_, 'If-Match' => $_)
        for '"none"', "W/$etag", '"1", "2"', substr($etag, 0, -1);

    for my $match ($etag, '*', qq("x", $etag), qq($etag,"x")) {
        my $r = api($t, POST => 'zones/seen/keys', body => "m\n",
                    headers => { 'If-Match' => $match =~ s/\Q$etag\E/
                        api($t, GET => 'zones\/seen')->header('ETag')/er });
        is($r->status, 200, "$match matches");
    }

    my $r = api($t, POST => 'zones/ids/reload',
                headers => { 'If-Match' => $etag });
    is($r->status, 200, 'a load of the generation that was seen');
    isnt(api($t, GET => 'zones/ids')->header('ETag'), $etag,
         'after which there is another one');
    is_error(api($t, POST => 'zones/ids/reload',
                 headers => { 'If-Match' => $etag }), 412, qr/generation/,
             'so it is not done twice');

    is(api($t, POST => 'zones/ids/reload',
           headers => { 'If-None-Match' => '*' })->status, 200,
       'other conditions are for documents');
    is(api($t, POST => 'zones/ids/reload', headers => {
           'If-Unmodified-Since' => 'Thu, 01 Jan 1970 00:00:00 GMT' })->status,
       200, 'as are those of time');
};


subtest 'pages of other sites' => sub {
    refused_all(403, qr/site/, "Sec-Fetch-Site: $_", 'Sec-Fetch-Site' => $_)
        for qw(cross-site same-site);
    refused_all(403, qr/site/, "Origin: $_", Origin => $_)
        for 'https://evil.example', 'null', 'http://localhost:1',
            'http://localhost.evil.example', 'http://xlocalhost';

    for my $headers ({ 'Sec-Fetch-Site' => 'same-origin' },
                     { 'Sec-Fetch-Site' => 'none' },
                     { Origin => 'http://localhost' },
                     { Origin => 'https://localhost' },
                     { Origin => 'http://evil', 'Sec-Fetch-Site' =>
                           'same-origin' })
    {
        my $r = api($t, POST => 'zones/seen/keys', body => "mine\n",
                    headers => $headers);
        is($r->status, 200, join ' ', %$headers);
    }

    is(api($t, POST => 'zones/seen/keys', body => "mine\n",
           host => 'bloom.example:8080',
           headers => { Origin => 'http://bloom.example:8080' })->status, 200,
       'a page of the same host and port');
    is(api($t, GET => 'zones/ids', headers => { 'Sec-Fetch-Site' =>
           'cross-site' })->status, 200, 'reading is not writing');
};


subtest 'reload' => sub {
    my $before = generation($t, 'ids');
    install('two');
    my $r = api($t, POST => 'zones/ids/reload');
    is($r->status, 200, 'status');
    cmp_ok($r->json->{generation}, '>', $before, 'another generation');
    like($r->json->{duration_ms}, qr/^\d+$/, 'and how long it took');
    is(generation($t, 'ids'), $r->json->{generation}, 'which serves');
    is(ask($t, 'ids', @ids, @others), "$none$all", 'when it has answered');

    my $load = zone_state($t, 'ids')->{load};
    is($load->{result}, 'ok', 'the state has it, too');

    is_error(api($t, POST => 'zones/seen/reload'), 409, qr/file/,
             'a zone without a file');
};


subtest 'reload of what is no good' => sub {
    my @cases = (
        ['a damaged file', 422, qr/damaged|checksum/,
         sub { flip("$dir/ids.bloom", -1) }],
        ['a truncated file', 422, qr/ids\.bloom/,
         sub { truncate "$dir/ids.bloom", 5000 }],
        ['no image', 422, qr/not a Bloom filter image/,
         sub { $t->write_file('ids.bloom', 'x' x 10000) }],
        ['no file', 422, qr/ids\.bloom.*No such file/s,
         sub { unlink "$dir/ids.bloom" }],
        ['a file that is too large', 507, qr/\d/,
         sub { install('large') }],
    );

    for (@cases) {
        my ($what, $status, $message, $make) = @$_;
        my $before = generation($t, 'ids');
        my $etag = api($t, GET => 'zones/ids')->header('ETag');

        unlink "$dir/ids.bloom";
        $t->write_file('ids.bloom', $t->read_file('one.bloom'));
        $make->();

        my $mark = $t->log_mark;
        is_error(api($t, POST => 'zones/ids/reload'), $status, $message, $what);
        is(generation($t, 'ids'), $before, 'the old one serves on');
        is(api($t, GET => 'zones/ids')->header('ETag'), $etag,
           'and nothing has changed');
        is(ask($t, 'ids', @ids, @others), "$none$all", 'so it answers');
        like($t->wait_for_log(qr/zone "ids"/, $mark), qr/\[(error|warn)\]/,
             'the log has the reason');
        isnt(zone_state($t, 'ids')->{load}{result}, 'ok',
             'and so has the state');
    }

    install('one');
    is(api($t, POST => 'zones/ids/reload')->status, 200, 'then a good one');
    is(ask($t, 'ids', @ids, @others), "$all$none", 'serves');
    is(zone_state($t, 'ids')->{load}{result}, 'ok', 'and the state says so');
};


subtest 'upload' => sub {
    my $r = api($t, PUT => 'zones/ids/image',
                body => $t->read_file('two.bloom'));
    is($r->status, 200, 'status') or diag($r);
    is($r->json->{generation}, generation($t, 'ids'), 'it serves');
    is(ask($t, 'ids', @ids, @others), "$none$all", 'and answers');

    $r = api($t, PUT => 'zones/ids/image', chunks => [
        $t->read_file('one.bloom') =~ /(.{1,1000})/gs]);
    is($r->status, 200, 'one in chunks');
    is(ask($t, 'ids', @ids, @others), "$all$none", 'serves');

    my $image = $t->read_file('two.bloom');
    my $flipped = $image;
    substr($flipped, -1) ^= "\1";

    for (['no image', 'x' x 10000, 422],
         ['damaged', $flipped, 422],
         ['truncated', substr($image, 0, -1), 422],
         ['with something behind it', "${image}x", 422],
         ['too large', $t->read_file('large.bloom'), 507])
    {
        my ($what, $body, $status) = @$_;
        my $before = generation($t, 'ids');

        is_error(api($t, PUT => 'zones/ids/image', body => $body), $status,
                 qr/./, $what);
        is(generation($t, 'ids'), $before, 'the old one serves on');
        is(ask($t, 'ids', @ids, @others), "$all$none", 'and answers');
    }

    like(api($t, PUT => 'zones/ids/image',
             body => $t->read_file('large.bloom'))->json->{error}{message},
         qr/\d{6}|\d+[km]/i, 'of one too large it is said what it needs');

    is_error(api($t, PUT => 'zones/ids/image', body => $image,
                 headers => { 'Content-Encoding' => 'gzip' }),
             415, qr/not compressed/, 'compressed, as is said');

    # the length is promised and does not come

    my $c = $t->connect;
    my $text = $t->request_text(PUT => '/bloom/zones/ids/image',
                                body => $image);
    $c->send(substr($text, 0, -100));
    $c->abort;
    is(ask($t, 'ids', @ids, @others), "$all$none", 'a client that goes away');

    opendir my $state, "$dir/state/ids" or die "$dir/state/ids: $!";
    ok(wait_until(sub {
        rewinddir $state;
        return !grep { /\.tmp$/ } readdir $state;
    }), 'nothing unfinished is left behind');

    ok(wait_until(sub { !files("$dir/client_body_temp/*") }),
       'and no body');

    # a client names no file

    is_error(api($t, PUT => "zones/ids/image?file=$dir/two.bloom", body => ''),
             400, qr/body/, 'a file name counts for nothing');
    is(api($t, POST => "zones/ids/reload?file=$dir/two.bloom")->status, 200,
       'nor for a reload');
    is(ask($t, 'ids', @ids, @others), "$all$none", 'which loads file=');
};


# It is no image that could be loaded, and so no load that failed.

subtest 'an upload of nothing' => sub {
    my %before = map { $_ => zone_state($t, 'ids')->{$_} } 'load', 'generation';
    my $loads = sub {
        return join '', grep { /loads_total|last_load/ && !/^#/ }
                        split /^/, $t->get('/bloom/metrics')->body;
    };
    my $counted = $loads->();

    for (['a length of 0', body => ''], ['no chunks', chunks => []],
         ['neither', ()])
    {
        my ($what, %body) = @$_;

        my $r = is_error(api($t, PUT => 'zones/ids/image', %body), 400,
                         qr/no body/, $what);
        is($r->json->{error}{code}, 'bad_body', 'its code');
    }

    my $state = zone_state($t, 'ids');
    is_deeply({ map { $_ => $state->{$_} } keys %before }, \%before,
              'the last load is the one before');
    is($loads->(), $counted, 'and none is counted');
    ok(wait_until(sub { !files("$dir/client_body_temp/*") }),
       'no file is left');
};


# What is wrong with a body shows at its beginning, which comes with the head.

subtest 'an upload that cannot be read' => sub {
    my $head = "PUT /bloom/zones/ids/image HTTP/1.1\r\nHost: localhost\r\n"
               . "Transfer-Encoding: chunked\r\n\r\n";
    my $before = zone_state($t, 'ids')->{load};

    for (["ffff\r\nx", 413, 'too_large', qr/client_max_body_size/],
         ["ffff\r\n" . 'x' x 0xffff . "\r\n0\r\n\r\n", 413, 'too_large',
          qr/client_max_body_size/],
         ["nonsense\r\n", 400, 'bad_body', qr/chunk/],
         ["1\r\nx\r\nnonsense\r\n", 400, 'bad_body', qr/chunk/])
    {
        my ($body, $status, $code, $message) = @$_;

        my $r = is_error($t->http($head . $body, port => 8081), $status,
                         $message, "$code: " . substr($body, 0, 15));
        is($r->json->{error}{code}, $code, 'its code');
        is($r->header('Connection'), 'close', 'nothing else can follow');
    }

    # and what shows later

    my $r = $t->request(PUT => '/bloom/zones/ids/image', port => 8081,
                        chunks => [('x' x 100) x 1000]);
    is($r->status, 413, 'many chunks');

    is_deeply(zone_state($t, 'ids')->{load}, $before, 'nothing is loaded');
    is(ask($t, 'ids', @ids, @others), "$all$none", 'the old image serves on');
    ok(wait_until(sub { !files("$dir/client_body_temp/*") }),
       'no file is left');
};


subtest 'image' => sub {
    add($t, 'ids', ['added']);
    my $r = api($t, GET => 'zones/ids/image');
    is($r->status, 200, 'status');
    is(length $r->body, $r->header('Content-Length'), 'its length');
    like($r->header('Content-Disposition') // '', qr/^attachment;.*ids/,
         'a name for it');
    like($r->header('ETag') // '', qr/^"/, 'and an ETag');

    my $file = $t->write_file('got.bloom', $r->body);
    my ($exit) = $t->run_tool('verify', $file);
    is($exit, 0, 'it is whole');
    ($exit) = $t->run_tool('test', '-q', $file,
                           { stdin => join '', map { "$_\n" } @ids, 'added' });
    is($exit, 0, 'and has all, with what was added');
    ($exit) = $t->run_tool('test', '-q', $file, { stdin => "no\n" });
    is($exit, 1, 'and nothing else');

    my $h = $t->head('/bloom/zones/ids/image');
    is($h->status, 200, 'HEAD');
    is($h->body, '', 'has no body');

    is_error(api($t, GET => 'zones/memory/image'), 409, qr/state|journal/,
             'of a zone that has no place for it');

    # the image of one zone is the seed of another

    add($t, 'seen', ['s1', 's2']);
    my $seed = api($t, GET => 'zones/seen/image')->body;
    is(api($t, PUT => 'zones/ids/image', body => $seed)->status, 200,
       'it loads elsewhere');
    is(ask($t, 'ids', 's1', 's2', 'added', 'id1'), '1110',
       'where what was added there is not lost');
    is(api($t, POST => 'zones/ids/reload')->status, 200, 'back');
    is(ask($t, 'ids', 's1', 's2', 'added', 'id1'), '0011', 'to file=');
};


subtest 'checkpoint' => sub {
    add($t, 'seen', ['c1']);
    my $r = api($t, POST => 'zones/seen/checkpoint');
    is($r->status, 200, 'status') or diag($r);
    is(scalar files("$dir/state/seen/checkpoint.*"), 1, 'there is one');
    is(ask($t, 'seen', 'c1', 'c2'), '10', 'and the zone answers');

    $r = api($t, POST => 'zones/memory/checkpoint');
    is_error($r, 409, qr/journal|state/, 'a zone without a journal');
};


# Loads at once.  Those of the same file join; an upload beside a load is
# refused while that is under way, and what is refused changes nothing.

subtest 'two at once' => sub {
    install('two');
    my @r = map { my $c = $t->connect; $c->send($t->request_text(
        POST => '/bloom/zones/ids/reload')); $c } 1 .. 5;
    is(join(' ', map { $_->response->status } @r), '200 200 200 200 200',
       'five reloads of the same file');
    is(ask($t, 'ids', @ids, @others), "$none$all", 'and it serves');

    # the helper stands still: both are there at once for sure

    my ($helper) = $t->helpers;
    kill 'STOP', $helper;

    my @uploads = map {
        my $c = $t->connect;
        $c->send($t->request_text(PUT => '/bloom/zones/ids/image',
                                  body => $t->read_file('one.bloom')));
        $c;
    } 1 .. 2;

    # whichever came second is answered

    my ($second) = IO::Select->new(map { $_->{socket} } @uploads)
                   ->can_read(60);
    my ($refused) = grep { $_->{socket} == $second } @uploads;
    my ($first) = grep { $_ != $refused } @uploads;

    is_error($refused->response, 409, qr/load/, 'an upload beside an upload');
    is_error(api($t, POST => 'zones/ids/reload'), 409, qr/load/,
             'a reload beside an upload');
    is(ask($t, 'ids', @ids, @others), "$none$all", 'nothing is changed');

    kill 'CONT', $helper;
    is($first->response->status, 200, 'the first one is done');
    is(ask($t, 'ids', @ids, @others), "$all$none", 'and serves');
};


done_testing;
