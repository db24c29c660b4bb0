#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests bloom_unknown, which decides about requests when a zone answers unknown.
# They are passed by default, rejected with status 503, or routed after the
# access checks of their location, as bloom_route does.

use strict;
use warnings;

use BloomTest;
use BloomTest::Rules;

my $t = BloomTest->new;

# The zone "lost" has no image, so it answers unknown.

my $lost = 'bloom_reject absent $arg_id zone=lost status=410';
my $good = 'bloom_reject absent $arg_id zone=ids status=411';
my $allow = 'bloom_pass present $arg_id zone=lost';

my %rules = (
    lookup => 'return 200 "<$known>"',
    'if'   => 'set $x 1; if ($known = 0) { return 404; } return 200 "passed"',

    'pass/reject'         => $lost,
    'pass/reject-present' => 'bloom_reject present $arg_id zone=lost',
    'pass/route'   => 'bloom_route absent $arg_id zone=lost to=@routed',
    'pass/then'    => "$lost; $good",
    'pass/before'  => "$good; $lost",
    'pass/allowed' => "$allow; $good",
    'pass/routed'  => 'bloom_route absent $arg_id zone=ids to=@then',
    '@then'        => $lost,

    # bloom_unknown reject

    'reject/reject'  => $lost,
    'reject/route'   => 'bloom_route present $arg_id zone=lost to=@routed',
    'reject/pass'    => $allow,
    'reject/good'    => $good,
    'reject/before'  => "$good; $lost",
    'reject/allowed' => "bloom_pass present \$arg_id zone=ids; $lost",
    'reject/dry'     => "bloom_dry_run on; $lost",
    'reject/page'    => "$lost; error_page 503 /reject-page?\$args",
    'reject/not'     => "bloom_unknown pass; $lost",
    'reject-page'    => $good,

    # bloom_unknown to=@exact

    'to/route'  => 'bloom_route present $arg_id zone=lost to=@routed',
    'to/pass'   => $allow,
    'to/denied' => "deny all; $lost",
    'to/uri'    => "bloom_unknown to=/exact/\$arg_id; $lost",
    'to/dry'    => "bloom_dry_run on; $lost",
    'to/trial'  => "$lost dry_run",
    'to/good'   => $good,
    'to/skip'   => "bloom_unknown pass; $lost",
    'to/listed' => "bloom_unknown to=\@rules; $lost",
    '@rules'    => 'bloom_reject absent $arg_id zone=ids status=412',
);

# The locations below /reject/ and /to/ have the directive of their own, unless
# they override it.

for (keys %rules) {
    my $unknown = /^reject\// ? 'reject' : /^to\// ? 'to=@exact' : next;

    $rules{$_} = "bloom_unknown $unknown; $rules{$_}"
        if $rules{$_} !~ /bloom_unknown/;
}

configure_rules($t, { ids => ['one'] },
                <<'CONF' . locations(\%rules, 8081) . '}', backend => 8081);
    bloom_zone zone=lost:1m file=%%TESTDIR%%/none.bloom required=off;
    bloom_lookup $arg_id $known zone=lost;

    add_header X-Bloom "$bloom_status $bloom_zone" always;

    server {
        listen 127.0.0.1:%%PORT_8080%%;
        location @routed { return 200 "routed"; }
        location @exact { return 200 "exact"; }
        location /exact/ { return 200 $uri; }
CONF

$t->expect_log(qr/none\.bloom" of bloom zone "lost" cannot be opened/);
$t->expect_log(qr/bloom zone "lost" is not loaded/);
$t->run;


subtest 'bloom_unknown pass is the default' => sub {
    outcomes_are($t, <<'END');
/pass/reject?id=one           200 UNKNOWN lost  a key of the image
/pass/reject?id=none          200 UNKNOWN lost  a key that is not of the image
/pass/reject-present?id=one   200 UNKNOWN lost
/pass/reject-present?id=none  200 UNKNOWN lost
/pass/route?id=one            200 UNKNOWN lost
/pass/route?id=none           200 UNKNOWN lost
/pass/reject                  200               no key
END
};


subtest 'bloom_unknown reject rejects with status 503' => sub {
    outcomes_are($t, <<'END');
/reject/reject?id=one  503 UNKNOWN lost
/reject/route?id=one   503 UNKNOWN lost
/reject/pass?id=one    503 UNKNOWN lost
/reject/page?id=one    503 UNKNOWN lost
/reject/page?id=none   "backend /reject-page?id=none"  no rule checks the page
/reject/reject         200                            no key
/reject/not?id=one     200 UNKNOWN lost               a location overrides it
/reject/dry?id=one     200 UNKNOWN lost               a dry run passes it
END
};


subtest 'bloom_unknown to= routes after the checks of the location' => sub {
    outcomes_are($t, <<'END');
/to/route?id=one    200 UNKNOWN lost            the request is routed
/to/route?id=one    "exact"                     a named location answers
/to/pass?id=one     "exact"                     a bloom_pass routes it, too
/to/uri?id=one      "/exact/one"                a URI with variables answers
/to/uri?id=..       400 UNKNOWN lost            an unsafe target is refused
/to/denied?id=one   403 UNKNOWN lost            after the access checks
/to/dry?id=one      "backend /to/dry?id=one"    a dry run does not route it
/to/trial?id=one    "backend /to/trial?id=one"  nor does a rule on trial
/to/skip?id=one     "backend /to/skip?id=one"   a location overrides it
/to/good?id=none    411 REJECTED ids            a zone that serves decides
/to/listed?id=none  412 REJECTED ids            the rules of the target run
/to/listed?id=one   200 UNKNOWN lost            the rules of the target pass it
END
};


subtest 'rules of other zones still decide' => sub {
    outcomes_are($t, <<'END');
/pass/then?id=none     411 REJECTED ids  a later rule fires
/pass/then?id=one      200 UNKNOWN lost  a later rule does not fire
/pass/before?id=one    200 UNKNOWN lost  an earlier rule does not fire
/pass/before?id=none   411 REJECTED ids  an earlier rule fires
/pass/allowed?id=none  411 REJECTED ids  an unknown key is not allowed
/pass/routed?id=none   200 ROUTED ids    the zone of the target is unknown
/reject/good?id=one    200 PASSED ids    the zone that serves has the key
/reject/good?id=none   411 REJECTED ids  the zone that serves lacks the key
/reject/before?id=none  411 REJECTED ids  an earlier rule fires
/reject/before?id=one  503 UNKNOWN lost  an earlier rule does not fire
/reject/allowed?id=one  200 PASSED ids   an earlier bloom_pass fires
END
};


subtest 'the variable of bloom_lookup is empty' => sub {
    outcomes_are($t, <<'END');
/lookup?id=one  "<>"
/if?id=none     "passed"  it is not 0
END
};


subtest 'the error log says that a key is unknown' => sub {
    my $line = 'key "one" unknown in bloom zone "lost"';
    my %said = ('/pass/reject' => 'passing request',
                '/reject/reject' => 'rejecting request',
                '/reject/dry' => 'rejecting request, dry run',
                '/to/route' => 'routing request');

    is(decisions_logged($t, "$_?id=one"), "$said{$_}: $line",
       "the error log has the decision about $_") for sort keys %said;
    is(decisions_logged($t, '/lookup?id=one'), '',
       'the error log does not have a lookup');
};


done_testing;
