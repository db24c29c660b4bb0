#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that a variable of bloom_lookup keeps its answer while a request has the
# same key: nginx evaluates some variables twice, for the length of a text and
# for the text itself.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Faults;
use BloomTest::Process qw(resume_process wait_until);
use BloomTest::Rules;

my $t = BloomTest->new;
my $faults = BloomTest::Faults->new($t);

# Zone "late" answers unknown until its image file exists.

configure_rules($t, { ids => ['one', 'two'] }, <<'CONF',
    bloom_zone zone=late:1m file=%%TESTDIR%%/late.bloom required=off;
    bloom_zone zone=added capacity=1k fpr=1e-9;
    bloom_state_path %%TESTDIR%%/state;

    bloom_lookup $arg_id $known zone=ids;
    bloom_lookup $key $key_known zone=ids;
    bloom_lookup "$arg_a$arg_b" $composed zone=ids;
    bloom_lookup $arg_id $decoded zone=ids decode=form;
    bloom_lookup $arg_id $late zone=late;
    bloom_lookup $arg_id $added zone=added;
    bloom_lookup $uri $page_known zone=ids;

    log_format added '$request_uri <$added>';
    map $known $mapped { 0 absent; 1 present; default none; }

    server {
        listen 127.0.0.1:%%PORT_8080%%;
        location /bloom/ { bloom_api write=on; }

        location /text { set $x "a${known}z"; return 200 "$x"; }
        location /composed { set $x "a${composed}z"; return 200 "$x"; }
        location /decoded { set $x "a${decoded}z"; return 200 "$x"; }
        location /many {
            set $x "$known$known";
            set $y "$mapped-$known";
            add_header X-Known "$known $mapped";
            if ($known = 1) { return 200 "$x $y"; }
            return 404;
        }
        location /both { set $x "$known$decoded"; return 200 "$x"; }
        location /redirected {
            set $x "a$known";
            try_files /none /text?$args;
        }
        location /error {
            error_page 404 = @error;
            if ($known = 0) { return 404; }
        }
        location @error { return 200 "$known"; }
        location /changes {
            set $key one;
            set $x "$key_known$key_known";
            set $key none;
            set $x "$x$key_known$key_known";
            set $key one;
            set $x "$x$key_known";
            return 200 "$x";
        }
        location /ssi/ { ssi on; add_header X-Known $known; }
        location /decided {
            bloom_reject present $arg_bad zone=ids;
            try_files /none /decided-to?$args;
        }
        location /decided-to {
            set $x "<$bloom_status><$bloom_zone><$bloom_key>";
            return 200 "$x$x";
        }

        location /late { set $x "a${late}"; return 200 "$x"; }
        location /added { set $x "a${added}z"; return 200 "$x"; }
        location /adds {
            access_log %%TESTDIR%%/added.log added;
            set $x "$added";
            bloom_add $arg_id zone=added;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
    }
CONF
    main => 'worker_processes 2;', backend => 8081);

$t->write_file('html/ssi/page.html', join '', map {
    "<!--# include virtual=\"/text?id=$_\" -->"
} qw(one none two one));
$t->write_file('html/ssi/many.html', join '', map {
    "<!--# include virtual=\"/text?id=" . 'k' x ($_ % 100) . "$_\" -->"
} 1 .. 300);

$t->run;
$t->expect_log(qr/\[alert\] .*bloom zone "late"/);

sub body { return $t->get(@_)->body }

sub checks {
    my ($zone) = @_;
    return zone_state($t, $zone // 'ids')->{counters}{checks};
}


# Tests the response to a request, and how many keys were looked up for it.

sub is_once {
    my ($path, $body, $lookups, $name) = @_;

    my $before = checks();
    is($t->get($path)->body, $body, "$name has the right answer");
    is(checks() - $before, $lookups, "$name needs lookups: $lookups");
}


subtest 'a key is looked up once' => sub {
    is_once('/text?id=one', 'a1z', 1, 'a present key within a text');
    is_once('/text?id=none', 'a0z', 1, 'an absent key within a text');
    is_once('/text', 'az', 0, 'an empty key');
    is_once('/composed?a=o&b=ne', 'a1z', 1, 'a key of two variables');
    is_once('/decoded?id=o%6ee', 'a1z', 1, 'a decoded key');
    is_once('/many?id=one', '11 present-1', 1, 'a key in many places');
    is_once('/both?id=one', '11', 2, 'a key of two variables of bloom_lookup');
    is_once('/redirected?id=one', 'a1z', 1,
            'a key that an internal redirect keeps');
    is_once('/error?id=none', '0', 1, 'a key that an error page keeps');

    is($t->get('/many?id=one')->header('X-Known'), '1 present',
       'a header has the same answer');

    my @r = $t->pipeline(map { "/text?id=$_" } qw(one none one));
    is(join('', map { $_->body } @r), 'a1za0za1z',
       'each request of a connection is looked up on its own');
};


subtest 'another key is looked up' => sub {
    is_once('/changes', '11001', 3, 'a key that changes');
    is_once('/ssi/page.html?id=none', 'a1za0za1za1z', 5,
            'a key of each subrequest, and one of the request');
    is_once('/ssi/many.html?id=one', 'a0z' x 300, 301,
            'a key of each of 300 subrequests');
};


subtest 'the outcome of rules stays the same within a text' => sub {
    my $outcome = '<PASSED><ids><none>';
    is(body('/decided?bad=none'), $outcome x 2,
       'both evaluations of a text see the same outcome');
};


subtest 'a request that adds its own key keeps its first answer' => sub {
    $t->get("/adds?id=new&n=$_") for 1, 2;

    my $log = '';
    ok(wait_until(sub {
        $log = $t->read_file('added.log');
        return $log =~ /n=2 /;
    }), 'the requests are logged');
    is($log, "/adds?id=new&n=1 <0>\n/adds?id=new&n=2 <1>\n",
       'the request that adds a key keeps "absent", the next has "present"');
};


# The worker is stopped before its second evaluation of the key, where other
# processes might overtake it.

subtest 'an answer does not change between two evaluations' => sub {
    $faults->needed;

    my $evaluated = sub {
        my ($path, $change) = @_;

        my $stop = $faults->stop_at('variable', 2);
        my $connection = $t->connect;
        $connection->send($t->request_text(GET => $path));
        my $pid = $faults->stopped($stop);

        $change->();
        resume_process($pid);

        return $connection->response('GET')->body;
    };

    is($evaluated->('/added?id=key', sub { add($t, 'added', ['key']) }), 'a0z',
       'a key that another worker adds meanwhile stays absent');
    is(body('/added?id=key'), 'a1z', 'the key is present in the next request');

    is($evaluated->('/late?id=one', sub {
        $t->build_image('late.bloom', ['one']);
        is(api($t, POST => 'zones/late/reload')->status, 200,
           'an image is loaded between the evaluations');
    }), 'a', 'a key stays unknown although its zone begins to serve');
    is(body('/late?id=one'), 'a1',
       'the key of that zone is present in the next request');
};


done_testing;
