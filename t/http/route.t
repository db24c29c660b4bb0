#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests when bloom_route takes its way: after the access checks of the location
# that was asked for, and before try_files and mirror.  A target that a client
# has made unsafe is refused.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Rules;

my $t = BloomTest->new;

$t->write_file('users', "user:{PLAIN}secret\n");
$t->write_file('page', "a page\n");
$t->write_file('secret.txt', "secret\n");
mkdir $t->testdir . '/files' or die "mkdir: $!";
$t->write_file('files/good.txt', "good\n");

my $route = 'bloom_route present $arg_k zone=bad to=@target';
my $basic = 'auth_basic realm; auth_basic_user_file users';

my %rules = (
    '= /basic'    => "$basic; $route",
    '= /denied'   => "deny all; $route",
    '= /asked'    => "auth_request /check; $route",
    '= /any'      => "satisfy any; deny all; $basic; $route",
    '= /methods'  => "limit_except GET { deny all; } $route",
    '= /dry'      => "bloom_dry_run on; deny all; $route",
    '= /rejected' => 'deny all; bloom_reject present $arg_k zone=bad',
    '= /body'     => "$basic; " . $route =~ s/target/backend/r,
    '@backend'    => 'proxy_pass http://127.0.0.1:%%PORT_8081%%',
    '= /try'      => "$route; try_files /page =404",
    '= /mirrored' => "mirror /mirror; $route",
    '= /mirror'   => 'internal;
                      proxy_pass http://127.0.0.1:%%PORT_8081%%/mirror',
    '= /answered' => "$route; return 200 answered",
    '= /ordered'  => "bloom_pass present \$arg_good zone=sites; $route;
                      bloom_reject present \$arg_k zone=bad",

    '= /first-limited' => "limit_req zone=listed; $route",
    '= /both-limited'  => 'limit_req zone=all;
                           bloom_route present $arg_k zone=bad to=@limited',
    '@limited'         => 'limit_req zone=all; return 200 target',
    '= /target-denied' => 'bloom_route present $arg_k zone=bad to=@denied',
    '@denied'          => 'deny all',
    '= /hidden'        => 'bloom_route present $arg_k zone=bad to=/inner',
    '= /inner'         => 'internal; return 200 inner',

    '= /search'         => 'bloom_route present $arg_k zone=bad to=/find?q=$q',
    '= /search-escaped' => 'bloom_route present $arg_k zone=bad
                            to=/find?q=$q_escaped',
    '= /find'           => 'add_header X-Found 1',
    '= /fetch'          => 'bloom_route present $arg_k zone=bad to=/files/$q',
);

# All locations of the second server inherit one list.

my %inherit = (
    ''          => "$basic; error_page 401 = /public",
    'own/'      => "$basic; error_page 401 = \@own",
    'asked/'    => 'auth_request /check',
    '= /check'  => 'internal; proxy_pass http://127.0.0.1:%%PORT_8081%%/let',
    '= /public' => 'add_header X-Public 1',
    '@own'      => 'bloom_rules off; bloom_reject present $arg_k zone=sites',
);

my ($first, $second) = map { locations($_, 8090) } \%rules, \%inherit;

configure_rules($t, { bad => ['listed'], sites => ['listed'] },
                <<"CONF", backend => 8090);
    bloom_arg q \$q \$q_escaped;

    add_header X-Bloom "\$bloom_status \$bloom_zone" always;
    proxy_set_header Authorization "";

    map \$bloom_status \$listed { ROUTED \$bloom_key; default ""; }
    limit_req_zone \$listed zone=listed:1m rate=1r/m;
    limit_req_zone \$server_port zone=all:1m rate=1r/m;
    limit_req_status 429;

    server {
        listen 127.0.0.1:%%PORT_8080%%;
        root %%TESTDIR%%;
        location \@target { return 200 target; }
        location /files/ { }
        location /bloom/ { bloom_api; }
        location = /check {
            internal;
            if (\$http_let != in) { return 403; }
            return 204;
        }
        $first
    }
    server {
        listen 127.0.0.1:%%PORT_8082%%;
        $route;
        location \@target { return 200 target; }
        $second
    }
CONF

my $backend = $t->backend(8081);
$t->run;

my %user = (headers => { Authorization => 'Basic dXNlcjpzZWNyZXQ=' });

# Returns how many requests a request brings to the backend beside the routes.

sub reached {
    my ($path, %option) = @_;

    my $before = () = $backend->requests;

    $t->get($path, %option);

    return (() = $backend->requests) - $before;
}


subtest 'a route is taken after the checks of its location' => sub {
    outcomes_are($t, <<'END');
/basic?k=listed         401 ROUTED bad          a listed key needs the password
/basic?k=other          401 PASSED bad          another key needs it, too
/denied?k=listed        403 ROUTED bad          "deny all"
/any?k=listed           401 ROUTED bad          "satisfy any"
/asked?k=listed         403 ROUTED bad          auth_request
/rejected?k=listed      403 REJECTED bad        a rejection is before access
POST /methods?k=listed  403 ROUTED bad          limit_except
/methods?k=listed       "target"                a permitted method is routed
/dry?k=listed           403 ROUTED_DRY_RUN bad  a dry run changes nothing
/target-denied?k=listed  403 ROUTED bad         the target has checks, too
END
    outcomes_are($t, <<'END', %user);
/basic?k=listed  "target"  a listed key with the password is routed
/any?k=listed    "target"  a listed key that satisfies one check is routed
END
    outcomes_are($t, '/asked?k=listed  "target"  auth_request lets it in',
                 headers => { Let => 'in' });
};


subtest 'only a route that is taken counts as routed' => sub {
    my $routed = sub { zone_state($t, 'bad')->{counters}{routed} };
    my $before = $routed->();

    $t->get("/$_") for 'basic?k=listed', 'denied?k=listed',
                       'fetch?k=listed&q=..';
    is($routed->() - $before, 0,
       'a request that a check or an unsafe target stops is not routed');

    $t->get('/basic?k=listed', %user);
    $t->get('/hidden?k=listed');
    is($routed->() - $before, 2, 'a request that reaches its target is routed');
};


subtest 'the log says that a check refused a request with a listed key' => sub {
    my $mark = $t->log_mark;

    $t->get('/denied?k=listed');
    like($t->log_since($mark),
         qr/routing request: key "listed" maybe .*access forbidden by rule/s,
         'the refusal comes after the decision');
};


subtest 'rules, routes, try_files, mirror and limit_req have an order' => sub {
    outcomes_are($t, <<'END');
/ordered?k=listed        "target"        a later bloom_reject does not run
/ordered?k=listed&good=listed  "backend /ordered?k=listed&good=listed"  passed
/answered?k=listed       "answered"      a return answers before the rules
/hidden?k=listed         "inner"         a route leads to an internal location
/inner?k=listed          404             a client does not get there
/try?k=listed            "target"        before try_files
/try?k=other             "a page"        try_files
/mirrored?k=listed       "target"        before mirror
/first-limited?k=listed  200 ROUTED bad  the first request with a listed key
/first-limited?k=listed  429 ROUTED bad  the first location limits the second
/first-limited?k=other   200 PASSED bad  another key is not limited
/both-limited?k=listed   200 ROUTED bad  two limits count a request once
END
    is(reached('/mirrored?k=listed'), 0, 'a routed request is not mirrored');
    is(reached('/asked/?k=listed', port => 8082), 1,
       'the request of auth_request asks its own service');
    outcomes_are($t, '/asked/?k=listed  "target"  the client is routed',
                 port => 8082);
};


subtest 'an error page of a check does not take the route' => sub {
    outcomes_are($t, <<'END', port => 8082);
/?k=listed      "backend /public"   the page for 401 inherits the list
/own/?k=listed  403 REJECTED sites  the rules of the page's location run
END
    outcomes_are($t, '/?k=listed  "target"  with the password', port => 8082,
                 %user);
};


subtest 'a body survives the checks and the route' => sub {
    is($t->post('/body?k=listed', 'the body')->status, 401,
       'a request with a body needs the password');
    is($t->post('/body?k=listed', 'the body', %user)->status, 200,
       'a request with a body is routed');
    is(($backend->requests)[-1]{body}, 'the body',
       'the target has the body of the request');
};


subtest 'an unsafe target is refused' => sub {
    my $mark = $t->log_mark;

    outcomes_are($t, <<'END');
/search?k=listed&q=a%0d%0aX:%20y    400 ROUTED bad  a line end in the arguments
/search?k=listed&q=a%20b            400 ROUTED bad  a space in the arguments
/search-escaped?k=listed&q=a%20b    "backend /find?q=a%20b"  an escaped space
/fetch?k=listed&q=good.txt          "good"          a safe path
/fetch?k=listed&q=../secret.txt     400 ROUTED bad
/fetch?k=listed&q=..                400 ROUTED bad
/fetch?k=listed&q=a/..              400 ROUTED bad
/fetch?k=listed&q=a%00              400 ROUTED bad
/fetch?k=listed&q=a%0ab             400 ROUTED bad
/fetch?k=listed&q=a%7f              400 ROUTED bad
/fetch?k=listed&q=..good            404 ROUTED bad  two dots before a name
END
    like($t->log_since($mark),
         qr/"q=a\\x0D\\x0AX: y" of the target .* of "bloom_route" in \S+nginx\.conf:\d+/,
         'the log says what is unsafe, and where');
};


done_testing;
