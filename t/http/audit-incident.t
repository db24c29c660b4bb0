#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests bloom_audit and bloom_feedback in a staged incident: the image lacks
# 1,000 of the 3,000 IDs that the backend has, and it has 500 that the backend
# no longer has.  The audit finds and adds exactly the missing IDs, and the
# feedback finds the others.  bench/incident.pl measures how soon an audit of a
# fraction of the requests finds a missing ID.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(wait_until);
use BloomTest::Rules;

my $t = BloomTest->new;

my @known = map { "1$_" } 1000 .. 2999;      # in the image and the backend
my @missing = map { "2$_" } 1000 .. 1999;    # only in the backend
my @gone = map { "3$_" } 1000 .. 1499;       # only in the image
my @none = map { "4$_" } 1000 .. 1999;       # in neither

sub configure {
    my ($directives) = @_;

    configure_rules($t, { ids => [@known, @gone] }, <<"CONF",
    access_log off;
    keepalive_requests 1000000;
    bloom_state_path %%TESTDIR%%/state;

    server {
        listen 127.0.0.1:%%PORT_8080%%;
        location /bloom/ { bloom_api; }
        location ~ ^/item/(?<id>\\d+)\$ {
            $directives
            bloom_reject absent \$id zone=ids;
            bloom_feedback 404;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
    }
    server {
        listen 127.0.0.1:%%PORT_8081%%;
        location ~ ^/item/[12] { return 200 "there"; }
        location / { return 404; }
    }
CONF
                    main => 'worker_processes 2;');
}

# the capacity has room for the excepted keys

$t->build_image('ids.bloom', [@known, @gone], '-p', '1e-9', '--seed', 1,
                '-n', '5000');
configure('');
$t->run;


# Requests all these IDs and returns how many responses have status 200.

sub ask {
    my (@ids) = @_;

    my $there = 0;

    while (my @some = splice @ids, 0, 200) {
        $there += grep { $_->status == 200 }
                       $t->pipeline(map { "/item/$_" } @some);
    }

    return $there;
}

# Returns what the audit and the feedback found, once all requests have ended.

sub findings {
    my $state;

    wait_until(sub {
        $state = zone_state($t, 'ids');
        my $audit = $state->{audit};
        return $audit->{audited} == $audit->{confirmed}
                                    + $audit->{wrong_absent}
                                    + $audit->{unanswered};
    });

    return { %{ $state->{feedback} }, %{ $state->{audit} } };
}


is(ask(@known), 2000, 'requests for known IDs are passed');
is(ask(@missing), 0, 'requests for missing IDs are rejected');
is(findings()->{audited}, 0, 'no request is audited without bloom_audit');

configure('bloom_audit 100%;');
$t->reload;
my $mark = $t->log_mark;
is(ask(@known, @missing, @none, @gone), 3000,
   'bloom_audit 100% passes the requests for missing IDs');

my $found = findings();
is($found->{wrong_absent}, 1000,
   'each missing ID is counted as wrongly absent');
is($found->{confirmed}, 1000,
   'each ID of neither backend nor image is confirmed to be absent');
is($found->{unanswered}, 0, 'no audited request is unanswered');
is($found->{false_positives}, 500,
   'each ID that the backend no longer has is counted as a false positive');

my %logged = map { $_ => 1 }
    $t->log_since($mark) =~ /wrong absent: .* lacks key "(\d+)"/g;
is(join(' ', sort keys %logged), join(' ', sort @missing),
   'the error log has exactly the missing IDs');

configure('bloom_audit 100% add=on rate=1000000r/s;');
$t->reload;
is(ask(@missing), 1000, 'add=on passes the requests for missing IDs');
is(findings()->{added}, 1000, 'each missing ID is added');

configure('');
$t->reload;
is(ask(@missing), 1000,
   'requests for added IDs are passed without bloom_audit');
is(ask(@none), 0,
   'requests for IDs of neither backend nor image are rejected');
is(ask(@known), 2000, 'requests for known IDs are passed after the additions');

done_testing;
