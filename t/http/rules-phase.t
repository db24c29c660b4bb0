#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests the phase in which rules run: after realip and before limit_req, in
# static and dynamic builds of nginx.

use strict;
use warnings;

use BloomTest;
use BloomTest::Rules;

my $t = BloomTest->new;

# The limits are one request a minute without a burst: of all requests that take
# a token only the first is passed, however fast or slow this test runs.

configure_rules($t, { ids => ['one'], bad => ['192.0.2.66'] },
                <<'CONF', backend => 8090);
    bloom_lookup $arg_id $known zone=ids;
    map $known $unknown { 0 $remote_addr; }

    limit_req_zone $server_port zone=all:1m rate=1r/m;
    limit_req_zone $unknown zone=unknown:1m rate=1r/m;
    limit_req_status 429;

    server {
        listen 127.0.0.1:%%PORT_8080%%;

        location /location {
            set_real_ip_from 127.0.0.1;
            bloom_reject present $remote_addr zone=bad;
            proxy_pass http://127.0.0.1:%%PORT_8090%%;
        }
        location /untrusted {
            set_real_ip_from 192.0.2.1;
            bloom_reject present $remote_addr zone=bad;
            proxy_pass http://127.0.0.1:%%PORT_8090%%;
        }
        location /limited {
            bloom_reject absent $arg_id zone=ids;
            limit_req zone=all;
            proxy_pass http://127.0.0.1:%%PORT_8090%%;
        }
        location /unknown {
            limit_req zone=unknown;
            proxy_pass http://127.0.0.1:%%PORT_8090%%;
        }
        location /denied {
            bloom_reject absent $arg_id zone=ids;
            deny all;
        }
        location /returned {
            bloom_reject absent $arg_id zone=ids;
            return 204;
        }
    }

    server {
        listen 127.0.0.1:%%PORT_8081%%;
        set_real_ip_from 127.0.0.1;
        real_ip_header X-Forwarded-For;

        location / {
            bloom_reject present $remote_addr zone=bad;
            proxy_pass http://127.0.0.1:%%PORT_8090%%;
        }
    }
CONF

$t->run;

sub status { return $t->get(@_)->status }


subtest 'rules run after realip' => sub {
    plan skip_all => 'nginx has no realip module'
        unless $t->nginx_build =~ /--with-http_realip_module/;

    my @bad = (headers => { 'X-Real-IP' => '192.0.2.66' });
    my @good = (headers => { 'X-Real-IP' => '192.0.2.7' });

    is(status('/location', @bad), 403,
       'a rule rejects a listed address that realip sets in a location');
    is(status('/location', @good), 200,
       'a rule passes another address that realip sets in a location');
    is(status('/untrusted', @bad), 200,
       'a rule ignores an address from a client that realip does not trust');

    @bad = (port => 8081, headers => { 'X-Forwarded-For' => '192.0.2.66' });
    @good = (port => 8081, headers => { 'X-Forwarded-For' => '192.0.2.7' });

    is(status('/', @bad), 403,
       'a rule rejects a listed address that realip sets in a server');
    is(status('/', @good), 200,
       'a rule passes another address that realip sets in a server');
};


subtest 'rules run before limit_req' => sub {
    is(status('/limited?id=none'), 404,
       "request $_ for an absent key is rejected") for 1 .. 3;
    is(status('/limited?id=one'), 200,
       'rejected requests have not taken the token of limit_req');
    is(status('/limited?id=one'), 429,
       'a second request for a present key is limited');
    is(status('/limited?id=none'), 404,
       'a request for an absent key is rejected under an exhausted limit');
};


subtest 'limit_req evaluates the variable of bloom_lookup' => sub {
    is(status('/unknown?id=one'), 200,
       "request $_ for a present key is not limited") for 1 .. 3;
    is(status('/unknown?id=none'), 200,
       'the first request for an absent key is not limited');
    is(status('/unknown?id=more'), 429,
       'the second request for an absent key is limited');
    is(status('/unknown?id=one'), 200,
       'a request for a present key is not limited by an exhausted limit');
    is(status('/unknown'), 200, 'a request without a key is not limited');
};


subtest 'rules run before access and after rewrite' => sub {
    is(status('/denied?id=none'), 404,
       'a request for an absent key is rejected before "deny all"');
    is(status('/denied?id=one'), 403,
       'a request that a rule passes is denied by "deny all"');
    is(status('/returned?id=none'), 204,
       'a "return" answers before any rule runs');
};


done_testing;
