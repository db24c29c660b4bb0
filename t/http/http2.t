#!/usr/bin/perl

# HTTP/2: the streams of a connection are requests like others, each decided
# once and alone.

use strict;
use warnings;

use IO::Socket::INET;

use BloomTest;
use BloomTest::Process qw(time_limit);

my $t = BloomTest->new;

plan skip_all => 'curl or nginx without HTTP/2' unless $t->has_http2;

$t->build_image('ids.bloom', ['one', 'a b'], '-p', '1e-9', '--seed', 1);
$t->build_image('bad.bloom', ['evil'], '-p', '1e-9', '--seed', 1);

$t->write_file_expand('nginx.conf', <<'CONF');
%%TEST_GLOBALS%%
events { }
http {
    %%TEST_GLOBALS_HTTP%%
    bloom_zone zone=ids file=%%TESTDIR%%/ids.bloom;
    bloom_zone zone=bad file=%%TESTDIR%%/bad.bloom;
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


subtest 'outcomes' => sub {
    is_outcome('/?id=one', '200 PASSED idsh2c', 'passed');
    is_outcome('/?id=a+b', '200 PASSED idsh2c', 'decoded');
    is_outcome('/?id=none', '404 REJECTED idsh2c', 'rejected');
    is_outcome('/', '200 h2c', 'unchecked');
    is_outcome('/route?id=one', '200 PASSED idsh2c', 'not routed');
    is_outcome('/route?id=none', '200 ROUTED idsh2c', 'routed');
    is_outcome('/route?id=evil', '403 REJECTED badh2c',
               'rejected where it was routed');
    is($t->get_http2('/lookup?id=one')->body, '<1>', 'lookup');

    my $mark = $t->log_mark;
    is_outcome('/page?id=none', '200 REJECTED idsh2c', 'a page for it');
    is(scalar(() = $t->log_since($mark) =~ /rejecting request/g), 1,
       'is not checked');
};


subtest 'bodies' => sub {
    my $r = is_outcome('/route?id=none', '200 ROUTED idsh2c', 'a POST routed',
                       body => 'x=1');
    is($r->body, 'backend POST x=1', 'with its body');
};


# Sends a GET for each path over one connection, all at once, and returns the
# status of each answer: 200, 404, or what is neither.

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

    # HPACK: the method, the scheme, then path and authority as they are

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


subtest 'many streams of one connection' => sub {
    my @paths = map { ("/?id=none$_", '/lookup', '/?id=one') } 1 .. 20;
    my @got = streams($t->port(8080), @paths);

    is("@got", join(' ', map { /none/ ? 404 : 200 } @paths),
       'each is decided alone');
};


done_testing;
