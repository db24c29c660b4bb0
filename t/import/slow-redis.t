#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A Redis server that answers too slowly is given up in bounded time, however
# often it sends a byte, and one whose answer has no end in bounded memory.

use strict;
use warnings;

use Time::HiRes qw(sleep);

use BloomTest;
use BloomTest::FakeServer qw(fake_server);
use BloomTest::Process qw(now);
use BloomTest::Tool qw(tool tool_memory tool_test);

my $t = tool_test();
my $dir = $t->testdir;

use constant MIB => 1024 * 1024;

# The time that all of it may take: a server of this test would go on for an
# hour.

my $generous = 40 * ($ENV{TEST_NGINX_SANITIZED} ? 5 : 1);
my $bound = ($ENV{TEST_NGINX_SANITIZED} ? 600 : 200) * MIB;


# Starts a server that answers the first commands with these texts, and the next
# one with what a function sends; returns its process and its port.

sub server {
    my ($last, @answers) = @_;

    return fake_server(sub {
        my ($client) = @_;

        for my $answer (@answers) {
            sysread $client, my $command, 65536;
            syswrite $client, $answer;
        }

        $last->($client);
    });
}

# Sends bytes one by one, as slowly as no limit for a read would notice.

sub drip {
    my ($bytes, $pause) = @_;

    return sub {
        my ($client) = @_;

        for (my $i = 0; ; $i++) {
            syswrite $client, substr $bytes, $i % length $bytes, 1 or return;
            sleep $pause;
        }
    };
}

sub import_from {
    my ($scheme, $format, $last, @answers) = @_;

    my ($pid, $port) = server($last, @answers);
    my $begun = now();
    my ($exit, $out, $err, $peak) = tool_memory(
        { limit => 50 }, 'import', '--timeout', 1, '-o', "$dir/x",
        '--from', $format, $format eq 'bitmap' ? ('--scheme', 'double',
        '--bits', '1g', '--hashes', 3) : (), "$scheme\@127.0.0.1:$port/1/k");
    my $took = now() - $begun;

    kill 'KILL', $pid;

    return ($exit, $err, $took, $peak);
}

for (
    ['no answer at all', 'bitmap', sub { sleep 3600 }, [], 'AUTH'],
    ['a status that drips', 'bitmap', drip('+OK ', 0.3), [], 'AUTH'],
    ['an error that drips', 'bitmap', drip('-ERR ', 0.3), ["+OK\r\n"],
     'SELECT'],
    ['a number that drips', 'bitmap', drip(':1111111111111111111', 0.3),
     ["+OK\r\n", "+OK\r\n"], 'STRLEN'],
    ['a bitmap that drips', 'bitmap', drip("\$1000\r\n" . 'x' x 1000, 0.3),
     ["+OK\r\n", "+OK\r\n", ":1000\r\n"], 'GETRANGE'],
    ['half of an answer', 'bitmap',
     sub { syswrite $_[0], "\$1000\r\nxxx"; sleep 3600 },
     ["+OK\r\n", "+OK\r\n", ":1000\r\n"], 'GETRANGE'],
    ['a chunk that drips', 'redisbloom',
     drip("*2\r\n:1\r\n\$1000\r\n" . 'x' x 1000, 0.3), ["+OK\r\n", "+OK\r\n"],
     'BF\.SCANDUMP'],
    ['a server that stops to read', 'redisbloom', sub { sleep 3600 },
     ["+OK\r\n", "+OK\r\n"], 'BF\.SCANDUMP'],
) {
    my ($what, $format, $last, $answers, $command) = @$_;
    my ($exit, $err, $took) = import_from('redis://:p', $format, $last,
                                          @$answers);

    is($exit, 2, "$what is refused");
    like($err, qr/: the server did not answer $command within 1 s; try again, or use a larger --timeout\n\z/,
         "$what is refused for its time");
    cmp_ok($took, '<', $generous, "$what is refused in bounded time");
}

# A record of TLS has a length, and its bytes drip; the client reads on within
# its library until it has all of them.

for (['no TLS at all', sub { sleep 3600 }],
     ['a record of TLS that drips',
      drip("\x16\x03\x03\x3f\xff\x02\x00\x3f\xfb" . "\0" x 16000, 0.3)],
     ['a record of TLS that stops',
      sub { syswrite $_[0], "\x16\x03\x03\x3f\xff\x02"; sleep 3600 }])
{
    my ($what, $last) = @$_;
    my ($exit, $err, $took) = import_from('rediss://:p', 'bitmap', $last);

    is($exit, 2, "$what is refused");
    like($err, qr/did not answer the TLS handshake within 1 s; .*--timeout/,
         "$what is refused for its time");
    cmp_ok($took, '<', $generous, "$what is refused in bounded time");
}

# Answers without an end, sent as fast as they are read.

sub flood {
    my ($begin, $again) = @_;

    return sub {
        my ($client) = @_;

        syswrite $client, $begin;
        my $block = $again x (MIB / length $again);

        1 while syswrite $client, $block;
    };
}

for (
    ['a string of 10 GB', flood("\$10000000000\r\n", 'x' x 1000)],
    ['a status without an end', flood('+', 'x' x 1000)],
    ['an error without an end', flood('-', 'x' x 1000)],
    ['a number without an end', flood(':', '1' x 1000)],
    ['arrays in arrays', flood('', "*1\r\n")],
    ['arrays of four in arrays', flood('', "*4\r\n:1\r\n:1\r\n:1\r\n")],
    ['an array of 2^31 members', flood("*2147483647\r\n", ":1\r\n")],
    ['maps in maps', flood('', "%1\r\n:1\r\n")],
    ['sets in sets', flood('', "~1\r\n")],
    ['strings of 10 GB in an array',
     flood("*2\r\n:1\r\n\$10000000000\r\n", 'x' x 1000)],
) {
    my ($what, $last) = @$_;
    my ($exit, $err, $took, $peak)
        = import_from('redis://:p', 'redisbloom', $last, "+OK\r\n", "+OK\r\n");

    is($exit, 2, "$what is refused");
    like($err, qr/is not valid|the answer to \S+ is longer than|did not answer \S+ within/,
         "the refusal of $what says why");
    cmp_ok($took, '<', $generous, "$what is refused in bounded time");
    cmp_ok($peak, '<', $bound, "$what is refused in bounded memory");
}

# A filter in pieces of a byte, each of which comes in time.

{
    my ($exit, $err, $took) = import_from('redis://:p', 'redisbloom', sub {
        my ($client) = @_;
        my $header = pack('Q< L< L< L<', 1, 1, 4, 2)
                     . pack('Q< Q< Q< d< d< L< Q< C', 125_000_000, 1_000_000_000,
                            0, 0.01, 10, 7, 100_000_000, 0);

        sysread $client, my $command, 65536;
        syswrite $client, "*2\r\n:1\r\n\$" . length($header)
                          . "\r\n$header\r\n";

        for (my $i = 2; sysread $client, $command, 65536; $i++) {
            syswrite $client, "*2\r\n:$i\r\n\$1\r\nx\r\n";
        }
    }, "+OK\r\n", "+OK\r\n");

    is($exit, 2, 'a filter in pieces of a byte is refused');
    like($err, qr/sends the filter in too many small chunks/,
         'the refusal of a filter in pieces of a byte says why') or diag($err);
    cmp_ok($took, '<', $generous, 'it is refused in bounded time');
}

tool(2, qr/--timeout "$_": must be a number of seconds from 1 to 86400/,
     'import', '--from',
     'guava', '-o', "$dir/x", '--timeout', $_, 'x') for '0', '-1', 'x', '86401';

done_testing;
