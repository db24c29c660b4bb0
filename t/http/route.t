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

configure_rules($t, { bad => ['listed'], sites => ['listed'] },
                <<'CONF', backend => 8090);
    bloom_arg q $q $q_escaped;

    add_header X-Bloom "$bloom_status $bloom_zone" always;
    proxy_set_header Authorization "";

    map $bloom_status $listed { ROUTED $bloom_key; default ""; }
    limit_req_zone $listed zone=listed:1m rate=1r/m;
    limit_req_zone $server_port zone=all:1m rate=1r/m;
    limit_req_status 429;

    server {
        listen 127.0.0.1:%%PORT_8080%%;
        root %%TESTDIR%%;

        location = /basic {
            auth_basic realm;
            auth_basic_user_file users;
            bloom_route present $arg_k zone=bad to=@target;
            proxy_pass http://127.0.0.1:%%PORT_8090%%;
        }
        location = /denied {
            deny all;
            bloom_route present $arg_k zone=bad to=@target;
        }
        location = /asked {
            auth_request /check;
            bloom_route present $arg_k zone=bad to=@target;
            proxy_pass http://127.0.0.1:%%PORT_8090%%;
        }
        location = /check {
            internal;
            if ($http_let != in) { return 403; }
            return 204;
        }
        location = /any {
            satisfy any;
            deny all;
            auth_basic realm;
            auth_basic_user_file users;
            bloom_route present $arg_k zone=bad to=@target;
        }
        location = /body {
            auth_basic realm;
            auth_basic_user_file users;
            bloom_route present $arg_k zone=bad to=@backend;
        }
        location @backend { proxy_pass http://127.0.0.1:%%PORT_8081%%; }
        location = /rejected {
            deny all;
            bloom_reject present $arg_k zone=bad;
        }
        location = /try {
            bloom_route present $arg_k zone=bad to=@target;
            try_files /page =404;
        }
        location = /mirrored {
            mirror /mirror;
            bloom_route present $arg_k zone=bad to=@target;
            proxy_pass http://127.0.0.1:%%PORT_8090%%;
        }
        location = /mirror {
            internal;
            proxy_pass http://127.0.0.1:%%PORT_8081%%/mirror;
        }
        location = /first-limited {
            limit_req zone=listed;
            bloom_route present $arg_k zone=bad to=@target;
            proxy_pass http://127.0.0.1:%%PORT_8090%%;
        }
        location = /both-limited {
            limit_req zone=all;
            bloom_route present $arg_k zone=bad to=@limited;
        }
        location @limited {
            limit_req zone=all;
            return 200 target;
        }
        location = /target-denied {
            bloom_route present $arg_k zone=bad to=@denied;
        }
        location @denied {
            deny all;
        }
        location = /methods {
            limit_except GET { deny all; }
            bloom_route present $arg_k zone=bad to=@target;
        }
        location = /dry {
            bloom_dry_run on;
            deny all;
            bloom_route present $arg_k zone=bad to=@target;
        }
        location = /answered {
            bloom_route present $arg_k zone=bad to=@target;
            return 200 answered;
        }
        location = /ordered {
            bloom_pass present $arg_good zone=sites;
            bloom_route present $arg_k zone=bad to=@target;
            bloom_reject present $arg_k zone=bad;
            proxy_pass http://127.0.0.1:%%PORT_8090%%;
        }
        location = /hidden {
            bloom_route present $arg_k zone=bad to=/inner;
        }
        location = /inner {
            internal;
            return 200 inner;
        }
        location @target { return 200 target; }

        location /bloom/ { bloom_api; }

        location = /search {
            bloom_route present $arg_k zone=bad to=/find?q=$q;
        }
        location = /search-escaped {
            bloom_route present $arg_k zone=bad to=/find?q=$q_escaped;
        }
        location = /find { proxy_pass http://127.0.0.1:%%PORT_8090%%; }
        location = /fetch {
            bloom_route present $arg_k zone=bad to=/files/$q;
        }
        location /files/ { }
    }

    # all locations inherit one list

    server {
        listen 127.0.0.1:%%PORT_8082%%;
        bloom_route present $arg_k zone=bad to=@target;

        location / {
            auth_basic realm;
            auth_basic_user_file users;
            error_page 401 = /public;
            proxy_pass http://127.0.0.1:%%PORT_8090%%;
        }
        location /own/ {
            auth_basic realm;
            auth_basic_user_file users;
            error_page 401 = @own;
            proxy_pass http://127.0.0.1:%%PORT_8090%%;
        }
        location /asked/ {
            auth_request /check;
            proxy_pass http://127.0.0.1:%%PORT_8090%%;
        }
        location = /check {
            internal;
            proxy_pass http://127.0.0.1:%%PORT_8081%%/let;
        }
        location = /public { proxy_pass http://127.0.0.1:%%PORT_8090%%; }
        location @own {
            bloom_rules off;
            bloom_reject present $arg_k zone=sites;
        }
        location @target { return 200 target; }
    }
CONF

my $backend = $t->backend(8081);
$t->run;

my %user = (headers => { Authorization => 'Basic dXNlcjpzZWNyZXQ=' });

sub is_outcome {
    my ($path, $expected, $name, @option) = @_;

    is(outcome($t, $path, @option), $expected, $name);
}


subtest 'a route is taken after the checks of its location' => sub {
    is_outcome('/basic?k=listed', '401 ROUTED bad',
               'a listed key needs the password of the location');
    is($t->get('/basic?k=listed', %user)->body, 'target',
       'a listed key with the password is routed');
    is_outcome('/basic?k=other', '401 PASSED bad',
               'a key that is not listed needs the password, too');
    is_outcome('/denied?k=listed', '403 ROUTED bad',
               'a listed key does not pass "deny all"');
    is_outcome('/any?k=listed', '401 ROUTED bad',
               'a listed key does not pass "satisfy any"');
    is($t->get('/any?k=listed', %user)->body, 'target',
       'a listed key that satisfies one check is routed');
    is_outcome('/asked?k=listed', '403 ROUTED bad',
               'a listed key does not pass auth_request');
    is_outcome('/rejected?k=listed', '403 REJECTED bad',
               'a rejection still comes before access');
    is($t->get('/asked?k=listed', headers => { Let => 'in' })->body, 'target',
       'a listed key that auth_request lets in is routed');
    is($t->post('/methods?k=listed', '')->status, 403,
       'a listed key does not pass limit_except');
    is($t->get('/methods?k=listed')->body, 'target',
       'a listed key with a permitted method is routed');
    is_outcome('/dry?k=listed', '403 ROUTED_DRY_RUN bad',
               'a dry run changes nothing about access');
};


subtest 'only a route that is taken counts as routed' => sub {
    my $routed = sub { zone_state($t, 'bad')->{counters}{routed} };
    my $before = $routed->();

    $t->get('/basic?k=listed');
    $t->get('/denied?k=listed');
    $t->get('/fetch?k=listed&q=..');
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


subtest 'the first rule that fires decides' => sub {
    is($t->get('/ordered?k=listed')->body, 'target',
       'a bloom_reject after the route does not run');
    is($t->get('/ordered?k=listed&good=listed')->body,
       'backend /ordered?k=listed&good=listed',
       'a bloom_pass before the route lets the request pass');
    is($t->get('/answered?k=listed')->body, 'answered',
       'a return in the location answers before the rules');
};


subtest 'a route may lead to an internal location' => sub {
    is($t->get('/hidden?k=listed')->body, 'inner',
       'a routed request is answered by an internal location');
    is($t->get('/inner?k=listed')->status, 404,
       'a client does not reach the internal location');
};


subtest 'the request of auth_request is not routed' => sub {
    my $before = () = $backend->requests;

    is($t->get('/asked/?k=listed', port => 8082)->body, 'target',
       'the request of the client is routed');
    is((() = $backend->requests) - $before, 1,
       'the request of auth_request asks its own service');
};


subtest 'the checks of the target hold, too' => sub {
    is_outcome('/target-denied?k=listed', '403 ROUTED bad',
               'the target refuses a routed request');
};


subtest 'a route comes before try_files and mirror' => sub {
    is($t->get('/try?k=listed')->body, 'target',
       'a listed key is routed before try_files');
    is($t->get('/try?k=other')->body, "a page\n",
       'a key that is not listed reaches try_files');

    my $before = () = $backend->requests;

    is($t->get('/mirrored?k=listed')->body, 'target',
       'a listed key is routed before mirror');
    is((() = $backend->requests) - $before, 0,
       'a routed request is not mirrored');
};


subtest 'limit_req counts once, in the first location' => sub {
    is_outcome('/first-limited?k=listed', '200 ROUTED bad',
               'the first request with a listed key is routed');
    is_outcome('/first-limited?k=listed', '429 ROUTED bad',
               'the second one is limited in the first location');
    is_outcome('/first-limited?k=other', '200 PASSED bad',
               'a request whose key is not listed is not limited');
    is_outcome('/both-limited?k=listed', '200 ROUTED bad',
               'two limits on the way count a request once');
};


subtest 'an error page of a check does not take the route' => sub {
    my $answer = $t->get('/?k=listed', port => 8082);
    is($answer->body, 'backend /public',
       'the page for 401 inherits the list and is shown');
    is($t->get('/?k=listed', port => 8082, %user)->body, 'target',
       'a request with the password is routed');
    is_outcome('/own/?k=listed', '403 REJECTED sites',
               'the rules of the location of a page for 401 run',
               port => 8082);
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

    is_outcome('/search?k=listed&q=a%0d%0aX:%20y', '400 ROUTED bad',
               'a line end in the arguments of a target is refused');
    like($t->log_since($mark),
         qr/the query "q=a\\x0D\\x0AX: y" of the target has a control character or a space; .* of "bloom_route" in \S+nginx\.conf:\d+/,
         'the log says what is unsafe, and where');
    is_outcome('/search?k=listed&q=a%20b', '400 ROUTED bad',
               'a space in the arguments of a target is refused');
    is($t->get('/search-escaped?k=listed&q=a%20b')->body,
       'backend /find?q=a%20b', 'an escaped variable is sent as it is');
    is($t->get('/fetch?k=listed&q=good.txt')->body, "good\n",
       'a safe path is served');

    for my $q ('../secret.txt', '..', 'a/..', 'a%00', 'a%0ab', 'a%7f') {
        is_outcome("/fetch?k=listed&q=$q", '400 ROUTED bad',
                   "the path with $q is refused");
    }

    is_outcome('/fetch?k=listed&q=..good', '404 ROUTED bad',
               'two dots at the beginning of a name are not refused');
};


done_testing;
