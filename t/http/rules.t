#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests bloom_pass, bloom_reject and bloom_route: what each does with an absent
# and a present key, which of several rules decides, and which bytes a key has.

use strict;
use warnings;

use BloomTest;
use BloomTest::Process qw(wait_until);
use BloomTest::Rules;

my $t = BloomTest->new;

my $huge = 'x' x 30_000;

my %keys = (
    ids => ['one', 'both', "caf\xc3\xa9", "\xff\x80\xfe", 'a"b\\c', "nul\0key",
            "tab\tkey", ' ', $huge],
    lines => ["two\nlines"],
    bad => ['evil', 'both'],
);

configure_rules($t, \%keys, <<'CONF');
    log_format outcome '$request_uri [$bloom_status] [$bloom_zone] $status';
    access_log %%TESTDIR%%/outcome.log outcome;
    large_client_header_buffers 4 64k;

    bloom_zone zone=empty capacity=1k fpr=0.001;

    server {
        listen 127.0.0.1:%%PORT_8080%%;
        add_header X-Bloom "$bloom_status $bloom_zone" always;

        location @routed {
            add_header X-Bloom "$bloom_status $bloom_zone" always;
            return 200 "routed $uri $args";
        }
        location /target { return 200 "target $uri $args $arg_id"; }
        location @post { proxy_pass http://127.0.0.1:%%PORT_8082%%; }
        location = /page { return 200 "page $bloom_status $bloom_zone"; }
        location @page { return 200 "named $bloom_status $bloom_zone"; }

        location /pass-absent/ {
            bloom_pass absent $arg_id zone=ids;
            bloom_reject absent static zone=empty status=410;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /pass-present/ {
            bloom_pass present $arg_id zone=ids;
            bloom_reject absent static zone=empty status=410;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /reject-absent/ {
            bloom_reject absent $arg_id zone=ids;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /reject-present/ {
            bloom_reject present $arg_id zone=ids;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /reject-absent-451/ {
            bloom_reject absent $arg_id zone=ids status=451;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /reject-present-400/ {
            bloom_reject present $arg_id zone=ids status=400;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /reject-599/ {
            bloom_reject absent $arg_id zone=ids status=599;
        }
        location /close/ {
            bloom_reject absent $arg_id zone=ids status=444;
        }
        location /route-absent/ {
            bloom_route absent $arg_id zone=ids to=@routed;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /route-present/ {
            bloom_route present $arg_id zone=ids to=@routed;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /route-uri/ {
            bloom_route absent $arg_id zone=ids to=/target;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /route-args/ {
            bloom_route absent $arg_id zone=ids to=/target/$arg_n?id=$arg_id&x;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /route-post/ {
            bloom_route absent $arg_id zone=ids to=@post;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /route-post-uri/ {
            bloom_route absent $arg_id zone=ids to=/by-uri?n=1;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /by-uri { proxy_pass http://127.0.0.1:%%PORT_8082%%; }

        location /page-uri/ {
            error_page 404 /page;
            bloom_reject absent $arg_id zone=ids;
        }
        location /page-named/ {
            error_page 404 = @page;
            bloom_reject absent $arg_id zone=ids;
        }
        location /page-status/ {
            error_page 404 =202 /page;
            bloom_reject absent $arg_id zone=ids;
        }

        location /order/ {
            bloom_pass present $arg_id zone=ids;
            bloom_reject present $arg_id zone=bad;
            bloom_reject absent $arg_id zone=empty status=410;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /order-reversed/ {
            bloom_reject present $arg_id zone=bad;
            bloom_pass present $arg_id zone=ids;
            bloom_reject absent $arg_id zone=empty status=410;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /skip/ {
            bloom_reject absent $arg_none zone=ids status=410;
            bloom_reject absent $arg_id zone=ids;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /last/ {
            bloom_reject present $arg_a zone=bad;
            bloom_reject present $arg_b zone=ids;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /composed/ {
            bloom_reject absent "$arg_a$arg_b" zone=ids;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }

        location /early/ {
            set $early "<$bloom_status$bloom_zone>";
            bloom_reject absent $arg_id zone=ids;
            add_header X-Bloom "$early $bloom_status $bloom_zone" always;
        }

        location /header/ {
            bloom_reject absent $http_x_key zone=ids;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
            proxy_pass_request_headers off;
        }
        location /decoded/ {
            bloom_reject absent $arg_id zone=ids decode=uri;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /lines/ {
            bloom_reject absent $arg_id zone=lines decode=uri;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }

        location /unchecked/ {
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
    }

    server {
        listen 127.0.0.1:%%PORT_8081%%;
        access_log off;
        location / { return 200 "backend $request_method $request_uri"; }
    }
CONF

my $backend = $t->backend(8082, sub { "got $_[0]{method} $_[0]{uri}" });

$t->run;


sub is_outcome {
    my ($path, $expected, $name, %option) = @_;

    is(outcome($t, $path, %option), $expected, $name);
}


# Waits for the line of the access log about a request and returns it.

sub logged {
    my ($uri) = @_;

    my $line;
    wait_until(sub {
        ($line) = grep { /^\Q$uri\E / } split /^/, $t->read_file('outcome.log');
    }) or return "no line about $uri";
    chomp $line;

    return $line;
}


subtest 'each rule fires on its condition' => sub {
    my @expected = (
        # location             present key            absent key
        ['pass-absent',        '410 REJECTED empty', '200 PASSED ids'],
        ['pass-present',       '200 PASSED ids',     '410 REJECTED empty'],
        ['reject-absent',      '200 PASSED ids',     '404 REJECTED ids'],
        ['reject-present',     '403 REJECTED ids',   '200 PASSED ids'],
        ['reject-absent-451',  '200 PASSED ids',     '451 REJECTED ids'],
        ['reject-present-400', '400 REJECTED ids',   '200 PASSED ids'],
        ['route-absent',       '200 PASSED ids',     '200 ROUTED ids'],
        ['route-present',      '200 ROUTED ids',     '200 PASSED ids'],
    );

    for (@expected) {
        my ($name, $in, $out) = @$_;

        is_outcome("/$name/?id=one", $in,
                   "the outcome of $name for a present key is $in");
        is_outcome("/$name/?id=none", $out,
                   "the outcome of $name for an absent key is $out");

        my ($status, $bloom, $zone) = split ' ', $out;
        is(logged("/$name/?id=none"),
           "/$name/?id=none [$bloom] [$zone] $status",
           "the access log has the outcome of $name for an absent key");
    }

    is_outcome('/reject-599/?id=none', '599 REJECTED ids',
               'status=599 rejects with the highest status');
    is($t->get('/close/?id=none')->status, 0,
       'status=444 closes the connection');
    is(logged('/close/?id=none'), '/close/?id=none [REJECTED] [ids] 444',
       'the access log has a rejection by status=444');

    is_outcome('/early/?id=none', '404 <> REJECTED ids',
               'the variables are empty until the request is decided');
    is_outcome('/unchecked/?id=none', '200 ',
               'the variables are empty without rules');
    is(logged('/unchecked/?id=none'), '/unchecked/?id=none [-] [-] 200',
       'the access log has no outcome without rules');

    is($t->get('/reject-absent/?id=one')->body,
       'backend GET /reject-absent/?id=one',
       'a passed request reaches the backend');
    unlike($t->get('/reject-absent/?id=none')->body, qr/backend/,
           'a rejected request does not reach the backend');
    is($t->head('/reject-absent/?id=none')->status, 404,
       'a HEAD request for an absent key is rejected');

    my ($rejected, $next) = $t->pipeline(
        $t->request_text(POST => '/reject-absent/?id=none', body => 'a=b',
                         keepalive => 1), '/reject-absent/?id=one');
    is($rejected->status . ' ' . $next->status, '404 200',
       'the body of a rejected request is not read as the next request');
};


subtest 'a route leads to a named location or to a URI' => sub {
    is($t->get('/route-absent/a%20b?id=none')->body,
       'routed /route-absent/a b id=none',
       'a route to @name keeps the URI and the arguments');
    is($t->get('/route-uri/?id=none')->body, 'target /target  ',
       'a route to a URI replaces the URI and the arguments');
    is($t->get('/route-args/?id=none&n=7')->body,
       'target /target/7 id=none&x none',
       'a route to a URI evaluates its variables and arguments');
    is($t->get('/route-args/?id=one&n=7')->body,
       'backend GET /route-args/?id=one&n=7',
       'a request that is not routed keeps its URI and arguments');

    my $body = 'name=' . 'v' x 20_000;

    is($t->post('/route-post/?id=none', $body)->body,
       'got POST /route-post/?id=none',
       'a POST request that is routed to @name stays a POST request');
    is($t->request(POST => '/route-post/?id=none', chunks => ['ab', 'cd'])
         ->body, 'got POST /route-post/?id=none',
       'a chunked POST request that is routed to @name stays a POST request');
    is($t->post('/route-post-uri/?id=none', $body)->body,
       'got POST /by-uri?n=1',
       'a POST request that is routed to a URI stays a POST request');

    my @seen = map { $_->{body} } $backend->requests;
    is(scalar @seen, 3, 'the backend of the routes sees three requests');
    is($seen[0], $body, 'a POST request that is routed to @name has its body');
    is($seen[1], 'abcd',
       'a chunked POST request that is routed to @name has its body');
    is($seen[2], $body, 'a POST request that is routed to a URI has its body');
};


subtest 'a rejected request is answered with the error page' => sub {
    my $r = $t->get('/page-uri/?id=none');
    is($r->status, 404, 'an error page keeps the status of the rejection');
    is($r->body, 'page REJECTED ids', 'an error page has the variables');

    $r = $t->get('/page-named/?id=none');
    is($r->status . ' ' . $r->body, '200 named REJECTED ids',
       'a named error page has the variables');
    is(logged('/page-named/?id=none'),
       '/page-named/?id=none [REJECTED] [ids] 200',
       'the access log has the outcome of a request with a named error page');

    $r = $t->get('/page-status/?id=none');
    is($r->status . ' ' . $r->body, '202 page REJECTED ids',
       'an error page sets another status');
};


subtest 'the first rule that fires decides' => sub {
    is_outcome('/order/?id=one', '200 PASSED ids',
               'a bloom_pass that fires ends the rules');
    is_outcome('/order/?id=evil', '403 REJECTED bad',
               'a bloom_reject decides after a bloom_pass that does not fire');
    is_outcome('/order/?id=both', '200 PASSED ids',
               'a bloom_pass decides before a bloom_reject that would fire');
    is_outcome('/order/?id=none', '410 REJECTED empty',
               'the last of three rules decides when no other fires');
    is_outcome('/order-reversed/?id=both', '403 REJECTED bad',
               'a bloom_reject decides before a bloom_pass that would fire');
    is_outcome('/order-reversed/?id=one', '200 PASSED ids',
               'a bloom_pass decides after a bloom_reject that does not fire');
    is_outcome('/last/?a=1&b=2', '200 PASSED ids',
               '$bloom_zone names the last zone asked when no rule fires');
    is_outcome('/last/?a=1', '200 PASSED bad',
               '$bloom_zone does not name the zone of a rule without a key');
};


subtest 'a rule without a key does not fire' => sub {
    is_outcome('/reject-absent/', '200 ',
               'a request without the argument is not checked');
    is_outcome('/reject-absent/?id=', '200 ',
               'a request with an empty argument is not checked');
    is_outcome('/pass-absent/', '410 REJECTED empty',
               'a rule decides after a rule without a key');
    is_outcome('/order/', '200 ', 'a request without any key is not checked');
    is_outcome('/skip/?id=none', '404 REJECTED ids',
               'a rule with a key rejects after a rule without a key');
    is_outcome('/skip/?id=one', '200 PASSED ids',
               'a rule with a key passes after a rule without a key');
    is_outcome('/skip/?none=one', '200 PASSED ids',
               'a rule with a key passes before a rule without a key');
    is(logged('/reject-absent/'), '/reject-absent/ [-] [-] 200',
       'the access log has no outcome of a request that is not checked');
};


subtest 'a key may have any bytes' => sub {
    is_outcome('/composed/?a=o&b=ne', '200 PASSED ids',
               'a key of two variables is present');
    is_outcome('/composed/?a=o&b=n', '404 REJECTED ids',
               'a key of two variables is absent');

    my @header = (
        ["caf\xc3\xa9", 'UTF-8'],
        ["\xff\x80\xfe", 'bytes that are not text'],
        ['a"b\\c', 'a quote and a backslash'],
        ["tab\tkey", 'a tab'],
        [$huge, '30,000 bytes'],
    );

    for (@header) {
        my ($key, $what) = @$_;

        is_outcome('/header/', '200 PASSED ids',
                   "a key in a header with $what is present",
                   headers => { 'X-Key' => $key });
        is_outcome('/header/', '404 REJECTED ids',
                   "a longer key in a header with $what is absent",
                   headers => { 'X-Key' => "$key." });
    }

    my $longer = 'y' x 32_700;
    is_outcome('/header/', '404 REJECTED ids',
               'a key in a header of almost 32 KB is absent',
               headers => { 'X-Key' => $longer });

    my @encoded = (
        ['nul%00key', 'a NUL'], ['%ff%80%FE', 'bytes above 0x7f'],
        ['a%22b%5cc', 'a quote and a backslash'], ['%20', 'a single space'],
    );

    for (@encoded) {
        my ($key, $what) = @$_;

        is_outcome("/decoded/?id=$key", '200 PASSED ids',
                   "an escaped key with $what is present");
        is_outcome("/decoded/?id=$key%00", '404 REJECTED ids',
                   "an escaped key with $what and a final NUL is absent");
    }

    is_outcome('/decoded/?id=nul', '404 REJECTED ids',
               'a key is not truncated at a NUL');
    is_outcome('/lines/?id=two%0alines', '200 PASSED lines',
               'an escaped key with a newline is present');
    is_outcome('/lines/?id=two%0a', '404 REJECTED lines',
               'a key is not truncated at a newline');
    is_outcome('/decoded/?id=%00', '404 REJECTED ids',
               'a key that is a single NUL is absent');
};


done_testing;
