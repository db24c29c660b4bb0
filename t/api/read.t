#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests the requests to the endpoint that change nothing: the index, the state
# of zones, lookups of keys.  Unknown methods, paths and zones are refused.

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
configure($t, ['zone=ids file=ids.bloom "label=Known IDs"',
               'zone=seen capacity=1k fpr=1e-6'],
          api => 1, server => <<'CONF');
    location /reading/ { bloom_api; }
    location /off/ { bloom_api write=off; }
    location /bare { bloom_api; }
    location = /rejected { bloom_reject absent $arg_k zone=ids; return 404; }
CONF
$t->run;

my $time = qr/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/;


subtest 'the index is at the location, with or without a slash' => sub {
    for my $path ('/bloom/', '/reading/', '/off/', '/bare', '/bare/') {
        my $r = $t->get($path);
        is($r->status, 200, "GET $path answers with 200");
        like($r->header('Content-Type'), qr{^application/json\b},
             "GET $path answers with JSON");
        like($r->header('Cache-Control'), qr/no-store/,
             "the response to GET $path must not be cached");
        is(ref $r->json, 'HASH', "GET $path answers with an object");
        like($r->body, qr/zones/, "the index at $path names the zones");
    }
};


subtest 'GET zones has the state of all zones' => sub {
    my $r = api($t, GET => 'zones');
    is($r->status, 200, 'GET zones answers with 200');
    like($r->body, qr/"ids"/, 'GET zones has the zone ids');
    like($r->body, qr/"seen"/, 'GET zones has the zone seen');

    my ($one, $other) = ($r->json, $t->get('/reading/zones')->json);

    delete $_->{helper}{heartbeat} for map { @{ $_->{zones} } } $one, $other;
    is_deeply($one, $other, 'GET zones is the same where writing is off');
    is($t->get('/bare/zones')->status, 200,
       'GET zones works below a location without a slash');
};


subtest 'GET zones/NAME has the state of one zone' => sub {
    my $r = api($t, GET => 'zones/ids');
    is($r->status, 200, 'GET zones/ids answers with 200');
    is($r->header('ETag'), undef, 'the state of a zone has no ETag');

    my $ids = $r->json;
    my ($exit, $out) = $t->run_tool('info', '--json',
                                    $t->testdir . '/ids.bloom');
    my $info = JSON::PP::decode_json($out);

    is($ids->{name}, 'ids', 'the state has the name of the zone');
    is($ids->{generation}, 1, 'the state has the generation of the zone');
    is($ids->{image}{build_id}, $info->{build_id},
       'the state has the build id that the tool reads in the image');
    is($ids->{image}{layout}, $info->{layout},
       'the state has the layout that the tool reads in the image');
    like($ids->{image}{as_of}, qr/^2026-01-02T03:04:05(?:\.000)?Z$/,
         'the state has the as_of of the image');
    like($ids->{image}{created}, $time,
         'the state has the time at which the image was built');
    like($ids->{helper}{heartbeat}, $time,
         'the state has the heartbeat of the helper');

    is($ids->{label}, 'Known IDs', 'the state has the label of the zone');

    my $seen = zone_state($t, 'seen');
    is($seen->{label}, undef, 'the label of a zone without one is null');
    is($seen->{generation}, 1,
       'a zone that starts empty serves its first generation');
    is($seen->{image}{as_of}, undef,
       'an empty filter has no as_of');

    for my $zone ($ids, $seen) {
        my $filter = $zone->{filter};

        is($filter->{max_items}, $zone->{image}{capacity},
           "zone $zone->{name} has room for its capacity");
        is($filter->{promised_fpr}, $zone->{image}{fpr},
           "zone $zone->{name} promises the rate of its image");
        is($filter->{layers}, 0, "zone $zone->{name} has no layers");
        is(scalar @{ $filter->{parts} }, 1, "zone $zone->{name} has one part");
        is($filter->{parts}[0]{$_}, $zone->{image}{$_},
           "the part of zone $zone->{name} has the $_ of the image")
            for qw(capacity bits k lines);
        is($filter->{parts}[0]{$_}, $filter->{$_},
           "the part of zone $zone->{name} has the $_ of the filter")
            for qw(estimated_items fill_ratio);
    }

    like($r->body, qr/"$_"/, "the state of a zone has $_")
        for qw(hash bits capacity items journal memory counters fill_ratio
              max_items promised_fpr layers parts);
};


# There is one worker, so the counters of successive requests compare.

subtest 'counters count lookups' => sub {
    my $counters = sub {
        my $c = zone_state($t, 'ids')->{counters};
        return map { $c->{$_} // 0 } qw(absent present rejected added
                                             already_present);
    };

    my @before = $counters->();
    ask($t, 'ids', @ids[0 .. 6], 'no1', 'no2', 'no3');
    $t->get('/ids?k=');
    my @after = $counters->();
    is($after[0] - $before[0], 3,
       'three lookups of absent keys are counted');
    is($after[1] - $before[1], 7,
       'seven lookups of present keys are counted');
    is($after[2] - $before[2], 0, 'a lookup rejects no request');
};


subtest 'GET keys looks one key up' => sub {
    for (['id1', 'present', 'a present key'], ['no1', 'absent',
                                               'an absent key'],
         ['id%31', 'present', 'a percent-encoded key'],
         ['a+b', 'absent', 'a key with a space'])
    {
        my ($key, $answer, $what) = @$_;
        my $r = api($t, GET => "zones/ids/keys?key=$key");
        is($r->status, 200, "a lookup of $what answers with 200");
        is($r->json->{answer}, $answer,
           "a lookup of $what answers $answer");
        (my $decoded = $key) =~ tr/+/ /;
        $decoded =~ s/%31/1/;
        is($r->json->{key}, $decoded,
           "a lookup of $what names the key decoded");
    }

    my $k = zone_state($t, 'ids')->{image}{k};

    for (['id1', 0], ['no1', 1]) {
        my ($key, $clear) = @$_;
        my $r = api($t, GET => "zones/ids/keys?key=$key")->json;
        is(scalar @{ $r->{bits} }, $k, "a lookup of $key has k bits");
        is(scalar @{ $r->{set} }, $k,
           "a lookup of $key says of each bit whether it is set");
        is(!!grep({ !$_ } @{ $r->{set} }), !!$clear,
           $clear ? "a bit of the absent key $key is not set"
                  : "all bits of the present key $key are set");

        $r = $t->get("/reading/zones/ids/keys?key=$key")->json;
        is_deeply([@$r{qw(bits set)}], [[], []],
                  "an endpoint without image=on shows no bits of $key");
    }

    refusals_are($t, <<'END');
GET zones/ids/keys        400 bad_query  key
GET zones/ids/keys?key=   400 bad_query  key
GET zones/ids/keys?k=id1  400 bad_query  key
END

    is(api($t, GET => 'zones/ids/keys?x=key&key=id1')->json->{answer},
       'present', 'the argument "key" is found after others');

    my $key = '%00%ff%22';
    my $r = api($t, GET => "zones/ids/keys?key=$key");
    is($r->status, 200, 'a key may have any byte');
    ok(eval { JSON::PP->new->latin1->decode($r->body); 1 },
       'the response about a key of any bytes is JSON')
        or diag($@);
};


subtest 'POST test looks many keys up' => sub {
    my @keys = ('id1', 'no1', 'id2', 'no2', 'id3');
    my @want = qw(present absent present absent present);

    my $r = api($t, POST => 'zones/ids/test', body => join "\n", @keys);
    is($r->status, 200, 'POST test takes keys in lines');
    is_deeply($r->json->{answers}, \@want,
              'POST test of lines answers in the order of the keys');

    $r = api($t, POST => 'zones/ids/test',
             body => JSON::PP::encode_json(\@keys),
             headers => { 'Content-Type' => 'application/json' });
    is_deeply($r->json->{answers}, \@want,
              'POST test of JSON answers in the order of the keys');

    $r = $t->post('/reading/zones/ids/test', "id1\n");
    is_deeply($r->json->{answers}, ['present'],
              'POST test works where writing is off');

    $r = api($t, POST => 'zones/ids/test', body => '');
    is_deeply($r->json->{answers}, [], 'POST test without keys has no answers');

    # if there are too many keys, the whole request is refused

    my @many = map { $_ % 10 ? "no$_" : 'id1' } 1 .. 200_000;
    $r = api($t, POST => 'zones/ids/test', body => join "\n", @many);
    is($r->status, 200, 'POST test takes 200,000 keys');
    is(join(',', map { substr $_, 0, 1 } @{ $r->json->{answers} }),
       join(',', map { $_ % 10 ? 'a' : 'p' } 1 .. 200_000),
       'each of 200,000 keys is answered in its place');

    is_error(api($t, POST => 'zones/ids/test', body => "a\n" x 1_000_001),
             413, qr/1,?000,?000/,
             'POST test of more than a million keys is refused');
    is_error(api($t, POST => 'zones/ids/test', body => '["a", 1]',
                 headers => { 'Content-Type' => 'application/json' }),
             400, qr/\b(?:byte|position)\D*\d/,
             'POST test of JSON with a number is refused');
    my $long = 'x' x 65535;
    is_deeply(api($t, POST => 'zones/ids/test', body => "$long\n${long}x\n")
              ->json->{answers}, ['absent', 'invalid'],
              'POST test answers "invalid" for a key over 65535 bytes');
};


subtest 'HEAD answers as GET does, without a body' => sub {
    for my $path ('', 'zones', 'zones/ids', 'zones/ids/keys?key=id1') {
        my $r = $t->head("/bloom/$path");
        is($r->status, 200, "HEAD /bloom/$path answers with 200");
        is($r->body, '', "HEAD /bloom/$path has no body");
    }
    is($t->head('/bloom/zones/none')->status, 404,
       'HEAD of a zone that does not exist answers with 404');
};


# The methods that each path allows, with and without write=on

my %allow = (
    ''                     => [qw(GET HEAD)],
    'zones'                => [qw(GET HEAD)],
    'zones/ids'            => [qw(GET HEAD)],
    'keys'                 => [qw(GET HEAD)],
    'zones/ids/keys'       => [qw(DELETE GET HEAD POST)],
    'zones/ids/remove'     => [qw(POST)],
    'zones/ids/removed'    => [qw(GET HEAD)],
    'zones/ids/rates'      => [qw(GET HEAD)],
    'zones/ids/test'       => [qw(POST)],
    'zones/ids/reload'     => [qw(POST)],
    'zones/ids/image'      => [qw(GET HEAD PUT)],
    'zones/ids/checkpoint' => [qw(POST)],
);

subtest 'methods that a path does not take are refused' => sub {
    for my $path (sort keys %allow) {
        my %allowed = map { $_ => 1 } @{ $allow{$path} };

        for my $method (qw(GET HEAD POST PUT DELETE PATCH OPTIONS)) {
            next if $allowed{$method};

            my $r = api($t, $method, $path);
            is($r->status, 405, "$method /$path is refused");
            is(join(' ', sort split /,\s*/, $r->header('Allow') // ''),
               join(' ', sort @{ $allow{$path} }),
               "the answer to $method /$path names the methods allowed");
        }
    }

    refusals_are($t, <<'END');
DELETE zones/ids                    405 method_not_allowed
DELETE keys?key=id1                 405 method_not_allowed  keys?key=K remove
DELETE zones/ids/keys/id1           404 not_found  keys?key=K remove
DELETE zones/ids/remove             405 method_not_allowed  keys?key=K remove
PUT zones/ids/keys id1\n            405 method_not_allowed  POST --data-binary
PUT zones/ids/keys?key=id1 id1\n    405 method_not_allowed  POST --data-binary
PUT zones/ids/keys/id1 id1\n        404 not_found  POST --data-binary
PUT zones/ids/remove id1\n          405 method_not_allowed  POST --data-binary
PUT zones/ids/remove/id1 id1\n      404 not_found  POST --data-binary
END
    unlike(api($t, $_ => 'zones/ids/test')->json->{error}{message},
           qr/remove|curl/, "$_ of another path has no such answer")
        for qw(DELETE PUT);
};


subtest 'paths and zones that do not exist are refused' => sub {
    refusals_are($t, <<'END');
GET zones/none                      404 unknown_zone  none
POST zones/none/keys x\n            404 unknown_zone  none
POST zones/none/remove x\n          404 unknown_zone  none
POST zones/none/test x\n            404 unknown_zone  none
POST zones/none/reload x\n          404 unknown_zone  none
POST zones/none/checkpoint x\n      404 unknown_zone  none
PUT zones/none/image x              404 unknown_zone  none
GET zones/ID                        404 unknown_zone
GET zones/ids%01                    404 unknown_zone
GET none                            404 not_found
GET zones/ids/none                  404 not_found
GET zones/ids/keys/none             404 not_found
GET zones//keys                     404 unknown_zone
GET zones/ids%2fkeys%2fmore         404 not_found
END
    is(api($t, GET => 'zones/%69ds')->json->{name}, 'ids',
       'the name of a zone may be percent-encoded');
    is_error($t->get('/off/zones/none'), 404, qr/none/,
             'GET of an unknown zone is refused where writing is off');
};


subtest 'nothing changes if writing is off' => sub {
    for my $prefix ('/reading', '/off') {
        for (['POST', 'keys'], ['POST', 'remove'], ['DELETE', 'keys'],
             ['GET', 'removed'], ['POST', 'reload'], ['PUT', 'image'],
             ['POST', 'checkpoint'])
        {
            my ($method, $what) = @$_;
            is_error($t->request($method, "$prefix/zones/seen/$what",
                                 body => "new\n"),
                     403, qr/write=on/,
                     "$method $prefix/zones/seen/$what is refused");
        }
    }

    is(ask($t, 'seen', 'new'), '0', 'a refused POST keys adds nothing');
    is(generation($t, 'seen'), 1,
       'a refused load leaves the generation as it was');
};


done_testing;
