#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# The counters of zones and rules never decrease: not when nginx reloads, not
# when a zone's memory is recreated, not when a worker dies.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Rules;

my $t = BloomTest->new;

$t->build_image('ids.bloom', ['one'], '-p', '1e-9', '--seed', 1);

sub configure {
    my ($zone, $rest) = @_;

    configure_rules($t, {}, <<"CONF", main => 'worker_processes 2;');
    $zone
    server {
        listen 127.0.0.1:%%PORT_8080%%;
        location /bloom/ { bloom_api write=on; }
        $rest
    }
CONF
}

my $rule = 'location / { bloom_reject absent $arg_id zone=ids name=shield; }';
my $audited = $rule . ' location /audit { bloom_reject absent $arg_id zone=ids;'
              . ' bloom_audit 100%;'
              . ' proxy_pass http://127.0.0.1:%%PORT_8080%%/there; }'
              . ' location /there { return 204; }';
my $ids = 'bloom_zone zone=ids%s file=%%TESTDIR%%/ids.bloom;';

sub checks { return zone_state($t, 'ids')->{counters}{checks} }

sub last_wrong { return zone_state($t, 'ids')->{audit}{last_wrong_absent} }

sub asks {
    my ($times) = @_;

    $t->get('/?id=one') for 1 .. $times;
}

configure($ids =~ s/%s//r, $rule);
$t->run;

asks(40);
is(checks(), 40, 'two workers count 40 checks for 40 requests');

$t->reload;
is(checks(), 40, 'a reload keeps the count of checks');
asks(4);

configure($ids =~ s/%s//r, $audited);
my $mark = $t->log_mark;
$t->reload;
$t->get('/audit?id=missing');
$t->wait_for_log(qr/wrong absent: .*"missing"/, $mark);
my $last = last_wrong();
ok(defined $last, 'a wrong absent has a time');

configure($ids =~ s/%s/:8m/r, $rule);
$mark = $t->log_mark;
$t->reload;
$t->wait_for_log(qr/its memory is recreated/, $mark);
is(checks(), 45, 'a zone whose memory is recreated keeps its count of checks');
is(last_wrong(), $last,
   'a zone whose memory is recreated keeps the time of its wrong absent');
asks(5);
is(checks(), 50, 'the recreated zone counts further checks');

$t->kill_worker;
is(checks(), 50, 'the death of a worker keeps the count of checks');
asks(30);
is(checks(), 80, 'the other worker and the new one count further checks');


# The counters have room for fewer rules than this configuration has.  If two
# configurations in a row lack a rule, a rule of another name takes its place
# and begins at 0.

sub many {
    my ($prefix) = @_;

    configure($ids =~ s/%s/:8m/r, join "\n", $rule, map {
        "location /$prefix$_ { bloom_reject absent \$arg_id zone=ids"
        . " name=$prefix$_; }" } 1 .. 300);
    $t->reload;
}

sub fired {
    my ($name) = @_;

    return $t->get('/bloom/metrics')->body
           =~ /^nginx_bloom_rule_requests_total\{rule="$name",.*decision="fired"\} (\d+)$/m
           ? $1 : 'none';
}

many('a');
$t->get('/a1?id=none') for 1 .. 7;
is(fired('a1'), 7, 'rule a1 counts 7 requests');
is(fired('a300'), 'none',
   'rule a300, for which there is no room, has no counter');
many('b');
is(fired('b1'), 'none',
   'rule b1 has no counter while old workers may count for rule a1');
many('b');
is(fired('b1'), 0,
   'rule b1 takes the place of a removed rule and begins at 0');
$t->get('/b1?id=none') for 1 .. 2;
is(fired('b1'), 2, 'rule b1 counts 2 requests');

configure('bloom_zone zone=other capacity=1k fpr=0.1 journal=off;', '');
$t->reload;
is(zone_state($t, 'other')->{counters}{checks}, 0,
   'a new zone begins with 0 checks');
configure($ids =~ s/%s/:8m/r, $rule);
$t->reload;
is(checks(), 89,
   'a zone that was removed and comes back keeps its count of checks');

configure('', '');
$t->reload;
is($t->get('/')->status, 404, 'a configuration without zones is accepted');
configure($ids =~ s/%s//r, $rule);
$t->reload;
asks(3);
is(last_wrong(), undef,
   'after a configuration without zones, there is no wrong absent any more');
is(checks(), 3, 'after a configuration without zones, counters begin at 0');

done_testing;
