#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests bloom_audit: some requests that would be rejected are passed to the
# backend, and its answers are counted, logged and, with add=on, the key is added.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(wait_until);
use BloomTest::Rules;
use BloomTest::Zones qw(rfc3339);

my $t = BloomTest->new;

# The backend has every key that begins with "id", zone ids only one of them.

$t->build_image('hosts.bloom', ['one.example'], '-p', '1e-9', '--seed', 1,
                '--form', 'host');

configure_rules($t, { ids => ['id1'], bad => ['id-bad'] }, <<'CONF',
    proxy_cache_path %%TESTDIR%%/cache keys_zone=cache:1m;
    bloom_zone zone=adder file=%%TESTDIR%%/ids.bloom;
    bloom_zone zone=hosts file=%%TESTDIR%%/hosts.bloom;
    bloom_zone zone=fixed file=%%TESTDIR%%/ids.bloom journal=off;
    bloom_state_path %%TESTDIR%%/state;
    bloom_audit 100%;
    proxy_next_upstream off;

    server {
        listen 127.0.0.1:%%PORT_8080%%;
        add_header X-Bloom $bloom_status always;
        proxy_set_header X-Status $arg_status;

        location /bloom/ { bloom_api; }

        location / {
            bloom_reject absent $arg_id zone=ids;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /off {
            bloom_audit off;
            bloom_reject absent $arg_id zone=ids;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /half {
            bloom_audit 50%;
            bloom_reject absent $arg_id zone=ids;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /add {
            bloom_audit 100% add=on;
            bloom_reject absent $arg_id zone=adder;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /fixed {
            bloom_audit 100% add=on;
            bloom_reject absent $arg_id zone=fixed;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /hosts {
            bloom_audit 100% add=on;
            bloom_reject absent $arg_id zone=hosts;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /feedback {
            bloom_feedback 403;
            bloom_reject absent $arg_id zone=ids;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /dry {
            bloom_dry_run on;
            bloom_reject absent $arg_id zone=ids;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /bad {
            bloom_reject absent $arg_id zone=ids;
            bloom_reject present $arg_id zone=bad;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /allowed {
            bloom_reject absent $arg_id zone=ids;
            bloom_pass absent $arg_id zone=bad;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /present {
            bloom_reject present $arg_id zone=ids;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /route {
            bloom_route absent $arg_id zone=ids to=@routed;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location @routed { return 404; }
        location /split {
            bloom_reject absent $arg_id zone=ids split=,;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /own {
            bloom_reject absent $arg_id zone=ids;
            try_files /none /static;
        }
        location /static { return 200 "static"; }
        location /silent {
            bloom_reject absent $arg_id zone=ids;
            proxy_read_timeout 200ms;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /down {
            bloom_reject absent $arg_id zone=ids;
            proxy_pass http://127.0.0.1:%%PORT_8082%%;
        }
        location /sorry {
            bloom_reject absent $arg_id zone=ids;
            proxy_pass http://127.0.0.1:%%PORT_8082%%;
            error_page 502 = @sorry;
        }
        location @sorry { proxy_pass http://127.0.0.1:%%PORT_8081%%; }
        location /accel {
            bloom_reject absent $arg_id zone=ids;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /file { internal; root %%TESTDIR%%; }
        location /ignored {
            bloom_reject absent $arg_id zone=ids;
            proxy_ignore_headers X-Accel-Redirect;
            proxy_pass http://127.0.0.1:%%PORT_8081%%/accel;
        }
        location /cached-page {
            bloom_reject absent $arg_id zone=ids;
            proxy_cache cache;
            proxy_cache_key $uri;
            proxy_cache_valid any 1h;
            proxy_intercept_errors on;
            error_page 404 =200 /static;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /cached {
            bloom_reject absent $arg_id zone=ids;
            proxy_cache cache;
            proxy_cache_key $uri;
            proxy_cache_valid any 1h;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
    }
CONF
                main => 'worker_processes 2;');

my $backend = $t->backend(8081, sub {
    my ($request) = @_;

    my $status = $request->{headers}{'x-status'}
                 || ($request->{uri} =~ /id=id/ ? 200 : 404);
    sleep 20 if $request->{uri} =~ /^\/silent/;

    return { status => $status, body => 'b',
             headers => $request->{uri} =~ /^\/accel/
                        ? ['X-Accel-Redirect' => '/file'] : [] };
});
$t->run;


my @members = qw(audited confirmed wrong_absent unanswered added);

# Returns what a request adds to each of these counters, $bloom_status and the
# status of the response.

sub audit {
    my ($path, %option) = @_;

    my $zone = $option{zone} // 'ids';
    my $before = zone_state($t, $zone)->{audit};
    my $response = $t->request($option{method} // 'GET', $path);
    my $after;

    # counters change after the response is sent

    wait_until(sub {
        $after = zone_state($t, $zone)->{audit};
        return $after->{audited}
               == $after->{confirmed} + $after->{wrong_absent}
                  + $after->{unanswered};
    });

    return join ' ', (map { $after->{$_} - $before->{$_} } @members),
                     $response->header('X-Bloom') // '-', $response->status;
}


subtest 'the answer of the backend confirms or contradicts the filter' => sub {
    is(audit('/?id=id1'), '0 0 0 0 0 PASSED 200',
       'a request for a present key is not audited');
    is(zone_state($t, 'ids')->{audit}{last_wrong_absent}, undef,
       'there is no time of a wrong absent before the first one');
    is(audit('/?id=none'), '1 1 0 0 0 AUDITED 404',
       'status 404 confirms that a key is absent');
    is(audit('/?id=none&status=410'), '1 1 0 0 0 AUDITED 410',
       'status 410 confirms that a key is absent');

    my $mark = $t->log_mark;
    my $now = rfc3339(time - 1);
    is(audit('/?id=id2'), '1 0 1 0 0 AUDITED 200',
       'status 200 reveals that a key is wrongly absent');
    cmp_ok(zone_state($t, 'ids')->{audit}{last_wrong_absent}, 'ge', $now,
           'the state has the time of the last wrong absent');
    like($t->wait_for_log(qr/wrong absent/, $mark),
         qr/\[error\] .* wrong absent: bloom zone "ids" lacks key "id2": add it, or load an image that has it; the backend answered 200 .*, client: /,
         'the error log names a wrongly absent key and what to do');

    is(audit('/?id=id2&status=206'), '1 0 1 0 0 AUDITED 206',
       'status 206 reveals that a key is wrongly absent');
    is(audit('/?id=id2', method => 'HEAD'), '1 0 1 0 0 AUDITED 200',
       'a HEAD request reveals that a key is wrongly absent');

    for my $status (301, 304, 400, 401, 403, 429, 500, 503) {
        is(audit("/?id=id2&status=$status"), "1 0 0 1 0 AUDITED $status",
           "status $status leaves an audited request unanswered");
    }

    is(audit('/feedback?id=none&status=403'), '1 1 0 0 0 AUDITED 403',
       'a status of bloom_feedback confirms that a key is absent');
    is(audit('/feedback?id=none&status=404'), '1 0 0 1 0 AUDITED 404',
       'status 404 leaves a request unanswered under bloom_feedback 403');
};

subtest 'only an answer of the backend itself counts' => sub {
    is(audit('/own?id=id2'), '1 0 0 1 0 AUDITED 200',
       'a file that nginx serves leaves an audited request unanswered');
    is(audit('/down?id=id2'), '1 0 0 1 0 AUDITED 502',
       'a backend that is down leaves an audited request unanswered');
    is(audit('/sorry?id=id2'), '1 0 0 1 0 AUDITED 200',
       'an error page by another backend leaves an audited request unanswered');
    is(audit('/silent?id=id2'), '1 0 0 1 0 AUDITED 504',
       'a backend that times out leaves an audited request unanswered');
    is(audit('/cached?id=id2'), '1 0 1 0 0 AUDITED 200',
       'a response that is not cached yet reveals a wrongly absent key');
    is(audit('/cached?id=none'), '1 0 0 1 0 AUDITED 200',
       'a cached response leaves an audited request unanswered');
    is(audit('/cached-page?id=none'), '1 1 0 0 0 AUDITED 200',
       'an uncached 404 behind an error page confirms that a key is absent');
    is(audit('/cached-page?id=none'), '1 0 0 1 0 AUDITED 200',
       'a cached 404 behind an error page leaves the request unanswered');
    is(audit('/accel?id=id2'), '1 0 0 1 0 AUDITED 404',
       'a backend that names a file leaves an audited request unanswered');
    is(audit('/ignored?id=id2'), '1 0 1 0 0 AUDITED 200',
       'an ignored X-Accel-Redirect does not hide a wrongly absent key');
};

subtest 'bloom_reject absent of one key is audited' => sub {
    is(audit('/off?id=none'), '0 0 0 0 0 REJECTED 404',
       'bloom_audit off audits no request');
    is(audit('/?id=none', method => 'POST'), '0 0 0 0 0 REJECTED 404',
       'a POST request is not audited');
    is(audit('/present?id=id1'), '0 0 0 0 0 REJECTED 403',
       'bloom_reject present is not audited');
    is(audit('/route?id=none'), '0 0 0 0 0 ROUTED 404',
       'bloom_route is not audited');
    is(audit('/split?id=id1,none'), '0 0 0 0 0 REJECTED 404',
       'a rule with split= is not audited');
    is(audit('/bad?id=id-bad'), '1 0 0 1 0 REJECTED 403',
       'a later rule that fires rejects an audited request');
    is(audit('/bad?id=none'), '1 1 0 0 0 AUDITED 404',
       'a later rule that does not fire passes an audited request');
    is(audit('/allowed?id=none'), '1 1 0 0 0 AUDITED 404',
       'a later bloom_pass leaves the request audited');
    is(audit('/dry?id=id2'), '1 0 1 0 0 REJECTED_DRY_RUN 200',
       'a dry run audits requests');
};

subtest 'add=on adds wrongly absent keys' => sub {
    my $mark = $t->log_mark;
    is(audit('/add?id=id2', zone => 'adder'), '1 0 1 0 1 AUDITED 200',
       'a wrongly absent key is added');
    like($t->wait_for_log(qr/wrong absent/, $mark), qr/lacks key "id2": it was added now; put it into the next image, too; the backend answered /,
         'the error log says that a wrongly absent key was added');
    is(audit('/add?id=id2', zone => 'adder'), '0 0 0 0 0 PASSED 200',
       'the next request for an excepted key is passed');
    is(audit('/add?id=none', zone => 'adder'), '1 1 0 0 0 AUDITED 404',
       'a rightly absent key is not added');
    $mark = $t->log_mark;
    is(audit('/fixed?id=id2', zone => 'fixed'), '1 0 1 0 0 AUDITED 200',
       'a zone without a journal adds no key');
    like($t->wait_for_log(qr/wrong absent/, $mark),
         qr/lacks key "id2": add it, or load an image that has it;/,
         'the error log says what to do about a key that cannot be added');
    is(audit('/add?id=none', zone => 'adder'), '1 1 0 0 0 AUDITED 404',
       'a rightly absent key is audited again');
    is(audit('/add?id=id3&status=301', zone => 'adder'),
       '1 0 0 1 0 AUDITED 301', 'an unanswered key is not added');
    is(audit('/hosts?id=ID.Example.', zone => 'hosts'),
       '1 1 0 0 0 AUDITED 404',
       'a host is confirmed absent from a zone with key form host');
    is(audit('/hosts?id=id.Example&status=200', zone => 'hosts'),
       '1 0 1 0 1 AUDITED 200',
       'a zone with key form host adds a wrongly absent host');
    is(audit('/hosts?id=a.ID.example', zone => 'hosts'),
       '0 0 0 0 0 PASSED 404', 'a subdomain of a added host is passed');

    my ($journal) = grep { /^id2$/m }
        $t->run_tool('journal', '--keys', $t->testdir . '/state/adder');
    ok($journal, 'the journal has an excepted key');

    $t->kill_all;
    $t->run;
    is($t->get('/add?id=id2')->header('X-Bloom'), 'PASSED',
       'an excepted key survives the death of all processes');
};

subtest 'bloom_audit 50% audits about half of the requests' => sub {
    my $before = zone_state($t, 'ids')->{audit}{audited};
    my @passed = grep { $_->header('X-Bloom') eq 'AUDITED' }
                      $t->pipeline(('/half?id=none') x 400);

    # fails by chance once in 1e15

    cmp_ok(scalar @passed, '>', 120,
           'more than 120 of 400 requests are audited');
    cmp_ok(scalar @passed, '<', 280,
           'fewer than 280 of 400 requests are audited');
    is(zone_state($t, 'ids')->{audit}{audited} - $before, scalar @passed,
       'the counter grows by the number of audited requests');
};

done_testing;
