#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# This section replays false positives against a shield, without and with
# except=on of bloom_feedback, and counts the requests that reach the backend: one
# client repeats one key, and a hundred clients have a thousand keys each.  How many
# keys are excepted at a rate depends on how long a round takes, so each row has the
# seconds.

use strict;
use warnings;

use IO::Socket::INET;

use Bench;
use BloomTest::Api;
use BloomTest::Process qw(now wait_until);

my $live = 100_000;                         # keys of the image
my $repeats = quick() ? 1000 : 10_000;      # of one key
my $clients = quick() ? 10 : 100;
my $each = quick() ? 100 : 1000;            # keys of a client
my $all = $clients * $each;

my $t = BloomTest->new(log_level => 'emerg');
my $image = $t->build_image('ids.bloom', [1 .. $live], '-p', 0.01,
                            '-n', $live, '--seed', 1);


# ---- false positives ----

# Returns false positives of the image: numbers that it does not have.

sub found {
    my ($n) = @_;

    my $tool = $ENV{TEST_BLOOM_TOOL} // 'build/ngx-bloom';

    chomp(my @keys = `seq 100000001 200000000 | \Q$tool\E test \Q$image\E -f - \\
                      | sed -n 's/^present //p' | head -n $n`);

    @keys == $n or die "found only " . @keys . " false positives\n";

    return @keys;
}

my ($one, $probe, @many) = found($all + 2);


# ---- nginx ----

# Starts nginx.  The backend is a server of the same worker, and knows no key.

sub start {
    my ($except, $removals) = @_;

    $t->write_file_expand('nginx.conf', <<"CONF");
%%TEST_GLOBALS%%
worker_processes 1;
events { worker_connections 2000; }
http {
    %%TEST_GLOBALS_HTTP%%
    access_log off;
    keepalive_requests 1000000000;
    bloom_zone zone=ids file=%%TESTDIR%%/ids.bloom removals=$removals;
    upstream backend { server 127.0.0.1:%%PORT_8081%%; keepalive 8; }

    server {
        listen 127.0.0.1:%%PORT_8080%%;
        proxy_http_version 1.1;
        proxy_set_header Connection "";

        location /bloom/ { bloom_api write=on; }
        location ~ ^/item/(?<id>\\d+)\$ {
            bloom_reject absent \$id zone=ids;
            bloom_feedback 404 $except;
            proxy_pass http://backend;
        }
    }
    server {
        listen 127.0.0.1:%%PORT_8081%%;
        add_header X-Backend 1 always;
        location / { return 404 "no such item"; }
    }
}
CONF

    $t->run;

    return if $except eq '';

    # a zone excepts no key in the first second of an image

    wait_until(sub { reached(connected(), $probe) == 0 })
        or die "the zone excepts no key\n";
    api($t, POST => 'zones/ids/clear?only=excepted')->status == 200
        or die "the zone does not forget\n";
}

sub connected {
    return IO::Socket::INET->new('127.0.0.1:' . $t->port(8080))
           // die "cannot connect: $!\n";
}

sub send_requests {
    my ($socket, @keys) = @_;

    print $socket join '',
        map { "GET /item/$_ HTTP/1.1\r\nHost: x\r\n\r\n" } @keys;
    $socket->flush;
}


# Reads n responses.  Returns how many of them the backend gave.

sub responses {
    my ($socket, $n) = @_;

    my ($in, $reached) = ('', 0);

    while ($n > 0) {
        sysread $socket, $in, 1 << 16, length $in or die "cut off: $!\n";

        # a response is complete when its body has Content-Length bytes

        while ($in =~ /\AHTTP\/1\.1 404((?:.*\r\n)+?)\r\n/) {
            my ($headers, $length) = ($1, $+[0]);
            my ($body) = $headers =~ /Content-Length: (\d+)/;

            last if length $in < $length + $body;
            substr $in, 0, $length + $body, '';
            $reached++ if $headers =~ /^X-Backend/m;
            $n--;
        }
    }

    return $reached;
}


# Asks for keys, one after the other.  Returns how many requests reached the
# backend.

sub reached {
    my ($socket, @keys) = @_;

    my $reached = 0;

    while (my @some = splice @keys, 0, 200) {
        send_requests($socket, @some);
        $reached += responses($socket, scalar @some);
    }

    return $reached;
}

sub excepted { return zone_state($t, 'ids')->{removals}{count} }


# ---- one key ----

section('Replayed false positives');

line("An image of $live keys at a rate of 0.01. A backend that knows no other"
     . ' key answers 404.');
line('');

my @rows;

for (['off', ''], ['on', 'except=on after=1s']) {
    my ($name, $except) = @$_;

    start($except, 10_000);
    my $serial = reached(connected(), ($one) x $repeats);
    $t->stop;

    start($except, 10_000);
    my @sockets = map { connected() } 1 .. 100;
    my $parallel = 0;
    for (1 .. $repeats / 100) {
        send_requests($_, $one) for @sockets;
        $parallel += responses($_, 1) for @sockets;
    }
    close $_ for @sockets;
    $t->stop;

    push @rows, ["`except=$name`", $serial, $parallel];
}

table(["one false positive, $repeats times", 'reached the backend: on one'
       . ' connection', 'on 100 connections, each at the same time'], @rows);

line('Requests that are on their way when the backend answers the first one'
     . ' pass, too.');
line('');


# ---- many keys ----

@rows = ();

for (['', 10_000], ['rate=10r/s', 10_000],
     ['rate=1000r/s', 10_000], ['rate=1000000r/s', 10_000],
     ['rate=1000r/s', 4 * $all],
     ['rate=1000000r/s', 4 * $all])
{
    my ($rate, $removals) = @$_;
    my (@reached, @seconds, @excepted, @cpu);

    start($rate && "except=on after=1s $rate", $removals);

    for my $round (1 .. 2) {
        my $began = now();
        my $before = processor_time($t->workers);

        push @reached, 0;

        for my $client (0 .. $clients - 1) {
            $reached[-1] += reached(connected(),
                                    @many[$client * $each
                                          .. ($client + 1) * $each - 1]);
        }

        push @seconds, number(now() - $began);
        push @cpu, number((processor_time($t->workers) - $before) / $all * 1e6);
        push @excepted, excepted();
    }

    push @rows, [$rate ? "`$rate`, `removals=$removals`" : '`except=off`',
                 $reached[0], $excepted[0], $seconds[0], $reached[1], @cpu];

    $t->stop;
}

table(["$clients clients with $each false positives each",
       'reached the backend in the first round', 'excepted', 'seconds',
       'reached the backend in the second round',
       "the worker's microseconds for each request, first round",
       'second round'],
      @rows);

line('The clients take turns: each asks once for each of its keys. Excepted keys'
     . ' use at most half of `removals=`. The backend is a server of the same'
     . ' worker.');
line('');
