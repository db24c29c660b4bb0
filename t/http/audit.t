#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests bloom_audit: some requests that would be rejected are passed to the
# backend.  Its answers are counted and logged, and with add=on the key is added.

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

my $absent = 'bloom_reject absent $arg_id zone';
my $cached = "$absent=ids; proxy_cache cache; proxy_cache_key \$uri;
              proxy_cache_valid any 1h";

my %rules = (
    ''       => "$absent=ids",
    off      => "bloom_audit off; $absent=ids",
    half     => "bloom_audit 50%; $absent=ids",
    add      => "bloom_audit 100% add=on; $absent=adder",
    fixed    => "bloom_audit 100% add=on; $absent=fixed",
    hosts    => "bloom_audit 100% add=on; $absent=hosts",
    feedback => "bloom_feedback 403; $absent=ids",
    dry      => "bloom_dry_run on; $absent=ids",
    bad      => "$absent=ids; bloom_reject present \$arg_id zone=bad",
    allowed  => "$absent=ids; bloom_pass absent \$arg_id zone=bad",
    present  => 'bloom_reject present $arg_id zone=ids',
    route    => 'bloom_route absent $arg_id zone=ids to=@routed',
    '@routed' => 'return 404',
    split    => "$absent=ids split=,",
    own      => "$absent=ids; try_files /none /static",
    static   => 'return 200 "static"',
    silent   => "$absent=ids; proxy_read_timeout 200ms",
    down     => "$absent=ids; proxy_pass http://127.0.0.1:%%PORT_8082%%",
    sorry    => "$absent=ids; error_page 502 = \@sorry;
                 proxy_pass http://127.0.0.1:%%PORT_8082%%",
    '@sorry' => 'proxy_pass http://127.0.0.1:%%PORT_8081%%',
    accel    => "$absent=ids",
    ignored  => "$absent=ids; proxy_ignore_headers X-Accel-Redirect;
                 proxy_pass http://127.0.0.1:%%PORT_8081%%/accel",
    cached   => $cached,
    'cached-page' => "$cached; proxy_intercept_errors on;
                      error_page 404 =200 /static",
);

configure_rules($t, { ids => ['id1'], bad => ['id-bad'] },
                <<'CONF' . locations(\%rules, 8081) . '}',
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
        location /file { internal; root %%TESTDIR%%; }
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


# Tests a table of what requests add: a row has a path, what audit() returns,
# and why it is so.

sub audits {
    my ($table, %option) = @_;

    for (split /\n/, $table) {
        my ($path, $want, $why) = split /\s{2,}/, $_, 3;

        is(audit($path, %option), $want, "$why: $path");
    }
}


subtest 'the answer of the backend confirms or contradicts the filter' => sub {
    is(zone_state($t, 'ids')->{audit}{last_wrong_absent}, undef,
       'there is no time of a wrong absent before the first one');
    audits(<<'END');
/?id=id1              0 0 0 0 0 PASSED 200   a present key is not audited
/?id=none             1 1 0 0 0 AUDITED 404  status 404 confirms it
/?id=none&status=410  1 1 0 0 0 AUDITED 410  status 410 confirms it
END

    my $mark = $t->log_mark;
    my $now = rfc3339(time - 1);
    is(audit('/?id=id2'), '1 0 1 0 0 AUDITED 200',
       'status 200 reveals that a key is wrongly absent');
    cmp_ok(zone_state($t, 'ids')->{audit}{last_wrong_absent}, 'ge', $now,
           'the state has the time of the last wrong absent');
    like($t->wait_for_log(qr/wrong absent/, $mark),
         qr/\[error\] .* zone "ids" lacks key "id2": add it,.* answered 200 .*, client: /,
         'the error log names a wrongly absent key and what to do');

    audits(<<'END');
/?id=id2&status=206           1 0 1 0 0 AUDITED 206  status 206 contradicts it
/feedback?id=none&status=403  1 1 0 0 0 AUDITED 403  a status of bloom_feedback
/feedback?id=none&status=404  1 0 0 1 0 AUDITED 404  not one of bloom_feedback
END
    is(audit('/?id=id2', method => 'HEAD'), '1 0 1 0 0 AUDITED 200',
       'a HEAD request reveals that a key is wrongly absent');

    for my $status (301, 304, 400, 401, 403, 429, 500, 503) {
        is(audit("/?id=id2&status=$status"), "1 0 0 1 0 AUDITED $status",
           "status $status leaves an audited request unanswered");
    }
};

subtest 'only an answer of the backend itself counts' => sub {
    audits(<<'END');
/own?id=id2           1 0 0 1 0 AUDITED 200  a file that nginx serves
/down?id=id2          1 0 0 1 0 AUDITED 502  a backend that is down
/sorry?id=id2         1 0 0 1 0 AUDITED 200  an error page by another backend
/silent?id=id2        1 0 0 1 0 AUDITED 504  a backend that times out
/cached?id=id2        1 0 1 0 0 AUDITED 200  a response that is not cached yet
/cached?id=none       1 0 0 1 0 AUDITED 200  a cached response
/cached-page?id=none  1 1 0 0 0 AUDITED 200  a 404 behind an error page
/cached-page?id=none  1 0 0 1 0 AUDITED 200  a cached 404 behind an error page
/accel?id=id2         1 0 0 1 0 AUDITED 404  a backend that names a file
/ignored?id=id2       1 0 1 0 0 AUDITED 200  an X-Accel-Redirect that is ignored
END
};

subtest 'bloom_reject absent of one key is audited' => sub {
    is(audit('/?id=none', method => 'POST'), '0 0 0 0 0 REJECTED 404',
       'a POST request is not audited');
    audits(<<'END');
/off?id=none        0 0 0 0 0 REJECTED 404  bloom_audit off
/present?id=id1     0 0 0 0 0 REJECTED 403  bloom_reject present
/route?id=none      0 0 0 0 0 ROUTED 404    bloom_route
/split?id=id1,none  0 0 0 0 0 REJECTED 404  a rule with split=
/bad?id=id-bad      1 0 0 1 0 REJECTED 403  a later rule rejects
/bad?id=none        1 1 0 0 0 AUDITED 404   a later rule does not fire
/allowed?id=none    1 1 0 0 0 AUDITED 404   a later bloom_pass fires
/dry?id=id2         1 0 1 0 0 REJECTED_DRY_RUN 200  a dry run audits requests
END
};

subtest 'add=on adds wrongly absent keys' => sub {
    my $mark = $t->log_mark;
    is(audit('/add?id=id2', zone => 'adder'), '1 0 1 0 1 AUDITED 200',
       'a wrongly absent key is added');
    like($t->wait_for_log(qr/wrong absent/, $mark),
         qr/lacks key "id2": it was added now; put it into the next image, too/,
         'the error log says that a wrongly absent key was added');
    audits(<<'END', zone => 'adder');
/add?id=id2             0 0 0 0 0 PASSED 200   an added key passes
/add?id=none            1 1 0 0 0 AUDITED 404  a rightly absent key is not added
/add?id=none            1 1 0 0 0 AUDITED 404  it is audited again
/add?id=id3&status=301  1 0 0 1 0 AUDITED 301  an unanswered key is not added
END
    audits(<<'END', zone => 'hosts');
/hosts?id=ID.Example.            1 1 0 0 0 AUDITED 404  a host is absent
/hosts?id=id.Example&status=200  1 0 1 0 1 AUDITED 200  a host is added
/hosts?id=a.ID.example           0 0 0 0 0 PASSED 404   its subdomain passes
END
    $mark = $t->log_mark;
    is(audit('/fixed?id=id2', zone => 'fixed'), '1 0 1 0 0 AUDITED 200',
       'a zone without a journal adds no key');
    like($t->wait_for_log(qr/wrong absent/, $mark),
         qr/lacks key "id2": add it, or load an image that has it;/,
         'the error log says what to do about a key that cannot be added');

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
