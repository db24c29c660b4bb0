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

my %rules = (
    location  => 'set_real_ip_from 127.0.0.1;
                  bloom_reject present $remote_addr zone=bad',
    untrusted => 'set_real_ip_from 192.0.2.1;
                  bloom_reject present $remote_addr zone=bad',
    limited   => 'bloom_reject absent $arg_id zone=ids; limit_req zone=all',
    unknown   => 'limit_req zone=unknown',
    denied    => 'bloom_reject absent $arg_id zone=ids; deny all',
    returned  => 'bloom_reject absent $arg_id zone=ids; return 204',
);

configure_rules($t, { ids => ['one'], bad => ['192.0.2.66'] },
                <<'CONF' . locations(\%rules, 8090) . '}', backend => 8090);
    bloom_lookup $arg_id $known zone=ids;
    map $known $unknown { 0 $remote_addr; }

    limit_req_zone $server_port zone=all:1m rate=1r/m;
    limit_req_zone $unknown zone=unknown:1m rate=1r/m;
    limit_req_status 429;

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
        listen 127.0.0.1:%%PORT_8080%%;
CONF

$t->run;


subtest 'rules run after realip' => sub {
    plan skip_all => 'nginx has no realip module'
        unless $t->nginx_build =~ /--with-http_realip_module/;

    my @from = map { [headers => { 'X-Real-IP' => $_,
                                   'X-Forwarded-For' => $_ }] }
                   '192.0.2.66', '192.0.2.7';

    outcomes_are($t, <<'END', @{ $from[0] });
    /location   403  a location has the listed address of realip
    /untrusted  200  realip does not trust the client
END
    outcomes_are($t, '/location  200  the address is not listed',
                 @{ $from[1] });
    outcomes_are($t, '/  403  a server has the listed address of realip',
                 port => 8081, @{ $from[0] });
    outcomes_are($t, '/  200  the address is not listed', port => 8081,
                 @{ $from[1] });
};


subtest 'rules run before limit_req' => sub { outcomes_are($t, <<'END') };
    /limited?id=none  404  an absent key is rejected
    /limited?id=none  404  an absent key is rejected again
    /limited?id=one   200  rejected requests have not taken the token
    /limited?id=one   429  a second request for a present key is limited
    /limited?id=none  404  an absent key is rejected under an exhausted limit
END


subtest 'limit_req evaluates the variable of bloom_lookup'
    => sub { outcomes_are($t, <<'END') };
    /unknown?id=one   200  a present key is not limited
    /unknown?id=one   200  a present key is not limited again
    /unknown?id=none  200  the first absent key is not limited
    /unknown?id=more  429  the second absent key is limited
    /unknown?id=one   200  an exhausted limit does not limit a present key
    /unknown          200  a request without a key is not limited
END


subtest 'rules run before access and after rewrite'
    => sub { outcomes_are($t, <<'END') };
    /denied?id=none    404  an absent key is rejected before "deny all"
    /denied?id=one     403  "deny all" denies what a rule passes
    /returned?id=none  204  a "return" answers before any rule runs
END


done_testing;
