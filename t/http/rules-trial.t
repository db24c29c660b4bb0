#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests dry_run on a rule: the rule is on trial.  It decides, counts and logs
# what it would have done, the request goes on with the next rule, and the other
# rules do what they do without it.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(wait_until);
use BloomTest::Rules;

my $t = BloomTest->new;

$t->build_image('hosts.bloom', ['evil.example'], '-p', '1e-9', '--seed', 1,
                '--form', 'host');
$t->build_image('cold.bloom', ['one'], '-p', '1e-9', '--seed', 1,
                '--as-of', '2020-01-01T00:00:00Z');

# In a name, "t" is a rule on trial and "e" an enforced one.

my $new = 'zone=new dry_run name=trial';

my %rules = (
    t_reject    => "bloom_reject present \$arg_k $new status=451",
    t_route     => "bloom_route present \$arg_k $new to=\@routed",
    t_pass      => "bloom_pass present \$arg_k $new;
                    bloom_reject present \$arg_e zone=bad",
    t_shield    => "bloom_reject absent \$arg_k $new",
    t_list      => "bloom_reject present \$arg_k $new split=,",
    t_composed  => "bloom_reject present \"\$arg_k\$arg_l\" $new",
    t_fire      => "bloom_reject present \$arg_k zone=hosts dry_run name=trial
                    invalid=fire empty=fire",
    t_invalid   => 'bloom_reject present $arg_k zone=hosts dry_run name=trial
                    invalid=pass',
    t_cold      => 'bloom_unknown reject;
                    bloom_reject present $arg_k zone=cold dry_run name=trial',
    t_e_reject  => "bloom_reject present \$arg_k $new;
                    bloom_reject present \$arg_e zone=bad",
    t_e_route   => "bloom_reject present \$arg_k $new;
                    bloom_route present \$arg_e zone=bad to=\@routed",
    t_e_pass    => "bloom_reject present \$arg_k $new;
                    bloom_pass present \$arg_e zone=bad;
                    bloom_reject absent never zone=bad",
    t_e_fire    => "bloom_reject present \$arg_k $new;
                    bloom_pass present \$arg_e zone=hosts invalid=fire",
    t_e_invalid => "bloom_reject present \$arg_k $new;
                    bloom_reject present \$arg_e zone=hosts invalid=pass",
    t_e_cold    => "bloom_unknown reject;
                    bloom_reject present \$arg_k $new;
                    bloom_reject present \$arg_e zone=cold",
    e_t_reject  => "bloom_reject present \$arg_e zone=bad;
                    bloom_reject present \$arg_k $new",
    e_t_invalid => "bloom_reject present \$arg_e zone=hosts invalid=pass;
                    bloom_reject present \$arg_k $new",
    t_t         => "bloom_reject present \$arg_k $new;
                    bloom_route present \$arg_e zone=bad dry_run to=\@routed",
    t_dry       => "bloom_dry_run on;
                    bloom_reject present \$arg_k $new;
                    bloom_route present \$arg_e zone=bad to=\@routed",
    routed      => "bloom_route present \$arg_e zone=bad to=\@checked",
    t_twice     => "bloom_reject present \$arg_k $new;
                    try_files /none /next?\$args",
    'next'      => 'bloom_reject present $arg_e zone=bad',

    # a mirror that asks a service

    judged      => 'bloom_route present $arg_k zone=new dry_run to=@routed;
                    mirror /judge; mirror_request_body off',
    judged_dry  => 'bloom_dry_run on;
                    bloom_route present $arg_k zone=new to=@routed;
                    mirror /judge; mirror_request_body off',

    # a backend that knows no key

    audit       => 'bloom_audit 100%;
                    bloom_reject absent $arg_k zone=new dry_run; GONE',
    audit_both  => 'bloom_audit 100%;
                    bloom_reject absent $arg_k zone=new dry_run;
                    bloom_reject absent $arg_e zone=ids; GONE',
    feedback    => 'bloom_feedback 404;
                    bloom_reject absent $arg_k zone=new dry_run;
                    bloom_reject absent $arg_e zone=ids; GONE',
);

s{GONE}{proxy_pass http://127.0.0.1:%%PORT_8080%%/gone} for values %rules;

configure_rules($t, { ids => ['one'], new => ['new', 'both'],
                      bad => ['bad', 'both'] },
                <<'CONF' . locations(\%rules, 8081) . '}', backend => 8081);
    bloom_zone zone=hosts file=%%TESTDIR%%/hosts.bloom;
    bloom_zone zone=cold file=%%TESTDIR%%/cold.bloom max_age=1d;
    log_format outcome '$request_uri [$bloom_status] [$bloom_key] $status';

    log_format judged '$bloom_zone "$bloom_key" would get $status';
    map $bloom_status $routed { ROUTED_DRY_RUN 1; default 0; }

    server {
        listen 127.0.0.1:%%PORT_8080%%;
        access_log %%TESTDIR%%/outcome.log outcome;
        add_header X-Bloom "$bloom_status $bloom_zone" always;

        location /bloom/ { bloom_api; }
        location @routed { return 299 "routed"; }
        location @checked {
            bloom_reject present $arg_k zone=new dry_run;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location = /judge {
            internal;
            log_subrequest on;
            access_log %%TESTDIR%%/judged.log judged if=$routed;
            if ($routed = 0) { return 204; }
            proxy_pass http://127.0.0.1:%%PORT_8080%%/verdict;
            proxy_set_header X-Key $bloom_key;
        }
        location = /verdict {
            access_log %%TESTDIR%%/verdict.log outcome;
            if ($http_x_key = both) { return 403; }
            return 204;
        }
        location = /gone { add_header X-Gone 1 always; return 404; }
CONF

$t->run;


# Returns the sums of the counters of all rules of this name.

sub counted {
    my ($name) = @_;

    my %n;
    my $metrics = $t->get('/bloom/metrics')->body;

    $n{$1} += $2 while $metrics =~ /^nginx_bloom_rule_\w+\{rule="$name",.*?
                                    (?:answer|decision)="(\w+)"\}\ (\d+)$/mgx;

    return %n;
}


# Says what a request adds to the counters of the rule "trial".

sub adds {
    my ($path) = @_;

    my %n = counted('trial');
    $t->get($path);
    my %now = counted('trial');

    return join ' ', grep { $now{$_} != $n{$_} } sort keys %now;
}


subtest 'a rule on trial says what it would have done' => sub {
    outcomes_are($t, <<'END');
/t_reject?k=new        200 REJECTED_DRY_RUN new  it would be rejected
/t_reject?k=none       200 PASSED new            it would pass
/t_route?k=new         200 ROUTED_DRY_RUN new    it would be routed
/t_pass?k=new          200 PASSED new            it would be passed
/t_shield?k=none       200 REJECTED_DRY_RUN new  an absent key of a shield
/t_list?k=a,new,b      200 REJECTED_DRY_RUN new  a list
/t_composed?k=ne&l=w   200 REJECTED_DRY_RUN new  a composed key
END

    my %counts = ('/t_reject?k=new' => 'dry_run present',
                  '/t_route?k=new' => 'dry_run present',
                  '/t_pass?k=new' => 'dry_run present',
                  '/t_reject?k=none' => 'absent',
                  '/t_fire?k=..' => 'dry_run invalid',
                  '/t_cold?k=x' => 'unknown');

    is(adds($_), $counts{$_}, "a rule on trial counts a request for $_")
        for sort keys %counts;

    my $zone = sub { zone_state($t, 'new')->{counters} };
    my $before = $zone->();
    $t->get($_) for '/t_reject?k=new', '/t_route?k=new', '/t_pass?k=new';
    my $after = $zone->();

    is($after->{dry_run} - $before->{dry_run}, 2,
       'the zone counts the two requests that would be rejected or routed');
    is($after->{rejected} + $after->{routed}, 0,
       'the zone counts no rejected or routed request');
};


subtest 'the logs say what a rule on trial would have done' => sub {
    my $new = 'request, dry run: key "%s" maybe present in bloom zone "new"';
    my %said = (
        '/t_reject?k=new' => 'rejecting ' . sprintf($new, 'new'),
        '/t_route?k=new' => 'routing ' . sprintf($new, 'new'),
        '/t_pass?k=new' => 'passing ' . sprintf($new, 'new'),
        '/t_e_reject?k=both&e=both' => 'rejecting ' . sprintf($new, 'both')
            . '|rejecting request: key "both" maybe present in bloom zone "bad"',
        '/t_cold?k=x' =>
            'rejecting request, dry run: key "x" unknown in bloom zone "cold"',
    );

    is(decisions_logged($t, $_), $said{$_}, "the error log has the trial of $_")
        for sort keys %said;

    $t->get('/t_reject?k=new&logged');
    ok(wait_until(sub {
        $t->read_file('outcome.log')
            =~ m{^/t_reject\?k=new&logged \[REJECTED_DRY_RUN\] \[new\] 200$}m;
    }), 'the access log has what would be rejected');
};


subtest 'an invalid, empty or unknown key does not stop a trial' => sub {
    outcomes_are($t, <<'END');
/t_fire?k=..     200 REJECTED_DRY_RUN hosts  invalid=fire holds on trial
/t_fire          200 REJECTED_DRY_RUN hosts  empty=fire holds on trial
/t_invalid?k=..  200 INVALID hosts           invalid=pass holds on trial
/t_cold?k=x      200 UNKNOWN cold            bloom_unknown reject does not
END
};


# A rule on trial comes before an enforced one, unless the table says otherwise.

subtest 'enforced rules decide' => sub {
    outcomes_are($t, <<'END');
/t_e_reject?k=both&e=both  403 REJECTED bad          it would be rejected anyway
/t_e_reject?k=new&e=none   200 REJECTED_DRY_RUN new  the later one does not fire
/t_e_reject?k=none&e=bad   403 REJECTED bad          the trial does not fire
/t_e_route?k=both&e=both   299 ROUTED bad            the later one routes
/t_e_pass?k=both&e=both    200 REJECTED_DRY_RUN new  the later one passes
/t_e_fire?k=new&e=evil.example  200 REJECTED_DRY_RUN new  the later one passes
/t_e_fire?k=new&e=..       200 INVALID hosts         an invalid key that passes
/t_e_invalid?k=new&e=..    200 INVALID hosts         an invalid key
/t_e_cold?k=new&e=x        503 UNKNOWN cold          an unknown key
/t_pass?k=both&e=both      403 REJECTED bad          the trial would pass it
/e_t_reject?k=both&e=both  403 REJECTED bad          an earlier rule rejects
/e_t_reject?k=new&e=none   200 REJECTED_DRY_RUN new  an earlier one has no say
/e_t_invalid?k=new&e=..    200 INVALID hosts         an earlier INVALID stays
/t_t?k=both&e=both         200 REJECTED_DRY_RUN new  the first of two trials
/t_t?k=none&e=bad          200 ROUTED_DRY_RUN bad    the second of two trials
/t_dry?k=both&e=both       200 ROUTED_DRY_RUN bad    bloom_dry_run reports it
/routed?k=both&e=both      200 ROUTED bad            a trial in the target
/t_twice?k=both&e=both     403 REJECTED bad          rules of a later location
END
};


# Tests what a request adds to the counters of a zone's audit or feedback.

sub zone_adds {
    my ($path, $zone, $part, $want, $name) = @_;

    my @counters = qw(audited confirmed wrong_absent unanswered
                      absent false_positives);
    my $before = zone_state($t, $zone)->{$part};
    my $added;

    $t->get($path);

    # an audit is settled a moment after the response

    wait_until(sub {
        my $after = zone_state($t, $zone)->{$part};

        $added = join ' ', grep { ($after->{$_} // 0) > ($before->{$_} // 0) }
                                @counters;
        return $added eq $want;
    });

    is($added, $want, $name);
}


subtest 'an audit sees a rule on trial, and enforced rules are not affected'
    => sub
{
    is(outcome($t, '/audit?k=none'), '404 REJECTED_DRY_RUN new',
       'an audited request of a rule on trial passes');
    zone_adds('/audit?k=none', new => 'audit', 'audited confirmed',
              'the backend confirms what a rule on trial found absent');
    is(outcome($t, '/audit_both?k=none&e=none'), '404 AUDITED ids',
       'the audit of an enforced rule lets the request pass');
    zone_adds('/audit_both?k=none&e=none', ids => 'audit', 'audited confirmed',
              'an enforced rule takes the audit over');
    zone_adds('/audit_both?k=none&e=none', new => 'audit', 'audited unanswered',
              'the audit of the rule on trial gets no answer');
    zone_adds('/audit_both?k=none&e=one', new => 'audit', 'audited confirmed',
              'the audit of the rule on trial gets an answer');
};


subtest 'a mirror asks the service what a route on trial would refuse' => sub {
    for my $path (qw(/judged /judged_dry)) {
        $t->write_file('judged.log', '');

        is(outcome($t, "$path?k=$_->[0]"), "200 $_->[1] new",
           "a request with the key $_->[0] passes")
            for ['both', 'ROUTED_DRY_RUN'], ['none', 'PASSED'],
                ['new', 'ROUTED_DRY_RUN'];

        ok(wait_until(sub { 2 == (() = $t->read_file('judged.log') =~ /\n/g) }),
           'the log has the two requests that would be routed');

        is(join('', sort split /^/, $t->read_file('judged.log')),
           qq(new "both" would get 403\nnew "new" would get 204\n),
           'the log has the answers of the service');
    }

    # a later request shows that no more lines are to come

    $t->get('/verdict?last');
    ok(wait_until(sub { $t->read_file('verdict.log') =~ /last/ }),
       'the service writes its log');
    is(() = $t->read_file('verdict.log') =~ /\n/g, 5,
       'the service is asked about these requests alone');
};


subtest 'feedback ignores a rule on trial' => sub {
    for my $k (qw(new none)) {
        zone_adds("/feedback?k=$k&e=one", ids => 'feedback', 'false_positives',
                  "the enforced rule's false positive is counted: $k");
        zone_adds("/feedback?k=$k&e=one", new => 'feedback', '',
                  "nothing is counted for the rule on trial: $k");
    }
};


subtest 'a rule that is enforced after its trial keeps its counters' => sub {
    my %before = counted('trial');

    my $enforced = $t->read_file('nginx.conf') =~ s/ dry_run name=trial/
                                                    name=trial/gr;
    $t->write_file('nginx.conf', $enforced);
    $t->reload;

    is(outcome($t, '/t_reject?k=new'), '451 REJECTED new',
       'the rule is enforced');

    my %after = counted('trial');
    is($after{dry_run}, $before{dry_run},
       'the requests of the trial are still counted');
    is($after{fired}, 1, 'the rejected request is counted');
    is($after{present}, $before{present} + 1,
       'the answers are counted by the same counter');
};

done_testing();
