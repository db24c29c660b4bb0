#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests bloom_feedback: a key that a shield passes and that the backend does not
# have is counted as a false positive.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Rules;

my $t = BloomTest->new;

# Both filters have the key "gone", which the backend no longer has.

configure_rules($t, { ids => ['one', 'gone'], other => ['one', 'gone'] },
                <<'CONF');
    proxy_cache_path %%TESTDIR%%/cache keys_zone=cache:1m;
    bloom_feedback 404 410;

    server {
        listen 127.0.0.1:%%PORT_8080%%;
        proxy_set_header X-Status $arg_status;

        location /bloom/ { bloom_api; }

        location / {
            bloom_reject absent $arg_id zone=ids;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /off {
            bloom_feedback off;
            bloom_reject absent $arg_id zone=ids;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /own {
            bloom_reject absent $arg_id zone=ids;
        }
        location /down {
            bloom_reject absent $arg_id zone=ids;
            bloom_feedback 404 410;
            proxy_pass http://127.0.0.1:%%PORT_8082%%;
            error_page 502 =404 /own/page;
        }
        location /page {
            bloom_reject absent $arg_id zone=ids;
            proxy_intercept_errors on;
            error_page 404 =200 @sorry;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location @sorry { return 200 "sorry"; }
        location /fallback {
            bloom_reject absent $arg_id zone=ids;
            proxy_intercept_errors on;
            error_page 404 = @fallback;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location @fallback {
            proxy_set_header X-Status 404;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /two {
            bloom_reject absent $arg_id zone=ids;
            bloom_reject absent $arg_id zone=other;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /dry-two {
            bloom_dry_run on;
            bloom_reject absent $arg_id zone=ids;
            bloom_reject absent $arg_other zone=other;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /audit-two {
            bloom_audit 100%;
            bloom_reject absent $arg_other zone=other;
            bloom_reject absent $arg_id zone=ids;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /route-two {
            bloom_reject absent $arg_id zone=ids;
            bloom_route absent $arg_other zone=other to=@fallback;
        }
        location /block {
            bloom_reject present $arg_id zone=ids;
            bloom_pass absent $arg_id zone=ids;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /route {
            bloom_route absent $arg_id zone=ids to=@sorry;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /dry {
            bloom_dry_run on;
            bloom_reject absent $arg_id zone=ids;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /cached-page {
            bloom_reject absent $arg_id zone=ids;
            proxy_cache cache;
            proxy_cache_valid any 1h;
            proxy_intercept_errors on;
            error_page 404 403 =200 @sorry;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /cached {
            bloom_reject absent $arg_id zone=ids;
            proxy_cache cache;
            proxy_cache_valid any 1h;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
    }
CONF

$t->backend(8081, sub {
    my ($request) = @_;

    return { status => $request->{headers}{'x-status'} || 200, body => 'b' };
});
$t->run;


# Returns what a request adds to the counters absent and false_positives.

sub counts {
    my ($path, %option) = @_;

    my $zone = $option{zone} // 'ids';
    my $before = zone_state($t, $zone)->{feedback};
    $t->request($option{method} // 'GET', $path);
    my $after = zone_state($t, $zone)->{feedback};

    return join ' ', map { $after->{$_} - $before->{$_} }
                         qw(absent false_positives);
}


is(zone_state($t, 'ids')->{feedback}{measured_fpr}, undef,
   'the measured rate is null before the first request');

subtest 'a shield counts absent keys and false positives' => sub {
    is(counts('/?id=one'), '0 0', 'a key that the backend has is not counted');
    is(counts('/?id=gone&status=404'), '0 1',
       'status 404 counts a present key as a false positive');
    is(counts('/?id=gone&status=410'), '0 1',
       'status 410 counts a present key as a false positive');
    is(counts('/?id=gone&status=403'), '0 0',
       'a status that bloom_feedback does not name counts nothing');
    is(counts('/?id=gone&status=500'), '0 0',
       'a failure of the backend counts nothing');
    is(counts('/?id=none'), '1 0', 'a rejected request counts an absent key');
    is(counts('/'), '0 0', 'a request without a key counts nothing');
    is(counts('/?id=gone&status=404', method => 'HEAD'), '0 1',
       'a HEAD request counts a false positive');
    is(counts('/route?id=none'), '1 0',
       'a routed request counts an absent key');
    is(counts('/route?id=gone&status=404'), '0 1',
       'a request that bloom_route passes counts a false positive');
    is(counts('/dry?id=none&status=404'), '1 0',
       'a dry run counts an absent key');
    is(counts('/dry?id=gone&status=404'), '0 1',
       'a dry run counts a false positive');
};

subtest 'only an answer to the rule of one zone is counted' => sub {
    is(counts('/off?id=gone&status=404'), '0 0',
       'bloom_feedback off counts no false positive');
    is(counts('/off?id=none'), '0 0',
       'bloom_feedback off counts no absent key');
    is(counts('/own?id=gone'), '0 0', 'a 404 of nginx itself counts nothing');
    is(counts('/down?id=gone'), '0 0',
       'an error page of status 404 for a backend that is down counts nothing');
    is($t->get('/page?id=gone&status=404')->status, 200,
       'an error page replaces the response of the backend');
    is(counts('/page?id=gone&status=404'), '0 1',
       'a 404 of the backend behind an error page counts a false positive');
    is(counts('/fallback?id=gone&status=404'), '0 0',
       'a request that reaches two backends counts nothing');
    is(counts('/two?id=gone&status=404'), '0 0',
       'rules of two zones count nothing for the first zone');
    is(counts('/two?id=gone&status=404', zone => 'other'), '0 0',
       'rules of two zones count nothing for the second zone');
    is(counts("/$_-two?id=gone&other=none&status=404"), '0 0',
       "a key that is absent from another zone of $_ rules counts nothing")
        for qw(dry audit route);
    is(counts('/dry-two?id=gone&status=404'), '0 1',
       'a rule without a key does not prevent the count of another rule');
    is(counts('/block?id=gone&status=404'), '0 0',
       'bloom_reject present counts no false positive');
    is(counts('/block?id=none&status=404'), '0 0',
       'bloom_pass absent counts no absent key');
    is(counts('/cached?id=gone&status=404'), '0 1',
       'a response that is not cached yet counts a false positive');
    is(counts('/cached?id=gone&status=404'), '0 0',
       'a cached response counts nothing');
    is(counts('/cached-page?id=gone&status=404'), '0 1',
       'an uncached 404 behind an error page counts a false positive');
    is(counts('/cached-page?id=gone&status=404'), '0 0',
       'a cached 404 behind an error page counts nothing');
    is(counts('/cached-page?id=gone&status=403'), '0 0',
       "response $_ of status 403 behind an error page counts nothing")
        for 1 .. 2;
};

subtest 'the endpoint states the measured false-positive rate' => sub {
    my $feedback = zone_state($t, 'ids')->{feedback};
    my ($absent, $false) = @$feedback{qw(absent false_positives)};

    cmp_ok(abs($feedback->{measured_fpr} - $false / ($false + $absent)), '<',
           1e-5, 'the measured rate is the share of false positives');
};

done_testing;
