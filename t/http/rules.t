#!/usr/bin/perl

# bloom_pass, bloom_reject, bloom_route: what each does with a key that is
# absent or present, which of several decides, and what keys may be like.

use strict;
use warnings;

use BloomTest;
use BloomTest::Process qw(wait_until);

my $t = BloomTest->new;

my $huge = 'x' x 30_000;

# the same seed each time: whether a key is absent is no matter of chance

$t->build_image('ids.bloom',
    ['one', 'both', "caf\xc3\xa9", "\xff\x80\xfe", 'a"b\\c', "nul\0key",
     "tab\tkey", ' ', $huge],
    '-p', '1e-9', '--seed', 1);
$t->build_image('lines.bloom', ["two\nlines"], '-p', '1e-9', '--seed', 1);
$t->build_image('bad.bloom', ['evil', 'both'], '-p', '1e-9', '--seed', 1);

$t->write_file_expand('nginx.conf', <<'CONF');
%%TEST_GLOBALS%%
events { }
http {
    %%TEST_GLOBALS_HTTP%%
    log_format outcome '$request_uri [$bloom_status] [$bloom_zone] $status';
    access_log %%TESTDIR%%/outcome.log outcome;
    large_client_header_buffers 4 64k;

    bloom_zone zone=ids file=%%TESTDIR%%/ids.bloom;
    bloom_zone zone=lines file=%%TESTDIR%%/lines.bloom;
    bloom_zone zone=bad file=%%TESTDIR%%/bad.bloom;
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
}
CONF

my $backend = $t->backend(8082, sub { "got $_[0]{method} $_[0]{uri}" });

$t->run;


# Status of the answer, and what $bloom_status and $bloom_zone say in it.

sub outcome {
    my ($path, @options) = @_;

    my $r = $t->get($path, @options);

    return $r->status . ' ' . ($r->header('X-Bloom') // '');
}


# The line of the access log about a request, once it is there.

sub logged {
    my ($uri) = @_;

    my $line;
    wait_until(sub {
        ($line) = grep { /^\Q$uri\E / } split /^/, $t->read_file('outcome.log');
    }) or return "no line about $uri";
    chomp $line;

    return $line;
}


subtest 'what each rule does' => sub {
    my @expected = (
        # location             in the zone       not in the zone
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

        is(outcome("/$name/?id=one"), $in, "$name, a key that is there");
        is(outcome("/$name/?id=none"), $out, "$name, a key that is not");

        my ($status, $bloom, $zone) = split ' ', $out;
        is(logged("/$name/?id=none"),
           "/$name/?id=none [$bloom] [$zone] $status",
           "$name, in the access log");
    }

    is(outcome('/reject-599/?id=none'), '599 REJECTED ids',
       'the highest status');
    is($t->get('/close/?id=none')->status, 0, '444 closes the connection');
    is(logged('/close/?id=none'), '/close/?id=none [REJECTED] [ids] 444',
       'and is logged as a rejection');

    is(outcome('/early/?id=none'), '404 <> REJECTED ids',
       'the variables change when it is decided');
    is(outcome('/unchecked/?id=none'), '200 ', 'no rules, no status');
    is(logged('/unchecked/?id=none'), '/unchecked/?id=none [-] [-] 200',
       'nor in the access log');

    is($t->get('/reject-absent/?id=one')->body,
       'backend GET /reject-absent/?id=one', 'what passes reaches the backend');
    unlike($t->get('/reject-absent/?id=none')->body, qr/backend/,
           'what is rejected does not');
    is($t->head('/reject-absent/?id=none')->status, 404, 'nor by HEAD');

    my ($rejected, $next) = $t->pipeline(
        $t->request_text(POST => '/reject-absent/?id=none', body => 'a=b',
                         keepalive => 1), '/reject-absent/?id=one');
    is($rejected->status . ' ' . $next->status, '404 200',
       'the body of a rejected request is no request');
};


subtest 'where a route leads' => sub {
    is($t->get('/route-absent/a%20b?id=none')->body,
       'routed /route-absent/a b id=none', '@name keeps URI and arguments');
    is($t->get('/route-uri/?id=none')->body, 'target /target  ',
       'a URI replaces both');
    is($t->get('/route-args/?id=none&n=7')->body,
       'target /target/7 id=none&x none', 'a URI with variables and arguments');
    is($t->get('/route-args/?id=one&n=7')->body,
       'backend GET /route-args/?id=one&n=7', 'or none at all');

    my $body = 'name=' . 'v' x 20_000;

    is($t->post('/route-post/?id=none', $body)->body,
       'got POST /route-post/?id=none', 'a POST stays one with @name');
    is($t->request(POST => '/route-post/?id=none', chunks => ['ab', 'cd'])
         ->body, 'got POST /route-post/?id=none', 'in chunks, too');
    is($t->post('/route-post-uri/?id=none', $body)->body,
       'got POST /by-uri?n=1', 'and with a URI');

    my @seen = map { $_->{body} } $backend->requests;
    is(scalar @seen, 3, 'the confirming backend saw each');
    is($seen[0], $body, 'its body');
    is($seen[1], 'abcd', 'its chunks');
    is($seen[2], $body, 'its body by URI');
};


subtest 'error pages' => sub {
    my $r = $t->get('/page-uri/?id=none');
    is($r->status, 404, 'a page for the status keeps it');
    is($r->body, 'page REJECTED ids', 'and knows the outcome');

    $r = $t->get('/page-named/?id=none');
    is($r->status . ' ' . $r->body, '200 named REJECTED ids', 'a named page');
    is(logged('/page-named/?id=none'),
       '/page-named/?id=none [REJECTED] [ids] 200',
       'the log keeps the outcome');

    $r = $t->get('/page-status/?id=none');
    is($r->status . ' ' . $r->body, '202 page REJECTED ids', 'another status');
};


subtest 'the first rule that fires' => sub {
    is(outcome('/order/?id=one'), '200 PASSED ids', 'a pass ends checking');
    is(outcome('/order/?id=evil'), '403 REJECTED bad', 'a reject after it');
    is(outcome('/order/?id=both'), '200 PASSED ids', 'both: the pass is first');
    is(outcome('/order/?id=none'), '410 REJECTED empty', 'neither: the last');
    is(outcome('/order-reversed/?id=both'), '403 REJECTED bad',
       'both: the reject is first');
    is(outcome('/order-reversed/?id=one'), '200 PASSED ids',
       'what does not fire lets the next one decide');
    is(outcome('/last/?a=1&b=2'), '200 PASSED ids',
       'none fires: the zone is the last one asked');
    is(outcome('/last/?a=1'), '200 PASSED bad', 'of those that had a key');
};


subtest 'empty keys' => sub {
    is(outcome('/reject-absent/'), '200 ', 'no argument is no key');
    is(outcome('/reject-absent/?id='), '200 ', 'nor is an empty one');
    is(outcome('/pass-absent/'), '410 REJECTED empty', 'the next rule decides');
    is(outcome('/order/'), '200 ', 'if it has a key');
    is(outcome('/skip/?id=none'), '404 REJECTED ids', 'the first key is empty');
    is(outcome('/skip/?id=one'), '200 PASSED ids', 'and another one is not');
    is(outcome('/skip/?none=one'), '200 PASSED ids', 'or the other way round');
    is(logged('/reject-absent/'), '/reject-absent/ [-] [-] 200',
       'an unchecked request is logged without outcome');
};


subtest 'any key' => sub {
    is(outcome('/composed/?a=o&b=ne'), '200 PASSED ids', 'of two variables');
    is(outcome('/composed/?a=o&b=n'), '404 REJECTED ids', 'or parts of them');

    my @header = (
        ["caf\xc3\xa9", 'UTF-8'],
        ["\xff\x80\xfe", 'bytes that are no text'],
        ['a"b\\c', 'quote and backslash'],
        ["tab\tkey", 'a tab'],
        [$huge, '30 thousand bytes'],
    );

    for (@header) {
        my ($key, $what) = @$_;

        is(outcome('/header/', headers => { 'X-Key' => $key }),
           '200 PASSED ids', "$what, present");
        is(outcome('/header/', headers => { 'X-Key' => "$key." }),
           '404 REJECTED ids', "$what, absent");
    }

    my $longer = 'y' x 32_700;
    is(outcome('/header/', headers => { 'X-Key' => $longer }),
       '404 REJECTED ids', 'a header of almost 32 KB');

    my @encoded = (
        ['nul%00key', 'NUL'], ['%ff%80%FE', 'bytes above 0x7f'],
        ['a%22b%5cc', 'quote and backslash'], ['%20', 'one space'],
    );

    for (@encoded) {
        my ($key, $what) = @$_;

        is(outcome("/decoded/?id=$key"), '200 PASSED ids', "$what, present");
        is(outcome("/decoded/?id=$key%00"), '404 REJECTED ids',
           "$what, absent");
    }

    is(outcome('/decoded/?id=nul'), '404 REJECTED ids',
       'NUL does not end a key');
    is(outcome('/lines/?id=two%0alines'), '200 PASSED lines',
       'newline, present');
    is(outcome('/lines/?id=two%0a'), '404 REJECTED lines', 'newline, absent');
    is(outcome('/decoded/?id=%00'), '404 REJECTED ids', 'only NUL');
};


done_testing;
