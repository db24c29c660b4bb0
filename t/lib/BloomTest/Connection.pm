# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Connection;

# A TCP connection to a server that the test drives byte by byte: it can send
# slowly, read responses one after the other, close and reset.

use strict;
use warnings;

use Carp qw(croak);
use IO::Select;
use IO::Socket::INET;
use Socket qw(SOL_SOCKET SO_LINGER);
use Time::HiRes qw(sleep);

use BloomTest::Process qw(now time_limit);
use BloomTest::Response;


sub new {
    my ($class, $port) = @_;

    my $socket = IO::Socket::INET->new(
        Proto => 'tcp', PeerAddr => '127.0.0.1', PeerPort => $port,
        Timeout => time_limit())
        or croak "cannot connect to 127.0.0.1:$port: $!";

    return bless { socket => $socket, port => $port, buffer => '' }, $class;
}


# Sends text.  Options: piece (bytes to send at once), pause (seconds between
# pieces).  A server may answer and close before it has read everything, so a
# failed write is not an error here; the test looks at the answer.

sub send {
    my ($self, $text, %option) = @_;

    local $SIG{PIPE} = 'IGNORE';
    my $piece = $option{piece} || length $text || 1;

    for (my $sent = 0; $sent < length $text; ) {
        my $n = syswrite $self->{socket}, $text, $piece, $sent;
        last unless defined $n;

        $sent += $n;
        sleep $option{pause} if $option{pause} && $sent < length $text;
    }

    return $self;
}


# Returns the next response.  The method matters, because an answer to HEAD has
# no body.  If the connection ends early, the response has status 0 or is not
# complete.

sub response {
    my ($self, $method) = @_;

    my @interim;

    while (1) {
        my $head = $self->_until("\r\n\r\n");

        if (!defined $head) {
            return BloomTest::Response->new(
                status => 0, head => $self->_rest, interim => \@interim);
        }

        my $response = BloomTest::Response->new(
            head => $head, complete => 1, interim => \@interim);

        if ($response->status =~ /^1/ && $response->status != 101) {
            push @interim, $response->status;
            next;
        }

        $self->_read_body($response)
            unless ($method // '') eq 'HEAD'
                   || $response->status =~ /^(?:1..|204|304)$/;

        return $response;
    }
}


# Waits for an interim response, such as 100; returns its status.

sub interim {
    my ($self) = @_;

    my $head = $self->_until("\r\n\r\n") // '';

    return BloomTest::Response->new(head => $head)->status;
}


# Waits until the server closes; returns what it sent until then.

sub rest {
    my ($self) = @_;

    1 while $self->_fill;

    return $self->_rest;
}


sub close {
    my ($self) = @_;

    CORE::close $self->{socket};
}


# Shuts the connection down for sending; the test can still read.

sub end {
    my ($self) = @_;

    shutdown $self->{socket}, 1;
}


# Closes with a reset, like a client that disappears.

sub abort {
    my ($self) = @_;

    setsockopt $self->{socket}, SOL_SOCKET, SO_LINGER, pack('ii', 1, 0);
    CORE::close $self->{socket};
}


sub _read_body {
    my ($self, $response) = @_;

    my $length = $response->header('Content-Length');
    my $coding = $response->header('Transfer-Encoding') // '';

    if (lc $coding eq 'chunked') {
        $response->{body} = '';

        while (1) {
            my $line = $self->_until("\r\n");
            my ($size) = ($line // '') =~ /^([0-9a-fA-F]+)/;
            my $data = defined $size ? $self->_take(hex $size) : undef;
            my $end = defined $data ? $self->_until("\r\n") : undef;

            if (!defined $end || $end ne "\r\n") {
                $response->{complete} = 0;
                return;
            }

            $response->{body} .= $data;
            return if hex $size == 0;
        }
    }

    if (defined $length) {
        my $body = $self->_take($length);
        $response->{complete} = defined $body ? 1 : 0;
        $response->{body} = $body // $self->_rest;
        return;
    }

    $response->{body} = $self->rest;
}


# Reads and returns everything up to and including the mark, or nothing if the
# connection ends before it.

sub _until {
    my ($self, $mark) = @_;

    while (1) {
        my $i = index $self->{buffer}, $mark;

        return substr $self->{buffer}, 0, $i + length $mark, '' if $i >= 0;
        return unless $self->_fill;
    }
}


sub _take {
    my ($self, $length) = @_;

    while (length $self->{buffer} < $length) {
        return unless $self->_fill;
    }

    return substr $self->{buffer}, 0, $length, '';
}


sub _rest {
    my ($self) = @_;

    return substr $self->{buffer}, 0, length $self->{buffer}, '';
}


# Reads more.  Returns false at the end of the connection or after a reset.

sub _fill {
    my ($self) = @_;

    my $limit = time_limit();

    IO::Select->new($self->{socket})->can_read($limit)
        or croak "127.0.0.1:$self->{port} sent nothing for $limit s; so far:"
                 . " '$self->{buffer}'";

    return sysread $self->{socket}, $self->{buffer}, 65536,
                   length $self->{buffer};
}


1;
