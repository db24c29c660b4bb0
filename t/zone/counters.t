#!/usr/bin/perl

# Counters never go backwards: not at a reload, not when a zone's memory is
# made anew, not when a worker dies.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(wait_until);

my $t = BloomTest->new;

$t->build_image('ids.bloom', ['one'], '-p', '1e-9', '--seed', 1);

sub configure {
    my ($zone, $rest) = @_;

    $t->write_file_expand('nginx.conf', <<"CONF");
%%TEST_GLOBALS%%
worker_processes 2;
events { }
http {
    %%TEST_GLOBALS_HTTP%%
    $zone
    server {
        listen 127.0.0.1:%%PORT_8080%%;
        location /bloom/ { bloom_api write=on; }
        $rest
    }
}
CONF
}

my $rule = 'location / { bloom_reject absent $arg_id zone=ids name=shield; }';
my $ids = 'bloom_zone zone=ids%s file=%%TESTDIR%%/ids.bloom;';

sub checks { return zone_state($t, 'ids')->{counters}{checks} }

sub asks {
    my ($times) = @_;

    $t->get('/?id=one') for 1 .. $times;
}

configure($ids =~ s/%s//r, $rule);
$t->run;

asks(40);
is(checks(), 40, 'counted by two workers');

$t->reload;
is(checks(), 40, 'a reload');
asks(5);

configure($ids =~ s/%s/:8m/r, $rule);
my $mark = $t->log_mark;
$t->reload;
$t->wait_for_log(qr/its memory is made anew/, $mark);
is(checks(), 45, 'new memory');
asks(5);
is(checks(), 50, 'which counts on');

$t->kill_worker;
is(checks(), 50, 'a dead worker');
asks(30);
is(checks(), 80, 'and those that live');


# More rules than there is room for; then others, twice: these take the places
# of those that nobody has claimed any more, and begin at 0.

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
is(fired('a1'), 7, 'a rule');
is(fired('a300'), 'none', 'one that finds no room');
many('b');
is(fired('b1'), 'none', 'workers may still count for those before');
many('b');
is(fired('b1'), 0, 'then they make room');
$t->get('/b1?id=none') for 1 .. 2;
is(fired('b1'), 2, 'for others');

configure('bloom_zone zone=other capacity=1k fpr=0.1 journal=off;', '');
$t->reload;
is(zone_state($t, 'other')->{counters}{checks}, 0, 'another zone');
configure($ids =~ s/%s/:8m/r, $rule);
$t->reload;
is(checks(), 89, 'the zone was away');

configure('', '');
$t->reload;
is($t->get('/')->status, 404, 'no zone at all');
configure($ids =~ s/%s//r, $rule);
$t->reload;
asks(3);
is(checks(), 3, 'begins anew');

done_testing;
