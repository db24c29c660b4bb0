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

my $reject = 'bloom_reject absent $arg_id zone=ids';

my %rules = (
    reject => "$reject status=451",
    route  => 'bloom_route absent $arg_id zone=ids to=@routed',
    list   => 'bloom_pass present $arg_id zone=ids;
               bloom_reject present $arg_id zone=bad;
               bloom_route absent $arg_id zone=ids to=@routed',
    twice  => "$reject; bloom_reject present \$arg_id zone=bad",
    page   => "$reject; error_page 404 \@routed",
    wet    => "bloom_dry_run off; $reject status=451",

    # redirects to a location whose rules are enforced

    'reject-then' => "$reject; try_files /none /wet?\$args",
    'route-then'  => 'bloom_route absent $arg_id zone=ids to=@routed;
                      try_files /none /wet?$args',
);

configure_rules($t, { ids => ['one', 'both'], bad => ['evil', 'both'] },
                <<'CONF' . locations(\%rules, 8081) . '}', backend => 8081);
    log_format outcome '$request_uri [$bloom_status] [$bloom_zone] $status';

    server {
        listen 127.0.0.1:%%PORT_8080%%;
        access_log %%TESTDIR%%/outcome.log outcome;
        add_header X-Bloom "$bloom_status $bloom_zone" always;
        bloom_dry_run on;
        location @routed { return 500; }
CONF

$t->run;


subtest 'a dry run passes requests and says what the rules would do' => sub {
    outcomes_are($t, <<'END');
/reject?id=none  200 REJECTED_DRY_RUN ids   it would be rejected
/reject?id=none  "backend /reject?id=none"  it gets to the backend
/reject?id=one   200 PASSED ids             it would not be rejected
/route?id=none   200 ROUTED_DRY_RUN ids     it would be routed
/route?id=none   "backend /route?id=none"   it gets to its own backend
/route?id=one    200 PASSED ids             it would not be routed
/reject          200                        it has no key
/page?id=none    200 REJECTED_DRY_RUN ids   it gets no error page
/wet?id=none     451 REJECTED ids           bloom_dry_run off rejects it
END
};


subtest 'the first rule that fires ends the dry run' => sub {
    outcomes_are($t, <<'END');
/list?id=both         200 PASSED ids            a bloom_pass ends the rules
/list?id=evil         200 REJECTED_DRY_RUN bad  a bloom_reject ends the rules
/list?id=none         200 ROUTED_DRY_RUN ids    a bloom_route ends the rules
/twice?id=evil        200 REJECTED_DRY_RUN ids  the first rule names the zone
/reject-then?id=none  451 REJECTED ids          rules of a later location run
/route-then?id=none   451 REJECTED ids          rules of a later location run
END
};


subtest 'the logs say what the rules would do' => sub {
    my $dry = 'request, dry run: key';

    for (['/reject?id=none', "rejecting $dry", 'none" absent from', 'ids'],
         ['/route?id=none', "routing $dry", 'none" absent from', 'ids'],
         ['/wet?id=none', 'rejecting request: key', 'none" absent from', 'ids'],
         ['/list?id=evil', "rejecting $dry", 'evil" maybe present in', 'bad'],
         ['/twice?id=evil', "rejecting $dry", 'evil" absent from', 'ids'])
    {
        my ($path, $what, $answer, $zone) = @$_;

        is(decisions_logged($t, $path), "$what \"$answer bloom zone \"$zone\"",
           "the error log has one decision about $path");
    }

    is(decisions_logged($t, '/reject?id=one'), '',
       'the error log does not have a passed request');

    $t->get('/reject?id=logged');
    ok(wait_until(sub {
        $t->read_file('outcome.log')
            =~ m{^/reject\?id=logged \[REJECTED_DRY_RUN\] \[ids\] 200$}m;
    }), 'the access log has a dry-run rejection');
};


done_testing;
