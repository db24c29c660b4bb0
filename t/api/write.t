#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that the endpoint loads, uploads, sends and saves images.  It refuses
# bad images, an outdated token and pages of other sites before anything
# changes.

use strict;
use warnings;

use IO::Select;

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(children title wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;

my @ids = keys_of('id', 30);
my @others = keys_of('other', 30);
my ($all, $none) = ('1' x 30, '0' x 30);

$t->build_image('one.bloom', \@ids, '-p', '1e-6');
$t->build_image('two.bloom', \@others, '-p', '1e-6');
$t->build_image('large.bloom', [keys_of('large', 300_000)], '-p', '1e-6');

install_image($t, 'one');
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

# all requests that change something: method, path, body

my @writes = (
    ['POST', 'zones/ids/keys', "new\n"],
    ['POST', 'zones/ids/remove', "id1\n"],
    ['DELETE', 'zones/ids/keys?key=id1', ''],
    ['POST', 'zones/ids/reload', ''],
    ['POST', 'zones/ids/checkpoint', ''],
    ['POST', 'zones/ids/clear', ''],
    ['POST', 'zones/ids/clear?only=removed', ''],
    ['PUT', 'zones/ids/image', $t->read_file('two.bloom')],
);

# Tests that all of them are refused with these headers or, as `query`, with an
# argument.

sub refused_all {
    my ($status, $message, $what, %headers) = @_;

    my $query = delete $headers{query};
    my $before = generation($t, 'ids');

    for (@writes) {
        my ($method, $path, $body) = @$_;
        $path .= ($path =~ /\?/ ? '&' : '?') . $query if defined $query;
        is_error(api($t, $method, $path, body => $body, headers => \%headers),
                 $status, $message, "$method $path is refused with $what");
    }

    is(generation($t, 'ids'), $before,
       "the generation is as it was after a refusal with $what");
    is(ask($t, 'ids', 'new', @ids, @others), "0$all$none",
       "the zone answers as before after a refusal with $what");
}


sub token { return zone_state($t, @_)->{token} }


subtest 'a change of another generation is refused' => sub {
    my $token = token('ids');
    my $upper = uc $token;

    like($token, qr/^\d+-[0-9a-f]{16}$/, 'the state has a token');
    isnt($token, token('seen'), 'two zones have different tokens');

    for my $serving ('none', '', '*', "\"$token\"", substr($token, 0, -1),
                     "${token}0", "0$token", "$token,$token",
                     $upper eq $token ? () : $upper, token('seen'))
    {
        refused_all(412, qr/generation ".*nothing was changed/,
                    "serving=$serving", query => "serving=$serving");
    }

    refused_all(412, qr/"If-Match" never matches; write "\?serving=TOKEN"/,
                "If-Match: $_", 'If-Match' => $_)
        for '*', "\"$token\"";

    for my $path (qw(keys remove test)) {
        is(api($t, POST => "zones/ids/$path?serving=$token",
               body => "m\n")->status, 200,
           "POST $path with the token of what serves works");
    }

    is(api($t, DELETE => "zones/ids/keys?key=m&serving=$token")->status, 200,
       'DELETE keys with the token of what serves works');
    is(token('ids'), $token, 'added and removed keys do not change the token');

    my $r = api($t, POST => "zones/ids/reload?serving=$token");
    is($r->status, 200, 'a load with the token of what serves works');
    is($r->json->{zone}{token}, token('ids'),
       'the response to a load has the new token');
    isnt(token('ids'), $token, 'a load changes the token');
    is_error(api($t, POST => "zones/ids/reload?serving=$token"), 412,
             qr/generation/, 'a load with an earlier token is refused');

    $token = token('ids');
    is(api($t, PUT => "zones/ids/image?serving=$token",
           body => $t->read_file('one.bloom'))->status, 200,
       'an upload with the token of what serves works');
    is(api($t, GET => 'zones/ids')->header('ETag'), undef,
       'the state has no ETag');

    $token = token('ids');

    my $c = $t->connect;
    my $text = $t->request_text(PUT => "/bloom/zones/ids/image?serving=$token",
                                body => $t->read_file('two.bloom'));
    $c->send(substr($text, 0, -1));
    ok(wait_until(sub { files("$dir/state/ids/body.*") }),
       'the body of an upload arrives');
    is(api($t, POST => 'zones/ids/reload')->status, 200, 'meanwhile, a load');
    $c->send(substr($text, -1));
    is_error($c->response, 412, qr/nothing was changed/,
             'the upload is refused when its body has arrived');
    is(ask($t, 'ids', @ids, @others), "$all$none", 'the upload is not loaded');
    is(api($t, GET => 'zones/ids',
           headers => { 'If-Match' => '"x"', 'If-None-Match' => '*' })->status,
       200, 'conditions do not prevent reading');

    is(api($t, POST => 'zones/ids/reload',
           headers => { 'If-None-Match' => '*' })->status, 200,
       'If-None-Match does not prevent a load');
    is(api($t, POST => 'zones/ids/reload', headers => {
           'If-Unmodified-Since' => 'Thu, 01 Jan 1970 00:00:00 GMT' })->status,
       200, 'If-Unmodified-Since does not prevent a load');
};


subtest 'a token is not repeated after a restart' => sub {
    my $before = zone_state($t, 'ids');

    $t->stop;
    $t->run;
    api($t, POST => 'zones/ids/reload')
        until generation($t, 'ids') >= $before->{generation};

    is(generation($t, 'ids'), $before->{generation},
       'the generation is that before the restart');
    isnt(token('ids'), $before->{token}, 'the token is another one');
    is_error(api($t, POST => "zones/ids/keys?serving=$before->{token}",
                 body => "late\n"), 412, qr/generation/,
             'a token of before the restart is refused');
};


subtest 'changes by pages of other sites are refused' => sub {
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
        is($r->status, 200,
           'keys are added with ' . join ' ', %$headers);
    }

    is(api($t, POST => 'zones/seen/keys', body => "mine\n",
           host => 'bloom.example:8080',
           headers => { Origin => 'http://bloom.example:8080' })->status, 200,
       'a page of the same host and port may add keys');
    is(api($t, GET => 'zones/ids', headers => { 'Sec-Fetch-Site' =>
           'cross-site' })->status, 200, 'a page of another site may read');
};


subtest 'POST reload loads the file again' => sub {
    my $before = generation($t, 'ids');
    install_image($t, 'two');
    my $r = api($t, POST => 'zones/ids/reload');
    is($r->status, 200, 'a reload answers with 200');
    cmp_ok($r->json->{generation}, '>', $before,
           'a reload answers with a later generation');
    like($r->json->{duration_ms}, qr/^\d+$/,
         'a reload answers with its duration');
    is(generation($t, 'ids'), $r->json->{generation},
       'the generation of the answer serves');
    is(ask($t, 'ids', @ids, @others), "$none$all",
       'the new image serves once the reload has responded');

    my $load = zone_state($t, 'ids')->{load};
    is($load->{result}, 'ok', 'the state has the result of a reload');

    is_error(api($t, POST => 'zones/seen/reload'), 409, qr/file/,
             'a reload of a zone without a file is refused');
};


subtest 'a reload of a bad file changes nothing' => sub {
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
         sub { install_image($t, 'large') }],
    );

    for (@cases) {
        my ($what, $status, $message, $make) = @$_;
        my $before = generation($t, 'ids');
        my $token = token('ids');

        unlink "$dir/ids.bloom";
        $t->write_file('ids.bloom', $t->read_file('one.bloom'));
        $make->();

        my $mark = $t->log_mark;
        is_error(api($t, POST => 'zones/ids/reload'), $status, $message,
                 "a reload of $what is refused");
        is(generation($t, 'ids'), $before,
           "the generation is as it was after a reload of $what");
        is(token('ids'), $token,
           "the token is as it was after a reload of $what");
        is(ask($t, 'ids', @ids, @others), "$none$all",
           "the old image answers after a reload of $what");
        like($t->wait_for_log(qr/zone "ids"/, $mark), qr/\[(error|warn)\]/,
             "the log has the reason after a reload of $what");
        isnt(zone_state($t, 'ids')->{load}{result}, 'ok',
             "the state has the reason after a reload of $what");
    }

    install_image($t, 'one');
    is(api($t, POST => 'zones/ids/reload')->status, 200,
       'a good file is loaded after bad ones');
    is(ask($t, 'ids', @ids, @others), "$all$none",
       'a good file answers after bad ones');
    is(zone_state($t, 'ids')->{load}{result}, 'ok',
       'the state has the result of a load after bad ones');
};


subtest 'PUT image loads the image in the body' => sub {
    my $r = api($t, PUT => 'zones/ids/image',
                body => $t->read_file('two.bloom'));
    is($r->status, 200, 'an upload answers with 200') or diag($r);
    is($r->json->{generation}, generation($t, 'ids'),
       'an upload answers with the generation that serves');
    is(ask($t, 'ids', @ids, @others), "$none$all",
       'the uploaded image answers');

    $r = api($t, PUT => 'zones/ids/image', chunks => [
        $t->read_file('one.bloom') =~ /(.{1,1000})/gs]);
    is($r->status, 200, 'an upload in chunks answers with 200');
    is(ask($t, 'ids', @ids, @others), "$all$none",
       'an image uploaded in chunks answers');

    my $image = $t->read_file('two.bloom');
    my $flipped = $image;
    substr($flipped, -1) ^= "\1";

    my $before = generation($t, 'ids');

    # t/api/upload-early.t has those that are refused by their header

    is_error(api($t, PUT => 'zones/ids/image', body => $flipped), 422, qr/./,
             'an upload is refused whose last byte is damaged');
    is(generation($t, 'ids'), $before, 'the generation is as it was');
    is(ask($t, 'ids', @ids, @others), "$all$none", 'the old image answers');

    is_error(api($t, PUT => 'zones/ids/image', body => $image,
                 headers => { 'Content-Encoding' => 'gzip' }),
             415, qr/uncompressed/, 'a compressed upload is refused');

    # the body is shorter than its Content-Length

    my $c = $t->connect;
    my $text = $t->request_text(PUT => '/bloom/zones/ids/image',
                                body => $image);
    $c->send(substr($text, 0, -100));
    $c->abort;
    is(ask($t, 'ids', @ids, @others), "$all$none",
       'an upload that is cut short changes nothing');

    opendir my $state, "$dir/state/ids" or die "$dir/state/ids: $!";
    ok(wait_until(sub {
        rewinddir $state;
        return !grep { /\.tmp$/ } readdir $state;
    }), 'uploads leave nothing unfinished in the state directory');

    ok(wait_until(sub { !files("$dir/{client_body_temp/*,state/ids/body.*}") }),
       'uploads leave no file of a body');

    # a client cannot name a file

    is_error(api($t, PUT => "zones/ids/image?file=$dir/two.bloom", body => ''),
             400, qr/unknown argument "file"/,
             'an upload that names a file is refused');
    is_error(api($t, POST => "zones/ids/reload?file=$dir/two.bloom"), 400,
             qr/unknown argument "file"/,
             'a reload that names a file is refused');
    is(ask($t, 'ids', @ids, @others), "$all$none",
       'requests that name a file change nothing');
};


# Without a body there is no image, so this does not count as a failed load.

subtest 'an upload without a body is refused and counts no load' => sub {
    my %before = map { $_ => zone_state($t, 'ids')->{$_} } 'load', 'generation';
    my $loads = sub {
        return join '', grep { /loads_total|last_load/ && !/^#/ }
                        split /^/, $t->get('/bloom/metrics')->body;
    };
    my $counted = $loads->();

    for (['a length of 0', body => ''], ['no chunks', chunks => []],
         ['neither a length nor chunks', ()])
    {
        my ($what, %body) = @$_;

        my $r = is_error(api($t, PUT => 'zones/ids/image', %body), 400,
                         qr/no body/,
                         "an upload with $what is refused");
        is($r->json->{error}{code}, 'bad_body',
           "an upload with $what is a bad body");
    }

    my $state = zone_state($t, 'ids');
    is_deeply({ map { $_ => $state->{$_} } keys %before }, \%before,
              'an upload without a body does not change the last load');
    is($loads->(), $counted,
       'an upload without a body is not counted as a load');
    ok(wait_until(sub { !files("$dir/{client_body_temp/*,state/ids/body.*}") }),
       'an upload without a body leaves no file');
};


# The error is in the beginning of the body, which comes with the header.

subtest 'an upload that cannot be read is refused' => sub {
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
                         $message,
                         "an upload is refused as $code: "
                         . substr($body, 0, 15));
        is($r->json->{error}{code}, $code, "the error has the code $code");
        is($r->header('Connection'), 'close',
           "the connection is closed after $code");
    }

    # the error is in a later part

    my $r = $t->request(PUT => '/bloom/zones/ids/image', port => 8081,
                        chunks => [('x' x 100) x 1000]);
    is($r->status, 413,
       'an upload whose chunks become too large is refused');

    is_deeply(zone_state($t, 'ids')->{load}, $before,
              'an upload that cannot be read does not count as a load');
    is(ask($t, 'ids', @ids, @others), "$all$none",
       'the old image answers after uploads that cannot be read');
    ok(wait_until(sub { !files("$dir/{client_body_temp/*,state/ids/body.*}") }),
       'an upload that cannot be read leaves no file');
};


subtest 'GET image sends the zone as an image' => sub {
    add($t, 'ids', ['added']);
    my $r = api($t, GET => 'zones/ids/image');
    is($r->status, 200, 'GET image answers with 200');
    is(length $r->body, $r->header('Content-Length'),
       'an image has a Content-Length');
    is($r->header('ETag'), '"' . token('ids') . '"',
       'an image has the token of the zone as its ETag');

    my $file = $t->write_file('got.bloom', $r->body);
    my ($exit) = $t->run_tool('verify', $file);
    is($exit, 0, 'the tool verifies the image that was sent');
    ($exit) = $t->run_tool('test', '-q', $file,
                           { stdin => join '', map { "$_\n" } @ids, 'added' });
    is($exit, 0, 'the image that was sent has its own and all added keys');
    ($exit) = $t->run_tool('test', '-q', $file, { stdin => "no\n" });
    is($exit, 1, 'the image that was sent lacks other keys');

    my $h = $t->head('/bloom/zones/ids/image');
    is($h->status, 200, 'HEAD image answers with 200');
    is($h->body, '', 'HEAD image has no body');

    is_error(api($t, GET => 'zones/memory/image'), 409, qr/state|journal/,
             'GET image of a zone without a state directory is refused');

    # the image of one zone can be loaded into another

    add($t, 'seen', ['s1', 's2']);
    my $seed = api($t, GET => 'zones/seen/image')->body;
    is(api($t, PUT => 'zones/ids/image', body => $seed)->status, 200,
       'the image of one zone is loaded into another');
    is(ask($t, 'ids', 's1', 's2', 'added', 'id1'), '1110',
       'keys that were added to the other zone are still present');
    is(api($t, POST => 'zones/ids/reload')->status, 200,
       'a reload answers with 200 after an upload');
    is(ask($t, 'ids', 's1', 's2', 'added', 'id1'), '0011',
       'a reload after an upload loads file= and its additions');
};


subtest 'POST checkpoint saves the zone' => sub {
    add($t, 'seen', ['c1']);
    my $r = api($t, POST => 'zones/seen/checkpoint');
    is($r->status, 200, 'POST checkpoint answers with 200') or diag($r);
    is(scalar files("$dir/state/seen/checkpoint.*"), 1,
       'POST checkpoint leaves one checkpoint');
    is(ask($t, 'seen', 'c1', 'c2'), '10',
       'the zone answers after a checkpoint');

    $r = api($t, POST => 'zones/memory/checkpoint');
    is_error($r, 409, qr/journal|state/,
             'POST checkpoint of a zone without a journal is refused');
};


# Loads that come at the same time.  Reloads of the same file share a load; an
# upload during another load is refused and changes nothing.

subtest 'loads at the same time share a load or are refused' => sub {
    install_image($t, 'two');
    my @r = map { my $c = $t->connect; $c->send($t->request_text(
        POST => '/bloom/zones/ids/reload')); $c } 1 .. 5;
    is(join(' ', map { $_->response->status } @r), '200 200 200 200 200',
       'five reloads of the same file at once all succeed');
    is(ask($t, 'ids', @ids, @others), "$none$all",
       'the new image answers after five reloads at once');

    # the helper is stopped, so both requests wait

    my $helper = $t->helper;
    kill 'STOP', $helper;

    # a job that has begun may do what is asked for from now on

    ok(wait_until(sub { !grep { title($_) =~ /bloom job/ } children($helper) }),
       'no job runs');

    my @uploads = map {
        my $c = $t->connect;
        $c->send($t->request_text(PUT => '/bloom/zones/ids/image',
                                  body => $t->read_file('one.bloom')));
        $c;
    } 1 .. 2;

    # the request that came second is answered

    my ($second) = IO::Select->new(map { $_->{socket} } @uploads)
                   ->can_read(60);
    my ($refused) = grep { $_->{socket} == $second } @uploads;
    my ($first) = grep { $_ != $refused } @uploads;

    is_error($refused->response, 409, qr/load/,
             'an upload during an upload is refused');
    is_error(api($t, POST => 'zones/ids/reload'), 409, qr/load/,
             'a reload during an upload is refused');
    is(ask($t, 'ids', @ids, @others), "$none$all",
       'the old image answers while an upload waits');

    kill 'CONT', $helper;
    is($first->response->status, 200, 'the first of two uploads succeeds');
    is(ask($t, 'ids', @ids, @others), "$all$none",
       'the image of the first of two uploads answers');
};


done_testing;
