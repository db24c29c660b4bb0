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
                       empty=pass name=neither',
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

# A list that is audited, and those that bloom_feedback measures.

my $measured = 'bloom_reject absent $arg_k zone=adder invalid=fire empty=fire';

$rules{audit} = "bloom_audit 100% add=on; $measured status=410 name=audited";
$rules{audit_dry} = "bloom_dry_run on; $rules{audit}";
$rules{feedback_alone} = "bloom_feedback 404; bloom_dry_run on; $measured;
                          proxy_pass http://127.0.0.1:%%PORT_8082%%";
$rules{feedback} = $rules{feedback_alone}
    =~ s/bloom_reject/bloom_reject absent \$arg_j zone=hosts; $&/r;

configure_rules($t, { ids => ['one'] },
                <<'CONF' . locations(\%rules, 8081) . <<'CONF', backend => 8081);
    bloom_zone zone=hosts file=%%TESTDIR%%/hosts.bloom;
    bloom_zone zone=urls file=%%TESTDIR%%/urls.bloom;
    bloom_zone zone=cold file=%%TESTDIR%%/cold.bloom max_age=1d;
    bloom_zone zone=missing:1m file=%%TESTDIR%%/missing.bloom required=off;
    bloom_zone zone=adder file=%%TESTDIR%%/hosts.bloom;
    bloom_state_path %%TESTDIR%%/state;

    add_header X-Bloom "$bloom_status $bloom_zone" always;
    add_header X-Key "<$bloom_key>" always;

    server {
        listen 127.0.0.1:%%PORT_8080%%;
        location /bloom/ { bloom_api; }
        location @routed { bloom_rules off; return 200 "routed"; }
        location @checked {
            bloom_reject present $arg_k zone=hosts invalid=pass;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
CONF
    }
    server {
        listen 127.0.0.1:%%PORT_8082%%;
        location / { return 404; }
    }
CONF

$t->run;
$t->expect_log(qr/\[alert\] .*bloom zone "missing"/);


subtest 'a rule fires on an invalid and on an empty key' => sub {
    outcomes_are($t, <<'END');
/reject_present?k=..                403 INVALID hosts
/reject_present?k=                  403 REJECTED hosts
/reject_present?k=evil.example      403 REJECTED hosts
/reject_present?k=good.example      200 PASSED hosts
/reject_absent?k=..                 410 INVALID hosts
/reject_absent?k=                   410 REJECTED hosts
/reject_absent?k=evil.example       200 PASSED hosts
/route?k=..                         200 INVALID hosts
/route?k=..                         "routed"
/route?k=                           200 ROUTED hosts
/route?k=good.example               200 PASSED hosts
/pass?k=..                          200 INVALID hosts
/pass?k=                            200 PASSED hosts
/pass?k=good.example                404 REJECTED ids
/invalid?k=http://                  403 INVALID urls
/invalid?k=                         200
/empty?k=http://                    200 INVALID urls
/empty?k=                           403 REJECTED urls
/empty                              403 REJECTED urls  the argument is missing
/neither?k=http://                  200 INVALID urls
/neither?k=                         200
/composed?k=http://                 403 INVALID urls
/composed?k=                        403 REJECTED urls
/composed?k=http://good.example     200 PASSED urls
/raw?k=..                           200 PASSED ids
/second?k=..                        482 INVALID hosts
/second?k=                          482 REJECTED hosts
/second?k=..&j=evil.example         481 REJECTED hosts
/first?k=..&j=evil.example          481 INVALID hosts
/first?k=&j=evil.example            481 REJECTED hosts
/first?k=good.example&j=evil.example  482 REJECTED hosts
END
};


subtest 'the defaults depend on the kind of the rule' => sub {
    for (# location, outcome for an invalid key, outcome for an empty key
         ['reject_present', '403 INVALID hosts', '200'],
         ['reject_absent', '200 INVALID hosts', '200'],
         ['route_present', '200 INVALID hosts', '200'],
         ['route_absent', '200 INVALID hosts', '200'],
         ['pass_present', '404 REJECTED ids', '404 REJECTED ids'],
         ['pass_absent', '404 REJECTED ids', '404 REJECTED ids'],
         ['any', '403 INVALID hosts', '200'])
    {
        my ($name, $invalid, $empty) = @$_;

        outcomes_are($t, <<"END");
/default_$name?k=..  $invalid
/default_$name?k=    $empty
/default_$name       $empty
END
    }

    outcomes_are($t, <<'END');
/default_route_present?k=..  "routed"
/default_route_absent?k=..   "backend /default_route_absent?k=.."
/default_any?k=good.example,..  403 INVALID hosts  an invalid part of a list
END
};


subtest 'invalid= and empty= in unknown zones, and in a dry run' => sub {
    outcomes_are($t, <<'END');
/cold?k=..            403 INVALID cold   an invalid key of a stale image
/cold?k=good.example  200 UNKNOWN cold   invalid=fire is not for unknown keys
/cold?k=              403 REJECTED cold  empty=fire, although nothing serves
/cold_list?k=,        403 REJECTED cold  a list of empty parts
/missing?k=..         200 UNKNOWN missing   no key is invalid without an image
/missing?k=           403 REJECTED missing  a key is empty without an image
/dry?k=..             200 REJECTED_DRY_RUN hosts
/dry?k=               200 REJECTED_DRY_RUN hosts
/dry_route?k=..       200 ROUTED_DRY_RUN hosts
END
};


subtest 'the log says why a rule fires' => sub {
    my $for = 'for bloom zone';
    my %said = (
        '/dry?k=..' => 'rejecting request, dry run: key ".." invalid',
        '/dry?k=' => 'rejecting request, dry run: no key',
        '/reject_present?k=..' => 'rejecting request: key ".." invalid',
        '/route?k=..' => 'routing request: key ".." invalid',
        '/reject_absent?k=' => 'rejecting request: no key',
        '/any?k=..,good.example' =>
            'rejecting request: key "..,good.example" invalid',
    );

    is(decisions_logged($t, $_), "$said{$_} $for \"hosts\"",
       "the log has the decision about $_") for sort keys %said;
    is(decisions_logged($t, '/neither?k=http://'),
       "passing request: key \"http://\" invalid $for \"urls\"",
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
    outcomes_are($t, <<'END');
/then_passed?k=..&l=good.example         200 INVALID hosts
/then_passed?k=good.example&l=..         200 INVALID hosts
/then_passed?k=..&l=                     200 INVALID hosts
/then_passed?k=..&l=evil.example         403 REJECTED hosts
/then_allowed?k=..&l=evil.example        200 INVALID hosts
/then_allowed?k=good.example&l=evil.example  200 PASSED hosts
/then_unknown?k=..&l=x                   200 INVALID hosts
/unknown_then?k=..&l=x                   200 INVALID hosts
/unknown_then?k=good.example&l=x         200 UNKNOWN cold
/then_routed?k=..&l=evil.example         200 ROUTED hosts
/then_dry?k=..&l=evil.example            200 REJECTED_DRY_RUN hosts
/then_dry?k=..&l=good.example            200 INVALID hosts
/routed_then?k=..&l=evil.example         200 INVALID hosts
/routed_then?k=good.example&l=evil.example  200 ROUTED hosts
/any_not?k=..,good.example               200 INVALID hosts
/any_not?k=good.example                  200 PASSED hosts
/all_not?k=..,good.example               200 INVALID hosts
END
};


subtest 'an invalid part of a list counts as one that fires' => sub {
    outcomes_are($t, <<'END');
/any?k=good.example,..           403 INVALID hosts
/any?k=good.example              200 PASSED hosts
/any?k=good.example,,            200 PASSED hosts
/any?k=,                         403 REJECTED hosts
/any?k=                          403 REJECTED hosts
/all?k=evil.example,..           403 INVALID hosts
/all?k=..,..                     403 INVALID hosts
/all?k=good.example,..           200 PASSED hosts
/all?k=evil.example,good.example  200 PASSED hosts
/all?k=,,                        403 REJECTED hosts
/absent_all?k=good.example,..    410 INVALID hosts
/absent_all?k=evil.example,..    200 PASSED hosts
/absent_all?k=,                  200
/pass_all?k=evil.example,..      200 INVALID hosts
/pass_all?k=evil.example         200 PASSED hosts
/pass_all?k=good.example,..      404 REJECTED ids
END
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

    # requests, what the rule has counted then, and what its zone has counted

    for (['', '', '0 0 0'],
         ['/audit?k=..  410 INVALID adder', 'fired 1 invalid 1', '0 1 1'],
         ['/audit?k=  410 REJECTED adder', 'empty 1 fired 2 invalid 1', '0 1 2'],
         ['/audit_dry?k=..  200 REJECTED_DRY_RUN adder',
          'dry_run 1 empty 1 fired 2 invalid 2', '0 2 2'])
    {
        my ($request, $rule, $zone) = @$_;

        outcomes_are($t, $request);
        is(counted('audited'), $rule, "the rule counts, after '$request'");
        is(join(' ', @{ zone_state($t, 'adder')->{counters} }
                         {qw(checks invalid rejected)}),
           $zone, "its zone counts, after '$request'");
    }

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
