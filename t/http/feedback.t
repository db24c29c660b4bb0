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

my $ids = 'bloom_reject absent $arg_id zone=ids';
my $other = 'bloom_reject absent $arg_other zone=other';
my $cached = "$ids; proxy_cache cache; proxy_cache_valid any 1h";

my %rules = (
    ''         => $ids,
    off        => "bloom_feedback off; $ids",
    own        => "$ids; try_files /none =404",
    down       => "$ids; bloom_feedback 404 410; error_page 502 =404 /own/page;
                   proxy_pass http://127.0.0.1:%%PORT_8082%%",
    page       => "$ids; proxy_intercept_errors on;
                   error_page 404 =200 \@sorry",
    '@sorry'   => 'return 200 "sorry"',
    fallback   => "$ids; proxy_intercept_errors on;
                   error_page 404 = \@fallback",
    '@fallback' => 'proxy_set_header X-Status 404',
    two        => "$ids; bloom_reject absent \$arg_id zone=other",
    'dry-two'   => "bloom_dry_run on; $ids; $other",
    'audit-two' => "bloom_audit 100%; $other; $ids",
    'route-two' => "$ids; bloom_route absent \$arg_other zone=other
                    to=\@fallback; try_files /none =404",
    block      => 'bloom_reject present $arg_id zone=ids;
                   bloom_pass absent $arg_id zone=ids',
    route      => 'bloom_route absent $arg_id zone=ids to=@sorry',
    dry        => "bloom_dry_run on; $ids",
    cached     => $cached,
    'cached-page' => "$cached; proxy_intercept_errors on;
                      error_page 404 403 =200 \@sorry",
);

configure_rules($t, { ids => ['one', 'gone'], other => ['one', 'gone'] },
                <<'CONF' . locations(\%rules, 8081) . '}');
    proxy_cache_path %%TESTDIR%%/cache keys_zone=cache:1m;
    bloom_feedback 404 410;

    server {
        listen 127.0.0.1:%%PORT_8080%%;
        proxy_set_header X-Status $arg_status;
        location /bloom/ { bloom_api; }
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


# Tests a table of what requests add: a row has a path, the two counts, and why.

sub counted {
    my ($table, %option) = @_;

    for (split /\n/, $table) {
        my ($path, $want, $why) = split /\s{2,}/, $_, 3;

        is(counts($path, %option), $want, "$why: $path");
    }
}


is(zone_state($t, 'ids')->{feedback}{measured_fpr}, undef,
   'the measured rate is null before the first request');

subtest 'a shield counts absent keys and false positives' => sub {
    counted(<<'END');
/?id=one                     0 0  the backend has the key
/?id=gone&status=404         0 1  status 404 counts
/?id=gone&status=410         0 1  status 410 counts
/?id=gone&status=403         0 0  bloom_feedback does not name the status
/?id=gone&status=500         0 0  a failure of the backend
/?id=none                    1 0  a rejected request
/                            0 0  a request without a key
/route?id=none               1 0  a routed request
/route?id=gone&status=404    0 1  a request that bloom_route passes
/dry?id=none&status=404      1 0  an absent key in a dry run
/dry?id=gone&status=404      0 1  a false positive in a dry run
END
    is(counts('/?id=gone&status=404', method => 'HEAD'), '0 1',
       'a HEAD request counts a false positive');
};

subtest 'only an answer to the rule of one zone is counted' => sub {
    is($t->get('/page?id=gone&status=404')->status, 200,
       'an error page replaces the response of the backend');
    counted(<<'END');
/off?id=gone&status=404      0 0  bloom_feedback off, a false positive
/off?id=none                 0 0  bloom_feedback off, an absent key
/own?id=gone                 0 0  a 404 of nginx itself
/down?id=gone                0 0  a page of status 404 for a backend that is down
/page?id=gone&status=404     0 1  a 404 of the backend behind an error page
/fallback?id=gone&status=404  0 0  two backends
/two?id=gone&status=404      0 0  rules of two zones
/dry-two?id=gone&other=none&status=404    0 0  the other zone lacks its key
/audit-two?id=gone&other=none&status=404  0 0  the other zone lacks its key
/route-two?id=gone&other=none&status=404  0 0  the other zone lacks its key
/dry-two?id=gone&status=404  0 1  the rule of the other zone has no key
/block?id=gone&status=404    0 0  bloom_reject present
/block?id=none&status=404    0 0  bloom_pass absent
/cached?id=gone&status=404   0 1  a response that is not cached yet
/cached?id=gone&status=404   0 0  a cached response
/cached-page?id=gone&status=404  0 1  an uncached 404 behind an error page
/cached-page?id=gone&status=404  0 0  a cached 404 behind an error page
/cached-page?id=gone&status=403  0 0  another status behind an error page
/cached-page?id=gone&status=403  0 0  the same status again
END
    is(counts('/two?id=gone&status=404', zone => 'other'), '0 0',
       'rules of two zones count nothing for the second zone');
};

subtest 'the endpoint states the measured false-positive rate' => sub {
    my $feedback = zone_state($t, 'ids')->{feedback};
    my ($absent, $false) = @$feedback{qw(absent false_positives)};

    cmp_ok(abs($feedback->{measured_fpr} - $false / ($false + $absent)), '<',
           1e-5, 'the measured rate is the share of false positives');
};

done_testing;
