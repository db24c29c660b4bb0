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

# A rule on the empty zone fires on every key.

my $fires = 'bloom_reject absent static zone=empty status=410';

my %rules = (
    'pass-absent/'    => "bloom_pass absent \$arg_id zone=ids; $fires",
    'pass-present/'   => "bloom_pass present \$arg_id zone=ids; $fires",
    'reject-absent/'  => 'bloom_reject absent $arg_id zone=ids',
    'reject-present/' => 'bloom_reject present $arg_id zone=ids',
    'reject-451/'     => 'bloom_reject absent $arg_id zone=ids status=451',
    'reject-400/'     => 'bloom_reject present $arg_id zone=ids status=400',
    'reject-599/'     => 'bloom_reject absent $arg_id zone=ids status=599',
    'close/'          => 'bloom_reject absent $arg_id zone=ids status=444',
    'route-absent/'   => 'bloom_route absent $arg_id zone=ids to=@routed',
    'route-present/'  => 'bloom_route present $arg_id zone=ids to=@routed',
    'route-uri/'      => 'bloom_route absent $arg_id zone=ids to=/target',
    'route-args/'     => 'bloom_route absent $arg_id zone=ids
                          to=/target/$arg_n?id=$arg_id&x',
    'route-post/'     => 'bloom_route absent $arg_id zone=ids to=@post',
    'route-post-uri/' => 'bloom_route absent $arg_id zone=ids to=/by-uri?n=1',

    'page-uri/'    => 'error_page 404 /page;
                       bloom_reject absent $arg_id zone=ids',
    'page-named/'  => 'error_page 404 = @page;
                       bloom_reject absent $arg_id zone=ids',
    'page-status/' => 'error_page 404 =202 /page;
                       bloom_reject absent $arg_id zone=ids',
    '= /page'      => 'return 200 "page $bloom_status $bloom_zone"',
    '@page'        => 'return 200 "named $bloom_status $bloom_zone"',

    'order/'    => "bloom_pass present \$arg_id zone=ids;
                    bloom_reject present \$arg_id zone=bad;
                    bloom_reject absent \$arg_id zone=empty status=410",
    'reversed/' => "bloom_reject present \$arg_id zone=bad;
                    bloom_pass present \$arg_id zone=ids; $fires",
    'skip/'     => 'bloom_reject absent $arg_none zone=ids status=410;
                    bloom_reject absent $arg_id zone=ids',
    'last/'     => 'bloom_reject present $arg_a zone=bad;
                    bloom_reject present $arg_b zone=ids',

    'composed/'  => 'bloom_reject absent "$arg_a$arg_b" zone=ids',
    'header/'    => 'bloom_reject absent $http_x_key zone=ids;
                     proxy_pass_request_headers off',
    'decoded/'   => 'bloom_reject absent $arg_id zone=ids decode=uri',
    'lines/'     => 'bloom_reject absent $arg_id zone=lines decode=uri',
    'early/'     => 'set $early "<$bloom_status$bloom_zone>";
                     bloom_reject absent $arg_id zone=ids;
                     add_header X-Bloom
                         "$early $bloom_status $bloom_zone" always',
    'unchecked/' => 'set $x 1',
);

configure_rules($t, \%keys, <<'CONF' . locations(\%rules, 8081) . '}',
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
        location /by-uri { proxy_pass http://127.0.0.1:%%PORT_8082%%; }
CONF
                backend => 8081);

my $backend = $t->backend(8082, sub { "got $_[0]{method} $_[0]{uri}" });

$t->run;


# Waits for the line of the access log about a request and returns what it says.

sub logged {
    my ($uri) = @_;

    return wait_until(sub {
        $t->read_file('outcome.log') =~ /^\Q$uri\E (.*)$/m && $1;
    }) || "no line about $uri";
}


subtest 'each rule fires on its condition' => sub {
    my @expected = (
        # location         present key           absent key
        ['pass-absent',    '410 REJECTED empty', '200 PASSED ids'],
        ['pass-present',   '200 PASSED ids',     '410 REJECTED empty'],
        ['reject-absent',  '200 PASSED ids',     '404 REJECTED ids'],
        ['reject-present', '403 REJECTED ids',   '200 PASSED ids'],
        ['reject-451',     '200 PASSED ids',     '451 REJECTED ids'],
        ['reject-400',     '400 REJECTED ids',   '200 PASSED ids'],
        ['reject-599',     '200 PASSED ids',     '599 REJECTED ids'],
        ['route-absent',   '200 PASSED ids',     '200 ROUTED ids'],
        ['route-present',  '200 ROUTED ids',     '200 PASSED ids'],
    );

    for (@expected) {
        my ($name, $in, $out) = @$_;

        outcomes_are($t, "/$name/?id=one  $in\n/$name/?id=none  $out");

        my ($status, $bloom, $zone) = split ' ', $out;
        is(logged("/$name/?id=none"), "[$bloom] [$zone] $status",
           "the access log has the outcome of $name for an absent key");
    }

    is($t->get('/close/?id=none')->status, 0,
       'status=444 closes the connection');
    is(logged('/close/?id=none'), '[REJECTED] [ids] 444',
       'the access log has a rejection by status=444');
    is(logged('/unchecked/?id=none'), '[-] [-] 200',
       'the access log has no outcome without rules')
        if $t->get('/unchecked/?id=none');
    is($t->head('/reject-absent/?id=none')->status, 404,
       'a HEAD request for an absent key is rejected');

    outcomes_are($t, <<'END');
/early/?id=none         404 <> REJECTED ids  the variables are empty until then
/unchecked/?id=none     200  the variables are empty without rules
/reject-absent/?id=one  "backend /reject-absent/?id=one"  a request is passed
END
    unlike($t->get('/reject-absent/?id=none')->body, qr/backend/,
           'a rejected request does not reach the backend');

    my ($rejected, $next) = $t->pipeline(
        $t->request_text(POST => '/reject-absent/?id=none', body => 'a=b',
                         keepalive => 1), '/reject-absent/?id=one');
    is($rejected->status . ' ' . $next->status, '404 200',
       'the body of a rejected request is not read as the next request');
};


subtest 'a route leads to a named location or to a URI' => sub {
    outcomes_are($t, <<'END');
/route-absent/a%20b?id=none  "routed /route-absent/a b id=none"  it is kept
/route-uri/?id=none       "target /target"  a URI replaces URI and arguments
/route-args/?id=none&n=7  "target /target/7 id=none&x none"  variables count
/route-args/?id=one&n=7   "backend /route-args/?id=one&n=7"  it is not routed
END

    my $body = 'name=' . 'v' x 20_000;

    for (['route-post', '/route-post/?id=none', body => $body],
         ['route-post', '/route-post/?id=none', chunks => ['ab', 'cd']],
         ['route-post-uri', '/by-uri?n=1', body => $body])
    {
        my ($name, $asked, $how, $sent) = @$_;

        is($t->request(POST => "/$name/?id=none", $how => $sent)->body,
           "got POST $asked",
           "a POST request with a $how stays one on the way of $name");
        is(($backend->requests)[-1]{body}, ref $sent ? join('', @$sent) : $sent,
           "it has its $how");
    }
};


subtest 'a rejected request is answered with the error page' => sub {
    for (['uri', '404 page REJECTED ids'], ['named', '200 named REJECTED ids'],
         ['status', '202 page REJECTED ids'])
    {
        my ($page, $expected) = @$_;
        my $r = $t->get("/page-$page/?id=none");

        is($r->status . ' ' . $r->body, $expected,
           "an error page by $page has the variables");
    }

    is(logged('/page-named/?id=none'), '[REJECTED] [ids] 200',
       'the access log has the outcome of a request with a named error page');
};


subtest 'the first rule that fires decides' => sub {
    outcomes_are($t, <<'END');
/order/?id=one      200 PASSED ids      a bloom_pass that fires ends the rules
/order/?id=evil     403 REJECTED bad    after a bloom_pass that does not fire
/order/?id=both     200 PASSED ids      before a bloom_reject that would fire
/order/?id=none     410 REJECTED empty  the last rule, if no other one fires
/reversed/?id=both  403 REJECTED bad    before a bloom_pass that would fire
/reversed/?id=one   200 PASSED ids      after a bloom_reject that does not fire
/last/?a=1&b=2      200 PASSED ids      $bloom_zone is the last zone asked
/last/?a=1          200 PASSED bad      not the zone of a rule without a key
END
};


subtest 'a rule without a key does not fire' => sub {
    outcomes_are($t, <<'END');
/reject-absent/      200                 the argument is missing
/reject-absent/?id=  200                 the argument is empty
/order/              200                 no rule has a key
/pass-absent/        410 REJECTED empty  the next rule decides
/skip/?id=none       404 REJECTED ids    the second of two rules rejects
/skip/?id=one        200 PASSED ids      the second of two rules passes
/skip/?none=one      200 PASSED ids      the first of two rules passes
END
    is(logged('/reject-absent/'), '[-] [-] 200',
       'the access log has no outcome of a request that is not checked');
};


subtest 'a key may have any bytes' => sub {
    for (["caf\xc3\xa9", 'UTF-8'], ["\xff\x80\xfe", 'bytes that are not text'],
         ['a"b\\c', 'a quote and a backslash'], ["tab\tkey", 'a tab'],
         [$huge, '30,000 bytes'])
    {
        my ($key, $what) = @$_;
        my @outcomes = map {
            outcome($t, '/header/', headers => { 'X-Key' => $_ })
        } $key, "$key.";

        is("@outcomes", '200 PASSED ids 404 REJECTED ids',
           "a key in a header with $what is present, a longer one is not");
    }

    is(outcome($t, '/header/', headers => { 'X-Key' => 'y' x 32_700 }),
       '404 REJECTED ids', 'a key in a header of almost 32 KB is absent');

    outcomes_are($t, <<'END');
/composed/?a=o&b=ne         200 PASSED ids      a key of two variables
/composed/?a=o&b=n          404 REJECTED ids    another key of two variables
/decoded/?id=nul%00key      200 PASSED ids      a NUL
/decoded/?id=nul%00key%00   404 REJECTED ids    a NUL, and another at the end
/decoded/?id=nul            404 REJECTED ids    no key is truncated at a NUL
/decoded/?id=%00            404 REJECTED ids    a NUL alone
/decoded/?id=%ff%80%FE      200 PASSED ids      bytes above 0x7f
/decoded/?id=%ff%80%FE%00   404 REJECTED ids    bytes above 0x7f, and a NUL
/decoded/?id=a%22b%5cc      200 PASSED ids      a quote and a backslash
/decoded/?id=a%22b%5cc%00   404 REJECTED ids    a backslash, and a NUL
/decoded/?id=%20            200 PASSED ids      a single space
/decoded/?id=%20%00         404 REJECTED ids    a space and a NUL
/lines/?id=two%0alines      200 PASSED lines    a newline
/lines/?id=two%0a           404 REJECTED lines  no key is truncated at a newline
END
};


done_testing;
