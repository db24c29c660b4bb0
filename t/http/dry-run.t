#!/usr/bin/perl

# bloom_dry_run: what would be rejected or routed is logged and counted as
# such, and passes.

use strict;
use warnings;

use BloomTest;
use BloomTest::Process qw(wait_until);

my $t = BloomTest->new;

$t->build_image('ids.bloom', ['one', 'both'], '-p', '1e-9', '--seed', 1);
$t->build_image('bad.bloom', ['evil', 'both'], '-p', '1e-9', '--seed', 1);

$t->write_file_expand('nginx.conf', <<'CONF');
%%TEST_GLOBALS%%
events { }
http {
    %%TEST_GLOBALS_HTTP%%
    log_format outcome '$request_uri [$bloom_status] [$bloom_zone] $status';

    bloom_zone zone=ids file=%%TESTDIR%%/ids.bloom;
    bloom_zone zone=bad file=%%TESTDIR%%/bad.bloom;

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

    server {
        listen 127.0.0.1:%%PORT_8081%%;
        location / { return 200 "backend $request_uri"; }
    }
}
CONF

$t->run;


sub is_outcome {
    my ($path, $expected, $what) = @_;

    my $r = $t->get($path);

    is($r->status . ' ' . ($r->header('X-Bloom') // ''), $expected, $what);

    return $r;
}


# The lines about decisions that a request left in the error log.

sub logged {
    my ($path) = @_;

    my $mark = $t->log_mark;
    $t->get($path);

    return join '|', $t->log_since($mark)
        =~ /((?:rejecting|routing|passing) request.*? zone "\w+")/g;
}


subtest 'outcomes' => sub {
    my $r = is_outcome('/reject?id=none', '200 REJECTED_DRY_RUN ids', 'reject');
    is($r->body, 'backend /reject?id=none', 'goes where it wanted');
    is_outcome('/reject?id=one', '200 PASSED ids', 'reject, passing');

    $r = is_outcome('/route?id=none', '200 ROUTED_DRY_RUN ids', 'route');
    is($r->body, 'backend /route?id=none', 'goes where it wanted');
    is_outcome('/route?id=one', '200 PASSED ids', 'route, passing');

    is_outcome('/reject', '200 ', 'no key');
    is_outcome('/page?id=none', '200 REJECTED_DRY_RUN ids', 'no error page');
    is_outcome('/wet?id=none', '451 REJECTED ids', 'off');
};


subtest 'the first rule that fires' => sub {
    is_outcome('/list?id=both', '200 PASSED ids', 'a pass');
    is_outcome('/list?id=evil', '200 REJECTED_DRY_RUN bad', 'a reject');
    is_outcome('/list?id=none', '200 ROUTED_DRY_RUN ids', 'a route');
    is(logged('/list?id=evil'),
       'rejecting request, dry run: key "evil" maybe present in bloom zone'
       . ' "bad"', 'it alone is logged');

    is_outcome('/twice?id=evil', '200 REJECTED_DRY_RUN ids',
               'of two that would fire');
    is(logged('/twice?id=evil'),
       'rejecting request, dry run: key "evil" absent from bloom zone "ids"',
       'the second is not consulted');
    is_outcome('/redirected?id=none', '200 REJECTED_DRY_RUN ids',
               'nor are those of other locations');
    is_outcome('/route-redirected?id=none', '200 ROUTED_DRY_RUN ids',
               'not after a route either');
};


subtest 'logs' => sub {
    is(logged('/reject?id=none'),
       'rejecting request, dry run: key "none" absent from bloom zone "ids"',
       'reject');
    is(logged('/route?id=none'),
       'routing request, dry run: key "none" absent from bloom zone "ids"',
       'route');
    is(logged('/wet?id=none'),
       'rejecting request: key "none" absent from bloom zone "ids"', 'off');
    is(logged('/reject?id=one'), '', 'what passes is not logged');

    $t->get('/reject?id=logged');
    ok(wait_until(sub {
        $t->read_file('outcome.log')
            =~ m{^/reject\?id=logged \[REJECTED_DRY_RUN\] \[ids\] 200$}m;
    }), 'the access log has it, too');
};


done_testing;
