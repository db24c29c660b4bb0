#!/usr/bin/perl

# A staged incident: the image lacks 1,000 of 3,000 IDs that are there, and has
# 500 that are gone.  The audit finds each of the former and nothing else, and
# learns it; the feedback each of the latter.  bench/incident.pl measures how
# long a fraction of the requests takes to find out.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Process qw(wait_until);

my $t = BloomTest->new;

my @known = map { "1$_" } 1000 .. 2999;      # in the image, and there
my @missing = map { "2$_" } 1000 .. 1999;    # there, and not in the image
my @gone = map { "3$_" } 1000 .. 1499;       # in the image, and not there
my @none = map { "4$_" } 1000 .. 1999;       # neither

$t->build_image('ids.bloom', [@known, @gone], '-p', '1e-9', '--seed', 1);

sub configure {
    my ($directives) = @_;

    $t->write_file_expand('nginx.conf', <<"CONF");
%%TEST_GLOBALS%%
worker_processes 2;
events { }
http {
    %%TEST_GLOBALS_HTTP%%
    access_log off;
    keepalive_requests 1000000;
    bloom_state_path %%TESTDIR%%/state;
    bloom_zone zone=ids file=%%TESTDIR%%/ids.bloom;

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
}
CONF
}

configure('');
$t->run;


# Asks for all these; how many were answered with 200.

sub ask {
    my (@ids) = @_;

    my $there = 0;

    while (my @some = splice @ids, 0, 200) {
        $there += grep { $_->status == 200 }
                       $t->pipeline(map { "/item/$_" } @some);
    }

    return $there;
}

# The audit's and the feedback's findings, once all requests have ended.

sub findings {
    my $state;

    wait_until(sub {
        $state = zone_state($t, 'ids');
        my $audit = $state->{audit};
        return $audit->{audited} == $audit->{confirmed}
                                    + $audit->{wrong_absent}
                                    + $audit->{unanswered};
    });

    return { %{ $state->{audit} }, %{ $state->{feedback} } };
}


is(ask(@known), 2000, 'customers with a known ID');
is(ask(@missing), 0, 'those with another are turned away');
is(findings()->{audited}, 0, 'and nobody notices');

configure('bloom_audit 100%;');
$t->reload;
my $mark = $t->log_mark;
is(ask(@known, @missing, @none, @gone), 3000, 'all are let through');

my $found = findings();
is($found->{wrong_absent}, 1000, 'each missing one is noticed');
is($found->{confirmed}, 1000, 'each that is not there is confirmed');
is($found->{unanswered}, 0, 'no other');
is($found->{false_positives}, 500, 'each that is gone');

my %logged = map { $_ => 1 }
    $t->log_since($mark) =~ /wrong absent: .* lacks key "(\d+)"/g;
is(join(' ', sort keys %logged), join(' ', sort @missing),
   'the log has their keys');

configure('bloom_audit 100% learn=on;');
$t->reload;
is(ask(@missing), 1000, 'learning');
is(findings()->{learned}, 1000, 'each is learnt');

configure('');
$t->reload;
is(ask(@missing), 1000, 'and passes from then on');
is(ask(@none), 0, 'what is not there does not');
is(ask(@known), 2000, 'what is there does');

done_testing;
