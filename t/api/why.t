#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests GET /keys of the endpoint, "Why is this blocked?": it looks up a key in
# all zones and says what the rules of all locations do about it.

use strict;
use warnings;

use JSON::PP ();

use BloomTest;
use BloomTest::Api;
use BloomTest::Zones;

my $t = BloomTest->new(log_level => 'debug');

$t->build_image('ids.bloom', ['id1', 'id2'], '-p', '1e-9');
$t->build_image('urls.bloom', ['http://evil.example/dir/',
                               'http://both.example/'],
                '-p', '1e-9', '--key', 'url');
$t->build_image('hosts.bloom', ['good.example', 'both.example'],
                '-p', '1e-9', '--key', 'host');
$t->build_image('old.bloom', ['x'], '-p', '1e-9', '--as-of',
                rfc3339(time - 3600 * 24 * 7));

my $conf = <<'CONF';
%%TEST_GLOBALS%%
events { }
http {
%%TEST_GLOBALS_HTTP%%
    access_log off;
    bloom_zone zone=ids file=ids.bloom;
    bloom_zone zone=bad file=urls.bloom label=URLhaus;
    bloom_zone zone=good file=hosts.bloom "label=Our partners";
    bloom_zone zone=old file=old.bloom max_age=1d;
    bloom_zone zone=idle capacity=1k fpr=1e-6;
    bloom_lookup $arg_k $known zone=ids;               # mark:known
    bloom_lookup "$arg_a-$arg_b" $pair zone=idle decode=uri; # mark:pair

    bloom_reject absent $arg_id zone=ids;              # mark:http
    server {
        listen 127.0.0.1:%%PORT_8080%%;
        server_name shop.example www.shop.example;

        location /inherits { try_files /none =204; }
        location = /exact { try_files /none =204; }
        location /go {
            bloom_pass present $arg_url zone=good;     # mark:pass
            bloom_reject present $arg_url zone=bad name=no-evil; # mark:go
            bloom_reject present $arg_url zone=idle status=451; # mark:idle
            bloom_route present $remote_addr zone=bad to=/slow; # mark:route
            location /go/in { try_files /none =204; }
            location ~ ^/go/(re) {
                bloom_dry_run on;
                try_files /none =204;
            }
            location /go/own {
                bloom_reject present $arg_urls zone=bad split=, match=all
                             invalid=fire empty=fire decode=form; # mark:split
                try_files /none =204;
            }
            try_files /none =204;
        }
        location /trial {
            bloom_dry_run on;
            bloom_reject present $arg_t zone=bad;      # mark:trial
            try_files /none =204;
        }
        location /old {
            bloom_unavailable reject;
            bloom_reject present $arg_o zone=old;      # mark:old
            try_files /none =204;
        }
        location /cond {
            bloom_reject present $arg_c zone=bad;      # mark:cond
            if ($arg_x) { set $y 1; }
            limit_except GET { deny all; }
        }
        location @named { bloom_route present $arg_n zone=bad to=@named; } # mark:named
        location /off { bloom_rules off; try_files /none =204; }
        location /bloom/ { bloom_api write=on; bloom_rules off; }
        location /reading/ { bloom_api; bloom_rules off; }
    }
    server {                                           # mark:second
        listen 127.0.0.1:%%PORT_8081%%;
        location / { try_files /none =204; }
    }
}
CONF

$t->write_file_expand('nginx.conf', $conf);

my $file = $t->testdir . '/nginx.conf';
my @lines = split /^/, $t->read_file('nginx.conf');

$t->run;


# Returns FILE:LINE of the line that ends with "# mark:NAME".

sub at {
    my ($mark) = @_;
    my ($i) = grep { $lines[$_] =~ /# mark:$mark$/ } 0 .. $#lines;

    return "$file:" . ($i + 1);
}


sub why {
    my ($key, $prefix) = @_;

    $key =~ s/([^\w.:\/-])/sprintf '%%%02X', ord $1/ge;

    return $t->get(($prefix // '/bloom') . "/keys?key=$key")->json;
}


# Returns the rule with a mark.

sub rule {
    my ($answer, $mark) = @_;

    my ($rule) = grep { $_->{at} eq at($mark) }
                 map { @{ $_->{rules} } } @{ $answer->{lists} };
    return $rule;
}


sub zone {
    my ($answer, $name) = @_;

    my ($zone) = grep { $_->{name} eq $name } @{ $answer->{zones} };
    return $zone;
}


sub sentences {
    my ($answer, $pattern) = @_;

    return join "\n", grep { /$pattern/ } @{ $answer->{summary} };
}


subtest 'the summary says in one sentence why a key is blocked' => sub {
    my $answer = why('http://www.evil.example/dir/page?q');
    my $where = 'in location /go of server shop.example and 2 more';

    is($answer->{summary}[0],
       'rejected with 403 by rule no-evil at ' . at('go') . " $where, if "
       . '$arg_url is this key: zone bad (URLhaus) finds evil.example/dir/',
       'the first sentence is about a rule whose zone finds the key');
};

print STDERR JSON::PP->new->pretty->canonical->encode(why("http://www.evil.example/dir/page?q"));
done_testing;
