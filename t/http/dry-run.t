#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests bloom_dry_run: a request that the rules would reject or route is passed,
# and the logs and variables say what would have happened.

use strict;
use warnings;

use BloomTest;
use BloomTest::Process qw(wait_until);
use BloomTest::Rules;

my $t = BloomTest->new;

configure_rules($t, { ids => ['one', 'both'], bad => ['evil', 'both'] },
                <<'CONF', backend => 8081);
    log_format outcome '$request_uri [$bloom_status] [$bloom_zone] $status';

    server {
        listen 127.0.0.1:%%PORT_8080%%;
        access_log %%TESTDIR%%/outcome.log outcome;
        add_header X-Bloom "$bloom_status $bloom_zone" always;
        bloom_dry_run on;

        location /reject {
            bloom_reject absent $arg_id zone=ids status=451;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /route {
            bloom_route absent $arg_id zone=ids to=@routed;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location @routed { return 500; }
        location /list {
            bloom_pass present $arg_id zone=ids;
            bloom_reject present $arg_id zone=bad;
            bloom_route absent $arg_id zone=ids to=@routed;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /twice {
            bloom_reject absent $arg_id zone=ids;
            bloom_reject present $arg_id zone=bad;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /page {
            bloom_reject absent $arg_id zone=ids;
            error_page 404 @routed;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /wet {
            bloom_dry_run off;
            bloom_reject absent $arg_id zone=ids status=451;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /redirected {
            bloom_reject absent $arg_id zone=ids;
            try_files /none /wet-too?$args;
        }
        location /route-redirected {
            bloom_route absent $arg_id zone=ids to=@routed;
            try_files /none /wet-too?$args;
        }
        location /wet-too {
            bloom_dry_run off;
            bloom_reject absent $arg_id zone=ids status=451;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
    }
CONF

$t->run;


subtest 'a dry run passes requests and says what the rules would do' => sub {
    is(outcome($t, '/reject?id=none'), '200 REJECTED_DRY_RUN ids',
       'a request that would be rejected is passed in a dry run');
    is($t->get('/reject?id=none')->body, 'backend /reject?id=none',
       'a request that would be rejected reaches the backend');
    is(outcome($t, '/reject?id=one'), '200 PASSED ids',
       'a request that would not be rejected is passed in a dry run');

    is(outcome($t, '/route?id=none'), '200 ROUTED_DRY_RUN ids',
       'a request that would be routed is passed in a dry run');
    is($t->get('/route?id=none')->body, 'backend /route?id=none',
       'a request that would be routed reaches the backend of its location');
    is(outcome($t, '/route?id=one'), '200 PASSED ids',
       'a request that would not be routed is passed in a dry run');

    is(outcome($t, '/reject'), '200 ',
       'a request without a key has no outcome in a dry run');
    is(outcome($t, '/page?id=none'), '200 REJECTED_DRY_RUN ids',
       'a request that would be rejected gets no error page in a dry run');
    is(outcome($t, '/wet?id=none'), '451 REJECTED ids',
       'a request is rejected under bloom_dry_run off');
};


subtest 'the first rule that fires ends the dry run' => sub {
    is(outcome($t, '/list?id=both'), '200 PASSED ids',
       'a bloom_pass that fires ends the rules');
    is(outcome($t, '/list?id=evil'), '200 REJECTED_DRY_RUN bad',
       'a bloom_reject that fires ends the rules');
    is(outcome($t, '/list?id=none'), '200 ROUTED_DRY_RUN ids',
       'a bloom_route that fires ends the rules');
    is(decisions_logged($t, '/list?id=evil'),
       'rejecting request, dry run: key "evil" maybe present in bloom zone'
       . ' "bad"', 'the error log has only the rule that fired');

    is(outcome($t, '/twice?id=evil'), '200 REJECTED_DRY_RUN ids',
       'the first of two rules that would fire names the zone');
    is(decisions_logged($t, '/twice?id=evil'),
       'rejecting request, dry run: key "evil" absent from bloom zone "ids"',
       'the second of two rules that would fire is not evaluated');
    is(outcome($t, '/redirected?id=none'), '451 REJECTED ids',
       'enforced rules of a later location run after a dry-run rejection');
    is(outcome($t, '/route-redirected?id=none'), '451 REJECTED ids',
       'enforced rules of a later location run after a dry-run route');
};


subtest 'the logs say what the rules would do' => sub {
    is(decisions_logged($t, '/reject?id=none'),
       'rejecting request, dry run: key "none" absent from bloom zone "ids"',
       'the error log has a dry-run rejection');
    is(decisions_logged($t, '/route?id=none'),
       'routing request, dry run: key "none" absent from bloom zone "ids"',
       'the error log has a dry-run route');
    is(decisions_logged($t, '/wet?id=none'),
       'rejecting request: key "none" absent from bloom zone "ids"',
       'the error log has a real rejection under bloom_dry_run off');
    is(decisions_logged($t, '/reject?id=one'), '',
       'the error log does not have a passed request');

    $t->get('/reject?id=logged');
    ok(wait_until(sub {
        $t->read_file('outcome.log')
            =~ m{^/reject\?id=logged \[REJECTED_DRY_RUN\] \[ids\] 200$}m;
    }), 'the access log has a dry-run rejection');
};


done_testing;
