#!/usr/bin/perl

# The endpoint, reading: the index, the state of zones, testing keys; methods
# and names that there are not.

use strict;
use warnings;

use JSON::PP ();

use BloomTest;
use BloomTest::Api;
use BloomTest::Zones;

my $t = BloomTest->new;

my @ids = keys_of('id', 30);

$t->build_image('ids.bloom', \@ids, '-p', '1e-9', '--as-of',
                '2026-01-02T03:04:05Z');
configure($t, ['zone=ids file=ids.bloom', 'zone=seen capacity=1k fpr=1e-6'],
          api => 1, server => <<'CONF');
    location /reading/ { bloom_api; }
    location /off/ { bloom_api write=off; }
    location /bare { bloom_api; }
    location = /rejected { bloom_reject absent $arg_k zone=ids; return 404; }
CONF
$t->run;

my $time = qr/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/;


subtest 'index' => sub {
    for my $path ('/bloom/', '/reading/', '/off/', '/bare', '/bare/') {
        my $r = $t->get($path);
        is($r->status, 200, "$path: status");
        like($r->header('Content-Type'), qr{^application/json\b}, 'JSON');
        like($r->header('Cache-Control'), qr/no-store/, 'not to be cached');
        is(ref $r->json, 'HASH', 'an object');
        like($r->body, qr/zones/, 'that leads on to the zones');
    }
};


subtest 'zones' => sub {
    my $r = api($t, GET => 'zones');
    is($r->status, 200, 'status');
    like($r->body, qr/"ids"/, 'ids is there');
    like($r->body, qr/"seen"/, 'seen is there');
    is_deeply($r->json, $t->get('/reading/zones')->json,
              'and the same by reading alone');
    is($t->get('/bare/zones')->status, 200, 'a prefix without a slash');
};


subtest 'a zone' => sub {
    my $r = api($t, GET => 'zones/ids');
    is($r->status, 200, 'status');
    like($r->header('ETag') // '', qr/^"[^"]+"$/, 'a strong ETag');

    my $ids = $r->json;
    my ($exit, $out) = $t->run_tool('info', '--json',
                                    $t->testdir . '/ids.bloom');
    my $info = JSON::PP::decode_json($out);

    is($ids->{name}, 'ids', 'its name');
    is($ids->{generation}, 1, 'its generation');
    is($ids->{image}{build_id}, $info->{build_id}, 'the build id');
    is($ids->{image}{layout}, $info->{layout}, 'the layout');
    like($ids->{image}{as_of}, qr/^2026-01-02T03:04:05(?:\.000)?Z$/, 'as_of');
    like($ids->{image}{created}, $time, 'created');
    like($ids->{helper}{heartbeat}, $time, 'the helper lives');

    my $seen = zone_state($t, 'seen');
    is($seen->{generation}, 1, 'an empty zone serves its first generation');
    is($seen->{image}{as_of}, undef, 'that has no as_of');

    like($r->body, qr/"$_"/, "it has $_")
        for qw(hash bits capacity items journal memory counters fill_ratio);
};


# Numbers that change: asked of one worker, there is one.

subtest 'counters' => sub {
    my $counters = sub {
        my $c = zone_state($t, 'ids')->{counters};
        return map { $c->{$_} // 0 } qw(absent present rejected added
                                             already_present);
    };

    my @before = $counters->();
    ask($t, 'ids', @ids[0 .. 6], 'no1', 'no2', 'no3');
    $t->get('/ids?k=');
    my @after = $counters->();
    is($after[0] - $before[0], 3, 'three absent');
    is($after[1] - $before[1], 7, 'seven present');
    is($after[2] - $before[2], 0, 'none rejected');
};


subtest 'testing a key' => sub {
    for (['id1', 'present', 'a key'], ['no1', 'absent', 'no key'],
         ['id%31', 'present', 'a key as in a URL'],
         ['a+b', 'absent', 'a key with a space'])
    {
        my ($key, $answer, $what) = @$_;
        my $r = api($t, GET => "zones/ids/keys?key=$key");
        is($r->status, 200, "$what: status");
        is($r->json->{answer}, $answer, $answer);
        (my $decoded = $key) =~ tr/+/ /;
        $decoded =~ s/%31/1/;
        is($r->json->{key}, $decoded, 'the key as it was looked up');
    }

    my $k = zone_state($t, 'ids')->{image}{k};

    for (['id1', 0], ['no1', 1]) {
        my ($key, $clear) = @$_;
        my $r = api($t, GET => "zones/ids/keys?key=$key")->json;
        is(scalar @{ $r->{bits} }, $k, "$key: k bits");
        is(scalar @{ $r->{set} }, $k, 'and of each whether it is set');
        is(!!grep({ !$_ } @{ $r->{set} }), !!$clear,
           $clear ? 'of an absent key one is not' : 'they all are');
    }

    for my $path ('zones/ids/keys', 'zones/ids/keys?key=',
                  'zones/ids/keys?k=id1')
    {
        is_error(api($t, GET => $path), 400, qr/key/, "$path: refused");
    }

    is(api($t, GET => 'zones/ids/keys?x=key&key=id1')->json->{answer},
       'present', 'the right argument');

    my $key = '%00%ff%22';
    my $r = api($t, GET => "zones/ids/keys?key=$key");
    is($r->status, 200, 'any byte in a key');
    ok(eval { JSON::PP->new->latin1->decode($r->body); 1 }, 'is still JSON')
        or diag($@);
};


subtest 'testing many' => sub {
    my @keys = ('id1', 'no1', 'id2', 'no2', 'id3');
    my @want = qw(present absent present absent present);

    my $r = api($t, POST => 'zones/ids/test', body => join "\n", @keys);
    is($r->status, 200, 'lines');
    is_deeply($r->json->{answers}, \@want, 'their results');

    $r = api($t, POST => 'zones/ids/test',
             body => JSON::PP::encode_json(\@keys),
             headers => { 'Content-Type' => 'application/json' });
    is_deeply($r->json->{answers}, \@want, 'JSON');

    $r = $t->post('/reading/zones/ids/test', "id1\n");
    is_deeply($r->json->{answers}, ['present'], 'where writing is off, too');

    $r = api($t, POST => 'zones/ids/test', body => '');
    is_deeply($r->json->{answers}, [], 'nothing');

    # those that are too many are refused as a whole

    my @many = map { $_ % 10 ? "no$_" : 'id1' } 1 .. 200_000;
    $r = api($t, POST => 'zones/ids/test', body => join "\n", @many);
    is($r->status, 200, 'two hundred thousand');
    is(join(',', map { substr $_, 0, 1 } @{ $r->json->{answers} }),
       join(',', map { $_ % 10 ? 'a' : 'p' } 1 .. 200_000),
       'each in its place');

    is_error(api($t, POST => 'zones/ids/test', body => "a\n" x 1_000_001),
             413, qr/1,?000,?000/, 'a million and one');
    is_error(api($t, POST => 'zones/ids/test', body => '["a", 1]',
                 headers => { 'Content-Type' => 'application/json' }),
             400, qr/\b(?:byte|position)\D*\d/, 'JSON of something else');
    is_error(api($t, POST => 'zones/ids/test', body => "a\n" . 'x' x 65536),
             400, qr/line 2/, 'a key that is too long');
};


subtest 'HEAD' => sub {
    for my $path ('', 'zones', 'zones/ids', 'zones/ids/keys?key=id1') {
        my $r = $t->head("/bloom/$path");
        is($r->status, 200, "HEAD $path");
        is($r->body, '', 'no body');
    }
    is($t->head('/bloom/zones/none')->status, 404, 'of what is not there');
};


# What each path allows, whether it may be written or not

my %allow = (
    ''                     => [qw(GET HEAD)],
    'zones'                => [qw(GET HEAD)],
    'zones/ids'            => [qw(GET HEAD)],
    'zones/ids/keys'       => [qw(GET HEAD POST)],
    'zones/ids/rates'      => [qw(GET HEAD)],
    'zones/ids/test'       => [qw(POST)],
    'zones/ids/reload'     => [qw(POST)],
    'zones/ids/image'      => [qw(GET HEAD PUT)],
    'zones/ids/checkpoint' => [qw(POST)],
);

subtest 'methods' => sub {
    for my $path (sort keys %allow) {
        my %allowed = map { $_ => 1 } @{ $allow{$path} };

        for my $method (qw(GET HEAD POST PUT DELETE PATCH OPTIONS)) {
            next if $allowed{$method};

            my $r = api($t, $method, $path);
            is($r->status, 405, "$method $path");
            is(join(' ', sort split /,\s*/, $r->header('Allow') // ''),
               join(' ', sort @{ $allow{$path} }), 'allows the others');
        }
    }

    is_error(api($t, DELETE => 'zones/ids'), 405, qr/./, 'as an error object');
};


subtest 'what is not there' => sub {
    is_error(api($t, GET => 'zones/none'), 404, qr/none/, 'a zone');
    is_error(api($t, POST => "zones/none/$_", body => "x\n"), 404, qr/none/,
             "a zone's $_")
        for qw(keys test reload checkpoint);
    is_error(api($t, PUT => 'zones/none/image', body => 'x'), 404, qr/none/,
             "a zone's image");
    is_error(api($t, GET => $_), 404, qr/./, "/$_")
        for 'none', 'zones/ids/none', 'zones/ids/keys/none', 'zones//keys',
            'zones/ids%2fkeys%2fmore', 'zones/ID', 'zones/ids%01';

    is(api($t, GET => 'zones/%69ds')->json->{name}, 'ids',
       'a name may be encoded');
    is_error($t->get('/off/zones/none'), 404, qr/none/, 'nor by reading');
};


subtest 'writing is off' => sub {
    for my $prefix ('/reading', '/off') {
        for (['POST', 'keys'], ['POST', 'reload'], ['PUT', 'image'],
             ['POST', 'checkpoint'])
        {
            my ($method, $what) = @$_;
            is_error($t->request($method, "$prefix/zones/seen/$what",
                                 body => "new\n"),
                     403, qr/write=on/, "$method $what: refused");
        }
    }

    is(ask($t, 'seen', 'new'), '0', 'nothing was added');
    is(generation($t, 'seen'), 1, 'nothing was loaded');
};


subtest 'questions about the ETag' => sub {
    my $etag = api($t, GET => 'zones/ids')->header('ETag');

    is(api($t, GET => 'zones/ids', headers => { 'If-None-Match' => '*' })
           ->status, 200, 'a state is no document to be cached');
    isnt($etag, api($t, GET => 'zones/seen')->header('ETag'),
         'zones have their own');
};


done_testing;
