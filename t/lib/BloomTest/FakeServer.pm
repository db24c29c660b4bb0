# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::FakeServer;

# Runs servers that answer what no real server would, each in a process of its
# own.  They listen at a port that the system chooses.

use strict;
use warnings;

use Carp qw(croak);
use Exporter qw(import);
use IO::Socket::INET;

use BloomTest::Process qw(spawn);

our @EXPORT_OK = qw(fake_server answering);


# Starts a server that calls a function for each connection, one after another,
# with the connection and its number.  Returns its process and its port.

sub fake_server {
    my ($serve) = @_;

    my $listen = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 50)
        or croak "cannot listen: $!";
    my $pid = spawn(sub {
        local $SIG{PIPE} = 'IGNORE';

        for (my $n = 0; my $client = $listen->accept; $n++) {
            $serve->($client, $n);
            close $client;
        }
    });

    return ($pid, $listen->sockport);
}


# Returns a function for fake_server() that answers whatever it reads, until the
# client closes the connection: with a text, or what a function makes of a
# command.

sub answering {
    my ($answer) = @_;

    return sub {
        my ($client) = @_;

        while (sysread $client, my $command, 65536) {
            syswrite $client, ref $answer ? $answer->($command) : $answer;
        }
    };
}


1;
