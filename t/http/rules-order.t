#!/usr/bin/perl

# Rules run after realip and before limit_req and limit_conn, in static and
# dynamic builds alike.

use strict;
use warnings;

use BloomTest;

my $t = BloomTest->new;

$t->build_image('bad.bloom', ['192.0.2.66'], '-p', '1e-9', '--seed', 1);
$t->build_image('ids.bloom', ['one'], '-p', '1e-9', '--seed', 1);

# A burst of nothing and a rate of one a minute: of all requests that take a
# token, the first alone passes, however fast or slow this test runs.

$t->write_file_expand('nginx.conf', <<'CONF');
%%TEST_GLOBALS%%
events { }
http {
    %%TEST_GLOBALS_HTTP%%
    log_format limits '$request_uri [$limit_req_status]';
    access_log %%TESTDIR%%/limits.log limits;

    bloom_zone zone=bad file=%%TESTDIR%%/bad.bloom;
    bloom_zone zone=ids file=%%TESTDIR%%/ids.bloom;

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

    server {
        listen 127.0.0.1:%%PORT_8090%%;
        access_log off;
        location / { return 200 "backend"; }
    }
}
CONF

$t->run;

sub status { return $t->get(@_)->status }


subtest 'after realip' => sub {
    plan skip_all => 'nginx without realip'
        unless $t->nginx_build =~ /--with-http_realip_module/;

    my @bad = (headers => { 'X-Real-IP' => '192.0.2.66' });
    my @good = (headers => { 'X-Real-IP' => '192.0.2.7' });

    is(status('/location', @bad), 403, 'an address set in a location');
    is(status('/location', @good), 200, 'another one');
    is(status('/untrusted', @bad), 200, 'from whom it may not come');

    @bad = (port => 8081, headers => { 'X-Forwarded-For' => '192.0.2.66' });
    @good = (port => 8081, headers => { 'X-Forwarded-For' => '192.0.2.7' });

    is(status('/', @bad), 403, 'an address set in a server');
    is(status('/', @good), 200, 'another one');
};


subtest 'before limit_req' => sub {
    is(status('/limited?id=none'), 404, 'rejected') for 1 .. 3;
    is(status('/limited?id=one'), 200, 'the token is still there');
    is(status('/limited?id=one'), 429, 'now it is taken');
    is(status('/limited?id=none'), 404, 'what is absent is still absent');
};


subtest 'a lookup for limit_req' => sub {
    is(status('/unknown?id=one'), 200, 'a known key is not limited')
        for 1 .. 3;
    is(status('/unknown?id=none'), 200, 'the first unknown one passes');
    is(status('/unknown?id=more'), 429, 'the second is limited');
    is(status('/unknown?id=one'), 200, 'and the known one is not');
    is(status('/unknown'), 200, 'nor is a request without a key');
};


subtest 'other phases' => sub {
    is(status('/denied?id=none'), 404, 'before access');
    is(status('/denied?id=one'), 403, 'which decides about the rest');
    is(status('/returned?id=none'), 204, 'after return, which ends all');
};


done_testing;
