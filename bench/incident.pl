#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# This section stages an incident: the image lacks 1,000 of 100,000 existing
# IDs. It counts the requests until the audit reports this and the customers
# turned away until then, and shows what the feedback measures meanwhile. Other
# work on the machine does not affect a count of requests; seconds assume 1,000
# requests per second.

use strict;
use warnings;

use IO::Socket::INET;
use List::Util qw(sum max);

use Bench;
use BloomTest::Api;
use BloomTest::Process qw(wait_until);

my $live = 100_000;
my $missing = 1000;
my $scanned = 0.1;          # share of requests for IDs that do not exist
my $rate = 1000;            # requests a second
my $fpr = 1e-3;

# fraction of the audit in percent, and number of rounds

my @audits = quick() ? ([1, 3]) : ([0.1, $ENV{BENCH_ROUNDS} // 15], [1, 40]);

srand 1;                    # for the IDs; nginx draws the audited requests

my $t = BloomTest->new(log_level => 'emerg');

$t->build_image('ids.bloom', [$missing + 1 .. $live], '-p', $fpr,
                '-n', $live - $missing, '--seed', 1);

sub conf {
    my ($audit) = @_;

    $t->write_file_expand('nginx.conf', <<"CONF");
%%TEST_GLOBALS%%
worker_processes 1;
events { }
http {
    %%TEST_GLOBALS_HTTP%%
    access_log off;
    keepalive_requests 1000000000;
    bloom_zone zone=ids file=%%TESTDIR%%/ids.bloom;
    upstream backend { server 127.0.0.1:%%PORT_8080%%; keepalive 8; }

    server {
        listen 127.0.0.1:%%PORT_8080%%;
        proxy_http_version 1.1;
        proxy_set_header Connection "";

        location /bloom/ { bloom_api; }
        location ~ ^/item/(?<id>\\d+)\$ {
            bloom_reject absent \$id zone=ids;
            bloom_feedback 404;
            bloom_audit $audit%;
            add_header X-Bloom \$bloom_status always;
            proxy_pass http://backend/there/\$id;
        }
        location ~ "^/there/(100000|\\d{1,5})\$" { return 200; }
        location /there/ { return 404; }
    }
}
CONF
}


# Sends a batch of requests. Returns for each its ID, $bloom_status and the
# response's status.

my $connection;

sub ask {
    my (@ids) = @_;

    $connection //= IO::Socket::INET->new("127.0.0.1:" . $t->port(8080))
        or die "cannot connect: $!\n";

    print $connection join '',
        map { "GET /item/$_ HTTP/1.1\r\nHost: x\r\n\r\n" } @ids;
    $connection->flush;

    my ($in, @seen) = ('');

    while (@seen < @ids) {
        sysread $connection, $in, 1 << 16, length $in or die "cut off: $!\n";

        # a response is complete when its body has Content-Length bytes

        while ($in =~ /\AHTTP\/1\.1 (\d+)((?:.*\r\n)+?)\r\n/) {
            my ($status, $headers, $length) = ($1, $2, $+[0]);
            my ($body) = $headers =~ /Content-Length: (\d+)/;

            last if length $in < $length + $body;
            push @seen, [$ids[@seen], $headers =~ /X-Bloom: (\w+)/, $status];
            substr $in, 0, $length + $body, '';
        }
    }

    return @seen;
}

sub any_id {
    return rand() < $scanned ? 1_000_000 + int rand 1e9 : 1 + int rand $live;
}


# Sends requests until the audit has found a missing ID. Returns the number of
# requests, and of customers that were turned away before.

my @left;

sub until_told {
    my ($requests, $away) = (0, 0);

    while (1) {
        @left = ask(map { any_id() } 1 .. 200) unless @left;

        while (my $seen = shift @left) {
            my ($id, $decided, $status) = @$seen;

            $requests++;
            return ($requests, $away)
                if $decided eq 'AUDITED' && $status == 200;
            $away++ if $decided eq 'REJECTED' && $id <= $missing;
        }
    }
}


section('A staged incident');

line("An image lacks $missing of $live existing IDs. There are $rate requests"
     . " per second; " . 100 * $scanned . ' % of them are for IDs that do not'
     . ' exist, and the others are spread evenly over the existing IDs.');
line('');

my (@rows, @measured);

for (@audits) {
    my ($audit, $rounds) = @$_;
    my (@seconds, @away);

    conf($audit);
    $t->run;

    for (1 .. $rounds) {
        my ($requests, $away) = until_told();
        push @seconds, $requests / $rate;
        push @away, $away;
    }

    my $told = (1 - $scanned) * $missing / $live * $audit / 100;
    my $state;

    wait_until(sub {
        $state = zone_state($t, 'ids');
        return $state->{audit}{audited} == $state->{audit}{confirmed}
                                           + $state->{audit}{wrong_absent};
    });
    $state->{audit}{wrong_absent} >= $rounds
        or die "the endpoint says of $rounds: $state->{audit}{wrong_absent}\n";

    push @rows, ["$audit %", $rounds, map { number($_) }
                 1 / $told / $rate, sum(@seconds) / @seconds,
                 median(@seconds), max(@seconds), sum(@away) / @away,
                 $state->{audit}{confirmed} / $rounds];
    push @measured, ["$audit %", map { number($_) }
                     $state->{feedback}{absent}
                     + $state->{feedback}{false_positives},
                     $state->{feedback}{false_positives}];
    push @{ $measured[-1] }, map { sprintf '%.3f %%', 100 * $_ }
        $state->{feedback}{measured_fpr}, $state->{filter}{estimated_fpr},
        $state->{image}{fpr};

    close $connection;
    undef $connection;
    @left = ();
    $t->stop;
}

table(['bloom_audit', 'rounds', 'expected s', 'mean s', 'median s',
       'longest s', 'customers turned away before',
       'confirmed absents meanwhile'], @rows);

line('');
line('Time until the first wrong absent is logged. The expected mean is 1'
     . ' divided by the product of requests per second, share of missing IDs,'
     . ' and fraction of the audit; the expected median is 0.69 of it.');
line('');

table(['bloom_audit', 'requests for IDs that do not exist', 'passed',
       'measured rate', 'estimated rate', 'target'], @measured);

line('');
line('What `bloom_feedback` measured of the same requests. Missing IDs that'
     . ' were turned away count as IDs that do not exist.');
