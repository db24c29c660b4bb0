#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Another process holds the lock of a zone's removed keys, as a process that was
# stopped would, while a source sends changes.  The worker tries again later: it
# never sleeps, serves other requests, and applies the changes once the lock is
# free.

use strict;
use warnings;

use Config;

use BloomTest;
use BloomTest::Api;
use BloomTest::Hostile;
use BloomTest::Process qw(wait_until);
use BloomTest::Source;
use BloomTest::Zones;

plan(skip_all => 'only root can write to the memory of a worker') if $> != 0;
plan(skip_all => 'the sizes of locks are those of x86-64')
    unless $Config{archname} =~ /^x86_64/;

use constant { SIZE => 16 << 20, SLEEPS => qr/^(?:35|230) / };

my $t = BloomTest->new;

configure($t, ['zone=ids:16m capacity=10k fpr=1e-9;'
               . ' bloom_source zone=ids name=s max_lag=off'],
          api => 1, server => 'location = /other { return 200 $pid; }');
$t->run;

my ($worker) = $t->workers;

# The control block has three robust locks shared by processes in a row: of the
# helper, of the removed keys, of the tasks.  The first word of each is the
# holder, and the word at 16 is its kind.

my ($from, $to) = shared_memory($worker, SIZE);

open my $memory, '+<:raw', "/proc/$worker/mem" or die "/proc/$worker/mem: $!";
sysseek $memory, $from, 0;
sysread $memory, my $bytes, 1 << 20;

my @locks = grep {
    my $at = $_;
    !grep { unpack("x$at x$_ L<", $bytes) != 144 } 16, 56, 96;
} map { 8 * $_ } 0 .. (length($bytes) - 120) / 8;

is(@locks, 1, 'the locks are found') or BAIL_OUT('no locks');

sub hold {
    my ($holder) = @_;

    sysseek $memory, $from + $locks[0] + 40, 0;
    syswrite($memory, pack 'L<', $holder) == 4 or die "write: $!";
}

is_applied(changes($t, 'ids', 0, 1, '+a'), 1, 'changes are applied');

hold($$);

my $source = $t->connect;
$source->send("POST /bloom/zones/ids/changes?source=s&after=1&position=2"
              . " HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\n+b\n-a\n");

# samples what the worker waits for

my ($sleeps, $answered) = (0, 0);

for (1 .. 20) {
    $answered += $t->get('/other')->status == 200;

    for (1 .. 20) {
        open my $call, '<', "/proc/$worker/syscall" or die "syscall: $!";
        $sleeps += (<$call> // '') =~ SLEEPS;
        select undef, undef, undef, 0.001;
    }
}

is($answered, 20, 'other requests are answered meanwhile');
is($sleeps, 0, 'the worker never sleeps');
is(position($t, 'ids'), 1, 'the changes wait');

hold(0);

# after ten seconds they are refused, and a follower sends them again

$source->response('POST');
wait_until(sub { changes($t, 'ids', 1, 2, '+b', '-a')->status == 200 });

is(position($t, 'ids'), 2, 'they are applied afterwards');
is(ask_until_known($t, 'ids', qw(a b)), '01', 'and hold');

done_testing;
