#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests invalid= and empty=: with "fire", the rule acts as if its condition
# held if its key is invalid or empty; with "pass", the rule is skipped.  With
# either, $bloom_status of a request with an invalid key is INVALID.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Rules;

my $t = BloomTest->new;

# Neither "..", which has no label, nor "http://", which has no host, is valid.

$t->build_image('hosts.bloom', ['evil.example'], '-p', '1e-9', '--seed', 1,
                '--form', 'host');
$t->build_image('urls.bloom', ['evil.example/'], '-p', '1e-9', '--seed', 1,
                '--form', 'url');
$t->build_image('cold.bloom', ['one'], '-p', '1e-9', '--seed', 1,
                '--form', 'host', '--as-of', '2020-01-01T00:00:00Z');

my %rules = (
    # each action with each condition, alone

    reject_present => 'bloom_reject present $arg_k zone=hosts invalid=fire
                       empty=fire',
    reject_absent  => 'bloom_reject absent $arg_k zone=hosts status=410
                       invalid=fire empty=fire',
    route          => 'bloom_route present $arg_k zone=hosts to=@routed
                       invalid=fire empty=fire',
    pass           => 'bloom_pass present $arg_k zone=hosts invalid=fire
                       empty=fire; bloom_reject absent never zone=ids',
    invalid        => 'bloom_reject present $arg_k zone=urls invalid=fire',
    empty          => 'bloom_reject present $arg_k zone=urls empty=fire
                       invalid=pass',
    neither        => 'bloom_reject present $arg_k zone=urls invalid=pass
                       empty=pass',
    composed       => 'bloom_reject present "$arg_k$arg_l" zone=urls
                       invalid=fire empty=fire',
    raw            => 'bloom_reject present $arg_k zone=ids invalid=fire',
    cold           => 'bloom_reject present $arg_k zone=cold invalid=fire
                       empty=fire',
    missing        => 'bloom_reject present $arg_k zone=missing invalid=fire
                       empty=fire',
    dry            => 'bloom_dry_run on; bloom_reject present $arg_k zone=hosts
                       invalid=fire empty=fire',
    dry_route      => 'bloom_dry_run on; bloom_route present $arg_k zone=hosts
                       invalid=fire empty=fire to=@routed',

    # lists of several rules

    second => 'bloom_reject present $arg_j zone=hosts status=481;
               bloom_reject present $arg_k zone=hosts status=482 invalid=fire
               empty=fire',
    first  => 'bloom_reject present $arg_k zone=hosts status=481 invalid=fire
               empty=fire;
               bloom_reject present $arg_j zone=hosts status=482',

    # an invalid key and a later rule

    then_passed  => 'bloom_reject present $arg_k zone=hosts invalid=pass;
                     bloom_reject present $arg_l zone=hosts invalid=pass',
    then_allowed => 'bloom_reject present $arg_k zone=hosts invalid=pass;
                     bloom_pass present $arg_l zone=hosts',
    then_unknown => 'bloom_reject present $arg_k zone=hosts invalid=pass;
                     bloom_reject present $arg_l zone=cold',
    unknown_then => 'bloom_reject present $arg_l zone=cold;
                     bloom_reject present $arg_k zone=hosts invalid=pass',
    then_routed  => 'bloom_reject present $arg_k zone=hosts invalid=pass;
                     bloom_route present $arg_l zone=hosts to=@routed',
    then_dry     => 'bloom_dry_run on;
                     bloom_reject present $arg_k zone=hosts invalid=pass;
                     bloom_reject present $arg_l zone=hosts invalid=pass',
    routed_then  => 'bloom_route present $arg_l zone=hosts to=@checked',

    # the defaults

    default_reject_present => 'bloom_reject present $arg_k zone=hosts',
    default_reject_absent  => 'bloom_reject absent $arg_k zone=hosts',
    default_route_present  => 'bloom_route present $arg_k zone=hosts
                               to=@routed',
    default_route_absent   => 'bloom_route absent $arg_k zone=hosts
                               to=@routed',
    default_pass_present   => 'bloom_pass present $arg_k zone=hosts;
                               bloom_reject absent never zone=ids',
    default_pass_absent    => 'bloom_pass absent $arg_k zone=hosts;
                               bloom_reject absent never zone=ids',
    default_any            => 'bloom_reject present $arg_k zone=hosts
                               split=,',

    # keys with split=

    any          => 'bloom_reject present $arg_k zone=hosts split=,
                     invalid=fire empty=fire',
    all          => 'bloom_reject present $arg_k zone=hosts split=, match=all
                     invalid=fire empty=fire',
    absent_all   => 'bloom_reject absent $arg_k zone=hosts split=, match=all
                     status=410 invalid=fire',
    pass_all     => 'bloom_pass present $arg_k zone=hosts split=, invalid=fire;
                     bloom_reject absent never zone=ids',
    any_not      => 'bloom_reject present $arg_k zone=hosts split=,
                     invalid=pass',
    all_not      => 'bloom_reject absent $arg_k zone=hosts split=, match=all',
    cold_list    => 'bloom_reject present $arg_k zone=cold split=, invalid=fire
                     empty=fire',
);

configure_rules($t, { ids => ['one'] }, join "\n", <<'CONF',
    bloom_zone zone=hosts file=%%TESTDIR%%/hosts.bloom;
    bloom_zone zone=urls file=%%TESTDIR%%/urls.bloom;
    bloom_zone zone=cold file=%%TESTDIR%%/cold.bloom max_age=1d;
    bloom_zone zone=missing:1m file=%%TESTDIR%%/missing.bloom required=off;
    bloom_zone zone=adder file=%%TESTDIR%%/hosts.bloom;
    bloom_state_path %%TESTDIR%%/state;

    server {
        listen 127.0.0.1:%%PORT_8080%%;
        add_header X-Bloom "$bloom_status $bloom_zone" always;
        add_header X-Key "<$bloom_key>" always;

        location /bloom/ { bloom_api; }
        location @routed {
            add_header X-Bloom "$bloom_status $bloom_zone" always;
            add_header X-Key "<$bloom_key>" always;
            bloom_rules off;
            return 200 "routed";
        }
        location @checked {
            add_header X-Bloom "$bloom_status $bloom_zone" always;
            bloom_reject present $arg_k zone=hosts invalid=pass;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location = /audit {
            bloom_audit 100% add=on;
            bloom_reject absent $arg_k zone=adder status=410 invalid=fire
                         empty=fire name=audited;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location = /audit_dry {
            bloom_audit 100% add=on;
            bloom_dry_run on;
            bloom_reject absent $arg_k zone=adder status=410 invalid=fire
                         empty=fire name=audited;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location = /feedback_alone {
            bloom_feedback 404;
            bloom_dry_run on;
            bloom_reject absent $arg_k zone=adder invalid=fire empty=fire;
            proxy_pass http://127.0.0.1:%%PORT_8081%%/none;
        }
        location = /feedback {
            bloom_feedback 404;
            bloom_dry_run on;
            bloom_reject absent $arg_j zone=hosts;
            bloom_reject absent $arg_k zone=adder invalid=fire empty=fire;
            proxy_pass http://127.0.0.1:%%PORT_8081%%/none;
        }
CONF
    (map { "        location = /$_ { $rules{$_} name=$_;"
           . ' proxy_pass http://127.0.0.1:%%PORT_8081%%; }' }
         sort keys %rules),
    '    }', <<'CONF');

    server {
        listen 127.0.0.1:%%PORT_8081%%;
        access_log off;
        location / { return 200 "backend"; }
        location /none { return 404; }
    }
CONF

$t->run;
$t->expect_log(qr/\[alert\] .*bloom zone "missing"/);


sub is_outcome {
    my ($path, $expected, $name) = @_;

    is(outcome($t, $path), $expected, $name);
}


subtest 'a rule fires on an invalid and on an empty key' => sub {
    for (# location, k, outcome
         ['reject_present', '..', '403 INVALID hosts'],
         ['reject_present', '', '403 REJECTED hosts'],
         ['reject_present', 'evil.example', '403 REJECTED hosts'],
         ['reject_present', 'good.example', '200 PASSED hosts'],
         ['reject_absent', '..', '410 INVALID hosts'],
         ['reject_absent', '', '410 REJECTED hosts'],
         ['reject_absent', 'evil.example', '200 PASSED hosts'],
         ['route', '..', '200 INVALID hosts'],
         ['route', '', '200 ROUTED hosts'],
         ['route', 'good.example', '200 PASSED hosts'],
         ['pass', '..', '200 INVALID hosts'],
         ['pass', '', '200 PASSED hosts'],
         ['pass', 'good.example', '404 REJECTED ids'],
         ['invalid', 'http://', '403 INVALID urls'],
         ['invalid', '', '200 '],
         ['empty', 'http://', '200 INVALID urls'],
         ['empty', '', '403 REJECTED urls'],
         ['neither', 'http://', '200 INVALID urls'],
         ['neither', '', '200 '],
         ['composed', 'http://', '403 INVALID urls'],
         ['composed', '', '403 REJECTED urls'],
         ['composed', 'http://good.example', '200 PASSED urls'],
         ['raw', '..', '200 PASSED ids'],
         ['second', '..', '482 INVALID hosts'],
         ['second', '', '482 REJECTED hosts'],
         ['second', '..&j=evil.example', '481 REJECTED hosts'],
         ['first', '..&j=evil.example', '481 INVALID hosts'],
         ['first', '&j=evil.example', '481 REJECTED hosts'],
         ['first', 'good.example&j=evil.example', '482 REJECTED hosts'])
    {
        my ($name, $k, $expected) = @$_;

        is_outcome("/$name?k=$k", $expected,
                   "the outcome of $name for k=$k is $expected");
    }

    is_outcome('/empty', '403 REJECTED urls',
               'empty=fire fires where the argument is missing');
    is($t->get('/route?k=..')->body, 'routed',
       'a route that fires on an invalid key leads to its target');
};


subtest 'the defaults depend on the kind of the rule' => sub {
    for (# location, outcome for an invalid key, outcome for an empty key, body
         # for an invalid key
         ['reject_present', '403 INVALID hosts', '200 '],
         ['reject_absent', '200 INVALID hosts', '200 '],
         ['route_present', '200 INVALID hosts', '200 ', 'routed'],
         ['route_absent', '200 INVALID hosts', '200 ', 'backend'],
         ['pass_present', '404 REJECTED ids', '404 REJECTED ids'],
         ['pass_absent', '404 REJECTED ids', '404 REJECTED ids'],
         ['any', '403 INVALID hosts', '200 '])
    {
        my ($name, $invalid, $empty, $body) = @$_;

        is_outcome("/default_$name?k=..", $invalid,
                   "$name has a default for an invalid key");
        is_outcome("/default_$name?k=", $empty,
                   "$name has a default for an empty key");
        is_outcome("/default_$name", $empty,
                   "$name has a default for a missing key");
        is($t->get("/default_$name?k=..")->body, $body,
           "$name leads an invalid key to $body") if $body;
    }

    is_outcome('/default_any?k=good.example,..', '403 INVALID hosts',
               'an invalid part of a block list fires by default');
};


subtest 'invalid= and empty= work with a zone that answers unknown' => sub {
    is_outcome('/cold?k=..', '403 INVALID cold',
               'invalid=fire fires on a key that is invalid in a stale image');
    is_outcome('/cold?k=good.example', '200 UNKNOWN cold',
               'invalid=fire does not fire on a key that is unknown');
    is_outcome('/cold?k=', '403 REJECTED cold',
               'empty=fire fires although nothing serves');
    is_outcome('/cold_list?k=,', '403 REJECTED cold',
               'empty=fire fires on a list of empty parts');
    is_outcome('/missing?k=..', '200 UNKNOWN missing',
               'no key is invalid without an image');
    is_outcome('/missing?k=', '403 REJECTED missing',
               'a key is empty without an image');
};


subtest 'a dry run says that the rule would fire' => sub {
    is_outcome('/dry?k=..', '200 REJECTED_DRY_RUN hosts',
               'an invalid key would be rejected in a dry run');
    is_outcome('/dry?k=', '200 REJECTED_DRY_RUN hosts',
               'an empty key would be rejected in a dry run');
    is_outcome('/dry_route?k=..', '200 ROUTED_DRY_RUN hosts',
               'an invalid key would be routed in a dry run');
    is(decisions_logged($t, '/dry?k=..'),
       'rejecting request, dry run: key ".." invalid for bloom zone "hosts"',
       'the log says that an invalid key would be rejected');
    is(decisions_logged($t, '/dry?k='),
       'rejecting request, dry run: no key for bloom zone "hosts"',
       'the log says that an empty key would be rejected');
};


subtest 'the log says why a rule fires' => sub {
    is(decisions_logged($t, '/reject_present?k=..'),
       'rejecting request: key ".." invalid for bloom zone "hosts"',
       'the log says that an invalid key is rejected');
    is(decisions_logged($t, '/route?k=..'),
       'routing request: key ".." invalid for bloom zone "hosts"',
       'the log says that an invalid key is routed');
    is(decisions_logged($t, '/reject_absent?k='),
       'rejecting request: no key for bloom zone "hosts"',
       'the log says that a request without a key is rejected');
    is(decisions_logged($t, '/any?k=..,good.example'),
       'rejecting request: key "..,good.example" invalid for bloom zone'
       . ' "hosts"',
       'the log says that a list with an invalid part is rejected');
    is(decisions_logged($t, '/neither?k=http://'),
       'passing request: key "http://" invalid for bloom zone "urls"',
       'the log says that an invalid key is passed');
    is(decisions_logged($t, '/neither?k='), '',
       'the log does not have an empty key that is passed');
};


# A backend that confirms a key gets $bloom_key, which must be canonical.

subtest '$bloom_key is empty if a rule fires without a valid key' => sub {
    my %of = map { $_ => $t->get($_)->header('X-Key') }
        '/route?k=..%0d%0aX:%20y', '/route?k=..', '/reject_present?k=',
        '/any?k=..', '/dry?k=..', '/pass?k=..';

    is($of{$_}, '<>', "\$bloom_key of $_ is empty") for sort keys %of;

    is($t->get('/neither?k=http://')->header('X-Key'), '<http://>',
       '$bloom_key is the invalid key that a rule passes');
};


subtest '$bloom_status marks each request with an invalid key' => sub {
    for (['then_passed', '..', 'good.example', '200 INVALID hosts'],
         ['then_passed', 'good.example', '..', '200 INVALID hosts'],
         ['then_passed', '..', '', '200 INVALID hosts'],
         ['then_passed', '..', 'evil.example', '403 REJECTED hosts'],
         ['then_allowed', '..', 'evil.example', '200 INVALID hosts'],
         ['then_allowed', 'good.example', 'evil.example', '200 PASSED hosts'],
         ['then_unknown', '..', 'x', '200 INVALID hosts'],
         ['unknown_then', '..', 'x', '200 INVALID hosts'],
         ['unknown_then', 'good.example', 'x', '200 UNKNOWN cold'],
         ['then_routed', '..', 'evil.example', '200 ROUTED hosts'],
         ['then_dry', '..', 'evil.example', '200 REJECTED_DRY_RUN hosts'],
         ['then_dry', '..', 'good.example', '200 INVALID hosts'],
         ['routed_then', '..', 'evil.example', '200 INVALID hosts'],
         ['routed_then', 'good.example', 'evil.example', '200 ROUTED hosts'],
         ['any_not', '..,good.example', '', '200 INVALID hosts'],
         ['any_not', 'good.example', '', '200 PASSED hosts'],
         ['all_not', '..,good.example', '', '200 INVALID hosts'])
    {
        my ($name, $k, $l, $expected) = @$_;

        is_outcome("/$name?k=$k&l=$l", $expected,
                   "the outcome of $name for k=$k and l=$l is $expected");
    }
};


subtest 'an invalid part of a list counts as one that fires' => sub {
    for (['any', 'good.example,..', '403 INVALID hosts'],
         ['any', 'good.example', '200 PASSED hosts'],
         ['any', 'good.example,,', '200 PASSED hosts'],
         ['any', ',', '403 REJECTED hosts'],
         ['any', '', '403 REJECTED hosts'],
         ['all', 'evil.example,..', '403 INVALID hosts'],
         ['all', '..,..', '403 INVALID hosts'],
         ['all', 'good.example,..', '200 PASSED hosts'],
         ['all', 'evil.example,good.example', '200 PASSED hosts'],
         ['all', ',,', '403 REJECTED hosts'],
         ['absent_all', 'good.example,..', '410 INVALID hosts'],
         ['absent_all', 'evil.example,..', '200 PASSED hosts'],
         ['absent_all', ',', '200 '],
         ['pass_all', 'evil.example,..', '200 INVALID hosts'],
         ['pass_all', 'evil.example', '200 PASSED hosts'],
         ['pass_all', 'good.example,..', '404 REJECTED ids'])
    {
        my ($name, $k, $expected) = @$_;

        is_outcome("/$name?k=$k", $expected,
                   "the outcome of $name for the list '$k' is $expected");
    }
};


# Returns the counters of a rule that are not 0, as "NAME NUMBER" in one text.

sub counted {
    my ($rule) = @_;

    my $text = api($t, GET => 'metrics')->body;
    my %count = $text =~ /^nginx_bloom_rule_\w+\{rule="\Q$rule\E".*?
                          (?:answer|decision)="(\w+)"\}\ (\d+)$/gmx;

    return join ' ', map { $count{$_} ? "$_ $count{$_}" : () }
                         sort keys %count;
}


subtest 'the counters show that a rule fired, and why' => sub {
    my $of_zone = sub {
        my $counters = zone_state($t, $_[0])->{counters};
        return join ' ', @$counters{qw(checks invalid rejected)};
    };

    is(counted('audited'), '', 'a rule that was never asked has counted'
                               . ' nothing');
    is($of_zone->('adder'), '0 0 0',
       'the zone of such a rule has counted nothing');
    is_outcome('/audit?k=..', '410 INVALID adder',
               'an invalid key is rejected and not audited');
    is(counted('audited'), 'fired 1 invalid 1',
       'a rule counts that it fired on an invalid key');
    is($of_zone->('adder'), '0 1 1', 'its zone counts an invalid key');
    is_outcome('/audit?k=', '410 REJECTED adder',
               'an empty key is rejected and not audited');
    is(counted('audited'), 'empty 1 fired 2 invalid 1',
       'a rule counts that it fired on an empty key');
    is($of_zone->('adder'), '0 1 2', 'its zone counts a rejected request');
    is_outcome('/audit_dry?k=..', '200 REJECTED_DRY_RUN adder',
               'an invalid key is not audited in a dry run either');
    is(counted('audited'), 'dry_run 1 empty 1 fired 2 invalid 2',
       'a rule counts that it would have fired on an invalid key');

    my $state = zone_state($t, 'adder');
    is(join(' ', @{ $state->{audit} }{qw(audited added)}), '0 0',
       'no key was audited or added');
    is($state->{counters}{added}, 0, 'no key was added');

    is(counted('neither') =~ /empty (\d+)/ ? $1 : 0, 2,
       'a rule counts the empty keys that it passes');
};


subtest 'an invalid or an empty key never counts as a false positive' => sub {
    my $feedback = sub {
        my $state = zone_state($t, $_[0])->{feedback};
        return "$state->{absent} $state->{false_positives}";
    };

    for my $k ('..', '') {
        for my $name (qw(feedback feedback_alone)) {
            is($t->get("/$name?j=evil.example&k=$k")->status, 404,
               "$name passes k=$k to the backend in a dry run");
            is($feedback->($_), '0 0',
               "$name counts nothing of $_ for k=$k")
                for qw(hosts adder);
        }
    }
};


done_testing;
