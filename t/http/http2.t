#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests rules and bloom_lookup under HTTP/2: each stream of a connection is
# decided once and independently of the others.

use strict;
use warnings;

use IO::Socket::INET;

use BloomTest;
use BloomTest::Process qw(time_limit);
use BloomTest::Rules;

my $t = BloomTest->new;

plan skip_all => 'curl or nginx has no HTTP/2' unless $t->has_http2;

configure_rules($t, { ids => ['one', 'a b'], bad => ['evil'] }, <<'CONF');
    bloom_lookup $arg_id $known zone=ids;

    server {
        listen 127.0.0.1:%%PORT_8080%% http2;
        add_header X-Bloom "$bloom_status $bloom_zone$http2" always;

        location / {
            bloom_reject absent $arg_id zone=ids decode=form;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /route {
            bloom_route absent $arg_id zone=ids to=@listed;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location @listed {
            bloom_reject present $arg_id zone=bad;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /page {
            bloom_reject absent $arg_id zone=ids;
            error_page 404 = /listed?id=evil;
        }
        location /listed {
            bloom_reject present $arg_id zone=bad;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
        location /lookup { return 200 "<$known>"; }
    }
CONF

my $backend = $t->backend(8081, sub { "backend $_[0]{method} $_[0]{body}" });

$t->run;


sub is_outcome {
    my ($path, $expected, $what, @options) = @_;

    my $r = $t->get_http2($path, @options);

    is($r->status . ' ' . ($r->header('X-Bloom') // ''), $expected, $what);

    return $r;
}


subtest 'rules decide about requests over HTTP/2' => sub {
    is_outcome('/?id=one', '200 PASSED idsh2c',
               'a request for a present key is passed');
    is_outcome('/?id=a+b', '200 PASSED idsh2c',
               'a request for a present key is passed after decoding');
    is_outcome('/?id=none', '404 REJECTED idsh2c',
               'a request for an absent key is rejected');
    is_outcome('/', '200 h2c', 'a request without a key has no outcome');
    is_outcome('/route?id=one', '200 PASSED idsh2c',
               'a request for a present key is not routed');
    is_outcome('/route?id=none', '200 ROUTED idsh2c',
               'a request for an absent key is routed');
    is_outcome('/route?id=evil', '403 REJECTED badh2c',
               'a routed request is rejected by a rule of its target');
    is($t->get_http2('/lookup?id=one')->body, '<1>',
       'the variable of bloom_lookup is 1 for a present key');

    my $mark = $t->log_mark;
    is_outcome('/page?id=none', '200 REJECTED idsh2c',
               'a rejected request is answered with its error page');
    is(scalar(() = $t->log_since($mark) =~ /rejecting request/g), 1,
       'a rejected request is not checked again for its error page');
};


subtest 'a routed request keeps its body over HTTP/2' => sub {
    my $r = is_outcome('/route?id=none', '200 ROUTED idsh2c',
                       'a POST request for an absent key is routed',
                       body => 'x=1');
    is($r->body, 'backend POST x=1', 'a routed POST request keeps its body');
};


# Sends a GET for each path over one connection, all at once.  Returns the
# status of each response: 200, 404, or else its encoding in hexadecimal.

sub streams {
    my ($port, @paths) = @_;

    my $socket = IO::Socket::INET->new(
        Proto => 'tcp', PeerAddr => '127.0.0.1', PeerPort => $port)
        or die "cannot connect: $!";

    local $SIG{ALRM} = sub { die "no answer in time\n" };
    alarm time_limit();

    my $frame = sub {
        my ($type, $flags, $stream, $payload) = @_;
        return substr(pack('N', length $payload), 1)
               . pack('CCN', $type, $flags, $stream) . $payload;
    };

    # HPACK: the method and the scheme by index, path and authority as text

    my $id = 1;
    my $requests = join '', map {
        my $text = $frame->(1, 5, $id, "\x82\x86" . pack('CC/aCC/a', 4, $_,
                                                         1, 'localhost'));
        $id += 2;
        $text;
    } @paths;

    syswrite $socket, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
                      . $frame->(4, 0, 0, '') . $requests;

    my (%status, %ended);

    while (keys %ended < @paths) {
        read($socket, my $head, 9) == 9 or die "the connection ends\n";
        my ($high, $low, $type, $flags, $stream) = unpack 'CnCCN', $head;

        my $payload = '';
        read $socket, $payload, $high << 16 | $low;

        if ($type == 1) {
            my ($first) = unpack 'C', $payload =~ s/^[\x20-\x3f]+//r;
            $status{$stream} = { 0x88 => 200, 0x8d => 404 }->{$first}
                               // sprintf '0x%02x', $first;
        }

        $ended{$stream} = 1 if $type < 2 && $flags & 1;
    }

    alarm 0;
    close $socket;

    return @status{ map { 2 * $_ + 1 } 0 .. $#paths };
}


subtest 'each stream of a connection is decided alone' => sub {
    my @paths = map { ("/?id=none$_", '/lookup', '/?id=one') } 1 .. 20;
    my @got = streams($t->port(8080), @paths);

    is("@got", join(' ', map { /none/ ? 404 : 200 } @paths),
       'each of 60 streams gets the response to its own key');
};


done_testing;
