# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Port;

# Reserves ports for scripts that run side by side.  To reserve a TCP port, a
# script binds and keeps the UDP socket of the same number.  nginx can then bind
# the TCP port, restart on it and hand it over, and no other script picks it.
#
# The numbers are below those that the kernel gives to outgoing connections.

use strict;
use warnings;

use Carp qw(croak);
use Exporter qw(import);
use IO::Socket::INET;

our @EXPORT_OK = qw(reserve_port reserve_udp_port);

use constant { FIRST => 20000, LAST => 31999 };


# Returns (port, lock).  The port is reserved as long as the lock exists.

sub reserve_port {
    my ($start) = @_;

    my $count = LAST - FIRST + 1;
    $start //= FIRST + ($$ * 31 + int rand 1000) % $count;

    for my $i (0 .. $count - 1) {
        my $port = FIRST + ($start - FIRST + $i) % $count;

        my $lock = IO::Socket::INET->new(
            Proto => 'udp', LocalAddr => '127.0.0.1', LocalPort => $port)
            or next;

        my $free = IO::Socket::INET->new(
            Proto => 'tcp', LocalAddr => '127.0.0.1', LocalPort => $port,
            Listen => 1, ReuseAddr => 1)
            or next;

        close $free;
        return ($port, $lock);
    }

    croak "no free port on 127.0.0.1 between @{[FIRST]} and @{[LAST]}";
}


# Returns (port, lock) of a UDP port.  Its lock is the TCP port of the same
# number: reserve_port() takes a number only if both are free.

sub reserve_udp_port {
    while (1) {
        my ($port, $udp) = reserve_port();

        my $lock = IO::Socket::INET->new(
            Proto => 'tcp', LocalAddr => '127.0.0.1', LocalPort => $port,
            Listen => 1, ReuseAddr => 1)
            or next;

        close $udp;
        return ($port, $lock);
    }
}


1;
