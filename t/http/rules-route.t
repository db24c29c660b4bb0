#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests routes among nginx's other checks: a rule decides before the access checks of
# the location that was asked for, and the route is taken after them.

use strict;
use warnings;

use MIME::Base64 qw(encode_base64);

use BloomTest;
use BloomTest::Rules;

my $t = BloomTest->new;

# The zone "old" answers unknown: its image is older than max_age.

$t->build_image('old.bloom', ['one'], '--as-of', '2020-01-01T00:00:00Z');
$t->write_file('password', "user:{PLAIN}secret\n");
$t->write_file('page', "a file\n");

configure_rules($t, { ids => ['one'], bad => ['evil'] }, <<'CONF', backend => 8090);
    bloom_zone zone=old file=%%TESTDIR%%/old.bloom max_age=1d;
    bloom_arg id $id $id_escaped;

    limit_req_zone $server_port zone=first:1m rate=1r/m;
    limit_req_zone $server_port zone=target:1m rate=1r/m;
    limit_req_status 429;

    add_header X-Bloom "$bloom_status $bloom_zone" always;

    server {
        listen 127.0.0.1:%%PORT_8080%%;
        root %%TESTDIR%%;

        location @confirm { proxy_pass http://127.0.0.1:%%PORT_8090%%; }
        location @target  {
            auth_basic target;
            auth_basic_user_file %%TESTDIR%%/password;
            proxy_pass http://127.0.0.1:%%PORT_8090%%;
        }
        location @limited {
            limit_req zone=target;
            proxy_pass http://127.0.0.1:%%PORT_8090%%;
        }
        location @rules {
            bloom_reject present $id zone=bad status=451;
            proxy_pass http://127.0.0.1:%%PORT_8090%%;
        }
        location = /no { internal; return 401; }
        location = /yes { internal; return 204; }

        location /password {
            auth_basic first;
            auth_basic_user_file %%TESTDIR%%/password;
            bloom_route present $id zone=bad to=@confirm;
            proxy_pass http://127.0.0.1:%%PORT_8090%%/open;
        }
        location /request-no {
            auth_request /no;
            bloom_route present $id zone=bad to=@confirm;
            proxy_pass http://127.0.0.1:%%PORT_8090%%/open;
        }
        location /request-yes {
            auth_request /yes;
            bloom_route present $id zone=bad to=@confirm;
            proxy_pass http://127.0.0.1:%%PORT_8090%%/open;
        }
        location /denied {
            deny all;
            bloom_route present $id zone=bad to=@confirm;
            proxy_pass http://127.0.0.1:%%PORT_8090%%/open;
        }
        location /both {
            auth_basic first;
            auth_basic_user_file %%TESTDIR%%/password;
            bloom_route present $id zone=bad to=@target;
            proxy_pass http://127.0.0.1:%%PORT_8090%%/open;
        }
        location /only-target {
            bloom_route present $id zone=bad to=@target;
            proxy_pass http://127.0.0.1:%%PORT_8090%%/open;
        }
        location /page {
            deny all;
            error_page 403 = /error;
            bloom_route present $id zone=bad to=@confirm;
        }
        location /error {
            try_files /none /error-file;
        }
        location /error-file { return 200 "an error page"; }
        location /files {
            bloom_route present $id zone=bad to=@confirm;
            try_files /page =404;
        }
        location /returned {
            bloom_route present $id zone=bad to=@confirm;
            empty_gif;
        }
        location /limits {
            limit_req zone=first;
            bloom_route present $id zone=bad to=@limited;
            proxy_pass http://127.0.0.1:%%PORT_8090%%/open;
        }
        location /then-rules {
            bloom_route absent $id zone=ids to=@rules;
            proxy_pass http://127.0.0.1:%%PORT_8090%%/open;
        }

        location /unknown {
            auth_basic first;
            auth_basic_user_file %%TESTDIR%%/password;
            bloom_unavailable to=@confirm;
            bloom_reject absent $id zone=old;
            bloom_reject present $id zone=bad;
            proxy_pass http://127.0.0.1:%%PORT_8090%%/open;
        }
        location /unknown-uri {
            bloom_unavailable to=/exact?id=$id_escaped;
            location /unknown-uri/rule {
                bloom_reject absent $id zone=old;
                proxy_pass http://127.0.0.1:%%PORT_8090%%/open;
            }
            location /unknown-uri/dry {
                bloom_dry_run on;
                bloom_reject absent $id zone=old;
                proxy_pass http://127.0.0.1:%%PORT_8090%%/open;
            }
            location /unknown-uri/trial {
                bloom_reject absent $id zone=old dry_run;
                proxy_pass http://127.0.0.1:%%PORT_8090%%/open;
            }
            location /unknown-uri/pass {
                bloom_unavailable pass;
                bloom_reject absent $id zone=old;
                proxy_pass http://127.0.0.1:%%PORT_8090%%/open;
            }
        }
        location /exact { proxy_pass http://127.0.0.1:%%PORT_8090%%; }

        location /target/path   { bloom_route absent $id zone=ids to=/exact/$id; }
        location /target/files  { bloom_route absent $id zone=ids to=/exact/$id; }
        location /target/args   { bloom_route absent $id zone=ids to=/exact?q=$id; }
        location /target/escaped {
            bloom_route absent $id zone=ids to=/exact?q=$id_escaped;
        }
    }
CONF

$t->run;

my @user = (headers => { Authorization => 'Basic ' . encode_base64('user:secret', '') });

sub ask {
    my ($path, @options) = @_;

    my $response = $t->get($path, @options);
    return join ' ', $response->status, $response->header('X-Bloom') // '',
                $response->status == 200 ? $response->body =~ s/\?.*//sr : ();
}


subtest 'a route is taken after the access checks' => sub {
    for ([password => 401], ['request-no' => 401], [denied => 403]) {
        my ($place, $status) = @$_;

        is(ask("/$place?id=evil"), "$status ROUTED bad",
           "/$place answers $status to a request that is going to be routed");
        is(ask("/$place?id=good"), "$status PASSED bad",
           "/$place answers $status to a request that is not");
    }

    is(ask('/password?id=evil', @user), '200 ROUTED bad backend /password',
       'a request with the password is routed');
    is(ask('/password?id=good', @user), '200 PASSED bad backend /open',
       'a request with the password that is not listed is not routed');
    is(ask('/request-yes?id=evil'), '200 ROUTED bad backend /request-yes',
       'a request that auth_request passes is routed');
};


subtest 'the checks of the target come after that' => sub {
    is(ask('/only-target?id=evil'), '401 ROUTED bad',
       'a target with a password of its own asks for it');
    is(ask('/only-target?id=evil', @user), '200 ROUTED bad backend /only-target',
       'a request with that password reaches the target');
    is(ask('/both?id=evil'), '401 ROUTED bad', 'without a password, nothing opens');
    is(ask('/both?id=evil', @user), '200 ROUTED bad backend /both',
       'a password that both accept opens both');
    is(ask('/then-rules?id=none'), '200 ROUTED ids backend /then-rules',
       'the rules of the target run');
    is(ask('/then-rules?id=evil'), '451 REJECTED bad',
       'the rules of the target may reject');
};


subtest 'a route is taken instead of the content' => sub {
    is(ask('/files?id=evil'), '200 ROUTED bad backend /files',
       'a route is taken before try_files');
    is(ask('/files?id=good'), "200 PASSED bad a file\n", 'try_files works otherwise');
    is(ask('/returned?id=evil'), '200 ROUTED bad backend /returned',
       'a route is taken instead of the handler of a location');
};


subtest 'an error page on the way drops the route' => sub {
    is(ask('/page?id=evil'), '200 ROUTED bad an error page',
       'an error page of the access checks is shown, whatever it leads to');
};


subtest 'limits count once for a request' => sub {
    is(ask('/limits?id=evil'), '200 ROUTED bad backend /limits',
       'the first request takes the token of the first location');
    is(ask('/limits?id=evil'), '429 ROUTED bad',
       'the second request is limited in the first location');
};


subtest 'an unknown answer is routed' => sub {
    is(ask('/unknown?id=one'), '401 UNAVAILABLE old',
       'an unknown answer does not go around the password');
    is(ask('/unknown?id=one', @user), '200 UNAVAILABLE old backend /unknown',
       'a request with the password goes to the exact service');
    is(ask('/unknown?id=evil', @user), '200 UNAVAILABLE old backend /unknown',
       'later rules do not run');
    is(ask('/unknown-uri/rule?id=a%20b'), '200 UNAVAILABLE old backend /exact',
       'the target may be a URI');
    is(ask("/unknown-uri/$_?id=one"), '200 UNAVAILABLE old backend /open',
       "an unknown answer passes under $_") for qw(dry trial pass);
};


# What a client puts into a target.

subtest 'a target with what no URI has is refused' => sub {
    $t->expect_log(qr/request not routed to "/);

    for (['path', '%0d%0aX:%20y', 'its path has a control character'],
         ['path', 'a%00', 'its path has a control character'],
         ['path', 'a%7f', 'its path has a control character'],
         ['files', '../secret', 'its path has a segment ".."'],
         ['files', 'a/../../secret', 'its path has a segment ".."'],
         ['files', 'a/..', 'its path has a segment ".."'],
         ['args', 'a%20HTTP/1.1', 'its arguments have a control character or a space'],
         ['args', 'a%0d%0aHost:x', 'its arguments have a control character or a space'])
    {
        my ($place, $id, $why) = @$_;
        my $mark = $t->log_mark;

        is(ask("/target/$place?id=$id"), '400 ROUTED ids',
           "/target/$place refuses $id with 400");
        like($t->log_since($mark),
             qr/\Q$why\E; in "to=" of "bloom_route" in \S+:\d+, use an escaped variable/,
             "the log says what is wrong with $id, and where");
    }

    is(ask('/target/files?id=..a'), '200 ROUTED ids backend /exact/..a',
       'two dots within a segment are no segment');
    is($t->get('/target/escaped?id=a%20b%0d')->body, 'backend /exact?q=a%20b%0D',
       'an escaped variable goes through');
};

done_testing;
